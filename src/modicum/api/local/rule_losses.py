"""The losses of all rules, computed again only where something was charged since."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from modicum.api.local.balances import LedgerBalances
from modicum.api.local.explanation.charges import standing_in
from modicum.ledger import LossChange, RuleLoss
from modicum.ledger.log.days import day_of
from modicum.ledger.replay.fold import Followed


@dataclass(frozen=True, slots=True)
class _Known:
    """What was computed last, and from what.

    Attributes:
        followed: The balances; others are no continuation of them.
        day: The day.
        due: The reservations that counted as expired, by release.
        segments: By unit, how many segments its instances were divided into.
        losses: The loss of each rule, in the policy's order.
    """

    followed: weakref.ref[Followed]
    day: int
    due: Mapping[str, LossChange]
    segments: Mapping[str, int]
    losses: list[RuleLoss]


class RuleLosses:
    """The losses of all rules over history of one view.

    A rule that nothing moved keeps its loss: the same object.
    """

    def __init__(self) -> None:
        self._known: _Known | None = None

    def of(self, book: LedgerBalances, followed: Followed, now: str) -> list[RuleLoss]:
        """Return the loss of each rule, in the policy's order.

        Args:
            book: The book; what it was charged since is asked for once.
            followed: Its balances, as of the time.
            now: The time.
        """
        known, self._known = self._known, None
        changes, day = book.changes_since(), day_of(now)
        due = {one.release.id: one for one in book.due_at(now)}
        balances = followed.balances
        segments = {
            unit: balances.family(unit).segments.count
            for unit in balances.compiled.policy.vocabulary.units
        }
        if (
            known is None
            or changes is None
            or known.followed() is not followed
            or known.day != day
        ):
            losses = [
                standing_in(balances, rule, day) for rule in balances.compiled.rules
            ]
        else:
            losses = known.losses
            other = known.due.keys() ^ due.keys()
            changes += [
                each[one] for each in (known.due, due) for one in other & each.keys()
            ]
            for number in _moved(followed, changes, known, segments):
                rule = losses[number].rule
                losses[number] = standing_in(balances, rule, day)
        self._known = _Known(weakref.ref(followed), day, due, segments, losses)
        return list(losses)


def _moved(
    followed: Followed,
    changes: Iterable[LossChange],
    known: _Known,
    segments: Mapping[str, int],
) -> set[int]:
    """Return the numbers of the rules whose cells changed."""
    moved = {number for one in changes for number in followed.rules_of(one)}
    cut = {unit for unit, count in segments.items() if count != known.segments[unit]}
    if cut:
        numbered = enumerate(known.losses)
        moved |= {number for number, one in numbered if one.rule.unit in cut}
    return moved
