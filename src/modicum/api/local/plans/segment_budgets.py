"""What each round left of the budget of a rule, by segment."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import nextafter
from operator import itemgetter
from typing import Final

from modicum.accounting import Total
from modicum.api.local.alternatives.trials import HeadView
from modicum.api.local.explanation.charges import Cell, cells_of, fullest
from modicum.api.local.explanation.contributions import Spent
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
    spent_in: Callable[[Sequence[Cell]], list[list[Spent]]],
) -> RuleRounds:
    """Return what the latest rounds left of the budget of a rule, by segment.

    Only releases that count now are charged.

    Args:
        head_view: The ledger, under the active policy.
        rule: A rule over history.
        planning: Rounds and groups, up to the head.
        opened: The entry that opened each round.
        spent_in: Returns, by cell, the charge of each release.
    """
    balances, day = head_view.balances, head_view.day
    turns = _Turns(planning, rule.unit, balances)
    first = max(0, len(turns.rounds) - ROUNDS_MAX)
    cells = []
    groups = turns.groups(first)
    for group in groups:
        part = EVERYTHING if group is None else Part(groups=((group, group),))
        cells.append(fullest(cells_of(balances, rule, part, day), balances.compiled))
    # A round ends where the next one begins.
    ends = [opened[one.id] for one in turns.rounds[1:]]
    ends += [_LAST] * bool(turns.rounds)
    own = balances.compiled.filter_of(rule.budget)
    found = []
    for group, each in zip(groups, spent_in(cells), strict=True):
        standings = ((head_view.standing(one.release), one.total) for one in each)
        spent = [(one.seq, total) for one, total in standings if one is not None]
        spent.sort(key=itemgetter(0))
        left: list[float | None] = []
        total, done = Total(), 0
        for at, end in enumerate(ends[first:], first):
            until = bisect_left(spent, end, key=itemgetter(0))
            for _, loss in spent[done:until]:
                total = total.joined(loss)
            done = until
            share = turns.unlocked(group, at)
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
        segments=tuple(found),
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
        number[""] = len(self.rounds)
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


def _down(share: Fraction) -> float:
    """Return a share as a float that is not above it."""
    near = float(share)
    return nextafter(near, 0) if near > share else near
