"""Votes on requests and proposals, as sent."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request

from modicum.api.local.governance.approvals import Ballot
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.api.schema.approval import Reason, VoteInput
from modicum.server.inputs.body import input_of


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature that was made elsewhere, in the place of the key that made it.

    Attributes:
        public: The raw public key.
        value: The signature.
    """

    public: bytes
    value: bytes

    def signature_of(self, message: bytes) -> bytes:
        """Return the signature; whether it is of the message is looked at then."""
        return self.value


async def ballot_of(
    request: Request, content: str, who: Identity, *actions: Action
) -> Ballot:
    """Return the vote that was sent, on contents that were looked at."""
    sent = await input_of(request, who, VoteInput, *actions)
    signer = None
    if sent.key and sent.signature:
        signer = Signature(bytes.fromhex(sent.key), bytes.fromhex(sent.signature))
    head = sent.head or None if sent.approves else None
    return Ballot(sent.approves, sent.reason, head, signer, content)


async def reason_of(request: Request, who: Identity, *actions: Action) -> str:
    """Return the reason that is sent by itself."""
    return (await input_of(request, who, Reason, *actions)).reason
