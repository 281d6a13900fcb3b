"""Adding an object to a vault's folder: with its key, or not at all."""

from __future__ import annotations

import fcntl
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from modicum.vault.folder import Folder, Names, is_debris, take
from modicum.vault.problems import used_before


def commit(folder: Folder, names: Names, part: str, record: bytes) -> None:
    """Rename complete content, then its key; no object exists without a key."""
    try:
        folder.erase(names.new_key)
        folder.write(names.new_key, record)
        folder.rename(part, names.content)  # Content without a key was never sealed.
        folder.sync()
        folder.rename(names.new_key, names.key)
        folder.sync()
    except BaseException:
        # It was not acknowledged, and may be gone after a power cut.
        with suppress(OSError):
            folder.erase(names.key)
            folder.erase(names.new_key)
            folder.remove(names.content)
        raise


def refuse_used(folder: Folder, names: Names) -> None:
    """Refuse an id that is, or was, in use."""
    if folder.has(names.tombstone):
        raise used_before(names.id, is_shredded=True)
    if folder.has(names.key):
        raise used_before(names.id, is_shredded=False)


@contextmanager
def part_of(folder: Folder, names: Names) -> Iterator[tuple[str, BinaryIO]]:
    """Lend a new file for content; it is gone afterwards if it has no other name."""
    part = names.part(secrets.token_bytes(8))
    with folder.locked():  # Else it could be swept before it has its lock.
        file = folder.new(part)
        take(file.fileno())
    try:
        with file:
            yield part, file
    finally:
        with suppress(OSError):
            folder.remove(part)


def sweep(folder: Folder) -> None:
    """Remove files that nobody writes or will complete."""
    for name in filter(is_debris, folder.names()):
        if name.endswith(".new"):  # Its writer holds the folder's lock.
            folder.erase(name)
            continue
        with folder.reading(name) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            folder.remove(name)
