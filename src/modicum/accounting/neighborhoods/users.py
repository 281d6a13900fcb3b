"""The worst change of one user's records, within a window or for life."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product

import numpy as np

from modicum.accounting.curves import UNKNOWN
from modicum.accounting.grid import COORDINATES, INFINITE
from modicum.accounting.group_privacy import group
from modicum.accounting.losses import Loss
from modicum.accounting.neighborhoods.entries import Entry, Part, Relation, UserPer
from modicum.accounting.neighborhoods.moves import Charge, Move
from modicum.accounting.neighborhoods.regions import (
    Axis,
    NumericAxis,
    Region,
    Segments,
    Span,
    has_complement,
    holds,
    merged,
    piece_text,
    segments,
)
from modicum.accounting.neighborhoods.target import Users
from modicum.accounting.neighborhoods.user_days import Chosen, Demand, costliest_days
from modicum.accounting.neighborhoods.worst_case import Candidates, Worst, split

_NOTHING = Loss((0,) * COORDINATES)
#: All of a user's life, where there is no axis: one day.
_ALWAYS = (0, 1)


@dataclass(frozen=True, slots=True)
class UserSteps:
    """The native changes of a change of a user's records.

    Attributes:
        each: The number in each block that has records; None if no number is proven.
        block: The length of a block; None if there is one block for all.
        inside: The number if the entry reads nothing of the user outside the window:
            then all that it reads is present or absent.
        paired: Whether `each` is for leaving and for entering.
    """

    each: int | None
    block: int | None = None
    inside: int | None = None
    paired: bool = False


def user_steps(entry: Entry, target: Users, axes: Mapping[str, Axis]) -> UserSteps:
    """Return how many native changes a target's change costs an entry.

    A bound that is enforced on more than the target's window turns a change within
    the window into records that leave and others that take their place.

    Args:
        entry: The entry.
        target: The user's records that change, and how.
        axes: The axes by name.

    Examples:
        >>> from modicum.accounting.neighborhoods.entries import RowBound
        >>> user_steps(Entry("a", UNKNOWN, rows=RowBound(3)), Users(), {})
        UserSteps(each=3, block=None, inside=3, paired=False)
        >>> user_steps(Entry("a", UNKNOWN), Users(), {})  # no bound is enforced
        UserSteps(each=None, block=None, inside=None, paired=False)
    """
    unit, relation = entry.native.unit, entry.native.relation
    if entry.native.size_public or relation is Relation.METRIC:
        return UserSteps(None)
    if unit is Part.USER:
        return _in_blocks(entry, target, axes, per=None, rows=1)
    if isinstance(unit, UserPer):
        return _in_blocks(entry, target, axes, per=unit, rows=1)
    if unit is not Part.ROW or entry.rows is None:
        return UserSteps(None)
    if relation is Relation.SUBSTITUTE and not has_complement(entry.region, axes):
        return UserSteps(None)  # Nothing can replace a missing record.
    return _in_blocks(entry, target, axes, per=entry.rows.per, rows=entry.rows.rows)


def _in_blocks(
    entry: Entry,
    target: Users,
    axes: Mapping[str, Axis],
    *,
    per: UserPer | None,
    rows: int,
) -> UserSteps:
    """Return the steps for each block; for all at once if days are not separate."""
    # Otherwise, where only coming or going is proven, a record goes and comes back; or
    # records leave, and others take their place.
    both = entry.native.relation is Relation.ADD_REMOVE and not _is_whole(target, per)
    each, inside = (2 * rows if both else rows), rows
    paired = both and target.change is not Relation.ADD_REMOVE
    if paired:
        inside = each
    if per is None:
        return UserSteps(each, inside=inside, paired=paired)
    axis = axes.get(per.axis)
    if per.length.denominator != 1 or not isinstance(axis, NumericAxis):
        return UserSteps(None)
    length = int(per.length)
    if per.axis == target.along:
        return UserSteps(each, length, inside, paired)
    blocks = _count_blocks(_days_of(entry.region, axis), length)
    return UserSteps(each * blocks, None, inside * blocks, paired)


def _is_whole(target: Users, unit: UserPer | None) -> bool:
    """Return whether the target removes whole instances of a unit, or none."""
    if target.change is not Relation.ADD_REMOVE:
        return False
    if target.windows is None:
        return True
    if unit is None or unit.axis != target.along:
        return False
    return all(
        (end / unit.length).denominator == 1
        for window in target.windows
        for end in (window.low, window.high)
    )


@dataclass(frozen=True)
class UserScene:
    """One user whose records change.

    Attributes:
        entries: The entries.
        axes: The axes by name.
        target: The target.
    """

    entries: tuple[Entry, ...]
    axes: Mapping[str, Axis]
    target: Users

    # --- one measure -------------------------------------------------------------

    def worst(self, index: int) -> Worst:
        """Return the costliest choice of days in one coordinate of a loss."""
        best: tuple[int, Chosen, _Case] | None = None
        exact = True
        for case in self._cases:
            cost, chosen = case.costliest(index)
            exact = exact and chosen.exact
            if best is None or cost > best[0]:
                best = cost, chosen, case
        if best is None:
            return Worst(0, lambda: Move("any"))
        cost, chosen, case = best
        return Worst(cost, lambda: case.move(chosen), exact=exact)

    # --- all measures ------------------------------------------------------------

    def candidates(self) -> Candidates | None:
        """Return the cost of every window's costliest days, measure by measure."""
        if not self._cases:
            return None
        rows = [case.bound() for case in self._cases]
        finite, infinite = split([row for row, _, _ in rows])
        return Candidates(
            np.array(finite),
            infinite,
            exact=all(exact for _, _, exact in rows),
            move=lambda row: self._cases[row].move(rows[row][1]),
        )

    # --- windows -----------------------------------------------------------------

    @cached_property
    def _cases(self) -> list[_Case]:
        """Every window, and every value of the axes that a user has for life."""
        fixed = [
            segments(self.axes[name], [entry.region for entry in self.entries])
            for name in sorted(self.target.fixed)
        ]
        steps = [user_steps(entry, self.target, self.axes) for entry in self.entries]
        cases = []
        for place in product(*(range(len(axis)) for axis in fixed)):
            home = ", ".join(
                f"{axis.axis.name} {piece_text(axis.pieces[segment])}"
                for axis, segment in zip(fixed, place, strict=True)
            )
            regions = [_at(entry.region, fixed, place) for entry in self.entries]
            for window in self.target.windows or (None,):
                runs = [self._days(region, window) for region in regions]
                seen = [
                    _if_inside(step, of_all=self._days(region, None), here=here)
                    for step, region, here in zip(steps, regions, runs, strict=True)
                ]
                cases.append(_Case(self.entries, seen, runs, self.target, home, window))
        return cases

    def _days(self, region: Region, window: Span | None) -> tuple[tuple[int, int], ...]:
        """Return the days of a region within a window; any part of a day counts."""
        along = self.target.along
        if along is None:
            return (_ALWAYS,) if region else ()
        axis = self.axes[along]
        assert isinstance(axis, NumericAxis)
        return _days_of(region, axis, window)


