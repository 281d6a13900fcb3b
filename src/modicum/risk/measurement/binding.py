"""Whether an engine understands a query, found out over tables without rows.

What an engine says of rows may quote them, so nothing of it is told. What it says over
tables that have none is about the query and the columns alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from sqlglot import exp

from modicum.core.diagnostics import nearest
from modicum.core.errors import Code, InputError, Problem
from modicum.engines.duckdb_engine import DuckdbEngine
from modicum.engines.sql_engine import SqlEngine
from modicum.risk.influence.leave_one_out import asked_without
from modicum.risk.influence.statement import PeopleGroup, statement
from modicum.risk.question import Question

#: What it must not reach for.
_CLOSED: Final[dict[str, str | bool | int | float | list[str]]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
}
_NAMELESS: Final = re.compile(r'Referenced (column|table) "([^"]*)" not found')
_SEVERAL: Final = re.compile(r'Ambiguous reference to column name "([^"]*)"')
_NO_FUNCTION: Final = re.compile(r"Function with name (\S+) does not exist")
#: The values of an enumeration may be those of rows.
ENUM: Final = re.compile(r"ENUM\('(?:[^']|'')*'(?:, '(?:[^']|'')*')*\)")


def must_bind(
    engine: SqlEngine, question: Question, groups: Sequence[PeopleGroup] = ()
) -> None:
    """Refuse a query that its engine would not understand; no row is read.

    Args:
        engine: What would read the tables. Only DuckDB is asked.
        question: The query.
        groups: Groups of people, whose conditions are looked at, too.

    Raises:
        InputError: If a name, a function or a type does not fit.
    """
    if not isinstance(engine, DuckdbEngine):
        return
    import duckdb

    relations = engine.relations()
    types = {table: engine.types(table) for table in {*question.tables, *_read(groups)}}
    asked = [asked_without(question, relations, engine.columns(), None)]
    if not question.obstacle:
        asked.append(statement(question, relations, groups).sql)
    asked += [
        exp.select("1").from_(relations[one.table]).where(one.condition).sql("duckdb")
        for one in groups
    ]
    with duckdb.connect(":memory:", config=_CLOSED) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for table, columns in types.items():
            connection.execute(_empty(relations[table], columns))
        for text in asked:
            try:
                connection.execute(f"EXPLAIN {text}")
            except duckdb.Error as error:
                raise _misunderstood(str(error), question) from None


def _read(groups: Iterable[PeopleGroup]) -> set[str]:
    return {one.table for one in groups}


def _empty(relation: str, columns: Mapping[str, str]) -> str:
    """Return the statement of a table that has columns and no rows."""
    listed = ", ".join(
        f"{exp.to_identifier(name, quoted=True).sql('duckdb')}"
        f" {ENUM.sub('VARCHAR', type_of)}"
        for name, type_of in columns.items()
    )
    return f"CREATE TABLE {relation} ({listed})"


def _misunderstood(said: str, question: Question) -> InputError:
    first = said.partition("\n")[0].partition(": ")[2][:400]
    if found := _NAMELESS.search(said):
        what, name = found[1], found[2]
        known = question.columns if what == "column" else _called(question)
        return _mistake(
            Code.UNKNOWN_NAME,
            f"unknown {what} `{name[:60]}`",
            "known: " + (", ".join(sorted(known))[:400] or "none"),
            nearest(name, known),
        )
    if found := _SEVERAL.search(said):
        return _mistake(
            Code.UNKNOWN_NAME,
            f"`{found[1][:60]}` may mean several columns",
            "write the table's name before it",
        )
    if found := _NO_FUNCTION.search(said):
        return _mistake(
            Code.NOT_IN_SUBSET,
            f"DuckDB has no function `{found[1][:60]}`",
            "use a function of DuckDB",
        )
    return _mistake(
        Code.DOES_NOT_FIT,
        "the query does not fit its tables",
        "correct the query",
        note=f"DuckDB says: {first}",
    )


def _called(question: Question) -> list[str]:
    return [one.alias_or_name for one in question.select.find_all(exp.Table)]


def _mistake(
    code: Code, message: str, remedy: str, near: str = "", *, note: str = ""
) -> InputError:
    notes = (note,) if note else ()
    return InputError(Problem(code, message, label=near, notes=notes, help=remedy))
