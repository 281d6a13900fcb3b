"""Steps of a mechanism that reads some days only, walked on tables of few rows."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import date
from typing import TypeAlias

import pytest
from budget import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import modicum as mo
from modicum.release import (
    Population,
    PricedMechanism,
    Span,
    Vocabulary,
    parse_release,
    price,
)
from modicum.release.parts import LAST_DAY, merged
from modicum.release.periods import DAYS_MAX, PERIODS, Overlaps, Period, overlaps
from modicum.release.units import RELATIONS, Relation, Unit, all_steps, kinds, steps

KEYS: dict[Period | None, Callable[[date], Hashable]] = {
    None: lambda _: 0,
    "day": lambda day: day,
    "week": lambda day: day.isocalendar()[:2],
    "month": lambda day: (day.year, day.month),
    "quarter": lambda day: (day.year, (day.month - 1) // 3),
    "year": lambda day: day.year,
}


def ordinal(text: str) -> int:
    return date.fromisoformat(text).toordinal()


def only(*days: str) -> tuple[Span, ...]:
    return merged([(ordinal(day), ordinal(day)) for day in days])


# --- how periods lie on each other, day by day ----------------------------------------

MIDDLE = ordinal("2026-12-20")
spans = st.builds(
    lambda first, length: (first, min(first + length, LAST_DAY)),
    st.one_of(
        st.integers(MIDDLE - 800, MIDDLE + 800), st.integers(LAST_DAY - 400, LAST_DAY)
    ),
    st.sampled_from([0, 0, 1, 6, 7, 30, 31, 100, 400]),
)
stretches = (
    st.lists(spans, min_size=1, max_size=4)
    .map(merged)
    .filter(lambda some: sum(high - low + 1 for low, high in some) <= DAYS_MAX)
)


@settings(max_examples=examples(60), deadline=None)
@given(stretches)
@example(((ordinal("9999-12-27"), LAST_DAY),))
def test_periods_lie_on_each_other_as_their_days_say(days: tuple[Span, ...]) -> None:
    found = overlaps(tuple(KEYS), days)
    assert found is not None
    each = [date.fromordinal(day) for low, high in days for day in range(low, high + 1)]
    for (one, other), (size, doubled, partly) in found:
        outside: dict[Hashable, set[Hashable]] = {}
        inside: dict[Hashable, set[Hashable]] = {}
        for day in each:
            here, there = KEYS[one](day), KEYS[other](day)
            inside.setdefault(here, set()).add(there)
            outside.setdefault(there, set()).add(here)
        assert size == max(len(touched) for touched in inside.values())
        assert doubled == max(
            sum(2 if outside[there] - {here} else 1 for there in touched)
            for here, touched in inside.items()
        )
        assert partly == max(
            sum(bool(outside[there] - {here}) for there in touched)
            for here, touched in inside.items()
        )


def test_too_many_days_are_not_looked_at() -> None:
    assert overlaps(("day",), ((1, DAYS_MAX),)) is not None
    assert (
        overlaps(("day",), ((1, DAYS_MAX - 1), (DAYS_MAX + 9, DAYS_MAX + 10))) is None
    )


# --- steps, walked --------------------------------------------------------------------

Table: TypeAlias = frozenset[int]
Links: TypeAlias = Mapping[Table, set[Table]]


def neighbors(
    tables: Sequence[Table], keys: Sequence[Hashable], relation: Relation
) -> list[tuple[Table, Table]]:
    """Return all pairs of different tables that a relation makes neighbors."""
    found = []
    for a, b in itertools.product(tables, repeat=2):
        changed = {keys[row] for row in a ^ b}
        if len(changed) != 1:
            continue
        before, after = ({row for row in t if keys[row] in changed} for t in (a, b))
        if {
            "add-remove": not before or not after,
            "substitute": bool(before and after),
            "any-change": True,
        }[relation]:
            found.append((a, b))
    return found


def left(pairs: list[tuple[Table, Table]], read: Table) -> set[tuple[Table, Table]]:
    """Return what a mechanism sees of pairs of tables."""
    return {(a & read, b & read) for a, b in pairs if a & read != b & read}


def walked(
    changes: set[tuple[Table, Table]], moves: set[tuple[Table, Table]]
) -> int | None:
    """Return how many moves the worst change takes; None if it cannot be created."""
    links: dict[Table, set[Table]] = {}
    for a, b in moves:
        links.setdefault(a, set()).add(b)
    worst = 0
    for start in {a for a, _ in changes}:
        reached, waiting = {start: 0}, deque([start])
        while waiting:
            here = waiting.popleft()
            for there in links.get(here, set()) - reached.keys():
                reached[there] = reached[here] + 1
                waiting.append(there)
        for goal in (b for a, b in changes if a == start):
            if goal not in reached:
                return None
            worst = max(worst, reached[goal])
    return worst


def units_of(relations: Sequence[Relation]) -> dict[str, Unit]:
    timed: tuple[Period, ...] = ("day", "week", "month")
    user = Unit("user", "id", neighbors=relations[0])
    small = [
        Unit(period, "id", period, "at", ("user",), neighbors=relation)
        for period, relation in zip(timed, relations[1:], strict=True)
    ]
    return {unit.name: unit for unit in (user, *small)}


#: Days around the ends of weeks, months and years.
NEAR = [
    *("2026-12-26", "2026-12-27", "2026-12-28", "2026-12-31"),
    *("2027-01-01", "2027-01-03", "2027-01-04", "2027-01-31", "2027-02-01"),
]


@pytest.mark.spec("REL-11")
@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(st.sampled_from(NEAR), min_size=1, max_size=5),
    st.lists(st.booleans(), min_size=5, max_size=5),
    st.lists(st.sampled_from(RELATIONS), min_size=4, max_size=4),
)
@example(["2027-01-01"] * 2 + ["2027-01-03"], [True] * 5, ["substitute"] * 4)
@example(["2026-12-31", "2027-01-01", "2027-01-04"], [True] * 5, ["add-remove"] * 4)
def test_steps_on_some_days_are_never_fewer_than_walking_takes(
    days: list[str], kept: list[bool], relations: list[Relation]
) -> None:
    named = {day for day, keep in zip(days, kept, strict=False) if keep} or {days[0]}
    read = frozenset(row for row, day in enumerate(days) if day in named)
    units = units_of(relations)
    found = all_steps(units, overlaps(kinds(units), only(*named)))
    always = all_steps(units)
    tables = [
        frozenset(rows)
        for size in range(len(days) + 1)
        for rows in itertools.combinations(range(len(days)), size)
    ]
    seen: dict[str, set[tuple[Table, Table]]] = {}
    for name, unit in units.items():
        keys = [KEYS[unit.period](date.fromisoformat(day)) for day in days]
        seen[name] = left(neighbors(tables, keys, unit.neighbors), read)
    for (of, by), claimed in found.items():
        needed = walked(seen[of], seen[by])
        assert needed is not None, (of, by)
        assert needed <= claimed <= always.get((of, by), claimed), (of, by)
        exact = {
            ("add-remove", "any-change"),
            ("any-change", "any-change"),
            ("add-remove", "add-remove"),
        }
        if (units[of].neighbors, units[by].neighbors) in exact:
            assert needed == claimed, (of, by)


# --- what follows for units -----------------------------------------------------------


def within(units: Mapping[str, Unit], *days: str) -> Overlaps | None:
    return overlaps(kinds(units), only(*days))


@pytest.mark.parametrize("relation", ["add-remove", "any-change"])
def test_one_day_is_one_step_of_every_unit_of_its_id(relation: Relation) -> None:
    units = units_of([relation] * 4)
    one_day = within(units, "2026-11-03")
    assert all_steps(units, one_day) == dict.fromkeys(
        itertools.product(units, repeat=2), 1
    )
    assert steps(units, "month", "day") == 31
    assert steps(units, "user", "day") is None


def test_a_substitution_may_leave_nothing_on_the_days_that_are_read() -> None:
    units = units_of(["substitute"] * 4)
    one_day = within(units, "2026-11-03")
    assert steps(units, "month", "day", one_day) is None
    assert steps(units, "day", "month", one_day) == 1  # As on all days.
    units = units_of(["substitute", "any-change", "add-remove", "substitute"])
    assert steps(units, "month", "day", one_day) == 1
    assert steps(units, "month", "week", one_day) == 2


def test_other_clocks_ids_and_chains() -> None:
    units = {
        "house": Unit("house", "house_id"),
        "user": Unit("user", "id", within=("house",), groups={"house": 6}),
        "day": Unit("day", "id", "day", "at", ("user",), {"user": 3}),
        "login": Unit("login", "id", "day", "login_at", ("user",)),
        "visit": Unit("visit", "visit_id", "day", "at", ("user",)),
    }
    two = within(units, "2026-11-03", "2026-11-05")
    assert steps(units, "house", "day", two) == 6 * 2
    assert steps(units, "house", "login", two) == 6 * 2
    assert steps(units, "user", "day", two) == steps(units, "user", "login", two) == 2
    assert steps(units, "user", "visit", two) is None
    assert steps(units, "day", "login", two) is None  # Two clocks: nothing is claimed.
    assert steps(units, "day", "visit", two) is None
    four = within(units, "2026-11-03", "2026-11-05", "2026-11-07", "2026-11-08")
    assert steps(units, "house", "day", four) == 6 * 3  # The declared size is less.
    twofold = {
        name: replace(unit, neighbors="any-change") for name, unit in units.items()
    }
    # The six users of a house may be six others, each on the same two days.
    assert steps(twofold, "house", "day", two) == 2 * 6 * 2
    assert steps(twofold, "user", "day", two) == 2


# --- what a release is charged --------------------------------------------------------

UNITS = {
    "user-month": Unit("user-month", "id", "month", "at"),
    "user-week": Unit("user-week", "id", "week", "at"),
    "user-day": Unit("user-day", "id", "day", "at", ("user-month", "user-week")),
}
WORDS = Vocabulary(
    frozenset({"page", "birth"}),
    {},
    tuple(UNITS),
    "add-remove",
    UNITS,
    Population(static=frozenset({"birth"})),
)


def priced(periods: object, attributes: Sequence[str] = ("page",)) -> PricedMechanism:
    one = mo.declared(attributes=attributes, cost={"user-day": mo.zcdp(1)})
    draft = mo.Release("r", mechanisms=[one], periods=periods)
    return price(parse_release(draft.to_node(), WORDS), WORDS).mechanisms[0]


def rho(mechanism: PricedMechanism, unit: str) -> int:
    return mechanism.losses[unit].coordinates[1] // 10**12


@pytest.mark.spec("REL-11")
@pytest.mark.parametrize(
    ("periods", "month", "week"),
    [
        (None, 31, 7),
        ("2026-11-03", 1, 1),
        ("2026-11", 30, 7),
        ("2026-02", 28, 7),
        ("2027-02", 28, 7),
        ("2026-W14", 5, 7),
        (["2026-11-30", "2026-12-01"], 1, 2),
        (["2026-11-01", "2026-11-02"], 2, 1),
        ({"from": "2026-11-29"}, 31, 7),
        ({"from": "2026-11-29", "to": "2026-12-02"}, 2, 3),
        ("2026", 31, 7),
    ],
)
def test_a_month_is_charged_for_the_days_that_are_read(
    periods: object, month: int, week: int
) -> None:
    found = priced(periods)
    assert rho(found, "user-day") == 1
    assert rho(found, "user-month") == month**2
    assert rho(found, "user-week") == week**2
    known = {1: "user-day"}
    assert found.sources["user-month"] == known.get(month, f"{month} x user-day")
    assert found.sources["user-week"] == known.get(week, f"{week} x user-day")


@pytest.mark.spec("REL-11")
def test_who_reads_what_is_true_at_all_times_reads_every_period() -> None:
    found = priced("2026-11-03", attributes=("page", "birth"))
    assert found.sources["user-month"] == "31 x user-day"


def test_the_days_of_a_month_cost_their_number_and_not_its_square() -> None:
    days = [date(2026, 11, day) for day in range(1, 31)]
    daily = sum(rho(priced(day.isoformat()), "user-month") for day in days)
    assert daily == 30
    assert rho(priced("2026-11"), "user-month") == 30**2


def test_every_period_has_a_key() -> None:
    assert set(KEYS) == {None, *PERIODS}
