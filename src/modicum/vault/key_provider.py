"""What a vault asks of whoever keeps the keys that wrap its keys.

A cloud's key service is one small class. `wrap` asks it to encrypt 32 bytes with
`context.to_bytes()` as additional data or, where it wants a mapping, with
`{"id": context.id, "digest": context.digest}` as encryption context. `unwrap` asks it
to decrypt with the same; `rewrap` to re-encrypt, or it does both of these. `current`
names the version of the key that it encrypts with now.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from modicum.core.canonical import encode


@dataclass(frozen=True, slots=True)
class Context:
    """What a data key is for; it serves nothing else.

    Attributes:
        id: What the thing is called.
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
        data: What the provider made of it.
    """

    key_id: str
    data: bytes = field(repr=False)


class KeyProvider(Protocol):
    """Who keeps the keys that wrap data keys. Several threads may ask at a time."""

    def current(self) -> str:
        """Return the id of the key that is wrapped under now.

        Raises:
            UnavailableError: If there is none, or nobody answers.
        """
        ...

    def wrap(self, data_key: bytes, context: Context) -> Wrapped:
        """Return a data key, wrapped under the current key.

        Args:
            data_key: 32 bytes.
            context: What it is for.

        Raises:
            UnavailableError: If it cannot be wrapped.
        """
        ...

    def unwrap(self, wrapped: Wrapped, context: Context) -> bytes:
        """Return a data key.

        Args:
            wrapped: What `wrap` or `rewrap` returned.
            context: What the data key is for.

        Raises:
            VerificationError: If it was wrapped for something else, or changed.
            UnavailableError: If the key that it is wrapped under cannot be had.
        """
        ...

    def rewrap(self, wrapped: Wrapped, context: Context) -> Wrapped:
        """Return the same data key, wrapped under the current key.

        Args:
            wrapped: What `wrap` or `rewrap` returned.
            context: What the data key is for.

        Raises:
            VerificationError: If it was wrapped for something else, or changed.
            UnavailableError: If one of the keys cannot be had.
        """
        ...
