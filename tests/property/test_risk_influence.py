"""Moves in closed form are those of leaving each person out, one by one.

Tables have NULLs in every column, persons with many rows and with none that counts,
rows of nobody, groups that vanish, duplicates, ties, and no rows at all.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from budget import examples, seed
from oracle import influence as oracle
from samples.spark import spark_or_skip

from modicum.engines.duckdb_engine import DuckdbEngine, DuckdbOptions
from modicum.engines.spark_engine import SparkEngine
from modicum.engines.sql_engine import SqlEngine
from modicum.risk.influence.statement import PeopleGroup
from modicum.risk.measurement.influence import measure, measure_again
from modicum.risk.profile import Influence
from modicum.risk.question import read_condition, read_question

MEASURES = {
    "COUNT(*)": ("rows", ""),
    "COUNT({0})": ("count", "xyzg"),
    "SUM({0})": ("sum", "xyz"),
    "AVG({0})": ("avg", "xyz"),
    "VAR_POP({0})": ("var_pop", "xyz"),
    "VARIANCE({0})": ("var_samp", "xyz"),
    "STDDEV_POP({0})": ("stddev_pop", "xyz"),
    "STDDEV({0})": ("stddev_samp", "xyz"),
    "MIN({0})": ("min", "xyz"),
    "MAX({0})": ("max", "xyz"),
    "MEDIAN({0})": ("median", "xyz"),
    "COUNT(DISTINCT {0})": ("distinct", "xyzg"),
}
Kept = Callable[[oracle.Row], bool]
CONDITIONS: dict[str, Kept] = {
    "": lambda row: True,
    "x < 4": lambda row: row["x"] is not None and row["x"] < 4,
    "y = 1 OR g = 'a'": lambda row: row["y"] == 1 or row["g"] == "a",
    "g IS NULL": lambda row: row["g"] is None,
    "x > 1e9": lambda row: row["x"] is not None and row["x"] > 1e9,
}
#: How rows of `t` are read with those of `s` (some persons have none, some several)
#: and of `w`, which holds nobody's rows.
SOURCES = {
    "t": "",
    "t JOIN s ON t.u = s.u": "s",
    "t LEFT JOIN s USING (u)": "s left",
    "t JOIN w ON t.g = w.h": "w",
    "t LEFT JOIN w ON t.g = w.h": "w left",
}


@dataclass(frozen=True)
class Case:
    """Tables, a query, and what it reads of each row."""

    tables: dict[str, pa.Table]
    sql: str
    unit: str | None
    source: str
    condition: str
    keys: list[str]
    measures: list[tuple[str, oracle.Read]] = field(default_factory=list)


def column(name: str) -> oracle.Read:
    return lambda row: row[name]


def case_of(number: int) -> Case:
    """Return a random case."""
    draw = random.Random(number)
    size = draw.choice([0, 1, 2, 3, 4, 6, 6, 10, 10, 30])
    numbers: list[float | None] = [None, 0.0, 1.0, 2.5, -3.25, 7.0, 1000.0]
    if draw.random() < 0.5:
        numbers = [None, *(draw.gauss(0, 10) for _ in range(12))]
    persons = draw.choice([1, 3, 8])
    units = [None, *range(persons)]
    tables = {
        "t": pa.table(
            {
                "u": pa.array(draw.choices(units, k=size), pa.int64()),
                "x": pa.array(draw.choices(numbers, k=size), pa.float64()),
                "y": pa.array(draw.choices([None, 1, 2, -7], k=size), pa.int32()),
                "g": pa.array(draw.choices([None, "a", "b", "c"], k=size), pa.string()),
            }
        ),
        "s": pa.table(
            {
                "u": pa.array(draw.choices([*units, 99], k=5), pa.int64()),
                "z": pa.array(draw.choices([None, 1.5, 2.5, -4.0], k=5), pa.float64()),
            }
        ),
        "w": pa.table({"h": ["a", "b", "b"], "z": [1.0, 2.0, 5.0]}),
    }
    unit = draw.choice([None, "u"])
    source = draw.choice(list(SOURCES)) if unit else "t"
    condition = draw.choice(["", "", "", "x < 4", "x < 4", *CONDITIONS])
    keys = draw.choice([[], [], ["g"], ["y", "g"]])
    outputs, measures = list(keys), []
    for form in draw.sample(list(MEASURES), k=draw.choice([1, 1, 2, 4])):
        name, columns = MEASURES[form]
        columns = columns if source != "t" else columns.replace("z", "")
        of = draw.choice(columns) if columns else ""
        outputs.append(form.format(of))
        measures.append((name, column(of or "x")))
    where = f" WHERE {condition}" if condition else ""
    group = f" GROUP BY {', '.join(keys)}" if keys else ""
    sql = f"SELECT {', '.join(outputs)} FROM {source}{where}{group}"
    return Case(tables, sql, unit, source, condition, keys, measures)


def joined(case: Case, without: Callable[[int, oracle.Row], bool]) -> list[oracle.Row]:
    """Return the rows that a query reads, but for some of `t` and `s`."""
    rows = [
        row
        for number, row in enumerate(case.tables["t"].to_pylist())
        if not without(number, row)
    ]
    name, _, left = SOURCES[case.source].partition(" ")
    if not name:
        return rows
    others = [
        row
        for row in case.tables[name].to_pylist()
        if name == "w" or not without(-1, row)
    ]
    mine, theirs = ("u", "u") if name == "s" else ("g", "h")
    found = []
    for row in rows:
        same = [
            one for one in others if row[mine] is not None and one[theirs] == row[mine]
        ]
        found += [{**row, "z": one["z"]} for one in same]
        if left and not same:
            found.append({**row, "z": None})
    return found


def expected(case: Case) -> list[list[float]]:
    """Return the moves of each person, in the order of coordinates."""
    kept = CONDITIONS[case.condition]

    def asked(without: Callable[[int, oracle.Row], bool]) -> Any:
        rows = joined(case, without)
        return oracle.answer(rows, kept, case.keys, case.measures)

    whole = asked(lambda number, row: False)
    if case.unit is None:
        leaving = [
            (lambda number, row, one=one: number == one)
            for one in range(case.tables["t"].num_rows)
        ]
    else:
        units = set(case.tables["t"]["u"].to_pylist())
        if SOURCES[case.source].startswith("s"):
            units |= set(case.tables["s"]["u"].to_pylist())
        leaving = [
            (lambda number, row, one=one: row["u"] == one) for one in units - {None}
        ]
    return [oracle.moves(whole, asked(one)) for one in leaving]


def told(influence: Influence) -> Iterator[list[float]]:
    """Yield the moves of each person."""
    for kind, number in enumerate(influence.people):
        first, last = influence.starts[kind : kind + 2]
        for _ in range(number):
            yield list(influence.moves[first:last])


def same(left: Sequence[float], right: Sequence[float]) -> bool:
    """Tell whether moves are the same, those of 0 aside."""
    width = max(len(left), len(right))
    padded = [sorted([*one, *[0.0] * (width - len(one))]) for one in (left, right)]
    return all(
        math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
        for one, other in zip(*padded, strict=True)
    )


def assert_moves(influence: Influence, wanted: list[list[float]], case: Case) -> None:
    """Each person is told once, as she is wanted."""
    left = [list(one) for one in wanted]
    for found in told(influence):
        for place, one in enumerate(left):
            if same(found, one):
                del left[place]
                break
        else:
            raise AssertionError((case.sql, case.unit, found, wanted))
    assert left == [], (case.sql, case.unit, left)


def check_cases(engine_of: Callable[[dict[str, Any]], SqlEngine], number: int) -> None:
    """Check so many cases, some of them in one engine at a time."""
    seen = Counter[str]()
    first = int(seed()) * 1_000_000
    for start in range(0, number, 20):
        cases = [case_of(first + one) for one in range(start, min(start + 20, number))]
        tables = {
            f"{name}{place}": table
            for place, case in enumerate(cases)
            for name, table in case.tables.items()
        }
        with engine_of(tables) as engine:
            for place, case in enumerate(cases):
                wanted = expected(case)
                found = measured(engine, case, place, measure)
                assert_moves(found, wanted, case)
                seen[case.sql.split("(", maxsplit=1)[0]] += 1
                seen["moved"] += any(any(one) for one in wanted)
                seen["units"] += case.unit is not None
                seen["joined"] += case.source != "t"
    assert seen["moved"] > number // 3, seen
    assert seen["units"] > number // 4, seen
    assert seen["joined"] > number // 8, seen


def measured(
    engine: SqlEngine,
    case: Case,
    place: int,
    how: Callable[..., Influence],
    groups: dict[str, str] | None = None,
) -> Influence:
    """Return the influence that an engine finds."""
    columns = {
        name: found
        for name, found in engine.columns().items()
        if name[1:] == str(place)
    }
    sql = case.sql
    for name in "tsw":
        sql = sql.replace(f" {name}.", f" {name}{place}.")
        sql = sql.replace(f" {name} ", f" {name}{place} ")
        sql = f"{sql} ".replace(f" {name} ", f" {name}{place} ").strip()
    question = read_question(sql, columns, case.unit)
    assert how is measure_again or question.obstacle == "", question.obstacle
    parted = [
        PeopleGroup(name, *read_condition(text, columns))
        for name, text in (groups or {}).items()
    ]
    return how(engine, question, parted)


def one_thread(tables: dict[str, Any]) -> SqlEngine:
    return DuckdbEngine(tables, DuckdbOptions(threads=1))


@pytest.mark.soak
@pytest.mark.spec("RSK-13")
def test_closed_forms_are_leaving_one_out_on_duckdb() -> None:
    check_cases(one_thread, examples(300))


@pytest.mark.soak
@pytest.mark.spec("RSK-13")
def test_closed_forms_are_leaving_one_out_on_spark() -> None:
    options = spark_or_skip()
    check_cases(lambda tables: SparkEngine(tables, options), examples(20))


@pytest.mark.soak
@pytest.mark.spec("RSK-14")
def test_asking_again_is_leaving_one_out() -> None:
    for number in range(examples(40)):
        case = case_of(int(seed()) * 1_000_000 + 500_000 + number)
        tables = {f"{name}0": table for name, table in case.tables.items()}
        with one_thread(tables) as engine:
            found = measured(engine, case, 0, measure_again)
        assert_moves(found, expected(case), case)
