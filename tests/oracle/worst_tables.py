"""Neighboring tables whose answers are as far apart as can be found.

What caps do depends on whose a row is, when it happened and its rank, nothing else. So
a pair is first a *story*: rows that stay, rows that come and rows that go, in the order
of ranks. Which rows move is read off the caps, and only then every row gets the page
and the value that make its move count most.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import product
from typing import Literal, TypeAlias

from oracle.bounded_queries import (
    Plan,
    Row,
    Table,
    UnitFact,
    answers,
    apart,
    bounded,
    first_day,
)

Role: TypeAlias = Literal["stays", "comes", "goes"]
Norm: TypeAlias = Literal["l1", "l2_squared"]
#: The page, the value and the item of a row.
Look: TypeAlias = tuple[str, int | None, str]
#: How many rows come (1) and go (-1), by period of the grain.
Profile: TypeAlias = frozenset[tuple[tuple[date | None, int], int]]


@dataclass(frozen=True)
class Told:
    """One row of a story: whose, when, and in which of the two tables it is."""

    role: Role
    day: date
    user: str = "ann"
    device: str = "ann's"


Story: TypeAlias = tuple[Told, ...]


@dataclass(frozen=True)
class Pair:
    """Two neighboring tables, and how far their answers are apart."""

    before: Table
    after: Table
    l1: int
    l2_squared: int


def tables_of(story: Story) -> tuple[Table, Table]:
    """Return the tables before and after, without pages and values yet."""
    rows = [
        (told.role, Row(rank=rank, user=told.user, device=told.device, day=told.day,
                        page="", item="", value=None, country="here"))
        for rank, told in enumerate(story)
    ]  # fmt: skip
    before = [row for role, row in rows if role != "comes"]
    return before, [row for role, row in rows if role != "goes"]


def moved(story: Story, plan: Plan) -> tuple[dict[int, int], Table, Table]:
    """Return which kept rows come (1) or go (-1) by rank, and the two tables."""
    before, after = tables_of(story)
    old = {row["rank"] for row in bounded(before, plan)}
    new = {row["rank"] for row in bounded(after, plan)}
    ways = dict.fromkeys(new - old, 1) | dict.fromkeys(old - new, -1)
    return ways, before, after


def painted(story: Story, plan: Plan, norm: Norm) -> Pair:
    """Return the tables of a story, with pages and values that count most.

    Every way of painting is tried: in each period of the grain on its own, as no
    group has rows of two of them.
    """
    ways, before, after = moved(story, plan)
    days = {row["rank"]: first_day(row["day"], plan.grain) for row in before + after}
    cells: dict[date | None, list[int]] = {}
    for rank in sorted(ways):
        cells.setdefault(days[rank], []).append(rank)
    looks: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Look]] = {}
    paints: dict[int, Look] = {}
    for ranks in cells.values():
        come = [rank for rank in ranks if ways[rank] > 0]
        go = [rank for rank in ranks if ways[rank] < 0]
        whose = (
            tuple(story[rank].user for rank in come),
            tuple(story[rank].user for rank in go),
        )
        if whose not in looks:
            looks[whose] = max(
                _paints(*whose, plan),
                key=lambda look: _effect(look, *whose, plan, norm),
            )
        paints.update(zip([*come, *go], looks[whose], strict=True))
    for row in {row["rank"]: row for row in before + after}.values():
        still = (_LEFT_OUT, None, "none")
        row["page"], row["value"], row["item"] = paints.get(row["rank"], still)
    l1, l2_squared = apart(answers(before, plan), answers(after, plan))
    return Pair(before, after, l1, l2_squared)


_LEFT_OUT = "left out"


def worst(
    plan: Plan, unit: UnitFact, tales: Iterable[Story]
) -> dict[Norm, tuple[int, Story | None]]:
    """Return how far apart the tables of some stories are at most, in each norm.

    Stories that move as many rows in the same periods are as good as each other.
    """
    best: dict[Norm, tuple[int, Story | None]] = {
        "l1": (0, None),
        "l2_squared": (0, None),
    }
    known: dict[Profile, Story] = {}
    for story in tales:
        ways, _, _ = moved(story, plan)
        counts = Counter(
            (first_day(story[rank].day, plan.grain), way) for rank, way in ways.items()
        )
        known.setdefault(frozenset(counts.items()), story)
    for story in _promising(known):
        for norm, (most, _) in list(best.items()):
            pair = painted(story, plan, norm)
            found = pair.l1 if norm == "l1" else pair.l2_squared
            if found > most:
                best[norm] = found, story
    return best


def _promising(known: dict[Profile, Story]) -> Iterable[Story]:
    """Return the stories that move most, as one or another way of counting has it."""

    def sizes(profile: Profile) -> tuple[int, ...]:
        come = Counter({cell: many for (cell, way), many in profile if way > 0})
        go = Counter({cell: many for (cell, way), many in profile if way < 0})
        meet = [come[cell] + go[cell] for cell in come | go]
        larger = [max(come[cell], go[cell]) for cell in come | go]
        return (
            come.total() + go.total(),
            max(come.total(), go.total()),
            sum(many * many for _, many in profile),
            sum(many * many for many in meet),
            sum(many * many for many in larger),
            len(profile) * 100 - come.total() - go.total(),
            max(come.total() - go.total(), go.total() - come.total()),
            sum(larger),
        )

    sized = {profile: sizes(profile) for profile in known}
    columns = len(sizes(frozenset()))
    chosen: dict[Profile, None] = {}
    for column in range(columns):
        order = sorted(known, key=lambda one: (sized[one][column], sum(sized[one])))
        chosen |= dict.fromkeys(order[-2:])
    return [known[profile] for profile in chosen]


def _paints(
    comers: Sequence[str], goers: Sequence[str], plan: Plan
) -> Iterator[list[Look]]:
    """Yield pages, values and items for the rows of one cell that come, then go."""
    aggregate, pages = plan.asked, plan.pages or ("any",)
    come, go = len(comers), len(goers)
    first, last = pages[0], pages[-1]
    items = [f"item {number}" for number in range(come + go)]
    if aggregate.kind == "distinct":  # One page each, as long as there are some.
        for shift in (0, come):
            spread = [pages[(at + shift) % len(pages)] for at in range(come + go)]
            if len(pages) < come + go:
                beyond = range(len(pages), come + go)
                for at in beyond if aggregate.column == "user" else ():
                    spread[at] = _LEFT_OUT
            yield list(zip(spread, range(1, 1 + come + go), items, strict=True))
    if aggregate.column == "user":  # On each page one row of each user.
        first_free = max(Counter(comers).values(), default=0)
        places = [*_turns(comers), *(first_free + turn for turn in _turns(goers))]
        yield [
            (pages[at] if at < len(pages) else _LEFT_OUT, None, "any") for at in places
        ]
    ends: list[int | None] = [aggregate.low, aggregate.high, None]
    for up, down, page in product(ends, ends, dict.fromkeys((first, last, _LEFT_OUT))):
        yield [
            *((first, up, item) for item in items[:come]),
            *((page, down, item) for item in items[come:]),
        ]
    for down in ends:  # Those that come are left out.
        yield [
            *((_LEFT_OUT, down, item) for item in items[:come]),
            *((first, down, item) for item in items[come:]),
        ]


def _turns(users: Sequence[str]) -> Iterator[int]:
    """Yield how many rows of the same user stand before each row."""
    for at, user in enumerate(users):
        yield users[:at].count(user)


def _effect(
    looks: Sequence[Look],
    comers: Sequence[str],
    goers: Sequence[str],
    plan: Plan,
    norm: Norm,
) -> int:
    """Return how far rows of one cell, the first of which come, move the answers."""
    rows = [
        Row(rank=rank, user=user, device=f"{user}'s", day=plan.days[0], page=page,
            item=item, value=value, country="here")
        for rank, (user, (page, value, item)) in enumerate(
            zip([*comers, *goers], looks, strict=True)
        )
    ]  # fmt: skip
    free, come = replace(plan, caps=()), len(comers)
    gap = apart(answers(rows[come:], free), answers(rows[:come], free))
    return gap[0] if norm == "l1" else gap[1]


# --- stories --------------------------------------------------------------------------


def instances(unit: UnitFact, days: Sequence[date]) -> list[list[date]]:
    """Return the days of each instance of a unit that one id has."""
    parts: dict[date | None, list[date]] = {}
    for day in days:
        parts.setdefault(first_day(day, unit.period), []).append(day)
    return list(parts.values())


def filled(
    plan: Plan, days: Iterable[date], told: Callable[[date, int], Told], daily: int
) -> list[Told]:
    """Return rows that fill the days, one after the other, as far as caps allow.

    Args:
        plan: The caps.
        days: The days, in the order in which they are filled.
        told: What makes a row of a day, the next one or a later one.
        daily: How many rows a day has at most.
    """
    count: dict[tuple[str, object], int] = {}
    rows: list[Told] = []
    for day in days:
        for turn in range(min(daily, max((most for _, most in plan.caps), default=1))):
            new = told(day, turn)
            keys = [
                ((name, _key(new, plan.units[name])), most) for name, most in plan.caps
            ]
            full = [key for key, most in keys if count.get(key, 0) >= most]
            if any(plan.units[name].id == "user" for name, _ in full):
                break
            if full:
                continue
            for key, _ in keys:
                count[key] = count.get(key, 0) + 1
            rows.append(new)
    return rows


def _key(told: Told, unit: UnitFact) -> tuple[str, date | None]:
    """Return the key of the instance of a unit that a row will belong to."""
    own = told.user if unit.id == "user" else told.device
    return own, first_day(told.day, unit.period)


def stories(plan: Plan, unit: UnitFact, dice: random.Random) -> Iterator[Story]:
    """Yield stories in which one instance of a unit changes, and much moves."""
    every = instances(unit, plan.days)
    some = every if len(every) <= 3 else [every[0], every[-1], dice.choice(every)]
    for inside in some:
        outside = [day for day in plan.days if day not in inside]
        if unit.id == "device":
            outside = list(plan.days)
        for far, tag in product(_orders(outside, dice), _tags(plan)):
            told = _Telling(plan, unit, dice, tag)
            yield from _arranged(told, inside, far)
            yield from _arranged(replace(told, daily=1), inside, far)
            near = dice.sample(inside, len(inside))
            daily, taker = dice.choice([1, 2, 2**62]), dice.choice(["ann", "bob"])
            told = replace(told, daily=daily, taker=taker)
            yield from _arranged(told, near, far)


@dataclass(frozen=True)
class _Telling:
    """Of what stories are told.

    Attributes:
        plan: What is asked.
        unit: What changes.
        dice: What is left to chance.
        tag: Whether a user has one device, a new one for each row, or some.
        daily: How many rows of a day change at most.
        taker: Whose a device is in the other table.
    """

    plan: Plan
    unit: UnitFact
    dice: random.Random
    tag: str
    daily: int = 2**62
    taker: str = "bob"


def _tags(plan: Plan) -> tuple[str, ...]:
    """Return how devices are given to rows: that matters if some cap is of them."""
    capped = any(plan.units[name].id == "device" for name, _ in plan.caps)
    return ("own", "each", "one") if capped else ("own",)


def _orders(days: list[date], dice: random.Random) -> Iterator[list[date]]:
    yield days
    yield days[::-1]
    yield dice.sample(days, len(days))


def _arranged(told_of: _Telling, near: list[date], far: list[date]) -> Iterator[Story]:
    """Yield stories of what comes or goes on some days beside what stays on others."""
    plan, unit, dice = told_of.plan, told_of.unit, told_of.dice
    own = "ann's" if unit.id == "device" else None
    tag, daily = told_of.tag, told_of.daily

    def row(role: Role, user: str, mark: str) -> Callable[[date, int], Told]:
        def told(day: date, turn: int) -> Told:
            device = {"own": f"{user}'s", "each": f"{user}'s {day} {turn}{mark}",
                      "one": f"{user}'s {turn}"}[tag]  # fmt: skip
            if own is not None:
                device = own if role != "stays" else f"{user}'s other {turn}"
            return Told(role, day, user, device)

        return told

    new_user = told_of.taker if own else "ann"
    comes = filled(plan, near, row("comes", "ann", "+"), daily)
    goes, late = (
        filled(plan, days, row("goes", new_user, "-"), daily)
        for days in (near, near[::-1])
    )
    stays, spare = (
        filled(plan, days, row("stays", "ann", ""), daily) for days in (far, far[::-1])
    )
    others = (
        filled(plan, far, row("stays", new_user, ""), daily)
        if new_user != "ann"
        else []
    )
    if unit.relation == "add-remove":
        yield from ((*comes,), (*comes, *stays), (*comes, *stays[::-1]))
        mixed = [*comes, *stays]
        yield tuple(dice.sample(mixed, len(mixed)))
        cut = dice.randint(0, len(stays))
        yield (*comes, *stays[cut:])
        return
    some = dice.randint(0, len(goes))
    yield (*comes,)
    for first, second in ((comes, goes), (goes, comes), (comes, late)):
        yield (*first, *second, *stays, *others)
        yield (*first, *stays, *second, *others, *spare)
        yield (*first[:some], *stays, *others, *second[some:], *spare)
    yield (*comes, *stays, *others)
    yield (*comes, *stays[::-1])
    yield (*comes, *stays[dice.randint(0, len(stays)) :])
    mixed = [*comes, *goes, *stays, *others, *spare]
    yield tuple(dice.sample(mixed, len(mixed)))


def every_story(
    plan: Plan, unit: UnitFact, length: int, days: Sequence[date]
) -> Iterator[Story]:
    """Yield every story of so many rows of one user, for a unit of users."""
    for inside in instances(unit, days):
        rows = [Told("stays", day) for day in days if day not in inside]
        rows += [Told("comes", day) for day in inside]
        if unit.relation != "add-remove":
            rows += [Told("goes", day) for day in inside]
        yield from product(rows, repeat=length)
