"""The reservations of each actor that are not started, against a share of limits."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from fractions import Fraction
from itertools import islice
from typing import NamedTuple, TypeAlias

from modicum.ledger.cells.axes import Space
from modicum.ledger.cells.family import ReleaseCosts
from modicum.ledger.cells.partition import Integers
from modicum.ledger.cells.segments import SegmentsThen
from modicum.ledger.decision.balances import Balances
from modicum.ledger.decision.decide import admits, denied_on_top
from modicum.ledger.decision.single_release import RuleLoss
from modicum.ledger.decision.unlocked_shares import WHOLE, Shares, Unlocked
from modicum.ledger.log.recorded_release import RecordedRelease
from modicum.ledger.state.rounds import Planning
from modicum.ledger.state.state import State
from modicum.policy import CompiledPolicy

#: Returns the release of an entry, re-keyed to a policy.
Migrate: TypeAlias = Callable[[RecordedRelease, int], RecordedRelease]

#: Maximum number of actors with cached balances; others are recomputed.
_KEPT = 100


class Judged(NamedTuple):
    """The check of one more reservation of an actor against a share of all limits.

    Attributes:
        is_large: Whether it exceeds the share of some limit, together with the actor's
            reservations.
        beyond: The decision of a rule in a cell in which the actor already has a
            reservation; None if it stays within the share in all of these.
        is_rounded: Whether there are too many cells, so that this may be too strict.
    """

    is_large: bool
    beyond: RuleLoss | None = None
    is_rounded: bool = False


class Holdings:
    """Balances of each actor's reservations, under one policy.

    They are updated on demand: the time depends on the number of the actor's
    reservations that changed since.

    Args:
        compiled: The policy.
        migrate: Returns a release re-keyed to the policy.
        state: The state at the head; its owner moves it on.
    """

    def __init__(
        self, compiled: CompiledPolicy, migrate: Migrate, state: State
    ) -> None:
        self._compiled = compiled
        self._migrate = migrate
        self._state = state
        self._part = _Part(WHOLE)
        self._cache: OrderedDict[str, _HeldBalances] = OrderedDict()

    def judged(
        self, actor: str, release: RecordedRelease, day: int, share: Fraction
    ) -> Judged:
        """Return whether an actor may hold a release besides their reservations."""
        if self._part.share != share:
            self._part = _Part(share)
        balances = self._of(actor)
        balances.unlocked = self._part
        if admits(balances, release, day):
            return Judged(is_large=False)
        beyond = next(denied_on_top(balances, release, day), None)
        return Judged(is_large=True, beyond=beyond, is_rounded=bool(balances.rounded))

    def _of(self, actor: str) -> Balances:
        """Return the balances of an actor's present reservations."""
        known = self._cache.pop(actor, None)
        balances, charged = known or _HeldBalances(Balances(self._compiled), {})
        held, state = self._state.holders.of(actor), self._state
        if not charged.keys() <= held:
            for gone in charged.keys() - held:
                balances.take_back(*charged.pop(gone))
        # Both are in the order of the log: missing ones are at the end.
        for new in islice(held, len(charged), None):
            standing = state.releases[new]
            migrated = self._migrate(state.open[new], standing.seq)
            balances.charge(migrated, standing.day)
            charged[new] = migrated, standing.day
        self._cache[actor] = _HeldBalances(balances, charged)
        if len(self._cache) > _KEPT:
            self._cache.popitem(last=False)
        return balances


class _HeldBalances(NamedTuple):
    balances: Balances
    charged: dict[str, tuple[RecordedRelease, int]]


class _Part(Unlocked):
    """The same fraction of every limit, whatever rounds unlock."""

    def __init__(self, share: Fraction) -> None:
        super().__init__(None, Planning())
        self.share = share
        self._shares = Shares((share,))

    def pieces(
        self, space: Space, inquiry: ReleaseCosts, then: SegmentsThen, places: Integers
    ) -> Shares:
        """Return that part, for each piece of a release."""
        return self._shares
