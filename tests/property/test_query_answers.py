"""What is computed of answers, against DuckDB on the released values, and the truth."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import product
from typing import Any

import duckdb
import pytest
from budget import counted, examples, seed
from samples.declared import TABLES
from samples.drawn_answers import (
    AGGREGATES,
    KEYS,
    DrawnQuery,
    computed,
    drawn_query,
)

from modicum.query.aggregates import statistics_of
from modicum.query.answer_expressions import Cell, Column, column_of, sure
from modicum.query.compiler import CompiledQuery, Line
from modicum.query.model import Query
from modicum.query.parser import parse_query
from modicum.query.request import QueryRequest
from modicum.query.results import Answers, answers_of
from modicum.query.statistics import ExactPlan, KeyValue
from modicum.release.parts import EVERYTHING

CONFIDENCE = Fraction(9, 10)
GROUPS: list[tuple[KeyValue, ...]] = [
    *product(
        ("help", "main", None), ("2026-11-01", "2026-11-02", "2026-11-03"), (3, 12)
    )
]
#: The aggregates as they are, of which all is computed.
PLAIN = DrawnQuery([f"{{{name}}}" for name in AGGREGATES])
_CLOSE = 1e-9


def lowered(query: Query, scale: Fraction = Fraction(3)) -> CompiledQuery:
    """Return a query with the same noise in all mechanisms."""
    asked = QueryRequest(query, TABLES, (), "laplace", "user", Fraction(1))
    every = tuple(range(len(query.keys)))
    lines = tuple(
        Line(one.name, one, every, serves, {}, scale, Fraction(1))
        for one, serves in statistics_of(query.aggregates, TABLES, 64).items()
    )
    plan = ExactPlan(query, TABLES, EVERYTHING, None, (), (), {})
    return CompiledQuery(asked, {}, {}, 2, (), lines, {}, None, plan)


Noisy = dict[str, dict[tuple[KeyValue, ...], int]]


def drawn_numbers(dice: random.Random, found: CompiledQuery) -> Noisy:
    """Return released numbers; equal ones, and some that look alike, are frequent."""
    lots = {
        "rows": lambda: dice.randrange(-3, 9),
        "distinct": lambda: dice.randrange(-1, 4),
        "total": lambda: 25 * dice.randrange(-8, 40),  # Floats hold it exactly.
    }
    numbers: dict[tuple[object, object], dict[tuple[KeyValue, ...], int]] = {}
    named: Noisy = {}
    for line in found.lines:
        one = line.statistic
        cells = {group: lots[one.kind]() for group in GROUPS}
        if one.kind == "rows" and one.name.endswith(".rows"):
            cells = {group: 40 * value for group, value in cells.items()}
        named[one.name] = numbers.setdefault((one.kind, one.value), cells)
    return named


def same_numbers(drawn: CompiledQuery, known: CompiledQuery, noisy: Noisy) -> Noisy:
    """Return released numbers for another query, by what they are of."""
    of = {
        (line.statistic.kind, line.statistic.value): noisy[line.statistic.name]
        for line in known.lines
    }
    return {
        line.statistic.name: of[line.statistic.kind, line.statistic.value]
        for line in drawn.lines
    }


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect(":memory:", config={"threads": 1})
    connection.execute("SET ieee_floating_point_ops = false")
    connection.execute("SET error_on_division_by_zero = false")
    yield connection
    connection.close()


def write(plain: duckdb.DuckDBPyConnection, released: Answers) -> None:
    """Write released answers to a table."""
    numbers = ", ".join(f"{name} DOUBLE" for name in AGGREGATES)
    plain.execute(
        "CREATE OR REPLACE TABLE released"
        f" (page TEXT, day DATE, decade DOUBLE, {numbers})"
    )
    rows = [
        [*row.keys, *(None if one.value is None else float(one.value)
                      for one in row.estimates)]
        for row in released.rows
    ]  # fmt: skip
    marks = ", ".join("?" for _ in rows[0])
    plain.executemany(f"INSERT INTO released VALUES ({marks})", rows)


def close(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is None and other is None
    return abs(float(one) - float(other)) <= _CLOSE * max(1, abs(float(other)))


@pytest.mark.spec("QRY-24")
def test_answers_are_computed_as_sql_means_it(plain: duckdb.DuckDBPyConnection) -> None:
    dice = random.Random(int(seed()))
    known = lowered(parse_query(PLAIN.asked(), TABLES))
    noisy: Noisy = {}
    seen = {"rows": 0, "fewer": 0, "nulls": 0, "ordered": 0}
    for number in range(counted(400)):
        if number % 20 == 0:
            noisy = drawn_numbers(dice, known)
            write(plain, answers_of(known, noisy, CONFIDENCE))
        drawn = drawn_query(dice)
        found = lowered(parse_query(drawn.asked(), TABLES))
        ours = answers_of(found, same_numbers(found, known, noisy), CONFIDENCE)
        rows = plain.execute(drawn.plain("released")).fetchall()
        theirs = [
            (page, day.isoformat(), int(decade), *cells)
            for page, day, decade, *cells in rows
        ]
        told = [(*row.keys, *(one.value for one in row.estimates)) for row in ours.rows]
        if not drawn.order and not drawn.ends:
            told, theirs = (sorted(one, key=by_keys) for one in (told, theirs))
        assert [row[:3] for row in told] == [row[:3] for row in theirs], drawn.asked()
        for mine, other in zip(told, theirs, strict=True):
            for value, expected in zip(mine[3:], other[3:], strict=True):
                assert close(value, expected), (drawn.asked(), mine, other)
        seen["rows"] += len(told)
        seen["fewer"] += 0 < len(told) < len(GROUPS)
        seen["nulls"] += any(None in row[3:] for row in told)
        seen["ordered"] += len(told) > 1 and bool(drawn.order)
    assert min(seen.values()) > counted(400) / 10, seen


def by_keys(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple((one is None, one or 0) for one in row[:3])


# --- intervals ------------------------------------------------------------------------


def spread(dice: random.Random, value: Fraction) -> Cell:
    """Return a released number with an interval, or none."""
    if dice.random() < 0.03:
        return Cell(None)
    if dice.random() < 0.03:
        return Cell(value)
    least, most = (Fraction(dice.randrange(6), 2) for _ in range(2))
    return Cell(value, value - least, value + most)


def truth_of(dice: random.Random, cell: Cell) -> Cell:
    """Return a true number within an interval, at an end more often than elsewhere."""
    if cell.sure:
        return cell
    if cell.low is None or cell.high is None:
        return sure(dice.choice((None, Fraction(0), Fraction(7))))
    share = dice.choice((0, 0, 1, 1, Fraction(1, 2), Fraction(1, 3)))
    return sure(cell.low + share * (cell.high - cell.low))


@pytest.mark.spec("QRY-25")
def test_an_interval_holds_the_truth_whenever_those_of_all_aggregates_do() -> None:
    dice = random.Random(int(seed()) + 1)
    bounded = surely = 0
    for _ in range(examples(800)):
        text = DrawnQuery([computed(dice)])
        query = parse_query(text.asked(), TABLES)
        (output,) = query.outputs
        groups = dice.sample(GROUPS, 4)
        columns: dict[str, Column] = {
            name: [sure(group[place]) for group in groups]
            for place, name in enumerate(KEYS)
        }
        for one in query.aggregates:
            drawn = (Fraction(dice.randrange(-8, 24), 2) for _ in groups)
            columns[one.name] = [spread(dice, value) for value in drawn]
        found = column_of(output.value, columns, range(len(groups)))
        for _ in range(12):
            true = truths(dice, columns)
            exact = column_of(output.value, true, range(len(groups)))
            for cell, answer in zip(found, exact, strict=True):
                if cell.sure:
                    surely += 1
                    assert cell.value == answer.value, text.asked()
                if cell.low is not None:
                    bounded += 1
                    assert cell.high is not None
                    assert isinstance(answer.value, Fraction), text.asked()
                    assert cell.low <= answer.value <= cell.high, text.asked()
    assert bounded > examples(800) * 5
    assert surely > examples(800) / 4


def truths(dice: random.Random, columns: Mapping[str, Column]) -> dict[str, Column]:
    return {
        name: [truth_of(dice, cell) for cell in cells]
        for name, cells in columns.items()
    }
