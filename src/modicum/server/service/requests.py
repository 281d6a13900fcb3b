"""Release requests: requesting, voting and withdrawing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from modicum.api.local import Decision
from modicum.api.local.evaluation import Description
from modicum.api.local.governance.actions import Governance
from modicum.api.local.governance.approval_cases import VoteEntry
from modicum.api.local.governance.approvals import Ballot, RecordedVote
from modicum.api.local.governance.requests import (
    PendingRequest,
    Requested,
    prepared_request,
)
from modicum.api.local.handlers.errors import not_found
from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.release_datasets import id_of, must, must_read_some
from modicum.api.local.submit import Submission
from modicum.api.local.visibility import may_see
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.core.errors import Code, Problem, StaleError
from modicum.ledger.decision.approvals import roles_of
from modicum.ledger.log.approval_statement import statement_bytes
from modicum.ledger.log.data_sets import data_sets_recorded
from modicum.ledger.log.events import ApprovalGiven
from modicum.ledger.state.pending import Request
from modicum.server.inputs.body import Body
from modicum.server.service.datasets import with_release
from modicum.server.service.threads import Threads
from modicum.server.service.visibility import ReadOnlyGovernance, Visibility
from modicum.server.service.votes import refuse_repeated
from modicum.writer.idempotency import IdempotencyKey
from modicum.writer.service import Decider

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class VisibleRequest:
    """A request as visible to a caller.

    Attributes:
        pending: The request.
        decision: The current decision.
        votes: The votes on releases of its id, oldest first.
    """

    pending: PendingRequest
    decision: Decision
    votes: tuple[VoteEntry, ...]


class Requests:
    """The operations on releases that wait for approval.

    Args:
        decider: The ledger.
        threads: Where they run.
        sight: Removes hidden data from responses.
    """

    def __init__(self, decider: Decider, threads: Threads, sight: Visibility) -> None:
        self._decider = decider
        self._threads = threads
        self._sight = sight

    async def submit(
        self, who: Identity, body: Body, reason: str, once: IdempotencyKey | None = None
    ) -> Requested:
        """Request a release that needs approval."""

        def work(release: Description) -> Requested:
            asking = prepared_request(release, self._decider.policy(), reason)
            return self._decider.turn(asking, actor=who.name, once=once)

        submission = with_release(
            who,
            Action.SUBMIT_RELEASE,
            body,
            work,
            self._threads,
            self._threads.submit,
        )
        return await self._sight.guard(
            who, lambda: id_of(body.description()), submission
        )

    async def pending(self, who: Identity) -> tuple[PendingRequest, ...]:
        """Return the visible requests, oldest first."""
        must_read_some(who)
        found = await self._threads.compute(
            lambda: self._decider.governed(lambda office: office.requests())
        )
        return tuple(one for one in found if may_see(who, one.release))

    async def one(self, who: Identity, release: str) -> VisibleRequest:
        """Return a request, its effect, and its votes."""

        def read_view(view: LedgerView) -> VisibleRequest:
            office = Governance(ReadOnlyGovernance(view), who.name)
            found = _seen(office, who, release)
            submission = Submission(found.release, view.policy())
            decision = view.check_prepared(submission, actor=found.request.by)
            # An id may have been used before, for something hidden from the caller.
            votes = tuple(
                one
                for one in office.votes(release)
                if one.content == found.request.content or who.may(Action.READ_RELEASES)
            )
            return VisibleRequest(found, decision, votes)

        return await self._threads.study(read_view)

    async def statement(
        self, who: Identity, release: str, ballot: Ballot, key: str
    ) -> tuple[str, str]:
        """Return the statement to sign for a vote on a request, and its head."""

        def read_view(view: LedgerView) -> tuple[str, str]:
            found = _seen(Governance(ReadOnlyGovernance(view), who.name), who, release)
            must(who, Action.APPROVE_RELEASE, data_sets_recorded(found.release))
            policy, state = view.policy().policy, view.state()
            body = ApprovalGiven(
                "release",
                release,
                found.request.content,
                ballot.approves,
                roles_of(who.name, policy),
                ballot.reason,
                head=state.head,
            )
            statement = statement_bytes(
                body, by=who.name, policy=policy.digest, key=key
            )
            return statement.decode("utf-8"), state.head

        return await self._threads.read_view(read_view)

    async def vote(
        self,
        who: Identity,
        release: str,
        ballot: Ballot,
        once: IdempotencyKey | None = None,
    ) -> RecordedVote:
        """Agree to a request, or refuse it. It is decided again in the same turn."""

        def work() -> RecordedVote:
            refuse_repeated(self._decider, who, once)
            known = self._decider.governed(
                lambda one: _seen(one, who, release), quick=True
            )
            must(who, Action.APPROVE_RELEASE, data_sets_recorded(known.release))
            # Permission was checked for this content, and the turn accepts no other.
            if known.request.content != ballot.content:
                raise StaleError(
                    Problem(
                        Code.REVIEW_AGAIN,
                        "the request differs from what was reviewed",
                        notes=("nothing was written",),
                        help="read it again, and send its current ETag",
                    )
                )
            return self._decider.governance(who.name, once=once).vote(release, ballot)

        return await self._sight.guard(who, lambda: release, self._threads.submit(work))

    async def withdraw(
        self,
        who: Identity,
        release: str,
        reason: str,
        once: IdempotencyKey | None = None,
    ) -> Request:
        """Take back a request of one's own; or any to correct a past release."""

        def work() -> Request:
            refuse_repeated(self._decider, who, once)
            known = self._decider.governed(
                lambda one: _seen(one, who, release), quick=True
            )
            action = Action.RECORD_PAST if known.corrects else Action.SUBMIT_RELEASE
            must(who, action, data_sets_recorded(known.release))
            office = self._decider.governance(who.name, once=once)
            return office.withdraw_request(release, reason=reason)

        return await self._sight.guard(who, lambda: release, self._threads.submit(work))


def _seen(office: Governance, who: Identity, release: str) -> PendingRequest:
    """Return a visible request."""
    found = office.requested(release)
    if found is not None and may_see(who, found.release):
        return found
    raise not_found(
        f"nobody has requested a release `{release[:200]}`",
        "list the requests at  /requests",
    )
