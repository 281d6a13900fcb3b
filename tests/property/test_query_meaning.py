"""A query that is read means what the same text means to an engine.

DuckDB answers the text itself, and the query that was read of it, written anew with
all of its brackets. Both answers must agree, also where the text was changed and still
read.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import duckdb
import pytest
from budget import counted, examples, seed
from samples.declared import TABLES
from samples.drawn_queries import Drawer, drawn, spoiled
from samples.written_expressions import Written

from modicum.core.errors import ModicumError
from modicum.core.rationals import number_text
from modicum.query.model import Aggregate, ColumnRef, Expression, Key, Query
from modicum.query.parser import parse_query
from modicum.query.tables import Table, Value

_TYPES = {
    "text": "VARCHAR",
    "integer": "BIGINT",
    "number": "DECIMAL(18, 2)",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}
_ROWS = 40
_FUNCTIONS = {
    ("sum", False): "sum({})",
    ("avg", False): "avg({})",
    ("variance", False): "var_samp({})",
    ("variance", True): "var_pop({})",
    ("stddev", False): "stddev_samp({})",
    ("stddev", True): "stddev_pop({})",
    ("count", False): "count({})",
    ("count-distinct", False): "count(DISTINCT {})",
}


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    dice = random.Random(f"data {seed()}")
    connection = duckdb.connect(":memory:", config={"threads": 1})
    for table in TABLES.by_name.values():
        declared = ", ".join(
            f'"{column.name}" {_TYPES[column.type]}'
            for column in table.columns.values()
        )
        connection.execute(f'CREATE TABLE "{table.name}" ({declared})')
        for place in range(_ROWS):
            row = ", ".join(_row(dice, table, place))
            connection.execute(f'INSERT INTO "{table.name}" VALUES ({row})')
    yield connection
    connection.close()


def _row(dice: random.Random, table: Table, place: int) -> Iterator[str]:
    for column in table.columns.values():
        if column.name == "user_id" and column.type == "text":
            yield f"'user {place if table.one_per else dice.randrange(_ROWS)}'"
        elif dice.random() < 0.2:
            yield "NULL"
        elif column.name in ("age", "clicks"):
            yield str(dice.randrange(-9, 9))
        else:
            yield written(Drawer(dice).value(column))


# --- writing a query with all of its brackets -----------------------------------------


def written(value: Value) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    number = number_text(value) if not isinstance(value, int) else str(value)
    return f"({number})"


def column(reference: ColumnRef) -> str:
    return f'"{reference.table}"."{reference.column}"'


def written_out(one: Expression) -> str:
    return Written(column).text(one)


def key(one: Key) -> str:
    if one.grain is None:
        return written_out(one.value)
    return f"date_trunc('{one.grain}', {written_out(one.value)})"


def aggregate(one: Aggregate) -> str | None:
    """Return an aggregate; None for a quantile, which has several definitions."""
    if one.value is None:
        return "count(*)"
    form = _FUNCTIONS.get((one.function, one.population))
    return None if form is None else form.format(written_out(one.value))


def canonical(query: Query) -> str:
    result = [key(one) for one in query.keys]
    result += [aggregate(one) or "count(*)" for one in query.aggregates]
    read = f'"{query.tables[0]}"'
    for table in query.tables[1:]:
        mine = f'"{query.tables[0]}"."{query.joined_on}"'
        read += f' JOIN "{table}" ON {mine} = "{table}"."{query.joined_on}"'
    where = written_out(query.where) if query.where is not None else "TRUE"
    group = " GROUP BY " + ", ".join(map(key, query.keys)) if query.keys else ""
    return f"SELECT {', '.join(result)} FROM {read} WHERE {where}{group}"


def answer(engine: duckdb.DuckDBPyConnection, sql: str, query: Query) -> object:
    """Return the rows of an answer in any order, without quantiles."""
    left = [len(query.keys) + n for n, a in enumerate(query.aggregates) if a.share]
    rows = engine.execute(sql).fetchall()
    return sorted(
        tuple(
            "quantile" if place in left else _plain(cell)
            for place, cell in enumerate(row)
        )
        for row in rows
    )


def _plain(cell: object) -> str:
    if isinstance(cell, float):
        return f"{cell:.9g}"
    return str(cell).removesuffix(" 00:00:00")


def compared(engine: duckdb.DuckDBPyConnection, text: str) -> str:
    """Return what came of a text: refused, unknown to the engine, or the same."""
    try:
        query = parse_query(text, TABLES)
    except ModicumError:
        return "refused"
    ordered: list[Key | Aggregate] = [*query.keys, *query.aggregates]
    marks = [(one.mark.line, one.mark.column) for one in ordered if one.mark]
    if marks != sorted(marks):
        return "told in another order"
    try:
        theirs = answer(engine, text, query)
    except duckdb.Error:
        return "unknown"
    assert answer(engine, canonical(query), query) == theirs, text
    return "same" if theirs else "empty"


def test_a_query_that_is_drawn_means_the_same(
    engine: duckdb.DuckDBPyConnection,
) -> None:
    found = [compared(engine, drawn(place)[1]) for place in range(examples(250))]
    assert set(found) <= {"same", "empty", "unknown"}
    assert found.count("same") >= len(found) * 0.6, found


#: What is exchanged for what; a query stays a query, and means something else.
_TURNS = [
    (" AND ", " OR "),
    (" OR ", " AND "),
    (" AND ", " AND NOT "),
    ("NOT ", ""),
    (" IN (", " NOT IN ("),
    (" IS NULL", " IS NOT NULL"),
    (" = ", " <> "),
    (" < ", " >= "),
    ("COUNT(", "COUNT(DISTINCT "),
    ("WHERE", "WHERE NOT"),
    ("where", "where age IS NULL OR"),
]


def turned(dice: random.Random, text: str) -> str:
    for _ in range(3):
        old, new = dice.choice(_TURNS)
        places = [one for one in range(len(text)) if text.startswith(old, one)]
        if places:
            place = dice.choice(places)
            text = text[:place] + new + text[place + len(old) :]
    return text


@pytest.mark.spec("QRY-1")
@pytest.mark.parametrize(("change", "same"), [(turned, 60), (spoiled, 10)])
def test_a_query_that_is_changed_and_read_means_the_same(
    engine: duckdb.DuckDBPyConnection,
    change: Callable[[random.Random, str], str],
    same: int,
) -> None:
    found = []
    for place in range(counted(400)):
        dice = random.Random(f"meaning {seed()} {place}")
        found.append(compared(engine, change(dice, drawn(place)[1])))
    assert found.count("same") >= same, {one: found.count(one) for one in found}