def _if_inside(
    steps: UserSteps,
    *,
    of_all: tuple[tuple[int, int], ...],
    here: tuple[tuple[int, int], ...],
) -> UserSteps:
    """Return the steps of an entry all of whose days lie in the window, if they do."""
    return replace(steps, each=steps.inside) if of_all == here else steps


def _days_of(
    region: Region, axis: NumericAxis, window: Span | None = None
) -> tuple[tuple[int, int], ...]:
    """Return the whole numbers of an axis that a region touches, as runs."""
    runs: list[tuple[int, int]] = []
    for box in region:
        side = box.get(axis.name, axis.span)
        assert isinstance(side, Span)
        low, high = side.low, side.high
        if window is not None:
            low, high = max(low, window.low), min(high, window.high)
        if low < high:
            runs.append((low // 1, -(-high // 1)))
    return tuple(merged(runs))


def _count_blocks(runs: Sequence[tuple[int, int]], length: int) -> int:
    """Return how many blocks of a length some runs of days touch."""
    blocks = merged([(left // length, -(-right // length)) for left, right in runs])
    return sum(right - left for left, right in blocks)


def _at(region: Region, fixed: Sequence[Segments], place: Sequence[int]) -> Region:
    """Return the boxes of a region that hold a place on the fixed axes."""
    return tuple(box for box in region if holds(fixed, (box,), place))


@dataclass(frozen=True)
class _Case:
    """One window, for users with one value of the fixed axes."""

    entries: tuple[Entry, ...]
    steps: Sequence[UserSteps]
    runs: Sequence[tuple[tuple[int, int], ...]]
    target: Users
    home: str
    window: Span | None

    def costliest(self, index: int) -> tuple[int, Chosen]:
        """Return the cost in one coordinate, and the days."""
        unbounded = self._choose(index, infinite=True)
        if unbounded.cost:
            return INFINITE, unbounded
        found = self._choose(index, infinite=False)
        if self._binds and any(self.steps[n].paired for n in self._in):
            # A day of one table only costs half as much as a day of both does.
            found = replace(found, exact=False)
        return min(found.cost, INFINITE), found

    def bound(self) -> tuple[Loss, Chosen, bool]:
        """Return the costs in all coordinates, and whether some days cost just that."""
        found = [self.costliest(index) for index in range(COORDINATES)]
        chosen = found[0][1]
        total = self.move(chosen).total()
        loss = Loss(tuple(cost for cost, _ in found))
        exact = all(
            total.units(index) == cost for index, cost in enumerate(loss.coordinates)
        )
        return loss, chosen, exact

    @cached_property
    def _in(self) -> list[int]:
        return [number for number, runs in enumerate(self.runs) if runs]

    @cached_property
    def _days_max(self) -> int:
        if not self._binds or self.target.at_most is None:
            return max(self._every_day, 1)
        if self.target.change is Relation.ADD_REMOVE:
            return self.target.at_most
        return 2 * self.target.at_most  # Some days before the change, others after.

    @cached_property
    def _every_day(self) -> int:
        return sum(b - a for a, b in merged([r for runs in self.runs for r in runs]))

    @cached_property
    def _binds(self) -> bool:
        """Return whether a user cannot be active on every day."""
        most = self.target.at_most
        return (
            self.target.along is not None
            and most is not None
            and most < self._every_day
        )

    def _choose(self, index: int, *, infinite: bool) -> Chosen:
        demands = [
            self._demand(number, index, infinite=infinite) for number in self._in
        ]
        return costliest_days(demands, self._days_max)

    def _demand(self, number: int, index: int, *, infinite: bool) -> Demand:
        costs = [loss.coordinates[index] for loss in self._losses(number)]
        per = [
            int(cost >= INFINITE) if infinite else cost if cost < INFINITE else 0
            for cost in costs
        ]
        block = self.steps[number].block
        return Demand(self.runs[number], tuple(per), even=block in {None, 1})

    def _losses(self, number: int) -> tuple[Loss, ...]:
        """Return the cost of 0, 1, 2, ... days of an entry; the last holds for more."""
        blocks, each = self._blocks(number), self.steps[number].each
        entry = self.entries[number]
        if each is not None and self._days_max >= self._every_day:
            return _NOTHING, group(entry.curve, each * blocks).loss()
        return _losses_of(entry, each, blocks)

    def _blocks(self, number: int) -> int:
        """Return how many blocks of an entry's own length can have records."""
        block = self.steps[number].block
        if block is None:
            return 1
        return min(self._days_max, _count_blocks(self.runs[number], block))

    def move(self, chosen: Chosen) -> Move:
        """Return the change as text, and its charges."""
        charges = []
        for number in self._in:
            days = chosen.count_in(self.runs[number])
            losses = self._losses(number)
            if days:
                loss = losses[min(days, len(losses) - 1)]
                noun = "day" if days == 1 else "days"
                step = f"{days} {noun}" if self.target.along else "touched"
                charges.append(Charge(number, step, loss))
        return Move(text=self._text(chosen), charges=tuple(charges))

    def _text(self, chosen: Chosen) -> str:
        any_change = self.target.change is not Relation.ADD_REMOVE
        what = "changed in any way" if any_change else "there or not"
        text = "the records of a user"
        if self.home:
            text += f" of {self.home}"
        if self.window is not None and self.target.along:
            text += f" within {self.target.along} {self.window}"
        if self.target.along:
            runs = " and ".join(f"[{left}, {right})" for left, right in chosen.runs)
            text += f", who is active in {runs or 'any'},"
        return f"{text} {what}"


@lru_cache(maxsize=1024)
def _losses_of(entry: Entry, each: int | None, blocks: int) -> tuple[Loss, ...]:
    """Return the cost of 0, 1, 2, ... blocks; never less than fewer of them."""
    found = [_NOTHING]
    if each is None:
        return _NOTHING, UNKNOWN.loss()
    for count in range(1, blocks + 1):
        loss = group(entry.curve, each * count).loss()
        pairs = zip(found[-1].coordinates, loss.coordinates, strict=True)
        found.append(Loss(tuple(max(pair) for pair in pairs)))
    return tuple(found)
