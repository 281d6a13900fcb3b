"""Made-up rows and answers are as declared, and come from nothing else."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction

import numpy as np
import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from samples.declared import TABLES

from modicum.core.errors import Code, InputError
from modicum.escrow.dummy_data import ROWS_MAX, dummy_answers, dummy_rows, with_noise
from modicum.escrow.programs import Cell, Table
from modicum.query.groups import groups_of
from modicum.query.parser import parse_query
from modicum.query.tables import Column, ColumnType, Tables
from modicum.query.tables import Table as Declared
from modicum.release.parts import Part


def fits(cell: Cell, column: Column) -> bool:
    """Return whether a cell is as its column is declared."""
    if column.values is not None:
        return cell in column.values
    if column.type in ("integer", "number"):
        if type(cell) is not (int if column.type == "integer" else float):
            return False
        assert isinstance(cell, int | float)
        if column.low is None or column.high is None:
            return True
        steps = Fraction(cell) / column.step
        near = abs(steps - round(steps)) < Fraction(1, 10**6)
        return near and column.low <= Fraction(str(cell)) <= column.high
    if column.type == "boolean":
        return isinstance(cell, bool)
    assert isinstance(cell, str)
    if column.type == "date":
        return date.fromisoformat(cell).isoformat() == cell
    if column.type == "timestamp":
        return datetime.fromisoformat(cell).isoformat() == cell
    return bool(cell)


@st.composite
def columns(draw: st.DrawFn, name: str) -> Column:
    types: list[ColumnType] = [
        "text",
        "integer",
        "number",
        "boolean",
        "date",
        "timestamp",
    ]
    kind = draw(st.sampled_from(types))
    if kind in ("integer", "number") and draw(st.booleans()):
        step = (
            Fraction(1)
            if kind == "integer"
            else draw(st.sampled_from([Fraction(1, 100), Fraction(1, 4), Fraction(5)]))
        )
        low = draw(st.integers(-20, 20))
        high = draw(st.integers(low, 40))
        return Column(name, kind, step=step, low=low * step, high=high * step)
    if kind in ("text", "integer") and draw(st.booleans()):
        texts, numbers = st.text(min_size=1), st.integers(-99, 99)
        values: st.SearchStrategy[str | int] = texts if kind == "text" else numbers
        listed = draw(st.lists(values, min_size=1, max_size=4, unique=True))
        return Column(name, kind, values=tuple(listed))
    step = Fraction(1, 2) if kind == "number" else Fraction(1)
    return Column(name, kind, step=step)


@st.composite
def declared(draw: st.DrawFn) -> Tables:
    names = ["a", "b", "c", "d"][: draw(st.integers(1, 4))]
    by_name = {name: draw(columns(name)) for name in names}
    row_id = tuple(names[: draw(st.integers(0, len(names)))])
    one_per = draw(st.none() | st.sampled_from(names))
    ids = draw(st.frozensets(st.sampled_from(names)))
    return Tables({"t": Declared("t", by_name, row_id, one_per)}, ids)


@given(declared(), st.integers(0, 40), st.integers(0, 2**32))
@settings(max_examples=examples(200), deadline=None)
def test_rows_are_as_declared(tables: Tables, many: int, seed: int) -> None:
    table = tables.by_name["t"]
    found = dummy_rows(tables, "t", many, random.Random(seed))
    assert found.columns == tuple(table.columns)
    assert len(found.rows) <= many
    assert many == 0 or found.rows
    for row in found.rows:
        for cell, column in zip(row, table.columns.values(), strict=True):
            assert fits(cell, column), (cell, column)
    for unique in (table.row_id, (table.one_per,) if table.one_per else ()):
        if not unique:
            continue
        places = [found.columns.index(one) for one in unique]
        result = [tuple(row[place] for place in places) for row in found.rows]
        assert len(set(result)) == len(result)
    assert found == dummy_rows(tables, "t", many, random.Random(seed))


@pytest.mark.parametrize("name", TABLES.by_name)
def test_tables_have_as_many_rows_as_asked_for(name: str) -> None:
    for dice in (random.Random(1), np.random.default_rng(1)):
        assert len(dummy_rows(TABLES, name, 50, dice).rows) == 50


def test_people_are_the_same_in_all_tables() -> None:
    dice = random.Random(2)
    views = dummy_rows(TABLES, "views", 90, dice)
    users = dummy_rows(TABLES, "users", 30, dice)
    place = views.columns.index("user_id")
    seen = {row[place] for row in views.rows}
    assert seen <= {row[users.columns.index("user_id")] for row in users.rows}
    assert 5 < len(seen) < 90


def test_rows_that_cannot_be_made_are_refused() -> None:
    for many in (-1, ROWS_MAX + 1):
        with pytest.raises(InputError) as caught:
            dummy_rows(TABLES, "views", many, random.Random(1))
        assert caught.value.code is Code.OUT_OF_RANGE
    with pytest.raises(InputError) as caught:
        dummy_rows(TABLES, "view", 1, random.Random(1))
    assert 'did you mean "views"?' in caught.value.render()


def answers(sql: str, part: Part | None = None) -> Table:
    query = parse_query(sql, TABLES, "query.sql")
    return dummy_answers(query, TABLES, random.Random(3), part or Part())


def test_answers_have_the_public_groups_in_order() -> None:
    sql = "SELECT page, country, COUNT(*) AS n FROM views GROUP BY page, country"
    found = answers(sql)
    query = parse_query(sql, TABLES, "query.sql")
    assert found.columns == ("page", "country", "n")
    groups = list(groups_of(query.keys, TABLES, Part()))
    assert [row[:2] for row in found.rows] == groups
    assert all(type(row[2]) is int and row[2] >= 0 for row in found.rows)


def test_answers_lie_within_bounds() -> None:
    found = answers(
        "SELECT region, COUNT(*) AS n, AVG(age) AS m, SUM(age) AS s, MEDIAN(age) AS q,"
        " STDDEV(age) AS d, VARIANCE(age) AS v FROM users GROUP BY region"
    )
    assert [row[0] for row in found.rows] == [f"region-{n}" for n in range(5)]
    for row in found.rows:
        n, mean, total, middle, deviation, variance = row[1:]
        assert isinstance(n, int)
        for one in (mean, middle):
            assert isinstance(one, float)
            assert 0 <= one <= 120
        assert isinstance(total, float)
        assert 0 <= total <= 120 * n
        assert isinstance(deviation, float)
        assert isinstance(variance, float)
        assert 0 <= deviation <= 60
        assert 0 <= variance <= 3600


def test_one_answer_over_all_rows_is_one_row() -> None:
    assert len(answers("SELECT COUNT(*) AS n FROM views").rows) == 1


@pytest.mark.parametrize("grain", ["day", "week", "month", "quarter", "year"])
def test_periods_that_are_not_public_begin_when_such_periods_do(grain: str) -> None:
    found = answers(
        f"SELECT DATE_TRUNC('{grain}', event_time) AS p, COUNT(*) AS n FROM views"
        f" GROUP BY DATE_TRUNC('{grain}', event_time)"
    )
    from modicum.query.groups import first_day

    days = [date.fromisoformat(str(row[0])).toordinal() for row in found.rows]
    assert days == sorted(set(days))
    assert len(days) >= 4
    assert [first_day(day, grain) for day in days] == days  # type: ignore[arg-type]


def test_noise_is_on_the_measures_only() -> None:
    found = answers(
        "SELECT page, country, COUNT(*) AS n, AVG(age) AS m FROM views"
        " GROUP BY page, country"
    )
    found = replace(found, rows=(*found.rows * 500, ("x", "y", None, True)))
    noisy = with_noise(found, Fraction(10), random.Random(4), "n", "m")
    assert [row[:2] for row in noisy.rows] == [row[:2] for row in found.rows]
    assert noisy.rows[-1] == ("x", "y", None, True)
    for place, kind in ((2, int), (3, float)):
        pairs = zip(found.rows[:-1], noisy.rows[:-1], strict=True)
        moves = [new[place] - old[place] for old, new in pairs]  # type: ignore[operator]
        assert all(type(one) is kind for one in moves)
        # The mean of the size of Laplace noise is its scale.
        assert 8.5 < sum(map(abs, moves)) / len(moves) < 11.5
        assert abs(sum(moves) / len(moves)) < 1.5
    with pytest.raises(InputError) as caught:
        with_noise(found, Fraction(1), random.Random(4), "nn")
    assert caught.value.code is Code.UNKNOWN_NAME


def test_too_many_groups_are_refused() -> None:
    listed = tuple(range(ROWS_MAX + 1))
    column = Column("k", "integer", values=listed)
    wide = Tables({"t": Declared("t", {"k": column, "i": Column("i", "text")}, ("i",))})
    query = parse_query("SELECT k, COUNT(*) AS n FROM t GROUP BY k", wide, "q")
    with pytest.raises(InputError) as caught:
        dummy_answers(query, wide, random.Random(1))
    assert caught.value.code is Code.TOO_LARGE
