"""The workspace: one ledger, and the verbs people use on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from modicum.accounting import Total
from modicum.core.document import from_python
from modicum.core.errors import (
    Code,
    ConflictError,
    InputError,
    ModicumError,
    Problem,
    UsageError,
)
from modicum.core.reading import text
from modicum.ledger import (
    AuditReport,
    Balances,
    Record,
    RecordedRelease,
    RuleLoss,
    Standing,
    State,
    audit,
)
from modicum.ledger.decide import over_history
from modicum.ledger.events import (
    PastRecorded,
    ReleaseDenied,
    ReleasePosted,
    ReleaseReserved,
    ReleaseStarted,
    ReleaseVoided,
)
from modicum.ledger.state import next_status, unknown_release
from modicum.policy import CompiledPolicy
from modicum.workspace.answers import (
    Description,
    first_answer,
    needs_approval,
    place_of,
    price_release,
    repeated_answer,
)
from modicum.workspace.book import Book, Entry, stale
from modicum.workspace.decision import Decision
from modicum.workspace.ports import Clock, EventStore

T = TypeVar("T")

#: A reservation that is not started by then expires: one day.
RESERVATION_SECONDS = 24 * 60 * 60
#: A longer reservation would block others for no reason: ninety days.
RESERVATION_SECONDS_MAX = 90 * RESERVATION_SECONDS


class Workspace:
    """One ledger under one policy.

    Args:
        store: Where the log lives.
        clock: The time of day.
        policy: The policy that the caller means; None for the ledger's active one.
        actor: Who asks; written into every event.
    """

    def __init__(
        self,
        store: EventStore,
        clock: Clock,
        *,
        policy: CompiledPolicy | None = None,
        actor: str = "unknown",
    ) -> None:
        self._store = store
        self._clock = clock
        self._policy = policy
        self._actor = actor
        self._book = Book()

    # --- deciding ---

    def check(self, release: Description) -> Decision:
        """Return what `submit` would answer now. Writes nothing.

        Any policy may be checked; the decision says whether it is the active one.

        Args:
            release: The release.

        Raises:
            InputError: If the release is malformed.
            ConflictError: If the id stands with other contents, or was given up.
            UsageError: If there is neither a policy nor a ledger with one.
        """
        book = self._read()
        compiled = self._meant_policy(book)
        recorded = price_release(release, compiled)
        now = self._clock.now()
        known = book.standing_at(recorded.id, now)
        balances = book.balances_at(compiled, now)
        if known is not None:
            return repeated_answer(
                self._store.name,
                book,
                balances,
                known,
                recorded,
                mark=place_of(release),
            )
        return first_answer(self._store.name, book, balances, recorded)

    def submit(
        self,
        release: Description,
        *,
        post: bool = False,
        reserve_seconds: int = RESERVATION_SECONDS,
    ) -> Decision:
        """Decide a release and, if it is allowed, reserve its loss.

        Submitting the same id with the same contents again changes nothing. A
        denial is recorded and spends nothing; its id may be tried again.

        Args:
            release: The release.
            post: Also start and post it at once, for a release that is already out;
                a reservation that stands under this id is posted, too.
            reserve_seconds: How long the reservation stands if it is not started;
                1 second to 90 days.

        Raises:
            InputError: If the release is malformed; nothing is written.
            ConflictError: If the id stands with other contents, or was given up.
            StaleError: If the ledger's active policy is not the one given.
            ApprovalError: If people must agree first; nothing is written.
        """
        _refuse_reservation(reserve_seconds)

        def work(
            entry: Entry, balances: Balances, recorded: RecordedRelease
        ) -> Decision:
            decision = first_answer(self._store.name, entry.book, balances, recorded)
            digest = decision.policy_digest
            if not decision.allowed:
                entry.add(ReleaseDenied(recorded, digest, decision.blocking))
                return replace(decision, status="denied")
            if decision.approvals:
                raise needs_approval(decision)
            expires_at = self._clock.after(entry.now, reserve_seconds)
            entry.add(ReleaseReserved(recorded, digest, expires_at))
            if not post:
                return replace(decision, status="reserved", expires_at=expires_at)
            return _carried_out(entry, replace(decision, status="reserved"))

        return self._bring_in(release, work, is_out=post)

    def record_past(self, release: Description) -> Decision:
        """Count a release that happened before. It cannot be denied.

        Args:
            release: The release.

        Returns:
            The decision with status `recorded`; `over_limit` names the rules that
            history now exceeds.

        Raises:
            InputError: If the release is malformed; nothing is written.
            ConflictError: If the id stands already with other contents.
            StaleError: If the ledger's active policy is not the one given.
        """

        def work(
            entry: Entry, balances: Balances, recorded: RecordedRelease
        ) -> Decision:
            decision = first_answer(self._store.name, entry.book, balances, recorded)
            entry.add(PastRecorded(recorded, decision.policy_digest))
            return replace(decision, status="recorded")

        return self._bring_in(release, work, is_out=True, guarded=False)

    # --- the life of a release ---

    def start(self, release: str) -> Standing:
        """Note, durably, that rows are about to be read. From here on it is spent.

        Args:
            release: The id.

        Raises:
            InputError: If the ledger knows no such release.
            ConflictError: If it is not reserved, or its reservation ran out.
        """
        return self._step(ReleaseStarted(release))

    def post(self, release: str) -> Standing:
        """Note that a started release is out.

        Args:
            release: The id.

        Raises:
            InputError: If the ledger knows no such release.
            ConflictError: If it is not started.
        """
        return self._step(ReleasePosted(release))

    def void(self, release: str, *, reason: str) -> Standing:
        """Give up a reservation that was not started; its loss is taken back.

        Args:
            release: The id.
            reason: Why, for the record; 1 to 2000 characters.

        Raises:
            InputError: If the ledger knows no such release, or no reason is given.
            ConflictError: If it is not reserved any more.
        """
        why = text(from_python(reason), "the reason").strip()
        if not why:
            raise InputError(
                Problem(Code.MISSING_KEY, "voiding a release needs a reason")
            )
        return self._step(ReleaseVoided(release, why))

    # --- the ledger ---

    def init(self) -> State:
        """Make a ledger and activate the policy; under the same policy, do nothing.

        Returns:
            The state.

        Raises:
            UsageError: If no policy was given, or another one is active.
        """
        compiled = self._policy
        if compiled is None:
            raise self._no_policy()

        def work(entry: Entry) -> State:
            active = entry.book.state.policy
            if active is not None and not entry.book.is_active(compiled):
                raise UsageError(
                    Problem(
                        Code.ALREADY_EXISTS,
                        f"{self._store.name} exists, with the policy `{active.name}`"
                        f" ({active.digest[:12]})",
                        help="choose another path with  --ledger",
                    )
                )
            entry.activate(compiled)
            return entry.book.state

        return self._turn(work)

    def standing(self, release: str) -> Standing:
        """Return where a release stands now. Writes nothing.

        Args:
            release: The id.

        Raises:
            InputError: If the ledger knows no such release.
        """
        standing = self._read().standing_at(release, self._clock.now())
        if standing is None:
            raise unknown_release(release)
        return standing

    def state(self) -> State:
        """Return the state at the head of the log. Writes nothing.

        Raises:
            UsageError: If there is no ledger and no policy to begin one with.
            VerificationError: If the log contradicts itself.
        """
        return self._read().state

    def records(self) -> Iterable[Record]:
        """Return the stored records, oldest first, unchecked. Writes nothing.

        Raises:
            UsageError: If there is no ledger.
        """
        self._must_exist()
        return self._store.read(0)

    def verify(
        self,
        on_entry: Callable[[int], None] | None = None,
        *,
        noted_hash: str | None = None,
    ) -> AuditReport:
        """Read the log from the beginning and check all of it. Writes nothing.

        Args:
            on_entry: Called with the number of each entry that was checked.
            noted_hash: A hash that was noted elsewhere; the report tells where it
                stands.

        Raises:
            UsageError: If there is no ledger.
            VerificationError: At the first contradiction.
        """
        return audit(self.records(), on_entry, noted_hash=noted_hash)

    def policy(self) -> CompiledPolicy:
        """Return the policy that this workspace decides by. Writes nothing.

        Raises:
            UsageError: If none was given and none is active.
        """
        return self._meant_policy(self._read())

    def standings(self) -> list[RuleLoss]:
        """Return where every rule of the policy stands. Writes nothing.

        Raises:
            UsageError: If there is neither a policy nor a ledger with one.
        """
        book = self._read()
        compiled = self._meant_policy(book)
        balances = book.balances_at(compiled, self._clock.now())
        return [over_history(balances, rule, Total()) for rule in compiled.rules]

    # --- inside ---

    def _read(self) -> Book:
        """Fold what was appended since the last look, without taking a turn."""
        if self._policy is None or self._store.exists():
            self._must_exist()
            self._follow(self._store.read)
        elif self._book.state.seq:
            self._book = Book()  # The ledger is gone.
        return self._book

    def _follow(self, read: Callable[[int], Iterable[Record]]) -> None:
        """Fold what is new; begin anew if the log is not the one that was read."""
        seq = self._book.state.seq
        records = list(read(max(seq - 1, 0)))
        if not self._book.continues(records):
            self._book = Book()
            records, seq = list(read(0)), 0
        self._book.fold(records[1 if seq else 0 :])

    def _must_exist(self) -> None:
        if not self._store.exists():
            raise UsageError(
                Problem(
                    Code.LEDGER_MISSING,
                    f"there is no ledger at {self._store.name}",
                    help="make one with  modicum init --policy policy.yaml",
                )
            )

    def _turn(self, work: Callable[[Entry], T]) -> T:
        """Do some work in the ledger's turn; what it adds is durable on return."""
        try:
            with self._store.turn() as turn:
                self._follow(turn.read)
                entry = Entry(self._book, turn, self._clock.now(), self._actor)
                result = work(entry)
                entry.commit()
        except BaseException:
            # What was added may or may not be stored: read it again next time.
            self._book = Book()
            raise
        return result

    def _bring_in(
        self,
        release: Description,
        work: Callable[[Entry, Balances, RecordedRelease], Decision],
        *,
        is_out: bool,
        guarded: bool = True,
    ) -> Decision:
        """Bring a release into the ledger, unless it stands there already.

        If the caller says that it is out, a reservation that stands is carried out:
        it must not expire and be taken back.
        """
        book = self._read()
        compiled = self._meant_policy(book)
        if book.state.policy is not None and not book.is_active(compiled):
            raise stale(compiled, book.state)
        # If malformed, nothing is touched.
        recorded = price_release(release, compiled, guarded=guarded)

        def within(entry: Entry) -> Decision:
            entry.activate(compiled)
            entry.expire_due()
            balances = entry.book.balances(compiled)
            known = entry.book.state.releases.get(recorded.id)
            if known is None:
                return work(entry, balances, recorded)
            answer = repeated_answer(
                self._store.name,
                entry.book,
                balances,
                known,
                recorded,
                mark=place_of(release),
            )
            return _carried_out(entry, answer) if is_out else answer

        return self._turn(within)

    def _step(self, body: ReleaseStarted | ReleasePosted | ReleaseVoided) -> Standing:
        self._must_exist()

        def work(entry: Entry) -> Standing | ModicumError:
            entry.expire_due()
            standing = entry.book.state.releases.get(body.release)
            if standing is None:
                raise unknown_release(body.release)
            try:
                next_status(standing, body, entry.now)
            except ConflictError as error:
                return error  # The expirations of this turn are true all the same.
            entry.add(body)
            return entry.book.state.releases[body.release]

        outcome = self._turn(work)
        if isinstance(outcome, ModicumError):
            raise outcome
        return outcome

    def _meant_policy(self, book: Book) -> CompiledPolicy:
        compiled = self._policy or book.active()
        if compiled is None:
            raise self._no_policy()
        return compiled

    def _no_policy(self) -> UsageError:
        return UsageError(
            Problem(
                Code.NO_POLICY,
                f"{self._store.name} has no active policy",
                help="name one with  --policy policy.yaml",
            )
        )


def _carried_out(entry: Entry, decision: Decision) -> Decision:
    """Start and post a release that is out already, as far as it is not yet."""
    if decision.status == "reserved":
        entry.add(ReleaseStarted(decision.release))
    if decision.status in ("reserved", "started"):
        entry.add(ReleasePosted(decision.release))
        return replace(decision, status="posted", expires_at="")
    return decision


def _refuse_reservation(seconds: int) -> None:
    if not 1 <= seconds <= RESERVATION_SECONDS_MAX:
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"a reservation lasts 1 second to 90 days, not {seconds} seconds",
            )
        )
