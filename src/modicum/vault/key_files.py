"""Keys in a file, for development and for single machines.

Whoever can read the file and the vault can read everything: a copy of the whole disk
holds both. Where that matters, let a key service keep the keys.

A thing of its own is destroyed by deleting its wrapped key alone: all things of a
generation share one key here.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from modicum.core.errors import Code
from modicum.vault.encrypted_stream import KEY_BYTES
from modicum.vault.key_file_form import (
    Keys,
    changing,
    read_keys,
    refused,
    replace,
    sync_folder,
    unwritable,
    write_new,
)
from modicum.vault.key_provider import Context, Wrapped
from modicum.vault.problems import broken, no_key
from modicum.vault.vault import EncryptedVault

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
        """Return the id of the key that is wrapped under now.

        Raises:
            UnavailableError: If the file cannot be read.
        """
        return read_keys(self._path).current

    def wrap(self, data_key: bytes, context: Context) -> Wrapped:
        """Return a data key, wrapped under the current key.

        Args:
            data_key: 32 bytes.
            context: What it is for.

        Raises:
            UnavailableError: If the file cannot be read.
        """
        return _wrapped(read_keys(self._path), data_key, context)

    def unwrap(self, wrapped: Wrapped, context: Context) -> bytes:
        """Return a data key.

        Args:
            wrapped: What `wrap` or `rewrap` returned.
            context: What the data key is for.

        Raises:
            VerificationError: If it was wrapped for something else, or changed.
            UnavailableError: If the file cannot be read, or the key is not there.
        """
        return _unwrapped(read_keys(self._path), wrapped, context)

    def rewrap(self, wrapped: Wrapped, context: Context) -> Wrapped:
        """Return the same data key, wrapped under the current key.

        Args:
            wrapped: What `wrap` or `rewrap` returned.
            context: What the data key is for.

        Raises:
            VerificationError: If it was wrapped for something else, or changed.
            UnavailableError: If the file cannot be read, or the key is not there.
        """
        held = read_keys(self._path)
        return _wrapped(held, _unwrapped(held, wrapped, context), context)


def file_keys(path: Path) -> FileKeys:
    """Return the keys of a file.

    Args:
        path: A file that `new_key_file` made.

    Raises:
        UnavailableError: If it cannot be read, or others may read it.
    """
    read_keys(path)
    return FileKeys(path)


def new_key_file(path: Path) -> str:
    """Make a file with one key, for development and for single machines.

    Args:
        path: The file; nothing may be there.

    Returns:
        The id of the key.

    Raises:
        UsageError: If something is there, or it cannot be written.
    """
    key_id, key = _new_key()
    try:
        write_new(path, Keys(key_id, {key_id: key}).to_bytes())
        sync_folder(path)
    except FileExistsError:
        raise refused(
            Code.ALREADY_EXISTS, f"{path} exists", "keys are never written over"
        ) from None
    except OSError as error:
        raise unwritable(path, error) from None
    return key_id


def add_key(path: Path) -> str:
    """Make a new generation, under which all is wrapped from now on.

    Args:
        path: The file.

    Returns:
        The id of the new key.

    Raises:
        UnavailableError: If the file cannot be read.
        UsageError: If it cannot be written.
    """
    with changing(path) as held:
        key_id, key = _new_key()
        replace(path, Keys(key_id, {**held.keys, key_id: key}))
    return key_id


def retire_key(path: Path, key_id: str, vaults: Sequence[EncryptedVault]) -> None:
    """Destroy an old generation, under which nothing is wrapped any more.

    Copies of data keys in backups, wrapped under it, open nothing then; copies of the
    file itself still do.

    Args:
        path: The file.
        key_id: The key.
        vaults: All vaults whose keys the file wraps: of others nobody knows here.

    Raises:
        UsageError: If it is the current one or not there, data keys are wrapped under
            it, or the file cannot be written.
        VerificationError: If a wrapped key is damaged.
        UnavailableError: If a vault or the file cannot be read.
    """
    with ExitStack() as stack:
        for vault in vaults:
            stack.enter_context(vault.nothing_under(key_id))
        held = stack.enter_context(changing(path))
        if key_id == held.current:
            raise refused(
                Code.KEY_UNAVAILABLE, f"`{key_id}` is the current key", "add one first"
            )
        if key_id not in held.keys:
            raise refused(
                Code.KEY_UNAVAILABLE, f"{path} has no key `{key_id}`", "correct the id"
            )
        left = {one: key for one, key in held.keys.items() if one != key_id}
        replace(path, Keys(held.current, left))


# --- wrapping ------------------------------------------------------------------------


def _wrapped(held: Keys, data_key: bytes, context: Context) -> Wrapped:
    nonce = secrets.token_bytes(_NONCE_BYTES)
    cipher = AESGCM(held.keys[held.current])
    sealed = cipher.encrypt(nonce, data_key, _beside(held.current, context))
    return Wrapped(held.current, nonce + sealed)


def _unwrapped(held: Keys, wrapped: Wrapped, context: Context) -> bytes:
    key = held.keys.get(wrapped.key_id)
    if key is None:
        raise no_key(
            f"the key of `{context.id}` is wrapped under one that the file has not",
            "use the file that it was wrapped with; a retired key is gone",
        )
    nonce, sealed = wrapped.data[:_NONCE_BYTES], wrapped.data[_NONCE_BYTES:]
    try:
        found = AESGCM(key).decrypt(nonce, sealed, _beside(wrapped.key_id, context))
    except (InvalidTag, ValueError):  # A nonce that is too short is a ValueError.
        raise broken(context.id, "its wrapped key is not for it") from None
    if len(found) != KEY_BYTES:
        raise broken(context.id, "its wrapped key is none")
    return found


def _beside(key_id: str, context: Context) -> bytes:
    return key_id.encode() + b"\0" + context.to_bytes()


def _new_key() -> tuple[str, bytes]:
    return f"file-{secrets.token_hex(8)}", secrets.token_bytes(KEY_BYTES)
