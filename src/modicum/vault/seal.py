"""How a thing comes into the folder of a vault: with its key, or not at all."""

from __future__ import annotations

import fcntl
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from modicum.vault.folder import Folder, Names, is_debris, take
from modicum.vault.problems import used_before


def commit(folder: Folder, names: Names, part: str, record: bytes) -> None:
    """Give complete content its name, then its key; there is no thing without a key."""
    try:
        folder.erase(names.new_key)
        folder.write(names.new_key, record)
        folder.rename(part, names.content)  # Content without a key was never sealed.
        folder.sync()
        folder.rename(names.new_key, names.key)
        folder.sync()
    except BaseException:
        # Nobody was told that it is there, and it may not be after a power cut.
        with suppress(OSError):
            folder.erase(names.key)
            folder.erase(names.new_key)
            folder.remove(names.content)
        raise


def refuse_used(folder: Folder, names: Names) -> None:
    """Refuse an id that stands, or stood, for something."""
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
    """Remove what nobody is writing, and nobody will go on with."""
    for name in filter(is_debris, folder.names()):
        if name.endswith(".new"):  # Whoever writes one holds the folder's lock.
            folder.erase(name)
            continue
        with folder.reading(name) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            folder.remove(name)
