"""The file of a wrapped key: which thing it opens, and under what it is wrapped."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import Final

from modicum.core.canonical import decode, encode
from modicum.vault.key_provider import Context, Wrapped
from modicum.vault.names import ID_BYTES_MAX
from modicum.vault.problems import broken

KIND: Final = "modicum-wrapped-key/v1"
#: Such a file is some hundred bytes; what a provider makes of a key, a few thousand.
RECORD_BYTES_MAX: Final = 2**16
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_KEYS: Final = {"kind", "id", "digest", "key", "wrapped"}


@dataclass(frozen=True, slots=True)
class Record:
    """A wrapped key, and what it is for.

    Attributes:
        context: What it is for.
        wrapped: The key.
    """

    context: Context
    wrapped: Wrapped

    def to_bytes(self) -> bytes:
        """Return the file."""
        return encode(
            {
                "kind": KIND,
                "id": self.context.id,
                "digest": self.context.digest,
                "key": self.wrapped.key_id,
                "wrapped": base64.b64encode(self.wrapped.data).decode(),
            }
        )


def read_record(data: bytes, called: str) -> Record:
    """Return the wrapped key of a file.

    What it says is only a claim until the provider unwraps the key for it.

    Args:
        data: The file.
        called: What it is, for messages.

    Raises:
        VerificationError: If it has not the form of one.
    """
    try:
        found = decode(data) if len(data) <= RECORD_BYTES_MAX else None
    except (ValueError, TypeError):
        found = None
    if (
        not isinstance(found, dict)
        or set(found) != _KEYS
        or found["kind"] != KIND
        or not all(isinstance(value, str) for value in found.values())
        or not 0 < len(found["id"]) <= ID_BYTES_MAX
        or not _DIGEST.fullmatch(found["digest"])
    ):
        raise broken(called, "its wrapped key is damaged")
    try:
        wrapped = base64.b64decode(found["wrapped"], validate=True)
    except ValueError:
        raise broken(called, "its wrapped key is damaged") from None
    context = Context(found["id"], found["digest"])
    return Record(context, Wrapped(found["key"], wrapped))
