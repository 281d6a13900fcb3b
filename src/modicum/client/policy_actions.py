"""Policy proposals over HTTP: proposing, voting, activating."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from modicum.api import operations
from modicum.api.local.governance.activation import (
    Activation,
    ActivationPreview,
    refuse_replaced,
)
from modicum.api.local.governance.approval_cases import ApprovalCase, VoteEntry
from modicum.api.local.governance.approvals import Ballot, RecordedVote
from modicum.api.local.governance.proposals import (
    PendingPolicy,
    Proposed,
    proposal_named,
)
from modicum.api.schema import approval as schema
from modicum.api.schema.ledger import Head, Spender
from modicum.client.base_actions import RemoteGovernanceBase
from modicum.client.decoding import approval_states_of, decoded, vote_entries_of
from modicum.client.policies import policy_sent
from modicum.client.problems import not_understood, problem_of
from modicum.client.retry_connection import Request
from modicum.client.votes import Key, record_vote, signer_of
from modicum.ledger.decision.approvals import ApprovalState
from modicum.ledger.state.pending import Proposal
from modicum.policy import CompiledPolicy, Rule
from modicum.policy.compiler import compile_text


@dataclass(frozen=True, slots=True)
class RemoteConflict:
    """A rule of the new policy that history exceeds, in display amounts.

    Attributes:
        rule: The rule.
        measure: The measure.
        spent: The charge of its fullest cell; infinite if no bound is proven.
        limit: The limit.
        budget: The budget as text.
        fits: The smallest budget that would fit, as text; None if there is none.
        contributors: The releases that were charged there, largest first.
    """

    rule: Rule
    measure: str
    spent: float
    limit: float
    budget: str
    fits: str | None
    contributors: tuple[Spender, ...]


@dataclass(frozen=True, slots=True)
class RemoteActivationPreview(ActivationPreview):
    """The effect of replacing the active policy.

    `conflicts` are `RemoteConflict`: display amounts, where a workspace has sums.

    Attributes:
        reply: The server's data.
    """

    reply: schema.Activation | None = field(default=None, repr=False)


def preview_of(
    reply: Any, active: CompiledPolicy, successor: CompiledPolicy
) -> RemoteActivationPreview:
    """Return the effect of activating a policy."""
    one = decoded(schema.Activation, reply)
    if (one.replaced.digest, one.policy.digest) != (
        active.policy.digest,
        successor.policy.digest,
    ):
        raise not_understood("it compares other policies than were sent").alone()
    return RemoteActivationPreview(
        replaced=active,
        successor=successor,
        conflicts=tuple(_conflict(each, successor) for each in one.conflicts),  # type: ignore[misc]
        made=frozenset(each.rule for each in one.conflicts if each.made),
        accepted=one.accepted,
        approval_states=approval_states_of(one.approvals),
        problems=tuple(problem_of(each) for each in one.problems),
        holds_already=one.replaced.digest == one.policy.digest
        and not (one.changed or one.conflicts or one.problems or one.accepted),
        reply=one,
    )


def activation_of(reply: Any, preview: ActivationPreview, head: Head) -> Activation:
    """Return the result of an activation."""
    one = decoded(schema.Activation, reply)
    last = one.ledger or head
    return Activation(preview, one.changed, last.seq, last.head)


def _conflict(
    reply: schema.ActivationConflict, successor: CompiledPolicy
) -> RemoteConflict:
    number = successor.rules.number(reply.rule)
    if number is None:
        raise not_understood("it contains a rule that is not in the policy").alone()
    return RemoteConflict(
        successor.rules[number],
        reply.measure,
        reply.spent,
        reply.limit,
        reply.budget,
        reply.fits,
        reply.contributors,
    )


class RemotePolicyGovernance(RemoteGovernanceBase):
    """Proposals, approvals and activation of policies.

    Votes are on proposals: the server knows no other subject.
    """

    # --- proposals ---

    def propose_policy(self, successor: CompiledPolicy, *, reason: str) -> Proposed:
        """Propose a policy to replace the active one, if approval is needed.

        Its text is stored in the ledger, so that approvers can read it there and refer
        to it by its digest. Proposing the same policy again changes nothing. Activating
        another policy ends all proposals.
        """
        successor.refuse_mistakes()
        request = Request(
            operations.PROPOSE_POLICY,
            query={"reason": reason},
            sent=policy_sent(successor),
            step="proposed the policy",
        )
        one = self._connection.call(request)
        return Proposed(_proposal(one), approval_states_of(one.approvals), one.repeated)

    def proposals(self) -> tuple[PendingPolicy, ...]:
        """Return the policies that are proposed and wait. Writes nothing."""
        found = self._connection.call(Request(operations.PROPOSALS))
        return tuple(
            PendingPolicy(
                _proposal(one), one.text, one.reason, approval_states_of(one.approvals)
            )
            for one in found.proposals
        )

    def proposed(self, digest: str) -> CompiledPolicy:
        """Return a policy that is proposed. Writes nothing."""
        waiting = {one.proposal.digest: one for one in self.proposals()}
        named = proposal_named(digest, (one.proposal for one in waiting.values()))
        found = waiting[named.digest]
        compiled = compile_text(found.text.encode(), f"{named.name} (proposed)")
        if compiled.policy.digest != named.digest:
            raise not_understood("its proposal does not match its digest")
        return compiled

    # --- agreeing ---

    def approve_policy(
        self,
        successor: CompiledPolicy | str,
        *,
        reason: str,
        head: str | None = None,
        key: Key | None = None,
    ) -> RecordedVote:
        """Approve a policy to replace the active one.

        The conflicts with history are checked again and returned; the person who
        activates the policy chooses which to accept.
        """
        ballot = Ballot(True, reason, head, signer_of(key))  # noqa: FBT003
        return self.vote_on_policy(successor, ballot)

    def reject_policy(
        self,
        successor: CompiledPolicy | str,
        *,
        reason: str,
        key: Key | None = None,
    ) -> RecordedVote:
        """Refuse a policy as the successor of the active one."""
        ballot = Ballot(False, reason, None, signer_of(key))  # noqa: FBT003
        return self.vote_on_policy(successor, ballot)

    def vote_on_policy(
        self, successor: CompiledPolicy | str, ballot: Ballot
    ) -> RecordedVote:
        """Vote on a policy that is to take the place of the active one."""
        compiled = self._meant(successor)
        vote = record_vote(self._view, _topic(compiled), ballot)
        return (
            replace(vote, preview=self.preview_activation(compiled))
            if ballot.approves
            else vote
        )

    def policy_approval_states(
        self, successor: CompiledPolicy
    ) -> tuple[ApprovalState, ...]:
        """Return the state of the approval that another policy needs. Writes nothing.

        For a policy that is not proposed, this requires reading the log.
        """
        reply = self._waiting(successor)
        if reply is None:
            return self._by_log.policy_approval_states(successor)
        return approval_states_of(decoded(schema.Approvals, reply).approvals)

    def counting_votes(self, successor: CompiledPolicy) -> tuple[VoteEntry, ...]:
        """Return the votes on a policy since the last activation, oldest first.

        Earlier votes were about another change, and do not count. For a policy that is
        not proposed, this requires reading the log.
        """
        reply = self._waiting(successor)
        if reply is None:
            return self._by_log.counting_votes(successor)
        since = self._view.active_since
        votes = vote_entries_of(decoded(schema.Approvals, reply).votes)
        return tuple(one for one in votes if one.seq > since)

    # --- activating ---

    def preview_activation(
        self,
        successor: CompiledPolicy,
        *,
        accept: Sequence[str] = (),
        replaces: str | None = None,
    ) -> ActivationPreview:
        """Return the effect of activating a policy now. Writes nothing."""
        active = self._view.policy()
        refuse_replaced(active, replaces)
        request = Request(
            operations.PREVIEW_ACTIVATION,
            query={"accept": list(accept)},
            sent=policy_sent(successor),
        )
        return preview_of(self._connection.send(request), active, successor)

    def activate(
        self,
        successor: CompiledPolicy,
        *,
        reason: str,
        accept: Sequence[str] = (),
        replaces: str | None = None,
    ) -> Activation:
        """Replace the active policy; if it is already active, do nothing.

        Args:
            successor: The policy that is to hold.
            reason: Why, for the record; 1 to 2000 characters.
            accept: Rules that history exceeds and that may stay exceeded: their ids,
                or their scopes. And `attribute:NAME` of attributes that are gone, and
                are none of the new ones; `unit:NAME` of redefined units;
                `departed:SCOPE` of rules that past releases leave; and `filter:NAME`
                of a further filter.
            replaces: The digest of the policy that the caller believes to be active;
                None for whichever is.

        Raises:
            AccessError: If the caller lacks permission.
            ApprovalError: If people must agree first.
            InputError: If the policy has mistakes, redefines a unit, drops an attribute
                or is exceeded by history without that being accepted; or there is no
                reason.
            StaleError: If another policy is active than the one to be replaced.
            UnavailableError: If the server gives no answer. Activate the same again.
        """
        successor.refuse_mistakes()
        active = self._view.policy()
        refuse_replaced(active, replaces)
        request = Request(
            operations.ACTIVATE_POLICY,
            query={"reason": reason, "accept": list(accept)},
            sent=policy_sent(successor),
            step="activated the policy",
            if_match=active.policy.digest,
        )
        reply = self._connection.send(request)
        preview = preview_of(reply, active, successor)
        return activation_of(reply, preview, self._view.head())

    # --- inside ---

    def _waiting(self, policy: CompiledPolicy) -> dict[str, Any] | None:
        """Return the server's data about a proposal; None if there is none."""
        ids = {"digest": policy.policy.digest}
        return self._view.found(Request(operations.PROPOSAL_APPROVALS, ids))

    def _meant(self, successor: CompiledPolicy | str) -> CompiledPolicy:
        return self.proposed(successor) if isinstance(successor, str) else successor


def _topic(compiled: CompiledPolicy) -> ApprovalCase:
    own = compiled.policy
    called = f"policy `{own.name}` ({own.digest[:12]})"
    return ApprovalCase("policy", own.digest, own.digest, called)


def _proposal(one: schema.ProposedPolicy) -> Proposal:
    return Proposal(
        digest=one.digest, name=one.name, by=one.by, at=one.at, seq=one.entry
    )
