"""The interface of providers of wrapping keys.

A cloud's key service is one small class. `wrap` lets it encrypt 32 bytes with
`context.to_bytes()` as additional data or, where it needs a mapping, with `{"id":
context.id, "digest": context.digest}` as encryption context. `unwrap` lets it decrypt
with the same; `rewrap` re-encrypts, or does both of these. `current` returns the
version of the key that it encrypts with now.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import Final, Protocol

from modicum.core.canonical import decode, encode
from modicum.vault.folder import ID_BYTES_MAX
from modicum.vault.problems import broken


@dataclass(frozen=True, slots=True)
class Context:
    """The single purpose of a data key.

    Attributes:
        id: The object's id.
        digest: SHA-256 of its encrypted bytes.
    """

    id: str
    digest: str

    def to_bytes(self) -> bytes:
        """Return the one form of this that is authenticated with the key."""
        plain = {"kind": "modicum-wrap/v1", "id": self.id, "digest": self.digest}
        return encode(plain)


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A data key, encrypted.

    Attributes:
        key_id: The key that it is wrapped under, with its generation; no secret.
        data: The provider's ciphertext.
    """

    key_id: str
    data: bytes = field(repr=False)


class KeyProvider(Protocol):
    """Holds the keys that wrap data keys. Several threads may use it at a time."""

    def current(self) -> str:
        """Return the id of the key that is wrapped under now."""
        ...

    def wrap(self, data_key: bytes, context: Context) -> Wrapped:
        """Return a data key, wrapped under the current key."""
        ...

    def unwrap(self, wrapped: Wrapped, context: Context) -> bytes:
        """Return a data key."""
        ...

    def rewrap(self, wrapped: Wrapped, context: Context) -> Wrapped:
        """Return the same data key, wrapped under the current key."""
        ...


KIND: Final = "modicum-wrapped-key/v1"
#: Such a file has some hundred bytes; a provider's ciphertext, a few thousand.
RECORD_BYTES_MAX: Final = 2**16
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_KEYS: Final = {"kind", "id", "digest", "key", "wrapped"}


@dataclass(frozen=True, slots=True)
class Record:
    """A wrapped key and its context.

    Attributes:
        context: Its context.
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

    Its contents are unverified until the provider unwraps the key.
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
