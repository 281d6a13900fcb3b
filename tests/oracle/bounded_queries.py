"""What a bounded query answers, and how far neighbors are apart. Slow and obvious.

A table is a list of rows; a row says whose it is, when it happened, what it holds, and
its place in the fixed order of all rows that caps go by. Two tables are laid side by
side, cut by every cap in turn, and what each statistic answers is subtracted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from typing import Literal, TypeAlias, TypedDict

Grain: TypeAlias = Literal["day", "week", "month"]
Relation: TypeAlias = Literal["add-remove", "substitute", "any-change"]
Kind: TypeAlias = Literal["rows", "total", "squares", "distinct", "histogram"]


class Row(TypedDict):
    """One row. Of two rows the one of lower `rank` stays, if only one may."""

    rank: int
    user: str
    device: str
    day: date
    page: str
    item: str
    value: int | None
    country: str


Table: TypeAlias = list[Row]
#: By group, and for a histogram by level and node, a whole number.
Vector: TypeAlias = dict[tuple[object, ...], int]


@dataclass(frozen=True)
class UnitFact:
    """A privacy unit: whose rows, of which period, and which tables are neighbors."""

    name: str
    id: Literal["user", "device"]
    period: Grain | None
    relation: Relation


@dataclass(frozen=True)
class Asked:
    """One statistic of each group, as it is asked for.

    Attributes:
        kind: Which one.
        column: For `distinct`, of which column; for `rows`, whether NULL counts
            (None) or not ("value").
        low: The least value, in steps.
        high: The greatest one.
        center: What is taken off each value.
        levels: For `histogram`, how many levels of nodes; level j has 2**j of them.
    """

    kind: Kind
    column: Literal["user", "device", "item", "value"] | None = None
    low: int = 0
    high: int = 0
    center: int = 0
    levels: int = 1

    @property
    def reach(self) -> tuple[int, int]:
        """How far one row moves the answer of its group up, and how far down."""
        if self.kind not in {"total", "squares"}:
            return 1, 0
        low, high = self.low - self.center, self.high - self.center
        if self.kind == "squares":
            return max(low * low, high * high), 0
        return max(high, 0), max(-low, 0)


@dataclass(frozen=True)
class Plan:
    """What is asked of a table.

    Attributes:
        units: The privacy units by name.
        caps: How many rows of each instance of which unit are kept, in this order.
        days: The days that are read.
        grain: The period that is a key; None for none.
        pages: The public values of the key `page`; empty if it is no key.
        asked: The statistic.
    """

    units: Mapping[str, UnitFact]
    caps: tuple[tuple[str, int], ...]
    days: tuple[date, ...]
    grain: Grain | None
    pages: tuple[str, ...]
    asked: Asked

    @property
    def cells(self) -> int:
        """How many periods of the grain are read: groups are told apart by them."""
        return len({first_day(day, self.grain) for day in self.days})

    @property
    def groups(self) -> int:
        """How many groups there are in all."""
        return self.cells * max(len(self.pages), 1)


@cache
def first_day(day: date, period: Grain | None) -> date | None:
    """Return the first day of the period that a day lies in; weeks begin on Monday."""
    if period == "week":
        return day - timedelta(days=day.weekday())
    if period == "month":
        return day.replace(day=1)
    return day if period == "day" else None


def instance_of(row: Row, unit: UnitFact) -> tuple[str, date | None]:
    """Return the key of the instance of a unit that a row belongs to."""
    return row[unit.id], first_day(row["day"], unit.period)


def read(table: Iterable[Row], plan: Plan) -> Table:
    """Return the rows that lie in the part and for which the condition is true."""
    days = set(plan.days)
    return [row for row in table if row["day"] in days and row["country"] == "here"]


def bounded(table: Iterable[Row], plan: Plan) -> Table:
    """Return the rows that are left of a table: read, then cut by each cap in turn."""
    left = sorted(read(table, plan), key=lambda row: row["rank"])
    for name, most in plan.caps:
        unit, seen, kept = plan.units[name], Counter[object](), []
        for row in left:
            key = instance_of(row, unit)
            seen[key] += 1
            if seen[key] <= most:
                kept.append(row)
        left = kept
    return left


def answers(table: Iterable[Row], plan: Plan) -> Vector:
    """Return the exact answer for every group that has one; absent ones are 0."""
    groups: dict[tuple[object, ...], Table] = {}
    for row in bounded(table, plan):
        if plan.pages and row["page"] not in plan.pages:
            continue
        page = row["page"] if plan.pages else None
        groups.setdefault((first_day(row["day"], plan.grain), page), []).append(row)
    return {
        (*group, *place): number
        for group, rows in groups.items()
        for place, number in _statistic(rows, plan.asked).items()
    }


def _statistic(rows: Sequence[Row], asked: Asked) -> Vector:
    if asked.kind == "rows":
        counted = [row for row in rows if not (asked.column and row["value"] is None)]
        return {(): len(counted)}
    if asked.kind == "distinct":
        assert asked.column is not None
        return {(): len({row[asked.column] for row in rows} - {None})}
    values = [
        min(max(row["value"], asked.low), asked.high)
        for row in rows
        if row["value"] is not None
    ]
    if asked.kind == "total":
        return {(): sum(value - asked.center for value in values)}
    if asked.kind == "squares":
        return {(): sum((value - asked.center) ** 2 for value in values)}
    tree = Counter[tuple[object, ...]]()
    for value in values:
        for level in range(1, asked.levels + 1):
            width = 2 ** (asked.levels - level)
            tree[level, (value - asked.low) // width] += 1
    return dict(tree)


def apart(one: Vector, other: Vector) -> tuple[int, int]:
    """Return how far two answers are apart: the L1 norm, and the square of the L2."""
    gaps = [one.get(key, 0) - other.get(key, 0) for key in one.keys() | other.keys()]
    return sum(map(abs, gaps)), sum(gap * gap for gap in gaps)


def are_neighbors(one: Table, other: Table, unit: UnitFact) -> bool:
    """Tell whether two tables are neighbors for a unit, by its definition.

    A device lies in one user in each table, perhaps another one in the other table.
    """
    for table in (one, other):
        pairs = {(row["device"], row["user"]) for row in table}
        ranks = {row["rank"] for row in table}
        if len({device for device, _ in pairs}) < len(pairs) or len(ranks) < len(table):
            return False
    gone = [row for row in one if row not in other]
    come = [row for row in other if row not in one]
    keys = {instance_of(row, unit) for row in gone + come}
    if len(keys) > 1:
        return False
    before = [row for row in one if instance_of(row, unit) in keys]
    after = [row for row in other if instance_of(row, unit) in keys]
    if unit.relation == "add-remove":
        return not before or not after
    return unit.relation == "any-change" or not keys or bool(before and after)
