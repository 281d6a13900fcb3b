"""Requests for releases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from modicum.api.local.balances import LATEST_MAX, Entry, LedgerBalances, Reader
from modicum.api.local.decision import Decision
from modicum.api.local.evaluation import (
    Description,
    price_release,
    refuse_lookalike,
)
from modicum.api.local.governance.approval_cases import (
    ApprovalCase,
    about_known_release,
    about_release,
    active_policy,
    reason_text,
    refused,
)
from modicum.api.local.governance.approvals import decided_now, refuse_standing
from modicum.core.errors import Code, InputError, Problem, StaleError
from modicum.ledger import ChainBreakError, RecordedRelease, event_of
from modicum.ledger.decision.approvals import ApprovalState, release_approvals
from modicum.ledger.log.events import ReleaseRequested, RequestWithdrawn
from modicum.ledger.state.pending import Request, is_requested, no_request
from modicum.policy import CompiledPolicy


@dataclass(frozen=True, slots=True)
class Requested:
    """A requested release.

    Attributes:
        request: The request, as stored in the ledger.
        approval_states: The state of each approval that it needs.
        repeated: Whether it was already requested, so that nothing was added.
        decision: The current decision.
    """

    request: Request
    approval_states: tuple[ApprovalState, ...]
    repeated: bool
    decision: Decision


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """A pending request, as stored in the ledger.

    Attributes:
        request: The request.
        release: The requested release, as priced at that time.
        reason: Why.
        approval_states: The state of each approval that it needs; empty if it must be
            requested again.
        current: Whether it was requested under the active policy. If not, it must be
            requested again.
        corrects: Whether it corrects a past release. It is made by the last person who
            agrees, so that one is missing while it waits.
    """

    request: Request
    release: RecordedRelease
    reason: str
    approval_states: tuple[ApprovalState, ...]
    current: bool
    corrects: bool = False

    @property
    def complete(self) -> bool:
        """Whether all approvals are present and no one has refused."""
        given = all(one.given for one in self.approval_states)
        return self.current and given and not self.corrects


def prepared_request(
    release: Description, compiled: CompiledPolicy, reason: str
) -> Callable[[Entry], Requested]:
    """Return what requests a release in a turn. It is read and priced here.

    Pricing may take long, and others wait for a turn.

    Args:
        release: The release.
        compiled: The policy that is probably active in the turn; under another one, it
            is priced again there.
        reason: Why.

    Raises:
        InputError: With every mistake found.
    """
    recorded = price_release(release, compiled)

    def work(entry: Entry) -> Requested:
        active = active_policy(entry.book)
        known = active.policy.digest == compiled.policy.digest
        priced = recorded if known else price_release(release, active)
        return request(entry, priced, reason)

    return work


def request(entry: Entry, release: RecordedRelease, reason: str) -> Requested:
    """Request a release that needs approval."""
    why = reason_text(reason, "requesting a release")
    compiled, state = active_policy(entry.book), entry.book.state
    policy = compiled.policy
    topic = about_release(release, policy)
    refuse_standing(release.id, topic.called, state)
    refuse_lookalike(entry.book, release.id, None)
    if not release_approvals(release, policy, state):
        raise refused(f"{topic.called} needs no approval: submit it")
    repeated = is_requested(state.waiting, release.id, release.content, policy.digest)
    decision = decided_now(entry, topic, compiled)
    if not repeated:
        entry.add(ReleaseRequested(release, policy.digest, why))
    known = state.waiting.requests[release.id]
    states = release_approvals(release, policy, state)
    return Requested(known, states, repeated, decision)


def withdraw(entry: Entry, release: str, reason: str) -> Request:
    """Take back a request of one's own; or any to correct a past release."""
    why = reason_text(reason, "withdrawing a request")
    known = entry.book.state.waiting.requests.get(release)
    if known is None:
        raise no_request(release)
    entry.add(RequestWithdrawn(release, why))
    return known


def pending_requests(book: LedgerBalances, read: Reader) -> Iterator[PendingRequest]:
    """Yield the pending requests, oldest first."""
    for one in book.state.waiting.requests.values():
        yield _pending(one, book, read)


def pending_request(
    identifier: str, book: LedgerBalances, read: Reader
) -> PendingRequest | None:
    """Return the pending request of an id; None if there is none."""
    known = book.state.waiting.requests.get(identifier)
    return None if known is None else _pending(known, book, read)


def _pending(one: Request, book: LedgerBalances, read: Reader) -> PendingRequest:
    policy = active_policy(book).policy
    body = book.requested.get(one.seq)
    if body is None:
        if len(book.requested) >= LATEST_MAX:
            book.requested.clear()
        body = book.requested[one.seq] = requested_in(one, read)
    current = one.policy == policy.digest
    states = release_approvals(body.release, policy, book.state) if current else ()
    corrects = one.release in book.state.releases
    return PendingRequest(one, body.release, body.reason, states, current, corrects)


def about_requested_release(
    identifier: str, entry: Entry, compiled: CompiledPolicy, *, approves: bool
) -> ApprovalCase:
    """Return a release that is named by its id, as something to speak about."""
    called = f"release `{identifier[:200]}`"
    known = entry.book.state.waiting.requests.get(identifier)
    if known is not None and known.policy == compiled.policy.digest:
        return about_release(requested_in(known, entry.read).release, compiled.policy)
    if not approves:
        if known is not None:
            return ApprovalCase("release", identifier, known.content, called)
        return about_known_release(identifier, entry.read(0))
    refuse_standing(identifier, called, entry.book.state)
    if known is not None:
        raise outdated(called, known.by)
    raise InputError(
        Problem(
            Code.RELEASE_UNKNOWN,
            f"nobody has requested a {called}",
            notes=("the ledger does not have its contents, and cannot decide it",),
            help="give its file instead of its id, or request it:"
            "  modicum release submit FILE --request REASON",
        )
    )


def outdated(called: str, by: str) -> StaleError:
    """Return the error for a request made under another policy."""
    return StaleError(
        Problem(
            Code.POLICY_STALE,
            f"{called} was requested under another policy than the active one",
            notes=("its loss and its approvers may have changed",),
            help=f"have `{by}` request it again, or give its file",
        )
    )


def requested_in(request: Request, read: Reader) -> ReleaseRequested:
    """Return the entry of a request."""
    record = next(iter(read(request.seq - 1)), None)
    body = None if record is None else event_of(record, request.seq).body
    if (
        not isinstance(body, ReleaseRequested)
        or body.release.id != request.release
        or body.release.content != request.content
    ):
        raise ChainBreakError(request.seq, "it differs from what was read before")
    return body
