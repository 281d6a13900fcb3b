"""Release requests over HTTP: requesting, voting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from modicum.api import operations
from modicum.api.local.decision import Decision
from modicum.api.local.evaluation import Description, price_release
from modicum.api.local.governance.approval_cases import (
    ApprovalCase,
    VoteEntry,
    missing_approvals,
)
from modicum.api.local.governance.approvals import (
    Ballot,
    RecordedVote,
    refuse_other_content,
)
from modicum.api.local.governance.requests import PendingRequest, Requested
from modicum.api.schema import approval as schema
from modicum.client.base_actions import RemoteGovernanceBase
from modicum.client.decision import decision_of
from modicum.client.decoding import (
    approval_states_of,
    decoded,
    named,
    recorded_release,
    vote_entries_of,
)
from modicum.client.problems import not_understood
from modicum.client.request_encoding import encoded, sent
from modicum.client.retry_connection import Request
from modicum.client.session import unsupported
from modicum.client.votes import Key, record_vote, signer_of
from modicum.ledger.decision.approvals import ApprovalState
from modicum.ledger.state.pending import Request as Waiting

_REQUESTS: Final = "requests"


@dataclass(frozen=True, slots=True)
class _ReviewedRelease:
    """A release to vote on, as reviewed."""

    topic: ApprovalCase
    decision: Decision


class RemoteReleaseGovernance(RemoteGovernanceBase):
    """Requests for releases that need approval, and votes on them.

    Votes are on requests: the server knows no other subject.
    """

    # --- requests ---

    def request(self, release: Description, *, reason: str) -> Requested:
        """Request a release that needs approval. It spends nothing.

        The request is stored in the ledger, so that approvers can read it there and
        refer to it by its id. Repeating a request changes nothing; another release
        under the same id replaces it, if it has the same requester.
        """
        content = encoded(release)
        decision = self._view.check(release)
        request = Request(
            operations.REQUEST_RELEASE,
            query={"reason": reason},
            sent=content,
            step="requested the release",
        )
        one = self._connection.call(request)
        return Requested(
            _waiting(one),
            approval_states_of(one.approvals),
            one.repeated,
            msgspec.structs.replace(decision, approvals=()),
        )

    def redescribe(self, release: Description, *, reason: str) -> Requested | None:
        """Refuse to request a correction of a past release: it needs a local ledger."""
        raise unsupported(
            "a correction of a past release",
            "request it with  modicum release redescribe  where the ledger is",
        )

    def withdraw_request(self, release: str, *, reason: str) -> Waiting:
        """Withdraw one's own request; its votes stay in the log."""
        request = Request(
            operations.WITHDRAW_REQUEST,
            named(release),
            sent=sent(schema.Reason(reason=reason)),
            step="withdrawn the request",
        )
        return _waiting(self._connection.call(request))

    def requests(self) -> tuple[PendingRequest, ...]:
        """Return the visible pending requests, oldest first.

        Raises:
            AccessError: If the caller may see none.
        """
        request = Request(operations.REQUESTS, query={"recorded": True})
        found = self._connection.call(request)
        return tuple(map(_pending, found.requests))

    def requested(self, release: str) -> PendingRequest | None:
        """Return the pending request of an id; None if none is visible."""
        waiting = (one for one in self.requests() if one.request.release == release)
        return next(waiting, None)

    # --- agreeing ---

    def approve(
        self,
        release: Description | str,
        *,
        reason: str,
        head: str | None = None,
        content: str | None = None,
        key: Key | None = None,
    ) -> RecordedVote:
        """Approve a release that needs approval, and would be allowed now.

        A release given with its contents is approved only if the request has the same
        contents. Given by its id, the server's contents are approved: signers give the
        contents.
        """
        ballot = Ballot(True, reason, head, signer_of(key), content)  # noqa: FBT003
        return self.vote(release, ballot)

    def reject(
        self,
        release: Description | str,
        *,
        reason: str,
        content: str | None = None,
        key: Key | None = None,
    ) -> RecordedVote:
        """Refuse a requested release, or withdraw an approval.

        It is blocked until one approves it.
        """
        ballot = Ballot(False, reason, None, signer_of(key), content)  # noqa: FBT003
        return self.vote(release, ballot)

    def vote(self, release: Description | str, ballot: Ballot) -> RecordedVote:
        """Vote on a release that needs approval."""
        details = self._reviewed(release, ballot.content)
        vote = record_vote(self._view, details.topic, ballot)
        if not ballot.approves:
            return vote
        missing = tuple(one.approval for one in missing_approvals(vote.approval_states))
        decision = msgspec.structs.replace(details.decision, approvals=missing)
        return msgspec.structs.replace(vote, decision=decision)

    def approval_states(self, release: Description) -> tuple[ApprovalState, ...]:
        """Return the state of each approval that a release needs. Writes nothing.

        For a release that is not requested, this requires reading the log.
        """
        priced = price_release(release, self._view.policy())
        reply = self._requested(priced.id)
        found = None if reply is None else decoded(schema.PendingRequest, reply)
        if found is not None and found.content == priced.content:
            return approval_states_of(found.approvals)
        return self._by_log.approval_states(release)

    def votes(self, identifier: str) -> tuple[VoteEntry, ...]:
        """Return the votes on a release or a policy, oldest first.

        For a subject that is not pending, this requires reading the log.
        """
        reply = self._waiting_policy(identifier) or self._requested(identifier)
        if reply is not None:
            return vote_entries_of(decoded(schema.Approvals, reply).votes)
        return self._by_log.votes(identifier)

    # --- inside ---

    def _requested(self, release: str, *, text: bool = False) -> dict[str, Any] | None:
        """Return the server's data about a request; None if there is none."""
        query = {"text": text}
        return self._view.found(Request(operations.REQUEST, named(release), query))

    def _waiting_policy(self, digest: str) -> dict[str, Any] | None:
        """Return the votes on a proposal; None if there is none."""
        if len(digest) != 64 or not digest.isalnum() or digest != digest.lower():
            return None
        return self._view.found(
            Request(operations.PROPOSAL_APPROVALS, {"digest": digest})
        )

    def _reviewed(
        self, release: Description | str, content: str | None
    ) -> _ReviewedRelease:
        """Return a release that waits, as the server shows it."""
        name, own = release, content
        if not isinstance(release, str):
            priced = price_release(release, self._view.policy())
            name, own = priced.id, priced.content
            if content not in {None, own}:
                own = content  # Other contents than were looked at: it is stale.
        assert isinstance(name, str)
        request = Request(operations.REQUEST, named(name), {"text": True})
        reply = self._connection.send(request)
        found = _pending(decoded(schema.ListedRequest, reply))
        if found.release.id != name:
            raise not_understood("it is about another request")
        topic = ApprovalCase(
            "release",
            name,
            found.request.content,
            f"release `{name}`",
            release=found.release,
        )
        refuse_other_content(topic, own)
        return _ReviewedRelease(
            topic, decision_of(reply["decision"], self._connection, None)
        )


def _waiting(one: schema.WithdrawnRequest) -> Waiting:
    return Waiting(
        release=one.release,
        content=one.content,
        policy=one.policy,
        by=one.by,
        at=one.at,
        seq=one.entry,
    )


def _pending(one: schema.ListedRequest) -> PendingRequest:
    release = recorded_release(one.body)
    if (release.id, release.content) != (one.release, one.content):
        raise not_understood("its request is for another release").alone()
    states = approval_states_of(one.approvals)
    return PendingRequest(
        _waiting(one), release, one.reason, states, one.current, one.corrects
    )
