"""Which groups an answer has: public values, and periods of the days that are read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from samples import asked
from samples.declared import TABLES

from modicum.query.contribution_bounds import UNBOUNDED, Moves
from modicum.query.groups import (
    GROUPS_MAX,
    Grouping,
    first_day,
    groups_of,
    number_of_values,
    shape_of,
    values_of,
)
from modicum.query.model import ColumnRef, Grain, Key
from modicum.query.sensitivity import Shape
from modicum.query.statistics import Cap
from modicum.release.parts import EVERYTHING, FIRST_DAY, LAST_DAY, Part
from modicum.release.units import Unit

GRAINS: tuple[Grain, ...] = ("day", "week", "month", "quarter", "year")
MONDAY = date(2026, 9, 28).toordinal()
UNITS = {
    "user": Unit("user", "user_id"),
    "user-month": Unit("user-month", "user_id", "month", "event_time", ("user",)),
    "user-day": Unit("user-day", "user_id", "day", "event_time", ("user-month",)),
    "device": Unit("device", "device_id", within=("user",)),
}


def key(column: str, grain: Grain | None = None) -> Key:
    return Key(column, ColumnRef("views", column), grain)


def slowly(day: int, grain: Grain) -> str:
    """Return the first day of a period: the last one before that begins one."""
    at = date.fromordinal(day)
    begins: Callable[[date], bool] = {
        "day": lambda _: True,
        "week": lambda one: one.weekday() == 0,
        "month": lambda one: one.day == 1,
        "quarter": lambda one: one.day == 1 and one.month in {1, 4, 7, 10},
        "year": lambda one: one.day == one.month == 1,
    }[grain]
    while not begins(at):
        at -= timedelta(days=1)
    return at.isoformat()


@settings(max_examples=examples(100), deadline=None)
@given(st.sampled_from(GRAINS), st.integers(8, LAST_DAY - 900), st.integers(0, 800))
def test_periods_are_those_that_the_days_lie_in(
    grain: Grain, first: int, length: int
) -> None:
    wanted = list(
        dict.fromkeys(slowly(day, grain) for day in range(first, first + length + 1))
    )
    if date.fromordinal(first).year == 1:
        return  # Weeks of the first year begin before there are days.
    part = Part(None, ((first, first + length),), None)
    assert list(values_of(key("event_time", grain), TABLES, part) or ()) == wanted
    day = first + length
    assert date.fromordinal(first_day(day, grain)).isoformat() == slowly(day, grain)


def test_days_apart_make_periods_once() -> None:
    part = Part(None, ((MONDAY, MONDAY + 1), (MONDAY + 3, MONDAY + 9)), None)
    weeks = values_of(key("event_time", "week"), TABLES, part)
    assert weeks == ("2026-09-28", "2026-10-05")
    days = values_of(key("event_time", "day"), TABLES, part)
    assert days is not None
    assert len(days) == 9


@pytest.mark.parametrize(
    "part",
    [
        EVERYTHING,
        Part(None, ((FIRST_DAY, MONDAY),), None),
        Part(None, ((MONDAY, LAST_DAY),), None),
        Part(None, ((10**5, 10**5 + GROUPS_MAX),), None),
    ],
)
def test_periods_without_an_end_are_not_listed(part: Part) -> None:
    assert values_of(key("event_time", "year"), TABLES, part) is None
    assert number_of_values(key("event_time", "year"), TABLES, part) == UNBOUNDED


def test_a_date_that_tells_time_is_a_day() -> None:
    part = Part(None, ((MONDAY, MONDAY + 1),), None)
    days = ("2026-09-28", "2026-09-29")
    assert values_of(key("event_date"), TABLES, part) == days
    assert values_of(key("event_date", "day"), TABLES, part) == days


def test_groups_are_all_pairs_of_values_in_order() -> None:
    part = Part(None, ((MONDAY, MONDAY + 1),), None)
    keys = [key("event_time", "day"), key("page")]
    found = list(groups_of(keys, TABLES, part))
    assert found == [
        ("2026-09-28", "help"),
        ("2026-09-28", "main"),
        ("2026-09-29", "help"),
        ("2026-09-29", "main"),
    ]
    assert [number_of_values(one, TABLES, part) for one in keys] == [2, 2]
    assert list(groups_of([], TABLES, part)) == [()]
    assert number_of_values(key("mobile"), TABLES, part) == UNBOUNDED


@pytest.mark.parametrize(
    ("values", "groups"),
    [([], 1), ([2, 3], 6), ([2, UNBOUNDED], UNBOUNDED), ([2**40, 2**40], UNBOUNDED)],
)
def test_groups_are_as_many_as_there_are_pairs(values: list[int], groups: int) -> None:
    keys = [key("page")] * len(values)
    assert Grouping(keys, values, [], UNITS).groups == groups


# --- how rows are spread --------------------------------------------------------------


@pytest.mark.spec("QRY-7")
@pytest.mark.parametrize(
    ("grain", "caps", "together"),
    [
        ("day", {"user-day": 10, "user-month": 70}, 10),
        ("month", {"user-day": 10, "user-month": 70}, 70),
        ("week", {"user-day": 10, "user-month": 80}, 70),
        ("week", {"user-day": 50, "user-month": 70}, 140),
        ("day", {"user-month": 70}, 70),
        ("quarter", {"user-day": 10, "user-month": 70}, 210),
        ("quarter", {"user-day": 10, "user": 90}, 90),
        (None, {"user-day": 10}, UNBOUNDED),
        ("day", {"device": 3}, UNBOUNDED),
    ],
)
def test_a_key_parts_what_caps_keep_of_its_periods(
    grain: Grain | None, caps: dict[str, int], together: int
) -> None:
    keys = [key("page"), key("event_time", grain)] if grain else [key("page")]
    kept = [Cap(unit, rows) for unit, rows in caps.items()]
    grouping = Grouping(keys, [7] * len(keys), kept, UNITS)
    found = shape_of(Moves(100, 0, {"user_id": 1}), "user-month", grouping)
    assert found == Shape(7 ** len(keys), together)
    found = shape_of(Moves(100, 0, {"user_id": 2}), "user-month", grouping)
    assert found.together == min(2 * together, UNBOUNDED)
    found = shape_of(Moves(100, 0), "user-month", grouping)
    assert found == Shape(7 ** len(keys), UNBOUNDED)


@pytest.mark.spec("QRY-7")
@pytest.mark.parametrize(
    ("grain", "touched", "groups"),
    [
        ("day", {"user-day": 2}, 2 * 9),
        ("day", {"user-day": 200}, 100 * 9),
        ("week", {"user-month": 1}, 6 * 9),
        ("week", {"user-month": 1, "user-day": 3}, 3 * 9),
        ("quarter", {"user-month": 3}, 3 * 9),
        ("month", {"user": 1}, 100 * 9),
        ("month", {"device": 1}, 100 * 9),
        (None, {"user": 1, "user-day": 1}, 100 * 9),
    ],
)
def test_rows_move_in_the_groups_of_the_periods_that_are_touched(
    grain: Grain | None, touched: dict[str, int], groups: int
) -> None:
    keys = [key("event_time", grain), key("page")]
    moves = Moves(1000, 1000, {"user_id": 1}, touched=touched)
    found = shape_of(moves, "user-day", Grouping(keys, [100, 9], [], UNITS))
    assert found.groups == groups


@pytest.mark.spec("QRY-7")
@pytest.mark.parametrize(
    ("grain", "unit", "ids", "apart"),
    [
        ("day", "user-day", 1, True),
        ("day", "user-month", 1, True),
        ("month", "user-month", 1, True),
        ("week", "user-month", 1, False),
        ("quarter", "user-month", 1, False),
        (None, "user-day", 1, False),
        ("day", "user-day", 2, False),
    ],
)
def test_what_comes_meets_what_goes_where_periods_of_a_key_reach_over_both(
    grain: Grain | None, unit: str, ids: int, *, apart: bool
) -> None:
    grouping = Grouping([key("event_time", grain)], [100], [], UNITS)
    moves = Moves(5, 5, {"user_id": ids}, apart=True)
    assert shape_of(moves, unit, grouping).apart is apart
    assert not shape_of(replace(moves, apart=False), unit, grouping).apart


def test_the_clock_of_another_column_parts_nothing() -> None:
    grouping = Grouping([key("event_date", "day")], [7], [Cap("user-day", 10)], UNITS)
    moves = Moves(9, 0, {"user_id": 1}, apart=True, touched={"user-day": 1})
    assert shape_of(moves, "user-day", grouping) == Shape(7, UNBOUNDED)


def test_a_date_needs_no_period_to_part_days() -> None:
    policy = asked.compiled()
    tables = asked.TABLES.replace("read_at: {type: timestamp}", "read_at: {type: date}")
    sql = "SELECT read_at, COUNT(*) AS n FROM views GROUP BY read_at"
    query = asked.query(sql, policy=policy, declared=tables, bounds={"user-day": 10})
    assert query.compiled.shapes["user-month"] == Shape(31, 10, apart=True)
