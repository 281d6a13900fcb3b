"""Subjects of votes, and the votes so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from modicum.api.local.balances import LedgerBalances
from modicum.api.local.decision import approval_text
from modicum.core.diagnostics import shortened
from modicum.core.document import from_python
from modicum.core.errors import ApprovalError, Code, InputError, Problem, UsageError
from modicum.core.reader import place, text
from modicum.ledger import Event, Record, RecordedRelease, State, event_of
from modicum.ledger.decision.approvals import (
    ApprovalState,
    policy_approvals,
    release_approvals,
)
from modicum.ledger.log.events import ApprovalGiven
from modicum.ledger.state.consent import Agreement
from modicum.policy import CompiledPolicy, Policy
from modicum.policy.declarations.roles import person_key

#: Why an agreement of somebody is refused.
NOT_BY_REQUESTERS: Final = "the requester cannot approve it, nor can an owner of theirs"


@dataclass(frozen=True, slots=True)
class ApprovalCase:
    """A subject of votes, with immutable contents.

    Attributes:
        subject: Its kind.
        id: The release's id, or the policy's digest.
        content: SHA-256 of its contents; other contents are not approved.
        called: Its display name.
        approval_states: Returns the state of each approval that it needs; None if only
            the digest of its contents is known.
        release: The release, priced under the active policy; None if it is unknown, or
            the subject is a policy or a correction.
        since: The number of the entry before which people spoke of something else.
    """

    subject: Literal["release", "policy"]
    id: str
    content: str
    called: str
    approval_states: Callable[[State], tuple[ApprovalState, ...]] | None = None
    release: RecordedRelease | None = None
    since: int = 0

    def states_in(self, state: State) -> tuple[ApprovalState, ...]:
        """Return the state of each approval; none where the contents are unknown."""
        return self.approval_states(state) if self.approval_states else ()


def about_release(release: RecordedRelease, policy: Policy) -> ApprovalCase:
    """Return a release that is there to be read, as something to speak about."""
    return ApprovalCase(
        "release",
        release.id,
        release.content,
        f"release `{release.id}`",
        lambda state: release_approvals(release, policy, state),
        release,
    )


def about_known_release(identifier: str, records: Iterable[Record]) -> ApprovalCase:
    """Return a release that has votes."""
    contents = dict.fromkeys(one.content for one in vote_entries(identifier, records))
    if not contents:
        raise InputError(
            Problem(
                Code.RELEASE_UNKNOWN,
                f"nobody has voted on a release `{identifier[:200]}`",
                notes=("the ledger has its contents only once it is reserved",),
                help="give its file instead of its id",
            )
        )
    if len(contents) > 1:
        raise InputError(
            Problem(
                Code.RELEASE_CONFLICT,
                f"there are votes on {len(contents)} different releases"
                f" `{identifier[:200]}`",
                help="give the file of one of them instead of the id",
            )
        )
    (content,) = contents
    return ApprovalCase("release", identifier, content, f"release `{identifier}`")


class VoteEntry(Agreement, frozen=True, kw_only=True):
    """A vote in the log.

    Attributes:
        at: When.
        content: SHA-256 of its subject.
        reason: Why.
    """

    at: str
    content: str
    reason: str


def vote_entry(event: Event, body: ApprovalGiven, seq: int) -> VoteEntry:
    """Return the vote of an entry."""
    return VoteEntry(
        event.actor,
        body.approves,
        body.roles,
        seq,
        body.key,
        at=event.at,
        content=body.content,
        reason=body.reason,
    )


def vote_entries(identifier: str, records: Iterable[Record]) -> tuple[VoteEntry, ...]:
    """Return the votes on releases or policies of an id, oldest first."""
    return tuple(_votes_on(identifier, records))


def _votes_on(identifier: str, records: Iterable[Record]) -> Iterator[VoteEntry]:
    for record in records:
        if b'"approval-given"' not in record.payload:
            continue  # Most records are of other kinds, and need not be read.
        event = event_of(record, record.seq)
        body = event.body
        if isinstance(body, ApprovalGiven) and body.id == identifier:
            yield vote_entry(event, body, record.seq)


def about_policy(successor: CompiledPolicy, policy: Policy) -> ApprovalCase:
    """Return a policy that is to take the active one's place."""
    own = successor.policy
    return ApprovalCase(
        "policy",
        own.digest,
        own.digest,
        f"policy `{own.name}` ({own.digest[:12]})",
        lambda state: policy_approvals(own.digest, policy, state),
    )


def refused(message: str, *notes: str) -> ApprovalError:
    """Return the error for a vote without authority."""
    return ApprovalError(
        Problem(
            Code.NEEDS_APPROVAL,
            message,
            notes=notes,
            help="`approvals`, `activation` and `roles` of the policy name the"
            " approvers",
        )
    )


def written_otherwise(person: str, policy: Policy) -> Iterator[str]:
    """Yield a note if the roles contain a name that differs only in case."""
    for name in dict.fromkeys(
        one for each in (policy.roles or {}).values() for one in each
    ):
        if name != person and person_key(name) == person_key(person):
            yield f"it has `{name}`; use that spelling"


def active_policy(book: LedgerBalances) -> CompiledPolicy:
    """Return the active policy."""
    compiled = book.active()
    if compiled is None:
        raise UsageError(
            Problem(
                Code.NO_POLICY,
                "the ledger has no active policy",
                help="create one with  modicum init --policy policy.yaml",
            )
        )
    return compiled


def reason_text(given: str, of: str) -> str:
    """Return a reason without blanks at its ends."""
    why = text(from_python(given), "the reason").strip()
    if not why:
        raise InputError(Problem(Code.MISSING_KEY, f"{of} needs a reason"))
    return why


# --- missing approvals ------------------------------------------------------------


def missing_approvals(states: Iterable[ApprovalState]) -> tuple[ApprovalState, ...]:
    """Return the approvals that are not given, or are refused."""
    return tuple(one for one in states if not one.given)


def needs_approval(
    called: str, missing: Sequence[ApprovalState], command: str
) -> ApprovalError:
    """Return the error that people must agree first."""
    return ApprovalError(
        Problem(
            Code.NEEDS_APPROVAL,
            f"{called} needs approval",
            notes=tuple(
                f"{approval_state_text(one)} ({place(one.approval.mark)})"
                for one in missing
            ),
            help=_remedy(missing, command),
        )
    )


def _remedy(missing: Sequence[ApprovalState], command: str) -> str:
    stuck = [one for one in missing if one.missing > len(one.left) and not one.refused]
    if not stuck:
        return f"they approve with  {command} FILE --reason …"
    if all(one.missing <= len(one.left) + len(one.requesters) for one in stuck):
        return "have it requested by somebody who is not needed as an approver"
    return "name people in `roles` of the policy"


def approval_state_text(one: ApprovalState) -> str:
    """Return the state of an approval, as text."""
    texts = [approval_text(one.approval)]
    if one.agreed:
        texts.append(f"approved by {shortened(one.agreed, 10)}")
    if one.refused:
        texts.append(
            f"rejected by {shortened(one.refused, 10)}, who must withdraw that"
        )
    if one.missing:
        more = f"{one.missing} more" if one.agreed else str(one.missing)
        could = (
            f"of {shortened(one.left, 10)}" if one.left else "and no approver is left"
        )
        texts.append(f"missing {more} {could}")
        if one.requesters:
            verb = "asks" if len(one.requesters) == 1 else "ask"
            texts.append(
                f"not counted: {shortened(one.requesters, 10)}, who {verb} for it"
            )
    return "; ".join(texts)
