"""Encrypted content: chunks that cannot be truncated, moved, swapped or extended.

docs/reference/vault-format.md defines the format byte by byte. Each chunk is sealed by
AES-256-GCM under a key for this content alone. Its nonce contains its number and
whether it is the last one; the header and the id are authenticated with it.

Source:
    The STREAM construction: Hoang, Reyhanitabar, Rogaway & Vizár, "Online
    authenticated-encryption and its nonce-reuse misuse-resistance", CRYPTO 2015.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from modicum.core.errors import Code, InputError, Problem
from modicum.vault.folder import Names
from modicum.vault.problems import broken

#: The magic bytes: the kind of file, and its version.
MAGIC: Final = b"modseal\x01"
#: A chunk has two to this power bytes. Smaller ones take longer, larger ones more room.
CHUNK_EXPONENT: Final = 18
KEY_BYTES: Final = 32
HEADER_BYTES: Final = 48
_EXPONENTS: Final = range(12, 25)
_PREFIX_BYTES: Final = 7
_TAG_BYTES: Final = 16
_CHUNKS_MAX: Final = 2**32

#: Returns the next bytes, as many as requested; fewer at the end.
Read = Callable[[int], bytes]


@dataclass(frozen=True, slots=True)
class _Frame:
    """The common parts of all chunks of a content."""

    header: bytes
    identifier: bytes

    @property
    def chunk_bytes(self) -> int:
        return 1 << self.header[8]

    def place(self, number: int, *, last: bool) -> tuple[bytes, bytes]:
        """Return the nonce of a chunk, and its associated data."""
        at = number.to_bytes(4, "big") + bytes([last])
        return self.header[9:16] + at, self.header + at + self.identifier


def encrypted(
    read: Read, key: bytes, names: Names, exponent: int = CHUNK_EXPONENT
) -> Iterator[bytes]:
    """Yield the encrypted form of a content, piece by piece."""
    prefix = secrets.token_bytes(_PREFIX_BYTES)
    header = MAGIC + bytes([exponent]) + prefix + names.tag
    frame = _Frame(header, names.id.encode())
    yield header
    cipher = AESGCM(key)
    for number, (chunk, last) in enumerate(_pieces(read, frame.chunk_bytes)):
        if number == _CHUNKS_MAX:  # The counter would begin anew.
            raise InputError(Problem(Code.TOO_LARGE, "it is too large for a vault"))
        nonce, beside = frame.place(number, last=last)
        yield cipher.encrypt(nonce, chunk, beside)


def decrypted(read: Read, key: bytes, names: Names) -> Iterator[bytes]:
    """Yield a content, chunk by chunk; it is authentic only when complete.

    No chunk may be used before that: the rest may be truncated.
    """
    header = read(HEADER_BYTES)
    if (
        len(header) != HEADER_BYTES
        or header[:8] != MAGIC
        or header[8] not in _EXPONENTS
        or header[16:] != names.tag
    ):
        raise broken(names.id, "its beginning is invalid")
    frame = _Frame(header, names.id.encode())
    cipher = AESGCM(key)
    for number, (piece, last) in enumerate(
        _pieces(read, frame.chunk_bytes + _TAG_BYTES)
    ):
        # Only an empty content has an empty chunk, so each content has one form.
        if number == _CHUNKS_MAX or (number and len(piece) <= _TAG_BYTES):
            raise broken(names.id, "it has data after its end")
        nonce, beside = frame.place(number, last=last)
        try:
            yield cipher.decrypt(nonce, piece, beside)
        except InvalidTag:
            raise broken(names.id, "its key does not open it") from None


def _pieces(read: Read, size: int) -> Iterator[tuple[bytes, bool]]:
    """Yield pieces of a size, the last one perhaps shorter, and whether it is that."""
    piece = read(size)
    while True:
        following = read(size) if len(piece) == size else b""
        yield piece, not following
        if not following:
            return
        piece = following
