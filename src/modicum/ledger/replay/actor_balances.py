"""What one actor holds reserved, or reserved within some days, against limits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Collection, KeysView, Reversible, Set
from fractions import Fraction
from itertools import islice, takewhile
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from modicum.ledger.cells.axes import Space
from modicum.ledger.cells.family import ReleaseCosts
from modicum.ledger.cells.partition import Integers
from modicum.ledger.cells.segments import SegmentsThen
from modicum.ledger.decision.approvals import plans_freely
from modicum.ledger.decision.balances import Balances
from modicum.ledger.decision.decide import admits, denied_on_top
from modicum.ledger.decision.single_release import RuleLoss
from modicum.ledger.decision.unlocked_shares import WHOLE, Shares, Unlocked
from modicum.ledger.log.days import day_of
from modicum.ledger.log.events import (
    Event,
    PastRecorded,
    PlanCommitted,
    ReleaseExpired,
    ReleaseReserved,
    ReleaseVoided,
    day_of_release,
)
from modicum.ledger.log.recorded_release import RecordedRelease
from modicum.ledger.state.release_table import Holders
from modicum.ledger.state.rounds import Planning
from modicum.ledger.state.state import LossChange, State
from modicum.policy import CompiledPolicy, Policy

#: Returns the release of an entry, re-keyed to a policy.
Migrate: TypeAlias = Callable[[RecordedRelease, int], RecordedRelease]


class Judged(NamedTuple):
    """The check of one more release of an actor against a share of all limits.

    Attributes:
        is_large: Whether it exceeds the share of some limit, together with the actor's
            other releases.
        beyond: The decision of a rule in a cell in which the actor already has a
            release; None if it stays within the share in all of these.
        is_rounded: Whether there are too many cells, so that this may be too strict.
    """

    is_large: bool
    beyond: RuleLoss | None = None
    is_rounded: bool = False


class _ActorBalances(ABC):
    """Balances of some releases of each actor, under one policy.

    They are updated on demand: the time depends on the number of the actor's releases
    that changed since.

    Args:
        compiled: The policy.
        migrate: Returns a release re-keyed to the policy.
    """

    #: Maximum number of actors with cached balances; others are recomputed.
    kept: int | None = 100

    def __init__(self, compiled: CompiledPolicy, migrate: Migrate) -> None:
        self._compiled = compiled
        self._migrate = migrate
        self._part = _Part(WHOLE)
        self._cache: OrderedDict[str, _Cached] = OrderedDict()

    def judged(
        self, actor: str, release: RecordedRelease, day: int, share: Fraction = WHOLE
    ) -> Judged:
        """Return whether an actor may have a release besides the others."""
        if self._part.share != share:
            self._part = _Part(share)
        balances = self._of(actor)
        balances.unlocked = self._part
        if admits(balances, release, day):
            return Judged(is_large=False)
        beyond = next(denied_on_top(balances, release, day), None)
        return Judged(is_large=True, beyond=beyond, is_rounded=bool(balances.rounded))

    @abstractmethod
    def _releases(self, actor: str) -> Set[str]:
        """Return the ids of an actor's releases."""

    @abstractmethod
    def _charge(self, release: str) -> LossChange:
        """Return the charge of one of them."""

    def _of(self, actor: str) -> Balances:
        """Return the balances of an actor's present releases."""
        known = self._cache.pop(actor, None)
        balances, charged = known or _Cached(Balances(self._compiled), {})
        present = self._releases(actor)
        if not charged.keys() <= present:
            for gone in charged.keys() - present:
                balances.take_back(*charged.pop(gone))
        # Mostly the last ones are missing.
        latest = reversed(present) if isinstance(present, Reversible) else present
        unknown = (one for one in latest if one not in charged)
        missing = map(self._charge, islice(unknown, len(present) - len(charged)))
        for one in sorted(missing, key=attrgetter("seq")):
            migrated = self._migrate(one.release, one.seq)
            balances.charge(migrated, one.day)
            charged[one.release.id] = migrated, one.day
        self._cache[actor] = _Cached(balances, charged)
        if self.kept is not None and len(self._cache) > self.kept:
            self._cache.popitem(last=False)
        return balances


