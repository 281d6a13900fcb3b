"""The workspace: one ledger, and the verbs people use on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from modicum.api.local.balances import Entry, stale
from modicum.api.local.batch import attempt
from modicum.api.local.decision import Decision
from modicum.api.local.evaluation import Description, refuse_other
from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.submit import (
    RESERVATION_SECONDS,
    Submission,
    Submitter,
    prepared,
    prepared_backfill,
)
from modicum.core.errors import Code, ModicumError, Problem, UsageError
from modicum.ledger import Standing, State
from modicum.ledger.log.events import ReleasePosted, ReleaseStarted, ReleaseVoided
from modicum.policy import CompiledPolicy

if TYPE_CHECKING:
    from modicum.api.local.escrow.actions import EscrowActions
    from modicum.api.local.governance.actions import Governance
    from modicum.api.local.plans.actions import Rounds
    from modicum.api.local.queries.actions import Queries
    from modicum.api.local.reservation_use import Adapters, Use
    from modicum.api.ports.escrow import Equipment

T = TypeVar("T")


class Workspace(LedgerView):
    """One ledger under one policy: its read and write operations."""

    #: Libraries that may use a reservation; None for none.
    adapters: Adapters | None = None
    #: The vault and sandboxes of an escrow; None for none.
    equipment: Equipment | None = None

    # --- deciding ---

    def submit(
        self,
        release: Description,
        *,
        publish: bool = False,
        reserve_seconds: int = RESERVATION_SECONDS,
    ) -> Decision:
        """Decide a release and, if it is allowed, reserve its loss.

        Submitting the same id with the same contents again changes nothing. A denial is
        recorded and spends nothing; its id may be submitted again.

        Args:
            release: The release.
            publish: Also start and publish it at once, for a release that is already
                published; an existing reservation of this id is published, too.
            reserve_seconds: The lifetime of the reservation if it is not started; 1
                second to 90 days.

        Raises:
            InputError: If the release is malformed; nothing is written.
            ConflictError: If the id is in use with other contents, or was canceled.
            StaleError: If the ledger's active policy is not the one given.
            ApprovalError: If people must agree first; nothing is written.
        """
        one = self.prepare(release, publish=publish, reserve_seconds=reserve_seconds)
        return self._askable(release, _decision(self.submit_many([one])))

    def prepare(
        self,
        release: Description,
        *,
        publish: bool = False,
        reserve_seconds: int = RESERVATION_SECONDS,
    ) -> Submission:
        """Return a release for `submit_many`, read and priced. Writes nothing.

        Args:
            release: The release.
            publish: As for `submit`.
            reserve_seconds: As for `submit`.

        Raises:
            InputError: If the release is malformed.
            StaleError: If the ledger's active policy is not the one given.
        """
        return prepared(
            release,
            self._deciding_policy(),
            publish=publish,
            reserve_seconds=reserve_seconds,
        )

    def submit_many(
        self, submissions: Sequence[Submission]
    ) -> list[Decision | ModicumError]:
        """Decide releases in one turn, each after the ones before it.

        All that is decided is stored together; on return it is durable.

        Args:
            submissions: The releases, as `prepare` returns them.

        Returns:
            For each, in order, its decision, or the mistake that `submit` would
            raise; a mistake of one changes nothing for the others.

        Raises:
            UnavailableError: If the turn cannot be taken, or it is unknown whether it
                was stored. The same releases may be submitted again.
            VerificationError: If the log contradicts itself.
        """
        return self._live.turn(
            lambda entry: self._bringing_in.submit(entry, submissions)
        )

    def backfill(self, release: Description) -> Decision:
        """Record a past release. It cannot be denied.

        Args:
            release: The release.

        Returns:
            The decision with status `recorded`; `over_limit` names the rules that
            history now exceeds.

        Raises:
            InputError: If the release is malformed; nothing is written.
            ConflictError: If the id is already in use with other contents.
            StaleError: If the ledger's active policy is not the one given.
        """
        return _decision(self.backfill_many([self.prepare_backfill(release)]))

    def prepare_backfill(self, release: Description) -> Submission:
        """Return a past release for `backfill_many`. Writes nothing.

        Args:
            release: The release; unknown properties are assumed to be the worst case.

        Raises:
            InputError: If the release is malformed, or dated in the future.
            ConflictError: If the id is in use with other contents, or was canceled.
            StaleError: If the ledger's active policy is not the one given.
        """
        from modicum.api.local.backfill import refuse_future

        one = prepared_backfill(release, self._deciding_policy())
        known = self._live.book.standing_at(one.release.id, self._live.now)
        if known is not None:
            refuse_other(known, one.release, one.mark)
        else:
            refuse_future(one.release, self._live.now, one.mark)
        return one

    def backfill_many(
        self, submissions: Sequence[Submission]
    ) -> list[Decision | ModicumError]:
        """Count releases that happened before, in one turn.

        Args:
            submissions: The releases, as `prepare_backfill` returns them.

        Returns:
            For each its decision, or the mistake that `backfill` would raise.

        Raises:
            UnavailableError: As for `submit_many`.
            VerificationError: If the log contradicts itself.
        """
        return self._live.turn(
            lambda entry: self._bringing_in.record(entry, submissions)
        )

    # --- the life of a release ---

    def start(self, release: str) -> Standing:
        """Mark a release as started, durably; its loss is spent from here on.

        Args:
            release: The id.

        Raises:
            InputError: If the ledger knows no such release.
            ConflictError: If it is not reserved, or its reservation expired.
        """
        return self._step(ReleaseStarted(release))

    def publish(self, release: str) -> Standing:
        """Mark a started release as published.

        Args:
            release: The id.

        Raises:
            InputError: If the ledger knows no such release.
            ConflictError: If it is not started.
        """
        return self._step(ReleasePosted(release))

    def cancel(self, release: str, *, reason: str) -> Standing:
        """Cancel a reservation that was not started; its loss is released.

        Args:
            release: The id.
            reason: Why, for the record; 1 to 2000 characters.

        Raises:
            InputError: If the ledger has no such release, or the reason is missing.
            ConflictError: If it is not reserved any more.
        """
        from modicum.api.local.submit import giving_up

        return self._step(giving_up(release, reason))

    def use(self, release: str) -> Use:
        """Return a reservation to be used: a `with` block that starts and publishes it.

        Args:
            release: The id.

        Raises:
            InputError: If the ledger knows no such release.
            ConflictError: If it is not reserved.
        """
        from modicum.api.local.reservation_use import Use

        return Use(self, release, self.adapters)

    # --- the ledger ---

    @property
    def governance(self) -> Governance:
        """Governance operations: approve, activate, remark."""
        from modicum.api.local.governance.actions import Governance

        return Governance(self, self._actor)

    @property
    def rounds(self) -> Rounds:
        """Planning operations: open rounds, make plans, commit plans."""
        from modicum.api.local.plans.actions import Rounds

        return Rounds(self, self._clock, self._actor)

    @property
    def escrow(self) -> EscrowActions:
        """Escrow operations: register data, request, vote, run, receive."""
        from modicum.api.local.escrow.actions import EscrowActions as EscrowOffice
        from modicum.api.local.escrow.execution import Tools

        tools = None
        if self.equipment is not None and self.adapters is not None:
            tools = Tools(self.equipment, self.adapters)
        return EscrowOffice(self, tools, self._clock, self._actor)

    @property
    def queries(self) -> Queries:
        """Private query operations: price and run queries."""
        from modicum.api.local.queries.actions import Queries

        return Queries(self, self.adapters)

    def turn(
        self,
        work: Callable[[Entry], T],
        *,
        deciding: bool = False,
        expiring: bool = True,
    ) -> T:
        """Do some work in the turn of a ledger that exists; it is durable on return.

        Args:
            work: Adds events.
            deciding: Whether it decides about releases.
            expiring: Whether due reservations are expired first.

        Raises:
            UsageError: If there is no ledger.
        """
        self._live.must_exist()
        return self._live.turn(work, deciding=deciding, expiring=expiring)

    def init(self) -> State:
        """Create a ledger and activate the policy; under the same policy, do nothing.

        Returns:
            The state.

        Raises:
            UsageError: If no policy was given, or another one is active; a second
                ledger would have its own budgets.
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
                        help="to change its policy:  modicum policy activate FILE"
                        " --reason …",
                    )
                )
            entry.activate(compiled)
            return entry.book.state

        return self._live.turn(work)

    def save_snapshot(self) -> None:
        """Write a snapshot of the state, for a fast start; it is a cache."""
        self._live.save_snapshot()

    # --- inside ---

    @property
    def _bringing_in(self) -> Submitter:
        return Submitter(self._store.name, self._clock)

    def _step(self, body: ReleaseStarted | ReleasePosted | ReleaseVoided) -> Standing:
        from modicum.api.local.submit import step

        self._live.must_exist()
        # If it is a mistake, the expirations of this turn are true all the same.
        outcome = self._live.turn(
            lambda entry: attempt(entry, partial(step, body)), deciding=False
        )
        if isinstance(outcome, ModicumError):
            raise outcome
        return outcome

    def _deciding_policy(self) -> CompiledPolicy:
        """Return the policy of the next turn's decisions.

        Raises:
            StaleError: If the given policy is not the active one.
        """
        book = self._live.read(deciding=True)
        compiled = self._intended_policy(book)
        if book.state.policy is not None and not book.is_active(compiled):
            raise stale(compiled, book.state)
        return compiled


def _decision(answers: Sequence[Decision | ModicumError]) -> Decision:
    """Return the only answer; raise it if it is a mistake."""
    (answer,) = answers
    if isinstance(answer, ModicumError):
        raise answer
    return answer
