"""What waits for people: releases that were requested, policies that were proposed.

Nothing here counts. It remembers what people are asked about, and who asked for it:
who asks does not approve it.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from modicum.core.canonical import Plain
from modicum.core.errors import Code, ConflictError, Mark, Problem
from modicum.ledger.log.days import day_of
from modicum.ledger.log.events import PolicyProposed, ReleaseRequested, RequestWithdrawn


class Request(Struct, frozen=True):
    """A release that somebody asks for. What it is stands in its entry.

    Attributes:
        release: Its id.
        content: SHA-256 of what was described.
        policy: Digest of the policy that was active.
        by: Who asks.
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
    """A policy that somebody asks for. Its text stands in its entry.

    Attributes:
        digest: SHA-256 of its canonical text.
        name: Its name.
        by: Who asks.
        at: Since when.
        seq: The number of the entry.
    """

    digest: str
    name: str
    by: str
    at: str
    seq: int


class Pending(Struct):
    """What waits for people, up to the head.

    Attributes:
        requests: The releases that are asked for, by id, oldest first.
        proposals: The policies that are asked for, by digest, oldest first; all were
            proposed under the active policy.
        requesters: Who ever asked for a release, by the SHA-256 of its content. It is
            not forgotten when a request ends: nobody approves what they asked for.
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
        """Take a request, in the place of an earlier one by the same person.

        Args:
            body: What is asked for; it does not stand.
            by: Who asks.
            at: When.
            seq: The number of the entry.
            corrects: Whether it corrects a past release.

        Raises:
            ConflictError: If the id is asked for by somebody else, or the same release
                was asked for under the same policy.
        """
        one = body.release
        known = self.requests.get(one.id)
        if known is not None and known.by != by:
            raise requested_by_another(known, corrects=corrects)
        if known is not None and _same(known, one.content, body.policy):
            raise _impossible(f"release `{one.id}` is already requested")
        self.requests.pop(one.id, None)
        self.requests[one.id] = Request(one.id, one.content, body.policy, by, at, seq)
        asked = self.requesters.get(one.content, ())
        if by not in asked:
            self.requesters[one.content] = (*asked, by)

    def held_by_another(self, release: str, content: str, by: str) -> Request | None:
        """Return the request that keeps somebody from bringing a release in.

        Whoever brings in what is asked for carries the request out. Under its id
        another release is for who asks alone: they change their mind.

        Args:
            release: The id.
            content: SHA-256 of what is brought in.
            by: Who brings it in.

        Returns:
            None if nothing keeps them from it.
        """
        known = self.requests.get(release)
        if known is None or known.by == by or known.content == content:
            return None
        return known

    def withdraw(self, body: RequestWithdrawn, by: str, *, corrects: bool) -> None:
        """End a request that its requester takes back.

        That of a correction is taken back by anybody: there is no other id to ask
        under, and one person could keep all others from correcting a release.

        Args:
            body: Which one.
            by: Who takes it back.
            corrects: Whether it corrects a past release.

        Raises:
            ConflictError: If there is none, or somebody else asks for it.
        """
        known = self.requests.get(body.release)
        if known is None:
            raise no_request(body.release)
        if known.by != by and not corrects:
            raise requested_by_another(known)
        del self.requests[body.release]

    def brought_in(self, release: str) -> None:
        """End the request for an id that came in: it is taken from now on."""
        self.requests.pop(release, None)

    def corrected(self, release: str, content: str) -> None:
        """End the request for a correction that was made, and forget who asked for it.

        Should it ever be asked for again, that is another correction.
        """
        del self.requests[release]
        del self.requesters[content]

    def propose(self, body: PolicyProposed, by: str, at: str, seq: int) -> None:
        """Take a proposal.

        Args:
            body: What is proposed; it is not active.
            by: Who proposes it.
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
        """Return what `to_plain` told of; it raises what plain data of others does."""
        return cls(
            requests={one[0]: Request(*one) for one in plain["requests"]},
            proposals={one[0]: Proposal(*one) for one in plain["proposals"]},
            requesters={
                content: tuple(people) for content, people in plain["requesters"]
            },
        )


def is_requested(waiting: Pending, release: str, content: str, policy: str) -> bool:
    """Return whether a release is asked for, with these contents, under this policy.

    Args:
        waiting: What waits.
        release: Its id.
        content: SHA-256 of what is described.
        policy: Digest of the policy.
    """
    known = waiting.requests.get(release)
    return known is not None and _same(known, content, policy)


def requested_by_another(
    known: Request, mark: Mark | None = None, *, corrects: bool = False
) -> ConflictError:
    """Return the error for an id that somebody else asks for.

    Args:
        known: What they ask for.
        mark: Where the id stands, for messages.
        corrects: Whether they ask for the correction of a past release.
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
    """Return the error for an id that nobody asks for."""
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
