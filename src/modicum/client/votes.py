"""Votes over HTTP: on what was reviewed, signed locally.

A signature covers only what this program knows itself: the contents, the roles by the
active policy's own text, the reason and the head. The server's data is not trusted for
it, and the key is never sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar

from msgspec.structs import replace

from modicum.api import operations
from modicum.api.local.governance.approval_cases import ApprovalCase, reason_text
from modicum.api.local.governance.approvals import Ballot, RecordedVote
from modicum.api.operations import Operation
from modicum.api.schema.approval import VoteInput, VoteReceipt
from modicum.client.decoding import approval_states_of, decoded, named, vote_of
from modicum.client.problems import not_understood
from modicum.client.request_encoding import sent
from modicum.client.retry_connection import Request
from modicum.client.view import RemoteView
from modicum.core.errors import Code, Problem, StaleError
from modicum.ledger.decision.approvals import roles_of
from modicum.ledger.log.approval_statement import Signer, signed
from modicum.ledger.log.events import ApprovalGiven
from modicum.storage.proofs.signing_keys import load_key

#: A signer, or the file of a key.
Key: TypeAlias = "Signer | str | Path"

T = TypeVar("T")
Subject: TypeAlias = Literal["release", "policy", "contract", "data"]

#: Maximum number of new signatures, as entries arrive while a vote is sent.
_SIGNED_MAX: Final = 5
#: Minimum length of a hash prefix.
_HASH_SHOWN: Final = 12


@dataclass(frozen=True, slots=True)
class VoteSubject:
    """The subject of a vote, as reviewed.

    Attributes:
        operation: The operation of the vote.
        ids: Its path parameters.
        about: The kind of subject, its id, and the SHA-256 of its contents.
        called: Its display name.
        roles: The roles that are signed; None for those that the policy gives.
    """

    operation: Operation[Any]
    ids: Mapping[str, str | int]
    about: tuple[Subject, str, str]
    called: str
    roles: tuple[str, ...] | None = None


def signer_of(key: Key | None) -> Signer | None:
    """Return the signer."""
    return load_key(key) if isinstance(key, str | Path) else key


def send_vote(view: RemoteView, on: VoteSubject, ballot: Ballot) -> Any:
    """Send a vote; return the server's response."""
    if ballot.content not in {None, on.about[2]}:
        raise StaleError(
            Problem(
                Code.REVIEW_AGAIN,
                f"{on.called} differs from what was reviewed",
                notes=("nothing was written",),
                help="review it again",
            )
        )
    return _signed_again(
        lambda: view.connection.send(_request(view, on, ballot)),
        often=ballot.signer is not None and ballot.head is None,
    )


def record_vote(view: RemoteView, topic: ApprovalCase, ballot: Ballot) -> RecordedVote:
    """Vote on a request or a proposal; return the state of the approvals after it."""
    operation, ids = operations.APPROVE_POLICY, {"digest": topic.id}
    if topic.subject == "release":
        operation, ids = operations.APPROVE_RELEASE, named(topic.id)
    about = topic.subject, topic.id, topic.content
    on = VoteSubject(operation, ids, about, topic.called)
    one = decoded(VoteReceipt, send_vote(view, on, ballot))
    if (one.subject, one.id, one.content, one.approves) != (*about, ballot.approves):
        raise not_understood("it does not match the request").alone()
    return RecordedVote(
        *vote_of(one, one.roles),
        topic=topic,
        approval_states=approval_states_of(one.approvals),
        repeated=one.repeated,
        corrected_in=one.corrected_in or 0,
    )


def _signed_again(work: Callable[[], T], *, often: bool) -> T:
    """Return the result of some work that signs at the last head and sends it.

    A signature is valid at one head. If the voter named none and entries arrived in
    between, the vote is signed at the next one.
    """
    left = _SIGNED_MAX if often else 1
    while True:
        left -= 1
        try:
            return work()
        except StaleError:
            if not left:
                raise


def _request(view: RemoteView, on: VoteSubject, ballot: Ballot) -> Request[Any]:
    form = VoteInput(approves=ballot.approves, reason=ballot.reason)
    if ballot.signer is not None:
        roles = on.roles
        if roles is None:
            roles = roles_of(view.actor, view.policy().policy)
        body = ApprovalGiven(
            *on.about,
            ballot.approves,
            roles,
            reason_text(ballot.reason, "approving or rejecting"),
            head=_whole(ballot.head or None, view.head().head),
        )
        policy = view.policy().policy.digest
        own = signed(body, by=view.actor, policy=policy, signer=ballot.signer)
        form = replace(form, head=own.head, key=own.key, signature=own.signature)
    elif ballot.head is not None:
        form = replace(form, head=ballot.head.strip().lower())
    verb = "approved" if ballot.approves else "rejected"
    return Request(
        on.operation,
        on.ids,
        sent=sent(form),
        step=f"{verb} {on.called}",
        if_match=on.about[2],
    )


def _whole(given: str | None, last: str) -> str:
    """Return the whole hash of the entry that was looked at."""
    if given is None:
        return last
    wanted = given.strip().lower()
    if len(wanted) == len(last):
        return wanted  # The server checks whether it is still the last one that counts.
    if len(wanted) >= _HASH_SHOWN and last.startswith(wanted):
        return last
    raise StaleError(
        Problem(
            Code.REVIEW_AGAIN,
            f"the ledger moved on since entry {wanted[:64]} was reviewed: its last"
            f" entry is {last[:_HASH_SHOWN]}",
            notes=("nothing was written",),
            help="review again, and give the head that you reviewed",
        )
    )
