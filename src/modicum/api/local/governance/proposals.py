"""Policy proposals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from modicum.api.local.balances import Entry, LedgerBalances, Reader
from modicum.api.local.governance.approval_cases import (
    active_policy,
    reason_text,
    refused,
)
from modicum.core.errors import Code, ConflictError, InputError, Problem
from modicum.ledger import ChainBreakError, State, event_of
from modicum.ledger.decision.approvals import ApprovalState, policy_approvals
from modicum.ledger.log.events import PolicyProposed
from modicum.ledger.state.pending import Proposal
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_stored

#: Minimum length of a digest prefix.
_DIGEST_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Proposed:
    """A proposed policy.

    Attributes:
        proposal: The proposal, as stored in the ledger.
        approval_states: The state of the approval that it needs.
        repeated: Whether it was proposed before, so that nothing was added.
    """

    proposal: Proposal
    approval_states: tuple[ApprovalState, ...]
    repeated: bool


@dataclass(frozen=True, slots=True)
class PendingPolicy:
    """A pending policy proposal, as stored in the ledger.

    Attributes:
        proposal: The proposal.
        text: The policy's text.
        reason: Why it is to take the place of the active one.
        approval_states: The state of the approval that it needs.
    """

    proposal: Proposal
    text: str
    reason: str
    approval_states: tuple[ApprovalState, ...]

    @property
    def complete(self) -> bool:
        """Whether all approvals are present and no one has refused."""
        return all(one.given for one in self.approval_states)


def propose(entry: Entry, successor: CompiledPolicy, reason: str) -> Proposed:
    """Propose a policy to replace the active one."""
    why = reason_text(reason, "proposing a policy")
    successor.refuse_mistakes()
    active, state = active_policy(entry.book).policy, entry.book.state
    own = successor.policy
    called = f"policy `{own.name}` ({own.digest[:_DIGEST_SHOWN]})"
    if own.digest == active.digest:
        raise ConflictError(Problem(Code.POLICY_STALE, f"{called} is already active"))
    if active.activation is None:
        raise refused(f"{called} needs no approval: activate it")
    repeated = own.digest in state.waiting.proposals
    if not repeated:
        entry.add(PolicyProposed(own.digest, own.name, own.text, why))
    states = policy_approvals(own.digest, active, state)
    return Proposed(state.waiting.proposals[own.digest], states, repeated)


def pending_policies(book: LedgerBalances, read: Reader) -> Iterator[PendingPolicy]:
    """Yield the policies that are proposed and wait, oldest first."""
    active = active_policy(book).policy
    for one in book.state.waiting.proposals.values():
        body = _proposed_in(one, read)
        states = policy_approvals(one.digest, active, book.state)
        yield PendingPolicy(one, body.text, body.reason, states)


def proposed_policy(digest: str, state: State, read: Reader) -> CompiledPolicy:
    """Return a policy that is proposed, compiled."""
    found = proposal_named(digest, state.waiting.proposals.values())
    body = _proposed_in(found, read)
    return compile_stored(body.text, f"{body.name} (proposed)")


def proposal_named(digest: str, proposals: Iterable[Proposal]) -> Proposal:
    """Return the proposal of a digest prefix."""
    given = digest.strip().lower()
    found = [
        one
        for one in proposals
        if len(given) >= _DIGEST_SHOWN and one.digest.startswith(given)
    ]
    if len(found) != 1:
        raise InputError(
            Problem(
                Code.UNKNOWN_CHOICE,
                f"no policy {given[:64]} is proposed",
                notes=("a proposal ends when a policy is activated",),
                help="list them with  modicum policy proposals , or give its file",
            )
        )
    return found[0]


def _proposed_in(proposal: Proposal, read: Reader) -> PolicyProposed:
    record = next(iter(read(proposal.seq - 1)), None)
    body = None if record is None else event_of(record, proposal.seq).body
    if not isinstance(body, PolicyProposed) or body.digest != proposal.digest:
        raise ChainBreakError(proposal.seq, "it differs from what was read before")
    return body
