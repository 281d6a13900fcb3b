"""What people speak about, and what they said about it so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from modicum.core.errors import Code, InputError, Problem
from modicum.ledger import Record, RecordedRelease, State, event_of
from modicum.ledger.decision.approvals import (
    Hearing,
    hearings_of_policy,
    hearings_of_release,
)
from modicum.ledger.log.events import ApprovalGiven
from modicum.policy import CompiledPolicy, Policy


@dataclass(frozen=True, slots=True)
class Topic:
    """What people speak about: something with contents that never change.

    Attributes:
        subject: What kind of thing it is.
        id: The release's id, or the policy's digest.
        content: SHA-256 of its contents; other contents are not approved.
        called: What people call it.
        hearings: Returns where each approval that it needs stands; None if its
            contents are known by their digest only.
        release: What it is, priced under the active policy; None if that is not
            known, or it is a policy or the correction of a past release.
        since: The number of the entry before which people spoke of something else.
    """

    subject: Literal["release", "policy"]
    id: str
    content: str
    called: str
    hearings: Callable[[State], tuple[Hearing, ...]] | None = None
    release: RecordedRelease | None = None
    since: int = 0

    def hearings_in(self, state: State) -> tuple[Hearing, ...]:
        """Return where each approval stands; none where the contents are not known."""
        return self.hearings(state) if self.hearings else ()


def about_release(release: RecordedRelease, policy: Policy) -> Topic:
    """Return a release that is there to be read, as something to speak about.

    Args:
        release: The release, priced under the active policy.
        policy: The active policy.
    """
    return Topic(
        "release",
        release.id,
        release.content,
        f"release `{release.id}`",
        lambda state: hearings_of_release(release, policy, state),
        release,
    )


def about_known_release(identifier: str, records: Iterable[Record]) -> Topic:
    """Return a release that somebody spoke about before.

    Args:
        identifier: Its id.
        records: The log, from its beginning.

    Raises:
        InputError: If nobody spoke about it, or about several that have this id.
    """
    contents = dict.fromkeys(one.content for one in spoken(identifier, records))
    if not contents:
        raise InputError(
            Problem(
                Code.RELEASE_UNKNOWN,
                f"nobody spoke about a release `{identifier[:200]}` before",
                notes=("until it is reserved, the ledger does not know its contents",),
                help="give its file instead of its id",
            )
        )
    if len(contents) > 1:
        raise InputError(
            Problem(
                Code.RELEASE_CONFLICT,
                f"people spoke about {len(contents)} different releases"
                f" `{identifier[:200]}`",
                help="give the file of the one that is meant instead of its id",
            )
        )
    (content,) = contents
    return Topic("release", identifier, content, f"release `{identifier}`")


@dataclass(frozen=True, slots=True)
class Spoken:
    """What somebody said once, as the log tells it.

    Attributes:
        seq: The number of the entry.
        at: When.
        by: Who.
        content: SHA-256 of what they spoke about.
        approves: Whether they agreed.
        roles: The roles in which they spoke.
        reason: Why.
        key: The public key that signed it, in hexadecimal; empty if nobody signed.
    """

    seq: int
    at: str
    by: str
    content: str
    approves: bool
    roles: tuple[str, ...]
    reason: str
    key: str = ""


def spoken(identifier: str, records: Iterable[Record]) -> tuple[Spoken, ...]:
    """Return what people said to releases or policies of an id, oldest first.

    Args:
        identifier: The id of a release, or the digest of a policy.
        records: The log, from its beginning.
    """
    return tuple(_spoken(identifier, records))


def _spoken(identifier: str, records: Iterable[Record]) -> Iterator[Spoken]:
    for record in records:
        if b'"approval-given"' not in record.payload:
            continue  # Most records are of other kinds, and need not be read.
        event = event_of(record, record.seq)
        body = event.body
        if isinstance(body, ApprovalGiven) and body.id == identifier:
            yield Spoken(
                record.seq,
                event.at,
                event.actor,
                body.content,
                body.approves,
                body.roles,
                body.reason,
                body.key,
            )


def about_policy(successor: CompiledPolicy, policy: Policy) -> Topic:
    """Return a policy that is to take the active one's place.

    Args:
        successor: The policy.
        policy: The active policy: it says who must agree.
    """
    own = successor.policy
    return Topic(
        "policy",
        own.digest,
        own.digest,
        f"policy `{own.name}` ({own.digest[:12]})",
        lambda state: hearings_of_policy(own.digest, policy, state),
    )
