"""The book: the log as far as it was read, and work in progress on it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from typing import TypeAlias

from msgspec.structs import replace

from modicum.api.local.repeated_denials import Denials
from modicum.api.ports.storage import StoredAnswer, Turn
from modicum.core.canonical import digest
from modicum.core.confusables import confusable
from modicum.core.confusables import keys as confusable_keys
from modicum.core.errors import (
    Code,
    InputError,
    InvariantError,
    ModicumError,
    Problem,
    StaleError,
    VerificationError,
)
from modicum.ledger import (
    Balances,
    ChainBreakError,
    Event,
    LossChange,
    Record,
    RecordedRelease,
    ReleaseStatus,
    Standing,
    State,
    event_of,
    seal,
)
from modicum.ledger.log.days import day_of
from modicum.ledger.log.events import (
    Body,
    PastRecorded,
    PastRedescribed,
    PolicyActivated,
    ReleaseDenied,
    ReleaseExpired,
    ReleasePosted,
    ReleaseRequested,
    ReleaseReserved,
    ReleaseStarted,
    ReleaseVoided,
)
from modicum.ledger.replay.fold import Followed, fold, followed_from, loss_changes
from modicum.ledger.replay.snapshot import Snapshot
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_stored

#: Number of latest releases cached.
LATEST_MAX = 1000
#: Maximum number of changes kept for `changes_since`.
CHANGES_MAX = 1000

#: Minimum retention of a stored response, in days.
ANSWER_DAYS = 7

_READ_BEFORE = (
    PastRecorded,
    ReleaseReserved,
    ReleaseDenied,
    ReleaseStarted,
    ReleasePosted,
    ReleaseVoided,
    ReleaseExpired,
)

#: Returns the records of a log after a number.
Reader: TypeAlias = Callable[[int], Iterable[Record]]


class LedgerBalances:
    """A state, and the balances of the policy that decides; both follow the log.

    Args:
        snapshot: The start; by default an empty log.
    """

    def __init__(self, snapshot: Snapshot | None = None) -> None:
        self.state = snapshot.state if snapshot else State()
        self._resumable = snapshot
        self._followed: Followed | None = None
        self._awaits_policy = False
        self._latest: OrderedDict[str, RecordedRelease] = OrderedDict()
        #: The charges since they were last asked for; None if they are too many.
        self._changes: list[LossChange] | None = []
        self._active: CompiledPolicy | None = None
        #: Requests that were read from the log, by entry, for `pending_requests`.
        self.requested: dict[int, ReleaseRequested] = {}
        self._denials = Denials(from_start=snapshot is None)
        #: The first id for each hash of what ids look like; None until one is needed.
        self._looks: dict[int, str] | None = None

    # --- following the log ---

    def continues_with(self, records: Iterator[Record]) -> bool:
        """Return whether a log extends the part that was read before.

        Args:
            records: The log, from the record that was folded last; that record is
                consumed.
        """
        if self.state.seq == 0:
            return True
        return is_entry(next(records, None), self.state.head)

    def fold(self, records: Iterable[Record]) -> None:
        """Fold further records, checking that they continue the chain.

        Raises:
            VerificationError: If they do not.
        """
        for record in records:
            self._follow(*fold(self.state, record))

    def apply(self, event: Event, record: Record) -> None:
        """Fold one newly sealed event into the state and the balances.

        Raises:
            ModicumError: If it contradicts the state; nothing is changed then.
        """
        self._follow(event, self.state.apply(event, record.hash))

    def decide_by(self, compiled: CompiledPolicy | None) -> None:
        """Follow the balances of a policy from the beginning of the log.

        Args:
            compiled: The policy; None for the one that the log activates.
        """
        if self._followed is not None:
            return
        if self.state.seq == 0:
            self._awaits_policy = compiled is None
            self._followed = Followed(compiled, self.state) if compiled else None
        elif self._resumable is not None:
            self._resume(compiled or self.active(), self._resumable)

    def _resume(self, compiled: CompiledPolicy | None, snapshot: Snapshot) -> None:
        """Take the balances of a snapshot, if they are those of the policy."""
        if (
            compiled is not None
            and snapshot.balances is not None
            and snapshot.policy == compiled.policy.digest
        ):
            try:
                planning = self.state.planning
                balances = Balances.restored(compiled, snapshot.balances, planning)
            except ValueError:
                return  # They are made anew from the log.
            self._followed = Followed(compiled, self.state, balances)

    def snapshot(self) -> Snapshot:
        """Return the state at the head, for a fast start later."""
        if self._followed is None:
            return Snapshot(self.state)
        policy = self._followed.compiled.policy
        return Snapshot(self.state, policy.digest, self._followed.balances.dump())

    def _follow(self, event: Event, change: LossChange | None) -> None:
        self._resumable = None  # It is of an earlier entry now.
        self._denials.follow(self.state.seq, event)
        if change is not None:
            self._remember(change.release)
            if self._looks is not None:
                _add_looks(self._looks, change.release.id)
        if change is not None and self._followed is not None:
            self._followed.settle(change)
            if self._changes is not None:
                self._changes.append(change)
                if len(self._changes) > CHANGES_MAX:
                    self._changes = None
        elif isinstance(event.body, PolicyActivated):
            self._follow_policy()

    def _follow_policy(self) -> None:
        """Adopt the vocabulary of a newly activated policy.

        If anything was charged before, the balances are rebuilt on demand: all charges
        may have to be re-keyed.
        """
        followed, self._followed = self._followed, None
        awaited, self._awaits_policy = self._awaits_policy, False
        if not self.state.releases:
            compiled = self.active() if awaited else followed and followed.compiled
            if compiled:
                self._followed = Followed(compiled, self.state)

    # --- reading ---

    def lookalike_of(self, identifier: str) -> str | None:
        """Return a release, or a request, whose id looks like a new one; or None."""
        releases, requests = self.state.releases, self.state.waiting.requests
        if identifier in releases or identifier in requests:
            return None
        waiting = (one for one in requests if confusable(one, identifier))
        if (found := next(waiting, None)) is not None:
            return found
        if self._looks is None:
            self._looks = {}
            for one in releases:
                _add_looks(self._looks, one)
        looks = self._looks
        own = map(hash, confusable_keys(identifier))
        alike = [looks[each] for each in own if each in looks]
        if all(confusable(each, identifier) for each in alike):
            return min(alike, key=lambda each: releases[each].seq, default=None)
        # Other names with equal hashes: there may be one behind them.
        return next((one for one in releases if confusable(one, identifier)), None)

    def active(self) -> CompiledPolicy | None:
        """Return the ledger's active policy, compiled; None if there is none.

        Raises:
            VerificationError: If its stored text does not compile.
        """
        policy = self.state.policy
        if policy is None:
            return None
        if self._active is None or self._active.policy.digest != policy.digest:
            try:
                self._active = compile_stored(policy.text, f"{policy.name} (active)")
            except InputError as error:
                raise ChainBreakError(
                    policy.seq, f"its policy does not compile ({error})"
                ) from error
        return self._active

    def is_active(self, compiled: CompiledPolicy) -> bool:
        """Return whether a policy is the ledger's active one."""
        active = self.state.policy
        return active is not None and active.digest == compiled.policy.digest

    def followed(self, compiled: CompiledPolicy, read: Reader) -> Followed:
        """Return the balance of each rule of a policy, without changing it.

        Args:
            compiled: The policy.
            read: Reads the log; called only if the balances were not followed so far.
        """
        known = self._followed
        if known is None or known.compiled.policy.digest != compiled.policy.digest:
            changes: Iterable[LossChange] = ()
            if self.state.releases:
                changes = loss_changes(read(0), self.state)
            known = followed_from(compiled, self.state, changes)
            self._followed = known
        return known

    @contextmanager
    def followed_at(
        self, compiled: CompiledPolicy, read: Reader, now: str
    ) -> Iterator[Followed]:
        """Lend the balances as if reservations due at `now` had already expired."""
        followed = self.followed(compiled, read)
        due = self.due_at(now)
        self._followed = None  # Should it break off midway, they are made anew.
        for change in due:
            followed.settle(replace(change, taken_back=True))
        try:
            yield followed
        except InvariantError:
            raise
        except ModicumError:
            self._take_again(followed, due)
            raise
        self._take_again(followed, due)

    def due_at(self, now: str) -> list[LossChange]:
        """Return the charges of reservations that are due at `now`, oldest first."""
        return [
            self._charge_of(self.state.releases[one]) for one in self.state.due(now)
        ]

    def changes_since(self) -> list[LossChange] | None:
        """Return what was charged or released since the last call of this method.

        Returns:
            None if that is too much to be kept. It is about the present balances only:
            those that are built anew have everything.
        """
        found, self._changes = self._changes, []
        return found

    def _take_again(self, followed: Followed, lent: Iterable[LossChange]) -> None:
        for change in lent:
            followed.settle(change)
        self._followed = followed

    def _charge_of(self, standing: Standing) -> LossChange:
        release = self.state.open[standing.id]
        return LossChange(release, standing.seq, standing.day)

    def standing_at(self, release: str, now: str) -> Standing | None:
        """Return the status of a release as if due reservations had already expired."""
        standing = self.state.releases.get(release)
        if (
            standing is not None
            and standing.status is ReleaseStatus.RESERVED
            and standing.expires_at <= now
            and not self.state.planning.gaps.open
        ):
            return replace(standing, status=ReleaseStatus.EXPIRED, expires_at="")
        return standing

    def release_of(
        self, standing: Standing, record: Callable[[int], Record | None]
    ) -> RecordedRelease:
        """Return the contents and loss of a release.

        Args:
            standing: Its status.
            record: Reads one record of the log; called only if the release is neither
                open nor cached.

        Raises:
            VerificationError: If its entry is missing, or concerns another release.
        """
        known = self.state.open.get(standing.id) or self._latest.get(standing.id)
        if known is not None:
            return known
        seq = self.state.described_in(standing)
        found = record(seq)
        body = None if found is None else event_of(found, seq).body
        if (
            not isinstance(body, ReleaseReserved | PastRecorded | PastRedescribed)
            or body.release.id != standing.id
            or body.release.content != standing.content
        ):
            raise ChainBreakError(seq, "it differs from what was read before")
        return body.release

    def denied_before(self, denial: Event, read: Reader) -> int | None:
        """Return the entry that already records a denial; None if none does.

        Args:
            denial: The denial, as it would be added at the head.
            read: Reads the log; called at most once.
        """
        return self._denials.same(denial, self.state.seq, read)

    def _remember(self, release: RecordedRelease) -> None:
        """Keep a release for a while: who tries again mostly does so soon."""
        self._latest[release.id] = release
        if len(self._latest) > LATEST_MAX:
            self._latest.popitem(last=False)


