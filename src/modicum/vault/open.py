"""Checks before anything of an object is returned."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from modicum.api.ports.escrow import Sealed
from modicum.vault.encrypted_stream import Read
from modicum.vault.folder import Folder, Names
from modicum.vault.key_provider import RECORD_BYTES_MAX, Context, Record, read_record
from modicum.vault.problems import broken, no_key, shredded


def record_of(folder: Folder, names: Names, sealed: Sealed) -> Record:
    """Return the wrapped key of the object recorded in the ledger."""
    data = folder.read(names.key, RECORD_BYTES_MAX + 1)
    # The tombstone is there before the key is overwritten: so look in this order.
    if folder.has(names.tombstone):
        raise shredded(names.id)
    if data is None:
        raise no_key(
            f"the vault has no key of `{names.id}`",
            "restore the vault from a copy, if it existed",
        )
    record = read_record(data, names.id)
    if record.context != Context(sealed.id, sealed.digest):
        raise broken(names.id, "its wrapped key is for something else")
    return record


@contextmanager
def content_of(folder: Folder, names: Names) -> Iterator[BinaryIO]:
    """Lend the encrypted content of an object, for a `with` block."""
    try:
        file = folder.reading(names.content)
    except FileNotFoundError:
        if folder.has(names.tombstone):
            raise shredded(names.id) from None
        raise broken(names.id, "its content is missing") from None
    with file:
        yield file


def hashed(file: BinaryIO, update: Callable[[bytes], None]) -> Read:
    """Return a reader of a file that updates a hash with all that it reads."""

    def read(size: int) -> bytes:
        data = file.read(size)
        update(data)
        return data

    return read
