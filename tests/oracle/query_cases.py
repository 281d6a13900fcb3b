"""Random plans, and the worst neighboring tables that are known for each of them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import pairwise
from typing import Literal

from oracle.bounded_queries import (
    Asked,
    Grain,
    Plan,
    Relation,
    Row,
    Table,
    UnitFact,
    answers,
    apart,
    are_neighbors,
    instance_of,
)
from oracle.worst_tables import (
    Norm,
    Pair,
    Story,
    Told,
    filled,
    instances,
    painted,
    stories,
    worst,
)

#: The units of the random plans, by name; each gets a relation.
UNITS: tuple[tuple[str, Literal["user", "device"], Grain | None], ...] = (
    ("user", "user", None),
    ("user-month", "user", "month"),
    ("user-week", "user", "week"),
    ("user-day", "user", "day"),
    ("device", "device", None),
)
RELATIONS: tuple[Relation, ...] = ("add-remove", "substitute", "any-change")
#: Caps cut in this order, as far as there are some.
ORDER = ("device", "user-day", "user-week", "user-month", "user")
#: More pages than any table of a random plan has rows that move.
MANY = tuple(f"page {number:03}" for number in range(200))


def units_of(relations: Iterable[Relation]) -> dict[str, UnitFact]:
    """Return the units, each with the next relation."""
    named = zip(UNITS, relations, strict=True)
    return {
        name: UnitFact(name, id_, period, how) for (name, id_, period), how in named
    }


def random_plan(dice: random.Random) -> Plan:
    """Return a plan with a few caps, keys and days."""
    units = units_of(dice.choice(RELATIONS) for _ in UNITS)
    weights = {"device": 0.25, "user-day": 0.6, "user-week": 0.35,
               "user-month": 0.5, "user": 0.4}  # fmt: skip
    most, caps = 0, list[tuple[str, int]]()
    for name in ORDER:
        if dice.random() < weights[name]:
            rows = dice.randint(1, 3) if name == "device" else most + dice.randint(1, 4)
            most = max(most, rows if name != "device" else 0)
            caps.append((name, rows))
    if dice.random() < 0.1:
        dice.shuffle(caps)  # Caps may cut in any order.
    start = date(2026, 10, 26) + timedelta(days=dice.randrange(14))
    length = dice.choice([1, 2, 3, 4, 7, 9])
    days = _days_from(start, length)
    pages: tuple[str, ...] = dice.choice([(), MANY[:1], MANY[:2], MANY[:4], MANY])
    grain: Grain | None = dice.choice([None, None, "day", "day", "week", "month"])
    return Plan(units, tuple(caps), days, grain, pages, _random_asked(dice))


def _days_from(start: date, length: int) -> tuple[date, ...]:
    return tuple(start + timedelta(days=number) for number in range(length))


#: A Monday; February has four whole weeks in this year, March begins on a Monday.
FEBRUARY = date(2027, 2, 1)


def roomy_plan(dice: random.Random) -> Plan:
    """Return a plan for which no bound of what moves is out of reach.

    Weeks lie whole in months, there are days enough to fill every cap outside of what
    changes, and each cap is a multiple of the one before it.
    """
    units = units_of(dice.choice(RELATIONS) for _ in UNITS)
    names = [name for name in ORDER[1:] if dice.random() < 0.5]
    if dice.random() < 0.12:
        names = ["device", *names]
    caps, rows = list[tuple[str, int]](), 0
    for name in names or ["user"]:
        rows = dice.randint(1, 4) if not rows else rows * dice.randint(1, 3)
        caps.append((name, rows))
    if dice.random() < 0.5:  # The last one need not be a multiple.
        caps[-1] = (caps[-1][0], rows + dice.randint(0, 3))
    start, length = dice.choice([(FEBRUARY, 14), (FEBRUARY + timedelta(14), 28)])
    days = _days_from(start, length)
    grain: Grain | None = dice.choice([None, "day", "week", "month"])
    few = [(), MANY[:1], MANY[:2], MANY[:4], MANY]
    pages = dice.choice(few if grain is None else few[2:])
    return Plan(units, tuple(caps), days, grain, pages, _random_asked(dice))


def uneven(plan: Plan) -> bool:
    """Tell whether each of several instances fills a group in part only.

    Of seven rows a month and two a day, one is alone on its day, in every month. Priced
    are days of two rows, as if rows of one month could fill up a day of another.
    """
    nested = list(pairwise(most for name, most in plan.caps if name != "device"))
    return plan.grain is not None and any(most % few for few, most in nested)


def crowded_ids(plan: Plan) -> bool:
    """Tell whether ids are counted in fewer groups than a period has rows.

    Two of three rows of a day are then of one page, and of one id that counts once.
    Priced are rows of as many groups, as if those of other days made up for it.
    """
    most = max(rows for _, rows in plan.caps)
    few = len(plan.pages) < most
    return plan.asked.column == "user" and plan.grain is not None and few


def scattered(plan: Plan, unit: UnitFact) -> bool:
    """Tell whether devices tie a period of somebody to all others, before caps do.

    A day has rows of any number of devices, each of which has rows of other days.
    """
    device = plan.caps[0][0] == "device" and len(plan.caps) > 1
    return device and unit.period is not None


def _of_new_devices(day: date, turn: int) -> Told:
    return Told("stays", day, "ann", f"{day} {turn}")


def has_room(plan: Plan, unit: UnitFact) -> bool:
    """Tell whether a change of a unit can reach every bound in a roomy plan.

    It cannot in the structures that prices are known to be too high for, and where
    there are too few days for what does not change to fill a cap.
    """
    if uneven(plan) or crowded_ids(plan) or scattered(plan, unit):
        return False
    changed = set(instances(unit, plan.days)[0])
    for at, (name, rows) in enumerate(plan.caps):
        days = instances(plan.units[name], plan.days)[0]
        if unit.id == "user" and set(days) <= changed:
            continue
        others = [day for day in days if day not in changed or unit.id == "device"]
        first = replace(plan, caps=plan.caps[: at + 1])
        left = filled(first, others, _of_new_devices, rows)
        if len(left) < rows:
            return False
    return True


def _random_asked(dice: random.Random) -> Asked:
    kind = dice.choice(["rows", "total", "total", "squares", "distinct", "histogram"])
    if kind == "rows":
        return Asked("rows", dice.choice([None, "value"]))
    if kind == "distinct":
        return Asked("distinct", dice.choice(["user", "item"]), 0, 10**6)
    if kind == "histogram":
        levels = dice.randint(1, 3)
        return Asked("histogram", None, 0, 2**levels - 1, 0, levels)
    low = dice.randint(-6, 4)
    high = low + dice.randint(1, 8)
    center = dice.choice([0, 0, (low + high) // 2, low])
    return Asked("total" if kind == "total" else "squares", None, low, high, center)


# --- pairs ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Worst:
    """The tables that are farthest apart for one unit, in each norm.

    Attributes:
        l1: How far the answers are apart in the L1 norm.
        l2_squared: In the L2 norm, its square.
        pairs: By norm, neighboring tables that are that far apart.
        reached: Whether no tables can be farther apart, by the plan alone.
    """

    l1: int
    l2_squared: int
    pairs: Mapping[Norm, Pair]
    reached: bool


@dataclass(frozen=True)
class Case:
    """A plan, and the worst tables of some units, which may be without a bound."""

    seed: int
    plan: Plan
    worst: Mapping[str, Worst]


def worst_pairs(
    seed: int, *, roomy: bool = True, only: Iterable[str] | None = None
) -> Case:
    """Return a random plan with the worst neighboring tables of its units.

    Args:
        seed: The same seed gives the same plan and tables.
        roomy: Whether to take a plan whose bounds can be reached.
        only: The units to look at; None for two of them.
    """
    dice = random.Random(seed)
    plan = roomy_plan(dice) if roomy else random_plan(dice)
    names = dice.sample(list(plan.units), 2) if only is None else list(only)
    found = {name: worst_of(plan, plan.units[name], dice) for name in names}
    reached = {
        name: replace(one, reached=roomy and has_room(plan, plan.units[name]))
        for name, one in found.items()
    }
    return Case(seed, plan, reached)


def worst_of(
    plan: Plan, unit: UnitFact, dice: random.Random, more: Iterable[Story] = ()
) -> Worst:
    """Return the worst neighboring tables of a unit that are found.

    Args:
        plan: What is asked.
        unit: The unit that changes.
        dice: What stories are told with.
        more: Stories to look at besides.
    """
    best = worst(plan, unit, [*more, *stories(plan, unit, dice)])
    pairs: dict[Norm, Pair] = {}
    for norm, (_, story) in best.items():
        pair = completed(painted(story or (), plan, norm), unit)
        pairs[norm] = crowded(pair, plan, dice)
        assert are_neighbors(pairs[norm].before, pairs[norm].after, unit)
    l1, l2_squared = pairs["l1"].l1, pairs["l2_squared"].l2_squared
    assert (l1, l2_squared) == (best["l1"][0], best["l2_squared"][0])
    return Worst(l1, l2_squared, pairs, reached=False)


def completed(pair: Pair, unit: UnitFact) -> Pair:
    """Return the tables with a row that is not read, if it takes one to be neighbors.

    A substitution leaves rows of the instance in both tables.
    """
    before, after = list(pair.before), list(pair.after)
    changed = [row for row in before + after if not (row in before and row in after)]
    if unit.relation == "substitute" and changed:
        key = instance_of(changed[0], unit)
        for table in (before, after):
            if not any(instance_of(row, unit) == key for row in table):
                last = max(row["rank"] for row in before + after) + 1
                table.append({**changed[0], "rank": last, "country": "gone"})
    return replace(pair, before=before, after=after)


def crowded(pair: Pair, plan: Plan, dice: random.Random) -> Pair:
    """Return the tables with rows in both that do not matter, among the others."""
    rows = [row["rank"] for row in pair.before + pair.after]
    last = max(rows, default=0) + 1
    ranks: list[float] = [dice.uniform(-1, last) for _ in range(4)]
    still = Row(rank=0, user="cleo", device="cleo's", day=plan.days[0],
                page="page 000", item="hers", value=plan.asked.high,
                country="here")  # fmt: skip
    extra: Table = [
        still,
        {**still, "page": "left out"},
        {**still, "user": "eve", "device": "eve's", "country": "gone"},
        {**still, "user": "dan", "device": "dan's", "day": date(2020, 2, 29)},
    ]
    order = sorted({*rows, *ranks})
    new = {rank: number for number, rank in enumerate(order)}
    both: Table = [
        {**row, "rank": new[rank]} for row, rank in zip(extra, ranks, strict=True)
    ]
    before: Table = [{**row, "rank": new[row["rank"]]} for row in pair.before]
    after: Table = [{**row, "rank": new[row["rank"]]} for row in pair.after]
    before, after = [*before, *both], [*after, *both]
    l1, l2_squared = apart(answers(before, plan), answers(after, plan))
    return Pair(before, after, l1, l2_squared)


def with_ids(table: Table, ids: Sequence[str]) -> list[dict[str, object]]:
    """Return the rows of a table with ids in place of ranks.

    Args:
        table: The table.
        ids: More ids than both tables of a pair have rows, in the order in which caps
            take them, as by their keyed hashes.
    """
    return [
        {"row_id": ids[row["rank"]], **{k: v for k, v in row.items() if k != "rank"}}
        for row in table
    ]
