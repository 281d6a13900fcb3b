"""Of those who move an answer so far, as many are told of each group as there are.

And an answer has as many coordinates as it has numbers, whoever moves them.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from budget import examples, seed
from oracle import influence as oracle

from modicum.engines.duckdb_engine import DuckdbEngine, DuckdbOptions
from modicum.risk.influence.statement import PeopleGroup
from modicum.risk.measurement.influence import measure, measure_again
from modicum.risk.profile import Influence
from modicum.risk.question import read_condition, read_question

Row = dict[str, Any]
Told = Counter[tuple[tuple[float, ...], str]]

MEASURES = {
    "COUNT(*)": "rows",
    "SUM(x)": "sum",
    "AVG(x)": "avg",
    "MAX(x)": "max",
    "VAR_POP(x)": "var_pop",
    "MEDIAN(x)": "median",
    "COUNT(DISTINCT x)": "distinct",
}
#: What is counted, and of which rows.
CONDITIONS = {
    "": lambda row: True,
    " WHERE y = 1": lambda row: row["y"] == 1,
    " WHERE x > 1e9": lambda row: row["x"] is not None and row["x"] > 1e9,
}
#: Groups of people: by their own rows of `t`, whether these count or not.
GROUPS = {
    "x < 2": lambda row: row["x"] is not None and row["x"] < 2,
    "y = 1 OR g = 'b'": lambda row: row["y"] == 1 or row["g"] == "b",
    "x IS NULL": lambda row: row["x"] is None,
}


def table_of(draw: random.Random) -> pa.Table:
    size = draw.choice([0, 1, 2, 5, 12])
    return pa.table(
        {
            "u": pa.array(draw.choices([None, 1, 2, 3, 4], k=size), pa.int64()),
            "x": pa.array(draw.choices([None, 0.0, 1.5, -3.0, 7.0], k=size)).cast("f8"),
            "y": pa.array(draw.choices([None, 1, 2], k=size), pa.int64()),
            "g": pa.array(draw.choices([None, "a", "b"], k=size), pa.string()),
        }
    )


def told(kinds: Iterable[tuple[Iterable[float], int, dict[str, int]]]) -> Told:
    """Count people by their moves, and of each group."""
    found: Told = Counter()
    for moves, people, members in kinds:
        moved = tuple(sorted(round(one, 9) + 0.0 for one in moves if abs(one) > 1e-10))
        found[moved, "all"] += people
        for name, number in members.items():
            found[moved, name] += number
    return +found


def of_influence(influence: Influence) -> Told:
    ends = list(zip(influence.starts[:-1], influence.starts[1:], strict=True))
    return told(
        (
            influence.moves[first:last].tolist(),
            int(influence.people[kind]),
            {name: int(each[kind]) for name, each in influence.members.items()},
        )
        for kind, (first, last) in enumerate(ends)
    )


def by_leaving_out(
    rows: list[Row], unit: str | None, condition: str, keys: list[str], measure: str
) -> tuple[int, Told]:
    """Return how many coordinates an answer has, and what is to be told of people."""

    def asked(of: list[Row]) -> dict[tuple[Any, ...], list[float]]:
        read = [(MEASURES[measure], lambda row: row["x"])]
        return oracle.answer(of, CONDITIONS[condition], keys, read)

    def kinds() -> Iterator[tuple[Iterable[float], int, dict[str, int]]]:
        whole = asked(rows)
        for own in persons(rows, unit):
            others = [row for row in rows if not any(row is one for one in own)]
            members = {name: int(any(map(of, own))) for name, of in GROUPS.items()}
            yield oracle.moves(whole, asked(others)), 1, members

    return sum(map(len, asked(rows).values())), told(kinds())


def persons(rows: list[Row], unit: str | None) -> list[list[Row]]:
    """Return the rows of each person; rows of nobody are nobody's."""
    if unit is None:
        return [[row] for row in rows]
    ids = {row[unit] for row in rows} - {None}
    return [[row for row in rows if row[unit] == one] for one in ids]


@pytest.mark.spec("RSK-1")
@pytest.mark.parametrize("how", [measure, measure_again])
def test_people_of_groups_are_counted_with_those_who_move_as_far(how: Any) -> None:
    number, several = examples(120), 0
    draw = random.Random(seed())
    tables = {f"t{one}": table_of(draw) for one in range(number)}
    with DuckdbEngine(tables, DuckdbOptions(threads=1)) as engine:
        for name, table in tables.items():
            unit = draw.choice([None, "u"])
            condition = draw.choice(list(CONDITIONS))
            keys = draw.choice([[], [], ["g"]])
            asked = draw.choice(list(MEASURES))
            group = f" GROUP BY {keys[0]}" if keys else ""
            sql = f"SELECT {', '.join([*keys, asked])} FROM {name}{condition}{group}"
            columns = {name: engine.columns()[name]}
            groups = [PeopleGroup(one, *read_condition(one, columns)) for one in GROUPS]
            found = how(engine, read_question(sql, columns, unit), groups)
            rows = table.to_pylist()
            size, wanted = by_leaving_out(rows, unit, condition, keys, asked)
            assert of_influence(found) == wanted, (sql, unit, rows)
            if wanted:  # Without people nothing is measured.
                assert found.dimensions == size, (sql, unit, rows)
            several += len({moves for moves, _ in wanted}) > 1
    assert several > number // 4


@pytest.mark.spec("RSK-1")
def test_a_group_by_rows_of_another_table_has_nobody_of_this_one() -> None:
    own = pa.table({"u": [1, 2], "x": [1.0, 2.0]})
    other = pa.table({"u": [1, 1], "z": [5.0, 6.0]})
    with DuckdbEngine({"t": own, "s": other}, DuckdbOptions(threads=1)) as engine:
        columns = engine.columns()
        question = read_question("SELECT SUM(x) FROM t", columns, "u")
        group = PeopleGroup("those", *read_condition("z > 5", columns))
        found = measure(engine, question, [group])
    assert found.people.sum() == 2
    assert found.members["those"].sum() == 0
