"""What each round left of the budget of a rule, by segment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from math import nextafter
from typing import Final

from msgspec.structs import replace

from modicum.accounting import INFINITE, Total
from modicum.api.local.alternatives.trials import HeadView
from modicum.api.local.explanation.charges import Cell, cells_of, fullest
from modicum.api.schema.ledger import Head
from modicum.api.schema.policy import RuleRounds, SegmentBudget
from modicum.ledger.decision.balances import Balances
from modicum.ledger.decision.unlocked_shares import MILLION, WHOLE
from modicum.ledger.state.rounds import Planning
from modicum.policy import Rule
from modicum.release import EVERYTHING, Part

#: The most rounds that are shown, and segments: the latest ones.
ROUNDS_MAX: Final = 26
SEGMENTS_MAX: Final = 60
_LAST: Final = 2**63


def segment_budgets(
    head_view: HeadView,
    rule: Rule,
    planning: Planning,
    opened: Mapping[str, int],
    sums: Callable[[Sequence[Cell], Sequence[int]], list[list[Total]]],
) -> RuleRounds:
    """Return what the latest rounds left of the budget of a rule, by segment.

    Only releases that still count are charged. If segments are too many to separate, a
    cell is charged for releases about others, too: these count from the first round.

    Args:
        head_view: The ledger, under the active policy.
        rule: A rule over history.
        planning: Rounds and groups, up to the head.
        opened: The entry that opened each round.
        sums: Returns, by cell, the charge in each interval of entries; see
            `RuleHistory.sums`.
    """
    balances, day = head_view.balances, head_view.day
    turns = _Turns(planning, rule.unit, balances)
    first = max(0, len(turns.rounds) - ROUNDS_MAX)
    own = balances.compiled.filter_of(rule.budget)
    groups = turns.groups(first) if own.enforced and turns.rounds else []
    cells = []
    for group in groups:
        part = EVERYTHING if group is None else Part(groups=((group, group),))
        cells.append(fullest(cells_of(balances, rule, part, day), balances.compiled))
    # A round ends where the next one begins.
    ends = [*(opened[one.id] for one in turns.rounds[1:]), _LAST][first:]
    found = []
    charges = sums(cells, ends) if cells else []
    for group, cell, spent in zip(groups, cells, charges, strict=True):
        total = _beyond(cell.total, reduce(Total.joined, spent))
        left: list[float | None] = []
        for at, one in enumerate(spent, first):
            total, share = total.joined(one), turns.unlocked(group, at)
            if share:
                full = own.unlocked(share).fullness(total)
                left.append(_down(max(Fraction(0), 1 - full)))
            else:
                left.append(None if share is None else 0.0)
        found.append(SegmentBudget(group=group, left=tuple(left)))
    return RuleRounds(
        rule=rule.id,
        rounds=tuple(one.id for one in turns.rounds[first:]),
        first=first + 1,
        segments=tuple(one for one in found if set(one.left) != {None}),
        ledger=Head(seq=head_view.seq, head=head_view.head),
    )


class _Turns:
    """Which segments of a unit were active in each round, and what was unlocked.

    Args:
        planning: Rounds and groups, up to the head.
        unit: The unit.
        balances: The balances under the active policy.
    """

    def __init__(self, planning: Planning, unit: str, balances: Balances) -> None:
        self.rounds = [*planning.rounds.values()]
        self._unit = unit
        rotation = balances.compiled.policy.rotation
        grouped = balances.family(unit).space.grouped
        self._schedule = rotation.schedule if rotation and grouped else None
        number = {one.id: place for place, one in enumerate(self.rounds)}
        number[""] = len(self.rounds)  # Of an active group.
        self._active = {
            group: range(number[one.since], number[one.until])
            for group, one in planning.groups.items()
        }

    def groups(self, first: int) -> list[int | None]:
        """Return the groups active in a round or after it; None for everybody."""
        if self._schedule is None:
            return [None]
        recent = (one for one, turns in self._active.items() if turns.stop > first)
        return [*sorted(recent)[-SEGMENTS_MAX:]]

    def unlocked(self, group: int | None, at: int) -> Fraction | None:
        """Return what a group may have used in a round; None if it was not active."""
        millionths = self.rounds[at].unlocked.get(self._unit)
        share = WHOLE if millionths is None else Fraction(millionths, MILLION)
        if group is None or self._schedule is None:
            return share
        turns = self._active[group]
        age = at - turns.start + 1
        # Another policy may have allowed more rounds.
        if at not in turns or age > self._schedule.rounds:
            return None
        return share * self._schedule.share(age)


def _beyond(whole: Total, known: Total) -> Total:
    """Return what a sum has beyond a part of it."""

    def units(total: Total) -> Iterator[int]:
        pairs = zip(total.finite, total.infinite, strict=True)
        return (one + INFINITE * times for one, times in pairs)

    pairs = zip(units(whole), units(known), strict=True)
    return replace(Total(), finite=tuple(max(0, a - b) for a, b in pairs))


def _down(share: Fraction) -> float:
    """Return a share as a float that is not above it."""
    near = float(share)
    return nextafter(near, 0) if near > share else near
