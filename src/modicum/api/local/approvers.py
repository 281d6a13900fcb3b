"""The approvals of a release and the votes so far, by its file or its id."""

from __future__ import annotations

from dataclasses import dataclass

from modicum.api.local.balances import LedgerBalances, Reader
from modicum.api.local.evaluation import Description, price_release
from modicum.api.local.governance.approval_cases import (
    VoteEntry,
    about_known_release,
    active_policy,
    vote_entries,
)
from modicum.api.local.governance.requests import requested_in
from modicum.api.local.history import history_of
from modicum.api.local.ledger_view import LedgerView
from modicum.ledger import RecordedRelease, Standing
from modicum.ledger.decision.approvals import (
    ApprovalState,
    approval_states,
    release_approvals,
)
from modicum.ledger.log.events import ReleaseDenied


@dataclass(frozen=True, slots=True)
class Approvers:
    """The state of the approvals of a release.

    Attributes:
        release: Its id.
        content: SHA-256 of the contents.
        approval_states: The state of each approval; empty if the release is accepted.
        votes: The votes on releases of this id, oldest first.
        standing: Its status, with whatever contents; None if the id is not in use.
        exact: Whether its contents are known. If not, every approval of the policy is
            weighed, and it may need fewer.
        corrects: Whether it corrects a past release: then it waits for one more person.
    """

    release: str
    content: str
    approval_states: tuple[ApprovalState, ...]
    votes: tuple[VoteEntry, ...]
    standing: Standing | None = None
    exact: bool = True
    corrects: bool = False

    @property
    def complete(self) -> bool:
        """Whether all approvals are present and no one has refused."""
        return not self.corrects and all(one.given for one in self.approval_states)


def approvers(release: Description, view: LedgerView) -> Approvers:
    """Return the approvals of a release given with its contents. Writes nothing.

    Args:
        release: The release.
        view: The ledger.

    Raises:
        InputError: If the release is malformed.
        UsageError: If there is no ledger with a policy.
    """
    book, read, now = view.current()
    recorded = price_release(release, active_policy(book))
    standing = book.standing_at(recorded.id, now)
    if standing is not None and recorded.id in book.state.waiting.requests:
        return approvers_of(recorded.id, view)  # It is to be corrected.
    return Approvers(
        recorded.id,
        recorded.content,
        () if standing else _approval_states(recorded, book),
        vote_entries(recorded.id, read(0)),
        standing,
    )


def approvers_of(release: str, view: LedgerView) -> Approvers:
    """Return the approvals of a release that is requested or has votes.

    Writes nothing.

    Args:
        release: Its id.
        view: The ledger.

    Raises:
        InputError: If the id is not in use, not requested and has no votes, or has
            votes on several contents.
        UsageError: If there is no ledger with a policy.
    """
    book, read, now = view.current()
    votes = vote_entries(release, read(0))
    standing = book.standing_at(release, now)
    known = book.state.waiting.requests.get(release)
    if standing is not None and known is None:
        return Approvers(release, standing.content, (), votes, standing)
    if known is not None and known.policy == active_policy(book).policy.digest:
        requested = requested_in(known, read).release
        states, corrects = _approval_states(requested, book), standing is not None
        return Approvers(release, known.content, states, votes, corrects=corrects)
    content = about_known_release(release, read(0)).content
    described = _described(release, content, read)
    if described is not None:
        return Approvers(release, content, _approval_states(described, book), votes)
    states = _approval_states_at_most(content, book)
    return Approvers(release, content, states, votes, exact=False)


def _approval_states(
    release: RecordedRelease, book: LedgerBalances
) -> tuple[ApprovalState, ...]:
    return release_approvals(release, active_policy(book).policy, book.state)


def _approval_states_at_most(
    content: str, book: LedgerBalances
) -> tuple[ApprovalState, ...]:
    """Return the state of every approval of the policy that could be required."""
    policy = active_policy(book).policy
    votes = book.state.approvals.get(("release", content), ())
    requesters = book.state.waiting.requesters.get(content, ())
    return approval_states(policy.approvals, votes, policy, requesters)


def _described(release: str, content: str, read: Reader) -> RecordedRelease | None:
    """Return the release of an id, if it was denied with these contents."""
    for one in history_of(release, read(0)):
        body = one.event.body
        if isinstance(body, ReleaseDenied) and body.release.content == content:
            return body.release
    return None
