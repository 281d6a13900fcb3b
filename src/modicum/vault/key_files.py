"""Keys in a file, for development and for single machines.

Anyone who can read the file and the vault can read everything: a copy of the whole disk
contains both. Where that matters, use a key service.

Destroying a single object deletes only its wrapped key: all objects of a generation
share one wrapping key here.
"""

from __future__ import annotations

import base64
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from modicum.core.canonical import decode, encode
from modicum.core.errors import Code, Problem, UsageError
from modicum.vault.encrypted_stream import KEY_BYTES
from modicum.vault.folder import take
from modicum.vault.key_provider import Context, Wrapped
from modicum.vault.owned_files import read_owned
from modicum.vault.problems import broken, no_key
from modicum.vault.vault import EncryptedVault

KIND: Final = "modicum-vault-keys/v1"
_FILE_BYTES_MAX: Final = 2**16


@dataclass(frozen=True, slots=True)
class Keys:
    """The contents of a file.

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
    """Return the contents of a file."""
    data = read_owned(path, _FILE_BYTES_MAX)
    try:
        found = decode(data)
    except (ValueError, TypeError):
        found = None
    stored = _keys_of(found)
    if stored is None:
        raise no_key(f"{path} has no vault keys", "use a file with keys")
    return stored


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
    """Read the file, and hold off others that would change it, for a `with` block."""
    try:
        at = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            take(at)
            yield read_keys(path)
        finally:
            os.close(at)
    except OSError as error:
        raise unwritable(path, error) from None


def replace(path: Path, stored: Keys) -> None:
    """Write the file as a whole: who reads it finds the old keys or the new ones."""
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)  # Left over from a crash.
    write_new(beside, stored.to_bytes())
    with path.open("r+b") as old:
        beside.replace(path)
        sync_folder(path)
        old.write(bytes(os.fstat(old.fileno()).st_size))
        old.flush()
        os.fsync(old.fileno())


def write_new(path: Path, data: bytes) -> None:
    """Write a new file for our eyes only, durably but for its name."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Make the name of a file durable."""
    at = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(at)
    finally:
        os.close(at)


def refused(code: Code, message: str, remedy: str) -> UsageError:
    """Return the error of something that is not done with keys."""
    return UsageError(Problem(code, message, help=remedy))


def unwritable(path: Path, error: OSError) -> UsageError:
    """Return the error of a file with keys that cannot be written."""
    why = (error.strerror or "system error").lower()
    return refused(
        Code.FILE_UNREADABLE, f"cannot write {path}: {why}", "choose another path"
    )


_NONCE_BYTES: Final = 12


class FileKeys:
    """The keys of a file, for development and for single machines.

    The file is read each time: a new generation is used from when it is there.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __repr__(self) -> str:
        return f"<FileKeys {self._path}>"

    def current(self) -> str:
        """Return the id of the key that is wrapped under now."""
        return read_keys(self._path).current

    def wrap(self, data_key: bytes, context: Context) -> Wrapped:
        """Return a data key, wrapped under the current key."""
        return _wrapped(read_keys(self._path), data_key, context)

    def unwrap(self, wrapped: Wrapped, context: Context) -> bytes:
        """Return a data key."""
        return _unwrapped(read_keys(self._path), wrapped, context)

    def rewrap(self, wrapped: Wrapped, context: Context) -> Wrapped:
        """Return the same data key, wrapped under the current key."""
        stored = read_keys(self._path)
        return _wrapped(stored, _unwrapped(stored, wrapped, context), context)


def file_keys(path: Path) -> FileKeys:
    """Return the keys of a file."""
    read_keys(path)
    return FileKeys(path)


def new_key_file(path: Path) -> str:
    """Make a file with one key, for development and for single machines."""
    key_id, key = _new_key()
    try:
        write_new(path, Keys(key_id, {key_id: key}).to_bytes())
        sync_folder(path)
    except FileExistsError:
        raise refused(
            Code.ALREADY_EXISTS, f"{path} exists", "keys are never overwritten"
        ) from None
    except OSError as error:
        raise unwritable(path, error) from None
    return key_id


def add_key(path: Path) -> str:
    """Make a new generation, under which all is wrapped from now on."""
    with changing(path) as stored:
        key_id, key = _new_key()
        replace(path, Keys(key_id, {**stored.keys, key_id: key}))
    return key_id


def retire_key(path: Path, key_id: str, vaults: Sequence[EncryptedVault]) -> None:
    """Destroy an old generation, under which nothing is wrapped any more.

    Copies of data keys in backups, wrapped under it, open nothing then; copies of the
    file itself still do.
    """
    with ExitStack() as stack:
        for vault in vaults:
            stack.enter_context(vault.nothing_under(key_id))
        stored = stack.enter_context(changing(path))
        if key_id == stored.current:
            raise refused(
                Code.KEY_UNAVAILABLE, f"`{key_id}` is the current key", "add one first"
            )
        if key_id not in stored.keys:
            raise refused(
                Code.KEY_UNAVAILABLE, f"{path} has no key `{key_id}`", "correct the id"
            )
        left = {one: key for one, key in stored.keys.items() if one != key_id}
        replace(path, Keys(stored.current, left))


# --- wrapping ------------------------------------------------------------------------


def _wrapped(stored: Keys, data_key: bytes, context: Context) -> Wrapped:
    nonce = secrets.token_bytes(_NONCE_BYTES)
    cipher = AESGCM(stored.keys[stored.current])
    sealed = cipher.encrypt(nonce, data_key, _beside(stored.current, context))
    return Wrapped(stored.current, nonce + sealed)


def _unwrapped(stored: Keys, wrapped: Wrapped, context: Context) -> bytes:
    key = stored.keys.get(wrapped.key_id)
    if key is None:
        raise no_key(
            f"the key of `{context.id}` is wrapped under a key that is not in the file",
            "use the file with that key; a retired key cannot be restored",
        )
    nonce, sealed = wrapped.data[:_NONCE_BYTES], wrapped.data[_NONCE_BYTES:]
    try:
        found = AESGCM(key).decrypt(nonce, sealed, _beside(wrapped.key_id, context))
    except (InvalidTag, ValueError):  # A nonce that is too short is a ValueError.
        raise broken(context.id, "its wrapped key is for something else") from None
    if len(found) != KEY_BYTES:
        raise broken(context.id, "its wrapped key is invalid")
    return found


def _beside(key_id: str, context: Context) -> bytes:
    return key_id.encode() + b"\0" + context.to_bytes()


def _new_key() -> tuple[str, bytes]:
    return f"file-{secrets.token_hex(8)}", secrets.token_bytes(KEY_BYTES)