def _add_looks(looks: dict[int, str], identifier: str) -> None:
    for key in confusable_keys(identifier):
        looks.setdefault(hash(key), identifier)


def is_entry(record: Record | None, head: str) -> bool:
    """Return whether a record is the one with a hash, by its contents too."""
    return record is not None and record.hash == head and digest(record.payload) == head


def _sealed(event: Event, state: State) -> Record:
    """Return the stored form of an event, after checking that it can be read back.

    An unreadable event would make all later ones unreadable. Steps of releases are
    frequent, and contain only data that was read and priced before.
    """
    try:
        record = seal(event, state.seq + 1, state.head)
        if (
            isinstance(event.body, _READ_BEFORE)
            or event_of(record, record.seq) == event
        ):
            return record
    except (VerificationError, ValueError, TypeError):
        pass
    raise InputError(
        Problem(
            Code.NOT_TEXT,
            "a value cannot be stored in a ledger, such as a negative number",
            notes=("nothing was written",),
            help="use other numbers, and texts in valid Unicode",
        )
    )


class Entry:
    """The events of one turn: folded immediately, stored together at the end.

    Args:
        book: The book, read up to the head.
        turn: The right to append.
        now: The time of everything that is added.
        actor: The actor.
    """

    def __init__(self, book: LedgerBalances, turn: Turn, now: str, actor: str) -> None:
        self.book = book
        self.now = now
        self.actor = actor
        #: The last entry before this turn: its number, and its hash.
        self.begun_at = book.state.seq, book.state.head
        #: Whether something was folded that will not be stored.
        self.withdrawn = False
        self._turn = turn
        self._records: list[Record] = []
        self._stored_answers: list[StoredAnswer] = []

    @property
    def added(self) -> int:
        """The number of added events."""
        return len(self._records)

    @property
    def is_ahead_of_store(self) -> bool:
        """Whether the book has events that are not stored yet."""
        return self.withdrawn or bool(self._records)

    @property
    def day(self) -> int:
        """The day of everything that is added, as an ordinal."""
        return day_of(self.now)

    def add(self, body: Body) -> None:
        """Add an event.

        Raises:
            InputError: If it contains something that no log can store; nothing changes.
        """
        state = self.book.state
        event = Event(self.now, self.actor, body)
        record = _sealed(event, state)
        self.book.apply(event, record)
        self._records.append(record)

    def deny(self, body: ReleaseDenied) -> int | None:
        """Add a denial, unless the log already records it.

        Returns:
            The number of the entry that does; None if it was added.
        """
        denial = Event(self.now, self.actor, body)
        before = self.book.denied_before(denial, self.read)
        if before is None:
            self.add(body)
        return before

    def read(self, after: int) -> Iterator[Record]:
        """Yield the records after a number, with those that were added just now."""
        yield from self._turn.read(after)
        yield from (one for one in self._records if one.seq > after)

    def record(self, seq: int) -> Record | None:
        """Return the record with a number; None if there is none."""
        own = [one for one in self._records if one.seq == seq]
        return own[0] if own else next(iter(self._turn.read(seq - 1)), None)

    def answered(self, keys: Collection[str]) -> Mapping[str, StoredAnswer]:
        """Return the responses stored for some keys in earlier turns, by key."""
        return self._turn.answered(keys)

    def keep(self, answer: StoredAnswer) -> None:
        """Store a response with the added events, atomically."""
        self._stored_answers.append(answer)

    def followed(self, compiled: CompiledPolicy) -> Followed:
        """Return the balance of each rule of a policy, without changing it."""
        return self.book.followed(compiled, self.read)

    def activate(self, compiled: CompiledPolicy) -> None:
        """Make a policy the active one if the ledger has none yet.

        Raises:
            StaleError: If another policy is active.
        """
        if self.book.state.policy is None:
            policy = compiled.policy
            self.add(PolicyActivated(policy.digest, policy.name, policy.text))
        elif not self.book.is_active(compiled):
            raise stale(compiled, self.book.state)

    def withdraw_activation(self) -> None:
        """Store nothing if a policy was activated and nothing followed.

        A mistaken command must not create a ledger.
        """
        if self.book.state.seq == len(self._records) == 1:
            self._records.clear()
            self._stored_answers.clear()
            self.withdrawn = True

    def expire_due(self) -> None:
        """Release the reservations that have expired."""
        for identifier in self.book.state.due(self.now):
            self.add(ReleaseExpired(identifier))

    def commit(self) -> None:
        """Hand everything that was added to the store."""
        if self._records:
            self._turn.append(self._records)
        if self._stored_answers:
            first = date.fromordinal(self.day - ANSWER_DAYS)
            self._turn.keep(self._stored_answers, forget_before=first.isoformat())


def stale(given: CompiledPolicy, state: State) -> StaleError:
    """Return the error for a policy that is not the ledger's active one."""
    active = state.policy
    name, digest = (active.name, active.digest) if active else ("none", "-")
    return StaleError(
        Problem(
            Code.POLICY_STALE,
            f"the ledger's active policy is `{name}` ({digest[:12]}), not"
            f" `{given.policy.name}` ({given.policy.digest[:12]})",
            notes=("releases are reserved under the active policy only",),
            help="leave out  --policy  to use the active one; `check` may use any",
        )
    )
