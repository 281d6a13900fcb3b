"""Votes: checked again in the turn, signed if required, and recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import structs
from msgspec.structs import replace

from modicum.api.local.balances import Entry
from modicum.api.local.decision import Decision
from modicum.api.local.evaluation import Evaluation, answer_to
from modicum.api.local.governance.approval_cases import (
    NOT_BY_REQUESTERS,
    ApprovalCase,
    active_policy,
    missing_approvals,
    reason_text,
    refused,
    written_otherwise,
)
from modicum.core.errors import ApprovalError, Code, ConflictError, Problem, StaleError
from modicum.ledger import State, decide, event_of
from modicum.ledger.decision.approvals import ApprovalState, roles_of
from modicum.ledger.log.approval_statement import Signer, is_genuine, signed
from modicum.ledger.log.events import ApprovalGiven
from modicum.ledger.state.consent import Agreement
from modicum.policy import CompiledPolicy, Policy

if TYPE_CHECKING:
    from modicum.api.local.governance.activation import ActivationPreview

#: Minimum length of a hash prefix.
_HASH_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Ballot:
    """A vote to cast.

    Attributes:
        approves: Whether they agree.
        reason: Why, for the record; 1 to 2000 characters.
        head: The hash of the last entry reviewed, or its first 12 or more characters;
            None to accept any head.
        signer: The signer; None for no signature.
        content: The SHA-256 of the contents that they have looked at; None if they
            speak of whichever it has.
    """

    approves: bool
    reason: str
    head: str | None = None
    signer: Signer | None = field(default=None, repr=False)
    content: str | None = None


class RecordedVote(Agreement, frozen=True, kw_only=True):
    """A vote, and the state of the approvals after it.

    Attributes:
        topic: Its subject.
        approval_states: The state of each approval, as far as known.
        repeated: Whether it equals the last vote, so that nothing was added.
        decision: The decision about the release in that turn; None for a refusal, or a
            vote on a policy.
        preview: The effect of activating the policy in that turn; None for a refusal,
            or a vote on a release.
        corrected_in: The number of the entry by which a past release was corrected with
            it; 0 if none was.
    """

    topic: ApprovalCase
    approval_states: tuple[ApprovalState, ...] = ()
    repeated: bool = False
    decision: Decision | None = None
    preview: ActivationPreview | None = None
    corrected_in: int = 0


def record_vote(entry: Entry, topic: ApprovalCase, ballot: Ballot) -> RecordedVote:
    """Record a vote, unless it repeats the last one.

    An approval of a release has it decided again, on the balances at the head: a
    release that would be denied cannot be approved.
    """
    state = entry.book.state
    why = reason_text(ballot.reason, "approving or rejecting")
    compiled = active_policy(entry.book)
    policy = compiled.policy
    if topic.subject == "release" and not topic.since:
        refuse_standing(topic.id, topic.called, state)
    states = topic.approval_states(state) if topic.approval_states else None
    roles = _roles(entry.actor, topic, policy, states, approves=ballot.approves)
    body = ApprovalGiven(
        topic.subject, topic.id, topic.content, ballot.approves, roles, why
    )
    body = _signed(
        replace(body, head=reviewed_head(ballot, state)), entry, ballot, policy
    )
    decision = _decided(entry, topic, compiled) if ballot.approves else None
    before = _earlier_vote(entry, body, topic.since)
    if before is None:
        entry.add(body)
    approval_states = topic.states_in(state)
    if decision is not None:
        decision = _needing(decision, approval_states)
    return RecordedVote(
        entry.actor,
        ballot.approves,
        roles,
        state.seq if before is None else before,
        body.key,
        topic=topic,
        approval_states=approval_states,
        repeated=before is not None,
        decision=decision,
    )


def refuse_other_content(topic: ApprovalCase, content: str | None) -> None:
    """Refuse to speak of something that has other contents than were looked at."""
    refuse_content(topic.called, topic.content, content)


def refuse_content(called: str, content: str, reviewed: str | None) -> None:
    """Refuse to speak of something that has other contents than were looked at."""
    if reviewed is not None and content != reviewed:
        raise StaleError(
            Problem(
                Code.REVIEW_AGAIN,
                f"{called} differs from what was reviewed",
                notes=("nothing was written",),
                help="review it again, and give the digest of what you reviewed",
            )
        )


def decided_now(
    entry: Entry, topic: ApprovalCase, compiled: CompiledPolicy
) -> Decision:
    """Return the current decision about a release that may be reserved."""
    assert topic.release is not None
    balances = entry.followed(compiled).balances
    verdict = decide(balances, topic.release, entry.day)
    if not verdict.allowed:
        raise ConflictError(
            Problem(
                Code.WOULD_BE_DENIED,
                f"{topic.called} would be denied now",
                notes=(f"denied by {', '.join(verdict.causes)}",),
                help="see why with  modicum release check FILE",
            )
        )
    evaluation = Evaluation("the ledger", entry.book, entry.actor)
    return _needing(answer_to(evaluation, compiled, topic.release, verdict), ())


def _decided(
    entry: Entry, topic: ApprovalCase, compiled: CompiledPolicy
) -> Decision | None:
    return decided_now(entry, topic, compiled) if topic.release is not None else None


def _needing(decision: Decision, states: Sequence[ApprovalState]) -> Decision:
    """Return a decision with the approvals that are missing for any submitter."""
    missing = tuple(one.approval for one in missing_approvals(states))
    return structs.replace(decision, approvals=missing)


def reviewed_head(ballot: Ballot, state: State) -> str:
    """Return the hash of the last relevant entry, which the voter must have reviewed.

    Args:
        ballot: The vote.
        state: The state.

    Raises:
        StaleError: If the log has entries since.
    """
    if ballot.head is None:
        return state.head
    given = ballot.head.strip().lower()
    if len(given) >= _HASH_SHOWN:
        for head in (state.head, state.before_expiring):
            if head.startswith(given):
                return head
    raise StaleError(
        Problem(
            Code.REVIEW_AGAIN,
            f"the ledger moved on since entry {given[:64]} was reviewed: its last"
            f" entry is {state.seq} ({state.head[:_HASH_SHOWN]})",
            notes=("nothing was written",),
            help="review again, and give the head that you reviewed",
        )
    )


def _signed(
    body: ApprovalGiven, entry: Entry, ballot: Ballot, policy: Policy
) -> ApprovalGiven:
    """Return a vote, signed if a signer is given or a signature required."""
    pinned = policy.keys.get(entry.actor)
    key = None if ballot.signer is None else ballot.signer.public.hex()
    if ballot.approves and pinned is not None and key not in pinned:
        how = "with another key" if key else "without a signature"
        raise _badly_signed(
            f"`{entry.actor}` cannot approve {how}",
            "the active policy lists keys for this person",
        )
    if ballot.signer is None:
        return body
    own = signed(body, by=entry.actor, policy=policy.digest, signer=ballot.signer)
    if not is_genuine(own, entry.actor, policy.digest):
        raise _badly_signed(
            f"the signature of `{entry.actor}` does not match their vote",
            "it covers the subject, its content, the roles, the reason, the head and"
            " the active policy",
        )
    return own


def _badly_signed(message: str, note: str) -> ApprovalError:
    return ApprovalError(
        Problem(
            Code.NOT_SIGNED,
            message,
            notes=(note,),
            help="sign with  --key FILE , a key that `keys` of the policy names",
        )
    )


def _earlier_vote(entry: Entry, body: ApprovalGiven, since: int) -> int | None:
    """Return the entry of an actor's last vote if it is the same; else None.

    Votes on a policy before the last activation were about another change.
    """
    state = entry.book.state
    votes = state.approvals.get((body.subject, body.content), ())
    last = next((one for one in reversed(votes) if one.by == entry.actor), None)
    if state.policy and body.subject == "policy":
        since = state.policy.seq
    if last is None or last.seq <= since:
        return None
    (record,) = islice(entry.read(last.seq - 1), 1)
    known = event_of(record, last.seq).body
    if not isinstance(known, ApprovalGiven) or known.key != body.key:
        return None
    # The same vote with the same key at another head adds nothing.
    same = replace(known, head=body.head, signature=body.signature) == body
    return last.seq if same else None


def refuse_standing(release: str, called: str, state: State) -> None:
    """Refuse a vote on a release that is already accepted or recorded."""
    known = state.releases.get(release)
    if known is not None:
        raise ConflictError(
            Problem(
                Code.RELEASE_STATE,
                f"{called} is {known.status.value} already: there is nothing to"
                " approve",
            )
        )


def _roles(
    person: str,
    topic: ApprovalCase,
    policy: Policy,
    states: tuple[ApprovalState, ...] | None,
    *,
    approves: bool,
) -> tuple[str, ...]:
    """Return the roles of a voter; refuse a vote that cannot count."""
    roles = roles_of(person, policy)
    if states == ():
        raise refused(f"{topic.called} needs no approval under the active policy")
    required_roles = (
        None if states is None else {r for one in states for r in one.approval.roles}
    )
    if not roles or (required_roles is not None and required_roles.isdisjoint(roles)):
        wanted = " or ".join(sorted(required_roles)) if required_roles else "any role"
        raise refused(
            f"`{person}` cannot vote on {topic.called}",
            f"the active policy does not give them {wanted}",
            *written_otherwise(person, policy),
        )
    if approves and states is not None:
        _refuse_worthless(person, topic, states)
    return roles


def _refuse_worthless(
    person: str, topic: ApprovalCase, states: Sequence[ApprovalState]
) -> None:
    """Refuse an agreement that would not count."""
    if any(person in (*one.agreed, *one.left, *one.refused) for one in states):
        return
    is_requester = any(person in one.requesters for one in states)
    raise refused(
        f"`{person}` cannot approve {topic.called}",
        NOT_BY_REQUESTERS
        if is_requester
        else "they have already approved under a name that differs only in case",
    )