class Holdings(_ActorBalances):
    """Balances of each actor's reservations that are not started.

    Args:
        compiled: The policy.
        migrate: Returns a release re-keyed to the policy.
        state: The state at the head; its owner moves it on.
    """

    def __init__(
        self, compiled: CompiledPolicy, migrate: Migrate, state: State
    ) -> None:
        super().__init__(compiled, migrate)
        self._state = state
        #: Reservations that have expired, and are not yet recorded so.
        self.due: Set[str] = frozenset()

    def held(self, holder: str) -> Set[str]:
        """Return the releases that an actor holds."""
        own = self._own(holder)
        return own - self.due if self.due else own

    def _own(self, holder: str) -> KeysView[str]:
        return self._state.holders.of(holder)

    def _releases(self, actor: str) -> Set[str]:
        return self.held(actor)

    def _charge(self, release: str) -> LossChange:
        standing = self._state.releases[release]
        return LossChange(self._state.open[release], standing.seq, standing.day)


class Quota(NamedTuple):
    """One limit on what is reserved and not started.

    Attributes:
        holdings: What it limits.
        holder: The actor or data set that it is about.
        share: The part of each limit.
        is_of_data_set: Whether it is about a data set.
    """

    holdings: Holdings
    holder: str
    share: Fraction
    is_of_data_set: bool = False

    @property
    def held(self) -> Set[str]:
        """What is reserved and not started."""
        return self.holdings.held(self.holder)

    def judged(self, release: RecordedRelease, day: int) -> Judged:
        """Return whether a release may be reserved besides."""
        return self.holdings.judged(self.holder, release, day, self.share)


class RequesterWindow(_ActorBalances):
    """Balances of what each actor reserved within the last days, this one included.

    Canceled and expired reservations do not count, and neither do those of plans whose
    committers may open rounds: these weigh the requests of all against each other.
    Reservations that were lost and found count for who made them.

    Args:
        days: The number of days.
        limits: The rules of the policy that have this number, over what is summed.
        policy: The policy.
        migrate: Returns a release re-keyed to the policy.

    Attributes:
        days: The number of days.
    """

    def __init__(
        self, days: int, limits: CompiledPolicy, policy: Policy, migrate: Migrate
    ) -> None:
        super().__init__(limits, migrate)
        self.days = days
        self._policy = policy
        self._holders = Holders()
        self._recent: dict[str, LossChange] = {}
        self._day = 0
        self._due: Set[str] = frozenset()

    def follow(self, event: Event, seq: int) -> None:
        """Take the next event of the log into account."""
        match event.body:
            case ReleaseReserved(release=release):
                day = day_of(event.at)
                # A lost one may be behind later ones: it goes when these do.
                for past in list(takewhile(self._is_before(day), self._recent)):
                    self._drop(past)
                self._recent[release.id] = LossChange(release, seq, day)
                self._holders.add(release.id, event.actor)
            case PastRecorded(release=release, lost_by=by) as body if by:
                day = day_of_release(body, event.at)
                self._recent[release.id] = LossChange(release, seq, day)
                self._holders.add(release.id, by)
            case ReleaseVoided(release=ended) | ReleaseExpired(release=ended):
                self._drop(ended)
            case PlanCommitted(releases=planned):
                if plans_freely(event.actor, self._policy):
                    for one in planned:
                        self._drop(one)
            case _:
                pass  # It neither reserves nor ends a reservation.

    def refuses(
        self,
        actor: str,
        release: RecordedRelease,
        day: int,
        due: Collection[str] = (),
    ) -> Judged:
        """Return whether an actor may reserve a release on a day.

        Args:
            actor: The actor.
            release: The release.
            day: The day, as an ordinal; not before the last entry.
            due: The reservations that have expired, and are not yet recorded so.
        """
        self._day, self._due = day, frozenset(due)
        return self.judged(actor, release, day)

    def first_day(self, actor: str, release: RecordedRelease, day: int) -> int:
        """Return the first day on which a release fits, if nothing else is reserved."""
        later = range(day + 1, day + self.days)
        fits = (one for one in later if not self.refuses(actor, release, one).beyond)
        return next(fits, day + self.days)

    def _is_before(self, day: int) -> Callable[[str], bool]:
        """Return whether a release does not count on a day."""
        return lambda one: self._recent[one].day <= day - self.days

    def _drop(self, release: str) -> None:
        self._recent.pop(release, None)
        self._holders.drop(release)

    def _releases(self, actor: str) -> Set[str]:
        own = self._holders.of(actor)
        # Days before are not dropped: another clock may look at an earlier day.
        past = frozenset(filter(self._is_before(self._day), own))
        gone = past | self._due
        return own - gone if gone else own

    def _charge(self, release: str) -> LossChange:
        return self._recent[release]


class _Cached(NamedTuple):
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
