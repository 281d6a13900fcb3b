"""The book: the log as far as it was read, and work in progress on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from modicum.core.errors import Code, InputError, ModicumError, Problem, StaleError
from modicum.ledger import (
    Balances,
    ChainBreakError,
    Event,
    Record,
    ReleaseStatus,
    Standing,
    State,
    read_record,
    seal,
)
from modicum.ledger.events import (
    Body,
    PastRecorded,
    PolicyActivated,
    ReleaseExpired,
    ReleaseReserved,
    ReleaseVoided,
)
from modicum.policy import CompiledPolicy
from modicum.policy.compile import compile_text
from modicum.workspace.ports import Turn


class Book:
    """A state, and the balances of the policy that decides; both follow the log."""

    def __init__(self) -> None:
        self.state = State()
        self._balances: Balances | None = None
        self._active: CompiledPolicy | None = None

    def fold(self, records: Iterable[Record]) -> None:
        """Fold further records, checking that they continue the chain.

        Raises:
            VerificationError: If they do not.
        """
        for record in records:
            seq = self.state.seq + 1
            event = read_record(record, seq, self.state.head)
            try:
                self.apply(event, record)
            except ModicumError as error:
                raise ChainBreakError(
                    seq, f"it cannot happen here ({error})"
                ) from error

    def continues(self, known: Sequence[Record]) -> bool:
        """Return whether a log still has the record that was folded last.

        Args:
            known: What the log has at that number; empty if it has nothing.
        """
        if self.state.seq == 0:
            return True
        return bool(known) and known[0].hash == self.state.head

    def apply(self, event: Event, record: Record) -> None:
        """Fold one event into the state and the balances."""
        self.state.apply(event, record.hash)
        if self._balances is None:
            return
        match event.body:
            case ReleaseReserved(release=release) | PastRecorded(release=release):
                self._balances.charge(release)
            case ReleaseVoided(release=identifier) | ReleaseExpired(release=identifier):
                self._balances.take_back(self.state.releases[identifier].release)
            case _:
                pass

    def active(self) -> CompiledPolicy | None:
        """Return the ledger's active policy, compiled; None if there is none.

        Raises:
            VerificationError: If its stored text does not compile.
        """
        policy = self.state.policy
        if policy is None:
            return None
        if self._active is None or self._active.policy.digest != policy.digest:
            text = policy.text.encode("utf-8")
            try:
                self._active = compile_text(text, f"{policy.name} (active)")
            except InputError as error:
                raise ChainBreakError(
                    policy.seq, f"its policy does not compile ({error})"
                ) from error
        return self._active

    def is_active(self, compiled: CompiledPolicy) -> bool:
        """Return whether a policy is the ledger's active one."""
        active = self.state.policy
        return active is not None and active.digest == compiled.policy.digest

    def balances(self, compiled: CompiledPolicy) -> Balances:
        """Return what each rule of a policy has been charged; do not change them."""
        if (
            self._balances is None
            or self._balances.compiled.policy.digest != compiled.policy.digest
        ):
            self._balances = Balances(compiled, self.state.counted())
        return self._balances

    def standing_at(self, release: str, now: str) -> Standing | None:
        """Return where a release stands as if what has run out had expired already."""
        standing = self.state.releases.get(release)
        if standing is not None and release in self.state.due(now):
            return replace(standing, status=ReleaseStatus.EXPIRED)
        return standing

    def balances_at(self, compiled: CompiledPolicy, now: str) -> Balances:
        """Return the balances as if what has run out at `now` had expired already."""
        due = set(self.state.due(now))
        if not due:
            return self.balances(compiled)
        return Balances(
            compiled, (one for one in self.state.counted() if one.id not in due)
        )


class Entry:
    """What one turn adds to the log: folded at once, stored together at the end.

    Args:
        book: The book, read up to the head.
        turn: The right to append.
        now: The time of everything that is added.
        actor: Who asks.
    """

    def __init__(self, book: Book, turn: Turn, now: str, actor: str) -> None:
        self.book = book
        self.now = now
        self._turn = turn
        self._actor = actor
        self._records: list[Record] = []

    def add(self, body: Body) -> None:
        """Add an event."""
        state = self.book.state
        event = Event(self.now, self._actor, body)
        record = seal(event, state.seq + 1, state.head)
        self.book.apply(event, record)
        self._records.append(record)

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

    def expire_due(self) -> None:
        """Take back the reservations that have run out."""
        for identifier in self.book.state.due(self.now):
            self.add(ReleaseExpired(identifier))

    def commit(self) -> None:
        """Hand everything that was added to the store."""
        if self._records:
            self._turn.append(self._records)


def stale(given: CompiledPolicy, state: State) -> StaleError:
    """Return the error for a policy that is not the ledger's active one."""
    active = state.policy
    name, digest = (active.name, active.digest) if active else ("none", "-")
    return StaleError(
        Problem(
            Code.POLICY_STALE,
            f"the ledger's active policy is `{name}` ({digest[:12]}), not"
            f" `{given.policy.name}` ({given.policy.digest[:12]})",
            notes=("a release is reserved only under the active policy",),
            help="leave out  --policy  to use the active one; `check` may use any",
        )
    )
