"""Pending requests and proposals.

Nothing here is charged. It records the requests and their requesters: requesters do not
approve their own requests.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from modicum.core.canonical import Plain
from modicum.core.errors import Code, ConflictError, Mark, Problem
from modicum.ledger.log.days import day_of
from modicum.ledger.log.events import PolicyProposed, ReleaseRequested, RequestWithdrawn


class Request(Struct, frozen=True):
    """A request for a release. Its content is in its entry.

    Attributes:
        release: Its id.
        content: SHA-256 of the description.
        policy: Digest of the policy that was active.
        by: The requester.
        at: Since when.
        seq: The number of the entry.
    """

    release: str
    content: str
    policy: str
    by: str
    at: str
    seq: int

    @property
    def day(self) -> int:
        """The day since which it waits, as an ordinal."""
        return day_of(self.at)


class Proposal(Struct, frozen=True):
    """A proposed policy. Its text is in its entry.

    Attributes:
        digest: SHA-256 of its canonical text.
        name: Its name.
        by: The proposer.
        at: Since when.
        seq: The number of the entry.
    """

    digest: str
    name: str
    by: str
    at: str
    seq: int


class Pending(Struct):
    """Pending requests and proposals, up to the head.

    Attributes:
        requests: The requested releases, by id, oldest first.
        proposals: The proposed policies, by digest, oldest first; all were proposed
            under the active policy.
        requesters: All requesters of a release, by the SHA-256 of its content. The
            record outlives the request: nobody approves what they requested.
    """

    requests: dict[str, Request] = field(default_factory=dict)
    proposals: dict[str, Proposal] = field(default_factory=dict)
    requesters: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def request(
        self,
        body: ReleaseRequested,
        by: str,
        at: str,
        seq: int,
        *,
        corrects: bool = False,
    ) -> None:
        """Record a request, replacing an earlier one by the same person.

        Args:
            body: The request; its id is not in use.
            by: The requester.
            at: When.
            seq: The number of the entry.
            corrects: Whether it corrects a past release.

        Raises:
            ConflictError: If the id is requested by another person, or the same release
                was requested under the same policy.
        """
        one = body.release
        known = self.requests.get(one.id)
        if known is not None and known.by != by:
            raise requested_by_another(known, corrects=corrects)
        if known is not None and _same(known, one.content, body.policy):
            raise _impossible(f"release `{one.id}` is already requested")
        self.requests.pop(one.id, None)
        self.requests[one.id] = Request(one.id, one.content, body.policy, by, at, seq)
        requesters = self.requesters.get(one.content, ())
        if by not in requesters:
            self.requesters[one.content] = (*requesters, by)

    def held_by_another(self, release: str, content: str, by: str) -> Request | None:
        """Return the request that prevents an actor from submitting a release.

        Anyone may submit the requested release. Only the requester may submit another
        release under its id: they change their mind.

        Args:
            release: The id.
            content: SHA-256 of the submitted content.
            by: The submitter.

        Returns:
            None if nothing keeps them from it.
        """
        known = self.requests.get(release)
        if known is None or known.by == by or known.content == content:
            return None
        return known

    def withdraw(self, body: RequestWithdrawn, by: str, *, corrects: bool) -> None:
        """End a request that was withdrawn.

        The request of a correction may be withdrawn by anyone: there is no other id to
        use, and one person could prevent all others from correcting a release.

        Args:
            body: Which one.
            by: The actor who withdraws it.
            corrects: Whether it corrects a past release.

        Raises:
            ConflictError: If there is none, or another person requested it.
        """
        known = self.requests.get(body.release)
        if known is None:
            raise no_request(body.release)
        if known.by != by and not corrects:
            raise requested_by_another(known)
        del self.requests[body.release]

    def end(self, release: str) -> None:
        """End the request for an id that was submitted: it is in use from now on."""
        self.requests.pop(release, None)

    def corrected(self, release: str, content: str) -> None:
        """End the request for a completed correction, and forget its requesters.

        A later request for it is another correction.
        """
        del self.requests[release]
        del self.requesters[content]

    def propose(self, body: PolicyProposed, by: str, at: str, seq: int) -> None:
        """Record a proposal.

        Args:
            body: The proposed policy; it is not active.
            by: The proposer.
            at: When.
            seq: The number of the entry.

        Raises:
            ConflictError: If it was proposed before under the active policy.
        """
        if body.digest in self.proposals:
            raise _impossible(f"the policy `{body.name}` is already proposed")
        self.proposals[body.digest] = Proposal(body.digest, body.name, by, at, seq)

    def policy_changed(self) -> None:
        """Forget all proposals: each was a change of the policy that held."""
        self.proposals.clear()

    def to_plain(self) -> dict[str, Plain]:
        """Return all of it as plain data."""
        return {
            "requests": [
                [one.release, one.content, one.policy, one.by, one.at, one.seq]
                for one in self.requests.values()
            ],
            "proposals": [
                [one.digest, one.name, one.by, one.at, one.seq]
                for one in self.proposals.values()
            ],
            "requesters": [
                [content, list(people)] for content, people in self.requesters.items()
            ],
        }

    @classmethod
    def restored(cls, plain: dict[str, Any]) -> Pending:
        """Return the state that `to_plain` encoded; invalid data raises an error."""
        return cls(
            requests={one[0]: Request(*one) for one in plain["requests"]},
            proposals={one[0]: Proposal(*one) for one in plain["proposals"]},
            requesters={
                content: tuple(people) for content, people in plain["requesters"]
            },
        )


def is_requested(waiting: Pending, release: str, content: str, policy: str) -> bool:
    """Return whether a release is requested, with these contents, under this policy.

    Args:
        waiting: The pending requests.
        release: Its id.
        content: SHA-256 of the description.
        policy: Digest of the policy.
    """
    known = waiting.requests.get(release)
    return known is not None and _same(known, content, policy)


def requested_by_another(
    known: Request, mark: Mark | None = None, *, corrects: bool = False
) -> ConflictError:
    """Return the error for an id that another person requested.

    Args:
        known: The other request.
        mark: The position of the id, for messages.
        corrects: Whether the other request is for the correction of a past release.
    """
    return ConflictError(
        Problem(
            Code.RELEASE_CONFLICT,
            f"release `{known.release}` is requested by `{known.by}` (entry"
            f" {known.seq})",
            mark,
            notes=()
            if corrects
            else ("only the requester may change or withdraw a request",),
            help="withdraw that correction, and request it again:  modicum request"
            " withdraw"
            f" {known.release}"
            if corrects
            else "give another release a different id",
        )
    )


def no_request(release: str) -> ConflictError:
    """Return the error for an id without a request."""
    return ConflictError(
        Problem(
            Code.RELEASE_STATE,
            f"nobody has requested a release `{release[:200]}`",
            help="list the requests with  modicum request list",
        )
    )


def _same(known: Request, content: str, policy: str) -> bool:
    return (known.content, known.policy) == (content, policy)


def _impossible(message: str) -> ConflictError:
    return ConflictError(Problem(Code.RELEASE_CONFLICT, message))
