"""What people say to requests and proposals, as it is sent."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request

from modicum.api.local.governance.approvals import Ballot
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.core.document import Node
from modicum.core.errors import Code, InputError, Problem
from modicum.core.fields import Fields
from modicum.core.reader import boolean, text
from modicum.server.inputs.body import form_of
from modicum.server.routes import openapi_parts

_KEY = re.compile(r"[0-9a-f]{64}")
_SIGNATURE = re.compile(r"[0-9a-f]{128}")

_TEXT: Final = {"type": "string", "minLength": 1, "maxLength": 2000}
#: The form of what somebody says.
WORD: Final[dict[str, Any]] = openapi_parts.body_of(
    {
        "type": "object",
        "properties": {
            "approves": {"type": "boolean"},
            "reason": _TEXT,
            "head": {"type": "string", "pattern": "^[0-9a-f]{12,64}$"},
            "key": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            "signature": {"type": "string", "pattern": "^[0-9a-f]{128}$"},
        },
        "required": ["approves", "reason"],
        "dependentRequired": {"key": ["signature"], "signature": ["key", "head"]},
        "additionalProperties": False,
    },
    "what is said, and why; signed with an own key, if the policy asks for that",
)
#: The form of a reason alone.
REASON: Final[dict[str, Any]] = openapi_parts.body_of(
    {
        "type": "object",
        "properties": {"reason": _TEXT},
        "required": ["reason"],
        "additionalProperties": False,
    },
    "why",
)


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


async def word_of(
    request: Request, content: str, who: Identity, *actions: Action
) -> Ballot:
    """Return what somebody says."""
    fields = Fields(await form_of(request, who, *actions), "the request")
    approves = boolean(fields.take("approves"), "`approves`")
    reason = text(fields.take("reason"), "`reason`")
    head = _text(fields.take_optional("head"), "`head`")
    key = _text(fields.take_optional("key"), "`key`")
    signature = _text(fields.take_optional("signature"), "`signature`")
    fields.finish()
    if key is None and signature is None:
        return Ballot(approves, reason, head if approves else None, content=content)
    if not _KEY.fullmatch(key or "") or not _SIGNATURE.fullmatch(signature or ""):
        raise _bad("`key` and `signature` are 64 and 128 hexadecimal digits")
    if head is None:
        raise _bad("what is signed is said at a `head`")
    own = Signature(bytes.fromhex(key or ""), bytes.fromhex(signature or ""))
    return Ballot(approves, reason, head if approves else None, own, content)


async def reason_of(request: Request, who: Identity, *actions: Action) -> str:
    """Return the reason that is sent by itself."""
    fields = Fields(await form_of(request, who, *actions), "the request")
    reason = text(fields.take("reason"), "`reason`")
    fields.finish()
    return reason


def _text(node: Node | None, what: str) -> str | None:
    return None if node is None else text(node, what)


def _bad(message: str) -> InputError:
    return InputError(Problem(Code.BAD_NAME, message))
