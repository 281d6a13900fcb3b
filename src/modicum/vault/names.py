"""What files of a vault are called: an id itself is never part of a path."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from modicum.core.errors import Code, InputError, Problem

#: An id, in UTF-8, has at most so many bytes.
ID_BYTES_MAX: Final = 512
_PREFIX: Final = b"modicum-vault/v1\0"
_KEY: Final = re.compile(r"[0-9a-f]{64}\.key")
_DEBRIS: Final = re.compile(r"[0-9a-f]{64}\.(?:[0-9a-f]{16}\.part|key\.new)")


@dataclass(frozen=True, slots=True)
class Names:
    """The files of one thing.

    Attributes:
        id: What the thing is called.
        tag: SHA-256 of the id, 32 bytes.
    """

    id: str
    tag: bytes

    @property
    def content(self) -> str:
        """The encrypted content."""
        return f"{self.tag.hex()}.sealed"

    @property
    def key(self) -> str:
        """The wrapped key; where it is, the thing is."""
        return f"{self.tag.hex()}.key"

    @property
    def new_key(self) -> str:
        """A wrapped key that is not in use yet."""
        return f"{self.tag.hex()}.key.new"

    @property
    def tombstone(self) -> str:
        """An empty file: where it is, the thing is not, and never will be."""
        return f"{self.tag.hex()}.shredded"

    def part(self, nonce: bytes) -> str:
        """Return what content is called until it is complete.

        Args:
            nonce: 8 bytes, other ones for each attempt.
        """
        return f"{self.tag.hex()}.{nonce.hex()}.part"


def names_of(identifier: str) -> Names:
    """Return the names of the files of a thing.

    Args:
        identifier: What it is called; `../x` is as good as any other id.

    Raises:
        InputError: If it is empty, too long, or cannot be shown.
    """
    fits = identifier.isprintable() and 0 < len(identifier) <= ID_BYTES_MAX
    data = identifier.encode() if fits else b""
    if not 0 < len(data) <= ID_BYTES_MAX:
        raise InputError(
            Problem(
                Code.BAD_NAME,
                "the id of what is sealed is empty, too long, or cannot be shown",
                help=f"use printable characters, at most {ID_BYTES_MAX} bytes in UTF-8",
            )
        )
    return Names(identifier, hashlib.sha256(_PREFIX + data).digest())


def is_key(name: str) -> bool:
    """Return whether a file of this name holds the wrapped key of a thing.

    Args:
        name: The name of the file.
    """
    return _KEY.fullmatch(name) is not None


def is_debris(name: str) -> bool:
    """Return whether a file of this name is incomplete, or not in use yet.

    Args:
        name: The name of the file.
    """
    return _DEBRIS.fullmatch(name) is not None
