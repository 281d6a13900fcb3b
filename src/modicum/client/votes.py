"""Agreeing and refusing over HTTP: what was looked at is named, and signed here.

A signature is made of what this program knows itself: the contents, the roles by the
active policy's own text, the reason and the head. The server's word for it is not
taken, and the key stays here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from msgspec.structs import replace

from modicum.api.local.governance.approval_cases import ApprovalCase, reason_text
from modicum.api.local.governance.approvals import RecordedVote
from modicum.api.schema.approval import VoteReceipt
from modicum.client.decoding import approval_states_of, decoded
from modicum.client.problems import not_understood
from modicum.client.request_encoding import encoded
from modicum.client.retry_connection import Request
from modicum.client.view import RemoteView
from modicum.core.errors import Code, Problem, StaleError
from modicum.ledger.decision.approvals import ApprovalState, roles_of
from modicum.ledger.log.approval_statement import Signer, signed
from modicum.ledger.log.events import ApprovalGiven
from modicum.storage.proofs.signing_keys import load_key

#: What signs, or the file of a key.
Key: TypeAlias = "Signer | str | Path"

T = TypeVar("T")

#: So often something is signed again, as entries come in while it is sent.
_SIGNED_MAX: Final = 5
#: So much of a hash must at least be given.
_HASH_SHOWN: Final = 12


@dataclass(frozen=True, slots=True)
class VoteSubject:
    """What somebody says about something that waits.

    Attributes:
        request: Where it is said.
        topic: What they speak about, as they have looked at it.
        approves: Whether they agree.
        reason: Why, for the record.
        head: The hash of the last entry that they have looked at, or its beginning;
            None for whichever is last.
        signer: What signs it; None for nobody.
    """

    request: Request[VoteReceipt]
    topic: ApprovalCase
    approves: bool
    reason: str
    head: str | None = None
    signer: Signer | None = field(default=None, repr=False)


def signer_of(key: Key | None) -> Signer | None:
    """Return what signs."""
    return load_key(key) if isinstance(key, str | Path) else key


def send_vote(view: RemoteView, speech: VoteSubject) -> RecordedVote:
    """Say something, and return where the approvals stand after it."""
    return signed_again(
        lambda: _said(speech, view.connection.ask(_request(view, speech))),
        often=speech.signer is not None and speech.head is None,
    )


def signed_again(work: Callable[[], T], *, often: bool) -> T:
    """Return what some work returns that signs at the last head and sends it.

    A signature holds at one head. Who named none signs at the next one, if entries came
    in between.
    """
    left = _SIGNED_MAX if often else 1
    while True:
        left -= 1
        try:
            return work()
        except StaleError:
            if not left:
                raise


def _request(view: RemoteView, speech: VoteSubject) -> Request[VoteReceipt]:
    form: dict[str, object] = {"approves": speech.approves, "reason": speech.reason}
    if speech.signer is not None:
        body = ApprovalGiven(
            speech.topic.subject,
            speech.topic.id,
            speech.topic.content,
            speech.approves,
            roles_of(view.actor, view.policy().policy),
            reason_text(speech.reason, "approving or rejecting"),
            head=speech.head or "",
        )
        form |= signature_form(view, body, speech.signer)
    elif speech.head is not None:
        form["head"] = speech.head.strip().lower()
    verb = "approved" if speech.approves else "rejected"
    return Request(
        speech.request.operation,
        speech.request.ids,
        sent=encoded(form),
        step=f"{verb} {speech.topic.called}",
        if_match=speech.topic.content,
    )


def signature_form(
    view: RemoteView, body: ApprovalGiven, signer: Signer
) -> dict[str, object]:
    """Return what is sent of a signature, which is made here."""
    head = _whole(body.head or None, view.head().head)
    policy = view.policy().policy.digest
    own = signed(replace(body, head=head), by=view.actor, policy=policy, signer=signer)
    return {"head": own.head, "key": own.key, "signature": own.signature}


def _whole(given: str | None, last: str) -> str:
    """Return the whole hash of the entry that was looked at."""
    if given is None:
        return last
    wanted = given.strip().lower()
    if len(wanted) == len(last):
        return wanted  # The server says whether it is still the last one that counts.
    if len(wanted) >= _HASH_SHOWN and last.startswith(wanted):
        return last
    raise StaleError(
        Problem(
            Code.REVIEW_AGAIN,
            f"the ledger moved on since entry {wanted[:64]} was reviewed: its last"
            f" entry is {last[:_HASH_SHOWN]}",
            notes=("nothing was written",),
            help="review again, and give the head that you have looked at",
        )
    )


def _said(speech: VoteSubject, told: object) -> RecordedVote:
    one = decoded(VoteReceipt, told)
    topic = speech.topic
    if (one.subject, one.id, one.content, one.approves) != (
        topic.subject,
        topic.id,
        topic.content,
        speech.approves,
    ):
        raise not_understood("it tells of something else than was said").alone()
    heard: tuple[ApprovalState, ...] = approval_states_of(one.approvals)
    return RecordedVote(
        topic,
        one.by,
        one.approves,
        one.roles,
        heard,
        one.entry,
        one.repeated,
        one.key or "",
        corrected_in=one.corrected_in or 0,
    )
