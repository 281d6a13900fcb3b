"""The file that holds keys: its form, and how it is read and written as a whole."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from modicum.core.canonical import decode, encode
from modicum.core.errors import Code, Problem, UsageError
from modicum.vault.encrypted_stream import KEY_BYTES
from modicum.vault.folder import take
from modicum.vault.owned_files import read_owned
from modicum.vault.problems import no_key

KIND: Final = "modicum-vault-keys/v1"
_FILE_BYTES_MAX: Final = 2**16


@dataclass(frozen=True, slots=True)
class Keys:
    """What a file holds.

    Attributes:
        current: The id of the key that is wrapped under.
        keys: Keys by id, in the order in which they were made.
    """

    current: str
    keys: dict[str, bytes] = field(repr=False)

    def to_bytes(self) -> bytes:
        """Return the file."""
        listed = [
            {"id": key_id, "key": base64.b64encode(key).decode()}
            for key_id, key in self.keys.items()
        ]
        return encode({"kind": KIND, "current": self.current, "keys": listed})


def read_keys(path: Path) -> Keys:
    """Return what a file holds.

    Args:
        path: The file.

    Raises:
        UnavailableError: If it cannot be read, others may read it, or it has another
            form.
    """
    data = read_owned(path, _FILE_BYTES_MAX)
    try:
        found = decode(data)
    except (ValueError, TypeError):
        found = None
    held = _keys_of(found)
    if held is None:
        raise no_key(f"{path} holds no keys of a vault", "name a file that has some")
    return held


def _keys_of(found: object) -> Keys | None:
    """Return the keys of plain data; None if it is of another form."""
    match found:
        case {"kind": kind, "current": str(current), "keys": [*listed]} if kind == KIND:
            keys = {}
            for one in listed:
                match one:
                    case {"id": str(key_id), "key": str(text)}:
                        keys[key_id] = _key_of(text)
                    case _:
                        return None
            whole = len(keys) == len(listed) and current in keys and "" not in keys
            fits = all(len(key) == KEY_BYTES for key in keys.values())
            return Keys(current, keys) if whole and fits else None
    return None


def _key_of(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""


@contextmanager
def changing(path: Path) -> Iterator[Keys]:
    """Read the file, and hold off others that would change it, for a `with` block.

    Args:
        path: The file.

    Raises:
        UnavailableError: If it cannot be read.
        UsageError: If it cannot be written, within the block.
    """
    try:
        at = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            take(at)
            yield read_keys(path)
        finally:
            os.close(at)
    except OSError as error:
        raise unwritable(path, error) from None


def replace(path: Path, held: Keys) -> None:
    """Write the file as a whole: who reads it finds the old keys or the new ones.

    Args:
        path: The file; its old bytes are overwritten.
        held: The new ones.
    """
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)  # What a crash left.
    write_new(beside, held.to_bytes())
    with path.open("r+b") as old:
        beside.replace(path)
        sync_folder(path)
        old.write(bytes(os.fstat(old.fileno()).st_size))
        old.flush()
        os.fsync(old.fileno())


def write_new(path: Path, data: bytes) -> None:
    """Write a new file for our eyes only, durably but for its name.

    Args:
        path: The file; nothing may be there.
        data: What it holds.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Make the name of a file durable.

    Args:
        path: The file.
    """
    at = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(at)
    finally:
        os.close(at)


def refused(code: Code, message: str, remedy: str) -> UsageError:
    """Return the error of something that is not done with keys.

    Args:
        code: Its code.
        message: What is wrong.
        remedy: What helps.
    """
    return UsageError(Problem(code, message, help=remedy))


def unwritable(path: Path, error: OSError) -> UsageError:
    """Return the error of a file with keys that cannot be written.

    Args:
        path: The file.
        error: What the system says.
    """
    why = (error.strerror or "the system refuses to write it").lower()
    return refused(
        Code.FILE_UNREADABLE, f"cannot write {path}: {why}", "choose another path"
    )
