"""Rewrapping data keys under another key; contents stay as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from modicum.core.errors import Code, InputError, Problem, UsageError, VerificationError
from modicum.vault.folder import Folder, Names, is_key, names_of, opened, overwrite
from modicum.vault.key_provider import (
    RECORD_BYTES_MAX,
    KeyProvider,
    Record,
    read_record,
)
from modicum.vault.problems import broken

#: Maximum number of damaged keys listed; of more, the number is shown.
_NAMED_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class Rotated:
    """The result of a rotation.

    Attributes:
        moved: How many data keys it wrapped under the current key.
        kept: How many were wrapped under it before.
    """

    moved: int
    kept: int


def rotate(directory: Path, keys: KeyProvider) -> Rotated:
    """Wrap all data keys under the current key of a provider."""
    current = keys.current()
    moved, kept, damaged = 0, 0, list[Problem]()
    with opened(directory) as folder:
        for name in filter(is_key, folder.names()):
            with folder.locked():  # One at a time, so that others get their turn.
                try:
                    found = _read(folder, name)
                    if found is None:
                        continue
                    if found[1].wrapped.key_id == current:
                        kept += 1
                        continue
                    _rewrap(folder, *found, keys)
                    moved += 1
                except VerificationError as error:
                    damaged.extend(error.problems)
    if damaged:
        more = len(damaged) - _NAMED_MAX
        rest = Problem(Code.SEALED_BROKEN, f"{more} more keys are damaged")
        raise VerificationError(*damaged[:_NAMED_MAX], *[rest] * (more > 0))
    return Rotated(moved, kept)


def _rewrap(folder: Folder, names: Names, record: Record, keys: KeyProvider) -> None:
    """Put a newly wrapped key into the place of the old one, and overwrite that."""
    anew = keys.rewrap(record.wrapped, record.context)
    folder.erase(names.new_key)
    with folder.overwriting(names.key) as old:
        folder.write(names.new_key, Record(record.context, anew).to_bytes())
        folder.rename(names.new_key, names.key)
        folder.sync()
        with suppress(OSError):  # The new one is in place in any case.
            overwrite(old)


def wrapped_under(folder: Folder) -> Mapping[str, int]:
    """Return how many data keys are wrapped under each key of a provider."""
    return Counter(record.wrapped.key_id for record in _records(folder))


def refuse_used(folder: Folder, key_id: str) -> None:
    """Refuse to give up a key that data keys are wrapped under."""
    if used := wrapped_under(folder).get(key_id, 0):
        raise UsageError(
            Problem(
                Code.KEY_UNAVAILABLE,
                f"{used} data keys are wrapped under `{key_id}`",
                notes=("their data would be unreadable",),
                help="rotate the vault first",
            )
        )


def _records(folder: Folder) -> Iterator[Record]:
    for name in filter(is_key, folder.names()):
        if (found := _read(folder, name)) is not None:
            yield found[1]


def _read(folder: Folder, name: str) -> tuple[Names, Record] | None:
    """Return a wrapped key; None if it is gone, or about to go."""
    data = folder.read(name, RECORD_BYTES_MAX + 1)
    if folder.has(f"{name.removesuffix('.key')}.shredded") or data is None:
        return None
    record = read_record(data, name)
    try:
        names = names_of(record.context.id)
    except InputError:
        raise broken(name, "its wrapped key has no data") from None
    if names.key != name:
        raise broken(name, "its wrapped key is for something else")
    return names, record
