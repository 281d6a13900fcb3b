"""Reading a log: each record checked, folded into the state, and charged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from modicum.core.errors import ModicumError
from modicum.ledger.decision.balances import Balances
from modicum.ledger.log.chain import ChainBreakError, Record, event_of, read_record
from modicum.ledger.log.days import day_of
from modicum.ledger.log.events import Event
from modicum.ledger.log.recorded_release import RecordedRelease
from modicum.ledger.replay.actor_balances import Holdings, Quota, RequesterWindow
from modicum.ledger.replay.migration import Migration
from modicum.ledger.state.state import LossChange, State
from modicum.policy import CompiledPolicy
from modicum.policy.model import ReservationBound


def fold(state: State, record: Record) -> tuple[Event, LossChange | None]:
    """Return the event of the next record and its loss, folded into the state.

    Args:
        state: The state up to the record before; it is moved on.
        record: The next record.

    Raises:
        ChainBreakError: If the record does not continue the log; the state is
            unchanged then.
    """
    seq = state.seq + 1
    event = read_record(record, seq, state.head)
    return event, fold_event(state, event, record)


def fold_event(state: State, event: Event, record: Record) -> LossChange | None:
    """Return the loss of an event that was read from the next record, folded.

    Raises:
        ChainBreakError: If the event cannot happen here; the state is unchanged then.
    """
    try:
        return state.apply(event, record.hash)
    except ModicumError as error:
        raise ChainBreakError(
            state.seq + 1, f"it cannot happen here ({error})"
        ) from error


def loss_changes(records: Iterable[Record], state: State) -> Iterator[LossChange]:
    """Yield every loss that was added or released, up to a head.

    Raises:
        ChainBreakError: If the log is not the one that led to this state.
    """
    again = State()
    if state.seq:
        for record in records:
            _, change = fold(again, record)
            if change is not None:
                yield change
            if again.seq == state.seq:
                break
    if again.head != state.head:
        raise ChainBreakError(
            again.seq, "the log differs from the one that was read before"
        )


class Followed:
    """The balances of one policy, as they follow a log.

    Releases are re-keyed to the policy: it may divide the population differently than
    the policy under which they were recorded.

    Args:
        compiled: The policy.
        state: The state at the head; its owner moves it on.
        balances: The balances at the head; by default nothing was charged.

    Attributes:
        balances: The charges; only this object changes them.
    """

    def __init__(
        self,
        compiled: CompiledPolicy,
        state: State,
        balances: Balances | None = None,
    ) -> None:
        self.balances = balances or Balances(compiled, planning=state.planning)
        policy = compiled.policy
        self._migration = Migration(state.policies, policy.vocabulary, policy.text)
        #: The reservations of each actor that are not started.
        # Not by `self.migrated`: a reference cycle would keep a whole ledger until
        # collected.
        self.holdings = Holdings(compiled, self._migration.release, state)
        #: The same of each data set; None until it is used.
        self._of_data_sets: Holdings | None = None
        self._state = state
        self._windows = tuple(
            RequesterWindow(days, limits, policy, self._migration.release)
            for days, limits in compiled.requester_limits.items()
        )
        #: The entry up to which they were read; they are read on first use.
        self._windows_at = 0

    @property
    def compiled(self) -> CompiledPolicy:
        """The policy."""
        return self.balances.compiled

    def settle(self, change: LossChange) -> None:
        """Charge an added loss, release it, or replace another by it."""
        release = self.migrated(change.release, change.seq)
        if change.instead_of is not None:
            before = self.migrated(change.instead_of, change.seq)
            self.balances.take_back(before, change.day)
        if change.taken_back:
            self.balances.take_back(release, change.day)
        else:
            self.balances.charge(release, change.day)

    def rules_of(self, change: LossChange) -> Iterator[int]:
        """Yield the numbers of the rules over history whose charges a change moves."""
        for one in (change.release, change.instead_of):
            if one is not None:
                yield from self.balances.rules_of(self.migrated(one, change.seq))

    def quotas(
        self,
        bound: ReservationBound | None,
        actor: str,
        release: RecordedRelease,
        due: Iterable[str] = (),
    ) -> Iterator[Quota]:
        """Yield the quotas that a reservation must keep to.

        Args:
            bound: The limits on reservations; None if there are none.
            actor: Who reserves the release.
            release: The release.
            due: The reservations that have expired, and are not yet recorded so.
        """
        if bound is None:
            return
        self.holdings.due = frozenset(due)
        if bound.share is not None:
            yield Quota(self.holdings, actor, bound.share)
        if not bound.data_sets:
            return
        from modicum.ledger.log.data_sets import data_sets_recorded
        from modicum.ledger.replay.data_set_balances import DataSetHoldings

        if self._of_data_sets is None:
            self._of_data_sets = DataSetHoldings(
                self.compiled, self._migration.release, self._state
            )
        self._of_data_sets.due = self.holdings.due
        about = data_sets_recorded(release)
        for name, share in bound.data_sets.items():
            if name in about or None in about:
                yield Quota(self._of_data_sets, name, share, is_of_data_set=True)

    def windows(
        self, state: State, read: Callable[[int], Iterable[Record]]
    ) -> tuple[RequesterWindow, ...]:
        """Return what each identity reserved within some days, up to the head.

        Args:
            state: The state at the head.
            read: Reads the log after an entry; called only if the policy limits that,
                for the entries since the last call that may count.
        """
        if self._windows and self._windows_at < state.seq:
            if not self._windows_at:
                first = day_of(state.at) - max(one.days for one in self._windows)
                self._windows_at = state.releases.last_before(first)
            for record in read(self._windows_at):
                if record.seq > state.seq:
                    break
                event = event_of(record, record.seq)
                for one in self._windows:
                    one.follow(event, record.seq)
            self._windows_at = state.seq
        return self._windows

    def migrated(self, release: RecordedRelease, seq: int) -> RecordedRelease:
        """Return a release re-keyed to the policy, as it is charged."""
        return self._migration.release(release, seq)


def followed_from(
    compiled: CompiledPolicy, state: State, changes: Iterable[LossChange]
) -> Followed:
    """Return the balances of a policy, as if it had always been active.

    Args:
        compiled: The policy.
        state: The state at the head; its owner moves it on.
        changes: Every loss that was added or released, in the order of the log.
    """
    followed = Followed(compiled, state)
    for change in changes:
        followed.settle(change)
    return followed
