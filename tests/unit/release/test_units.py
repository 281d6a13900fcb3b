"""The order of units: the calendar day by day, and steps walked on small tables."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from datetime import date, timedelta
from typing import TypeAlias

import pytest
from msgspec.structs import replace

from modicum.release import Vocabulary
from modicum.release.units import (
    INSIDE,
    MOVING,
    PERIODS,
    RELATIONS,
    SAME,
    Period,
    Reach,
    Relation,
    Unit,
    all_steps,
    changes,
    larger,
    nests,
    owners,
    steps,
    touches,
)

# --- the calendar, day by day ---------------------------------------------------------

DAYS = [
    date(1999, 1, 1) + timedelta(days=number)
    for number in range((date(2102, 1, 1) - date(1999, 1, 1)).days)
]


def iso_week(day: date) -> Hashable:
    return day.isocalendar()[:2]


def sunday_week(day: date) -> Hashable:
    return (day.toordinal()) // 7


KEYS: dict[Period, list[Callable[[date], Hashable]]] = {
    "day": [lambda day: day],
    "week": [iso_week, sunday_week],
    "month": [lambda day: (day.year, day.month)],
    "quarter": [lambda day: (day.year, (day.month - 1) // 3)],
    "year": [lambda day: day.year],
}


def groups_of(key: Callable[[date], Hashable]) -> dict[Hashable, set[date]]:
    found: dict[Hashable, set[date]] = {}
    for day in DAYS:
        found.setdefault(key(day), set()).add(day)
    return found


def lying(one: Period, other: Period) -> tuple[int, int, bool]:
    """Return, by every day of a century, how one period lies on others.

    That is the most that it touches; the most that it touches, with those counted
    twice that have days outside; and whether it always lies in one.
    """
    touched = doubled = 0
    inside = True
    for key, other_key in itertools.product(KEYS[one], KEYS[other]):
        if one == other and key is not other_key:
            continue  # One policy has one kind of week.
        others = groups_of(other_key)
        for days in groups_of(key).values():
            hit = {other_key(day) for day in days}
            partly = sum(not others[name] <= days for name in hit)
            touched = max(touched, len(hit))
            doubled = max(doubled, len(hit) + partly)
            inside = inside and len(hit) == 1
    return touched, doubled, inside


@pytest.mark.spec("REL-7")
@pytest.mark.parametrize("one", PERIODS)
@pytest.mark.parametrize("other", PERIODS)
def test_every_number_of_the_calendar(one: Period, other: Period) -> None:
    touched, doubled, inside = lying(one, other)
    assert touches(one, other) == touched
    assert nests(one, other) is inside
    units = {"one": timed("one", one), "other": timed("other", other)}
    if one != other and not inside and not nests(other, one):
        assert steps(units, "one", "other") == doubled
    elif nests(other, one):
        assert steps(units, "one", "other") == touched == doubled


def timed(name: str, period: Period, **more: object) -> Unit:
    return Unit(name, "user_id", period, "at", **more)  # type: ignore[arg-type]


# --- steps, walked on tables of few rows ----------------------------------------------

#: Which rows are there.
Table: TypeAlias = frozenset[int]
#: The key of every row.
Partition: TypeAlias = tuple[int, ...]


def partitions(rows: int) -> Iterator[Partition]:
    """Yield every way to cut so many rows into instances."""
    for keys in itertools.product(range(rows), repeat=rows):
        if all(key <= max(keys[:at], default=-1) + 1 for at, key in enumerate(keys)):
            yield keys


def tables(rows: int) -> list[Table]:
    return [
        frozenset(kept)
        for size in range(rows + 1)
        for kept in itertools.combinations(range(rows), size)
    ]


def are_neighbors(a: Table, b: Table, unit: Partition, relation: Relation) -> bool:
    """Return what a relation says, word by word."""
    keys = {unit[row] for row in a ^ b}
    if len(keys) != 1:
        return False
    before, after = ({row for row in t if unit[row] in keys} for t in (a, b))
    return {
        "add-remove": not before or not after,
        "substitute": bool(before and after),
        "any-change": True,
    }[relation]


def most_steps(
    every: Sequence[Table],
    one: tuple[Partition, Relation],
    other: tuple[Partition, Relation],
) -> int | None:
    """Return how many changes of `other` the worst change of `one` takes, walked."""
    links = {a: [b for b in every if are_neighbors(a, b, *other)] for a in every}
    worst = 0
    for start in every:
        reached, waiting = {start: 0}, deque([start])
        while waiting:
            here = waiting.popleft()
            for there in links[here]:
                if there not in reached:
                    reached[there] = reached[here] + 1
                    waiting.append(there)
        for goal in every:
            if are_neighbors(start, goal, *one):
                if goal not in reached:
                    return None
                worst = max(worst, reached[goal])
    return worst


def seen_reach(one: Partition, other: Partition) -> Reach:
    """Return how instances of one cut lie on those of another, all rows being there."""
    size = partly = 0
    for key in set(one):
        hit = {other[row] for row, own in enumerate(one) if own == key}
        outside = {other[row] for row, own in enumerate(one) if own != key}
        size, partly = max(size, len(hit)), max(partly, len(hit & outside))
    return Reach(size, partly, fixed=True)


PAIRS = list(itertools.product(RELATIONS, repeat=2))


@pytest.mark.spec("REL-8")
@pytest.mark.parametrize(("of", "by"), PAIRS)
def test_steps_are_what_walking_says(of: Relation, by: Relation) -> None:
    """Never fewer than needed; and no fewer would do for every shape of this kind."""
    every = tables(4)
    worst: dict[Reach, list[int | None]] = {}
    for one, other in itertools.product(partitions(4), repeat=2):
        walked = most_steps(every, (one, of), (other, by))
        worst.setdefault(seen_reach(one, other), []).append(walked)
    for reach, walked_ones in worst.items():
        claimed = changes(reach, of, by)
        if claimed is None:
            assert None in walked_ones or reach.size > 1, (reach, of, by)
        else:
            known = [walked for walked in walked_ones if walked is not None]
            assert len(known) == len(walked_ones), (reach, of, by)
            assert max(known) <= claimed, (reach, of, by)
    # Single rows cannot be substituted: shapes with room for it show the number.
    for reach in (SAME, INSIDE, Reach(2, 0, fixed=True), Reach(2, 1, fixed=True)):
        claimed = changes(reach, of, by)
        if claimed is not None and (reach.size == 1 or "substitute" not in (of, by)):
            assert claimed in worst[reach], (reach, of, by)


@pytest.mark.spec("REL-8")
@pytest.mark.parametrize(("of", "by"), PAIRS)
@pytest.mark.parametrize("size", [1, 2])
def test_steps_where_only_the_size_of_groups_is_known(
    of: Relation, by: Relation, size: int
) -> None:
    """Other tables may hold other keys; and no table on the way holds too many."""
    whole, part = (0, 0, 0, 0, 1), (0, 1, 2, 3, 4)
    every = [
        table
        for table in tables(5)
        if len({part[row] for row in table if whole[row] == 0}) <= size
    ]
    claimed = changes(Reach(size, 0, fixed=False), of, by)
    assert most_steps(every, (whole, of), (part, by)) == claimed


@pytest.mark.spec("REL-8")
@pytest.mark.parametrize(("of", "by"), PAIRS)
def test_a_device_may_change_hands_between_tables(of: Relation, by: Relation) -> None:
    """In every table a device lies in one user; in another table, in another user."""
    device, user = (0, 0, 1, 2), (0, 1, 0, 1)
    every = [table for table in tables(4) if not {0, 1} <= table]
    assert most_steps(every, (device, of), (user, by)) == changes(MOVING, of, by)


@pytest.mark.spec("REL-8")
def test_only_an_owner_of_the_same_id_is_the_same_in_every_table() -> None:
    units = named(
        Unit("user", "user_id", neighbors="any-change"),
        Unit("device", "device_id", within=("user",), neighbors="any-change"),
        timed("day", "day", within=("user",), neighbors="any-change"),
        timed("visit", "day", within=("day",), neighbors="any-change"),
    )
    assert steps(units, "day", "user") == steps(units, "visit", "user") == 1
    assert steps(units, "device", "user") == 2
    assert owners(units) == {
        "user": {"user"},
        "device": {"device"},
        "day": {"day", "user"},
        "visit": {"visit", "day", "user"},
    }
    vocab = Vocabulary(frozenset(), {}, tuple(units), "add-remove", units)
    assert vocab.bounding("device") == frozenset()
    assert vocab.bounding("visit") == {"day", "user"}
    whole = {**units, "device": replace(units["device"], neighbors="add-remove")}
    assert steps(whole, "device", "user") == 1
    vocab = Vocabulary(frozenset(), {}, tuple(whole), "add-remove", whole)
    assert vocab.bounding("device") == {"user"}


@pytest.mark.parametrize(("of", "by"), PAIRS)
def test_a_border_of_two_sides_on_both_ends(of: Relation, by: Relation) -> None:
    """Like a month on weeks: two of them reach over the border, one does not."""
    month, week = (0, 1, 1, 1, 2), (0, 0, 1, 2, 2)
    reach = seen_reach(month, week)
    assert reach == Reach(3, 2, fixed=True)
    walked = most_steps(tables(5), (month, of), (week, by))
    claimed = changes(reach, of, by)
    if claimed is None:
        assert walked is None
    else:
        assert walked is not None
        assert walked <= claimed
        assert walked == claimed or of == "substitute" or by == "add-remove"


# --- what follows from declarations ---------------------------------------------------


def named(*units: Unit) -> dict[str, Unit]:
    return {unit.name: unit for unit in units}


def test_covers_are_closed_and_hold_the_unit_itself() -> None:
    units = named(
        Unit("a", "x", within=("b", "c")),
        Unit("b", "y", within=("d",)),
        Unit("c", "z"),
        Unit("d", "w"),
    )
    assert larger(units) == {
        "a": frozenset("abcd"),
        "b": frozenset("bd"),
        "c": frozenset("c"),
        "d": frozenset("d"),
    }
    assert larger({}) == {}


def calendar_units(relation: Relation) -> dict[str, Unit]:
    periods = {"d": "day", "w": "week", "m": "month", "q": "quarter", "y": "year"}
    units = [
        timed(name, period, neighbors=relation)  # type: ignore[arg-type]
        for name, period in periods.items()
    ]
    return named(*units)


@pytest.mark.spec("REL-8")
@pytest.mark.parametrize(
    ("of", "by", "whole", "any_change"),
    [
        ("w", "d", 7, 7),
        ("m", "d", 31, 31),
        ("q", "d", 92, 92),
        ("y", "d", 366, 366),
        ("q", "m", 3, 3),
        ("y", "m", 12, 12),
        ("y", "q", 4, 4),
        ("m", "w", 8, 6),
        ("q", "w", 16, 14),
        ("y", "w", 56, 54),
        ("w", "m", 4, 2),
        ("w", "q", 4, 2),
        ("w", "y", 4, 2),
        ("d", "w", 2, 1),
        ("d", "y", 2, 1),
        ("m", "q", 2, 1),
        ("d", "d", 1, 1),
    ],
)
def test_steps_of_the_calendar(of: str, by: str, whole: int, any_change: int) -> None:
    assert steps(calendar_units("add-remove"), of, by) == whole
    assert steps(calendar_units("any-change"), of, by) == any_change


@pytest.mark.parametrize(("of", "by"), PAIRS)
def test_each_unit_keeps_its_own_relation(of: Relation, by: Relation) -> None:
    small, big = "user-day", "user"
    downward = named(
        timed(small, "day", within=(big,), neighbors=of),
        Unit(big, "user_id", neighbors=by),
    )
    expected = {"any-change": 1, "add-remove": 2}.get(by)
    if by == "substitute" == of:
        expected = 1
    assert steps(downward, small, big) == expected
    assert steps(downward, big, small) is None
    assert steps(downward, small, small) == 1


def test_nothing_bounds_the_days_of_a_user_unless_it_is_said() -> None:
    def units(relation: Relation = "add-remove", **groups: int) -> dict[str, Unit]:
        return named(
            Unit("user", "user_id", neighbors=relation),
            timed("month", "month", within=("user",), neighbors=relation),
            timed("day", "day", within=("month",), groups=groups, neighbors=relation),
        )

    assert steps(units(), "user", "day") is None
    assert steps(units(user=90), "user", "day") == 90
    # Under any change the user's days may be 90 others afterwards.
    assert steps(units("any-change", user=90), "user", "day") == 180
    assert steps(units("any-change", month=99), "month", "day") == 31


@pytest.mark.parametrize(("relation", "times"), [("add-remove", 1), ("any-change", 2)])
def test_sizes_multiply_along_a_chain(relation: Relation, times: int) -> None:
    def quarters_of_a_house(**groups: int) -> int | None:
        units = named(
            Unit("house", "house_id", neighbors=relation),
            Unit("user", "user_id", within=("house",), groups={"house": 6}),
            timed("year", "year", within=("user",), groups={"user": 3}),
            timed(
                "quarter",
                "quarter",
                within=("year",),
                groups=groups,
                neighbors=relation,
            ),
        )
        return steps(units, "house", "quarter")

    assert quarters_of_a_house() == times * 6 * 3 * 4
    assert quarters_of_a_house(user=7) == times * 6 * 7
    assert quarters_of_a_house(house=36) == times * 36
    assert quarters_of_a_house(house=100, year=4, user=12) == times * 6 * 3 * 4


def test_units_of_other_clocks_and_ids_show_nothing() -> None:
    day = timed("day", "day")
    others = (
        Unit("other-clock", "user_id", "month", "logged_at"),
        Unit("other-id", "device_id", "month", "at"),
        Unit("user", "user_id"),
    )
    for other in others:
        units = named(day, other)
        assert steps(units, "day", other.name) is None
        assert steps(units, other.name, "day") is None


def test_two_names_for_the_same_instances() -> None:
    units = named(timed("a", "week"), timed("b", "week", neighbors="substitute"))
    assert steps(units, "b", "a") == 2
    assert steps(units, "a", "b") is None
    assert all_steps(units)["a", "a"] == all_steps(units)["b", "b"] == 1


def test_many_units_in_a_chain_are_quick() -> None:
    names = [f"u{number}" for number in range(32)]
    units = named(
        *(
            Unit(name, name, within=tuple(names[at + 1 :]), groups={above: 2})
            for at, (name, above) in enumerate(itertools.pairwise(names))
        ),
        Unit(names[-1], names[-1]),
    )
    assert all_steps(units)[names[-1], names[0]] == 2**31
