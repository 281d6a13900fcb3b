"""A folder in which things lie encrypted, each under a data key of its own."""

from __future__ import annotations

import fcntl
import hashlib
import io
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from modicum.core.canonical import digest
from modicum.core.errors import Code, InputError, Problem, UsageError
from modicum.shell.regular_files import opened as opened_file
from modicum.shell.vault import rotation
from modicum.shell.vault.folder import Folder, durable, made, opened, take
from modicum.shell.vault.key_provider import Context, KeyProvider
from modicum.shell.vault.mistakes import broken, no_key, shredded, used_before
from modicum.shell.vault.names import Names, is_debris, names_of
from modicum.shell.vault.sealed_stream import KEY_BYTES, Read, decrypted, encrypted
from modicum.shell.vault.wrapped_keys import RECORD_BYTES_MAX, Record, read_record
from modicum.workspace.escrowing.ports import Sealed

_READ_BYTES: Final = 2**20


def open_vault(directory: Path, keys: KeyProvider) -> EncryptedVault:
    """Return the vault in a folder, which is made if it is not there.

    What a crash left there half done is removed.

    Args:
        directory: A folder of our own that nobody else may look into, on a local disk.
        keys: Who wraps its keys.

    Raises:
        UnavailableError: If the folder cannot be used.
    """
    made(directory)
    with opened(directory) as folder, folder.locked():
        _sweep(folder)
    return EncryptedVault(directory, keys)


class EncryptedVault:
    """Things that lie encrypted in a folder. It implements the port `Vault`.

    Several threads and processes may use it; it holds nothing open. Whoever can read
    the memory of a process that seals or opens can read keys there: Python cannot be
    made to forget them.

    Args:
        directory: The folder.
        keys: Who wraps its keys.
    """

    def __init__(self, directory: Path, keys: KeyProvider) -> None:
        self._directory, self._keys = directory, keys

    def seal(self, identifier: str, content: bytes) -> Sealed:
        """Put something in, under a key of its own; it is durable on return.

        Args:
            identifier: What it is called; nothing may have been called so before.
            content: What it is.

        Returns:
            What the ledger remembers.

        Raises:
            ConflictError: If something is, or was, called so.
            InputError: If nothing can be called so.
            UnavailableError: If it cannot be stored, or its key cannot be wrapped.
        """
        return self._sealed(names_of(identifier), io.BytesIO(content).read)

    def seal_file(self, identifier: str, path: Path) -> Sealed:
        """Put a file in, as `seal` does, however large it is.

        Args:
            identifier: What it is called; nothing may have been called so before.
            path: The file; it stays as it is.

        Returns:
            What the ledger remembers.

        Raises:
            ConflictError: If something is, or was, called so.
            InputError: If nothing can be called so, or the file cannot be read.
            UnavailableError: If it cannot be stored, or its key cannot be wrapped.
        """
        names = names_of(identifier)
        with opened_file(path) as file:
            return self._sealed(names, _reader(file, path))

    def open(self, sealed: Sealed) -> bytes:
        """Return what was put in.

        Args:
            sealed: What `seal` returned, as the ledger remembers it.

        Raises:
            VerificationError: If it is not what was put in.
            UnavailableError: If its key cannot be had, or was destroyed.
        """
        names = names_of(sealed.id)
        with opened(self._directory) as folder:
            record = _record(folder, names, sealed)
            with _content(folder, names) as file:
                data = file.read()
        if digest(data) != sealed.digest:
            raise broken(names.id, "its bytes are others")
        key = self._keys.unwrap(record.wrapped, record.context)
        return b"".join(decrypted(io.BytesIO(data).read, key, names))

    def open_into(self, sealed: Sealed, folder: Path, name: str) -> Path:
        """Write what was put in to a file, however large it is, and return its path.

        The file has its name only when all of it was found to be right. A process that
        is killed before that may leave a part of it under another name.

        Args:
            sealed: What `seal_file` returned, as the ledger remembers it.
            folder: A folder of our own that nobody else may look into, best in memory.
            name: What the file is called there; nothing may be called so.

        Raises:
            VerificationError: If it is not what was put in.
            UnavailableError: If its key cannot be had, or was destroyed; or the folder
                cannot be used.
            UsageError: If something has the name, or nothing can have it.
        """
        names = names_of(sealed.id)
        if name in {"", ".", ".."} or "/" in name or not name.isprintable():
            raise _not_a_name()
        with opened(folder) as target, opened(self._directory) as own:
            record = _record(own, names, sealed)
            with _content(own, names) as file, _hidden(target, name) as hidden:
                key = self._keys.unwrap(record.wrapped, record.context)
                hashing = hashlib.sha256()
                for piece in decrypted(_hashed(file, hashing.update), key, names):
                    hidden.write(piece)
                if hashing.hexdigest() != sealed.digest:
                    raise broken(names.id, "its bytes are others")
                hidden.flush()
        return folder / name

    def find(self, identifier: str) -> Sealed | None:
        """Return what lies here under an id; None if nothing does, or it was shredded.

        It is what the folder says of itself, which proves nothing. It serves to find
        out after a crash whether `seal` got as far as that.

        Args:
            identifier: What it is called.

        Raises:
            InputError: If nothing can be called so.
            VerificationError: If its parts contradict each other.
            UnavailableError: If the folder cannot be used.
        """
        names = names_of(identifier)
        with opened(self._directory) as folder:
            data = folder.read(names.key, RECORD_BYTES_MAX + 1)
            if folder.has(names.tombstone) or data is None:
                return None
            context = read_record(data, identifier).context
            hashing = hashlib.sha256()
            with _content(folder, names) as file:
                read = _hashed(file, hashing.update)
                while read(_READ_BYTES):
                    pass
        if context != Context(identifier, hashing.hexdigest()):
            raise broken(identifier, "its bytes are others")
        return Sealed(identifier, context.digest)

    def shred(self, identifier: str) -> None:
        """Destroy the key of something; it cannot be read again by anybody.

        Its wrapped key is overwritten and removed, then its content; an empty file
        stays, so that the id is never used again. Shredding again changes nothing;
        shredding what never was keeps the id from being used.

        What this cannot do: copies of the wrapped key in backups and snapshots stay
        readable for whoever has the key that it is wrapped under; disks that move
        blocks, as SSDs and copy-on-write file systems do, may keep its old bytes for a
        while. Against both helps to rotate, and to destroy the old key at its provider
        when nothing is wrapped under it any more: then old copies open nothing. The
        provider itself is not told of a single thing.

        Args:
            identifier: What it is called.

        Raises:
            InputError: If nothing can be called so.
            UnavailableError: If the key cannot be destroyed; do it again then.
        """
        names = names_of(identifier)
        with opened(self._directory) as folder, folder.locked():
            if not folder.has(names.tombstone):
                folder.write(names.tombstone, b"")
            folder.sync()  # From here on it is not opened, whatever else fails.
            folder.erase(names.new_key)
            folder.erase(names.key)
            folder.remove(names.content)
            folder.sync()

    def rotate(self) -> rotation.Rotated:
        """Wrap all data keys under the current key of the provider; contents stay.

        What a crash leaves undone, the next call does.

        Returns:
            How many were wrapped anew, and how many had been before.

        Raises:
            VerificationError: If some are damaged; all others are done then.
            UnavailableError: If the provider or the folder fails.
        """
        return rotation.rotate(self._directory, self._keys)

    def wrapped_under(self) -> Mapping[str, int]:
        """Return how many data keys are wrapped under each key of the provider.

        Raises:
            VerificationError: If one of them is damaged.
            UnavailableError: If the folder cannot be used.
        """
        with opened(self._directory) as folder:
            return rotation.wrapped_under(folder)

    @contextmanager
    def nothing_under(self, key_id: str) -> Iterator[None]:
        """Hold off all writers, for a `with` block, if a key of the provider is unused.

        Args:
            key_id: The key that is about to be destroyed.

        Raises:
            UsageError: If data keys are wrapped under it.
            VerificationError: If one of the data keys is damaged.
            UnavailableError: If the folder cannot be used.
        """
        with opened(self._directory) as folder, folder.locked():
            rotation.refuse_used(folder, key_id)
            yield

    # --- putting in ------------------------------------------------------------------

    def _sealed(self, names: Names, read: Read) -> Sealed:
        with opened(self._directory) as folder:
            _refuse_used(folder, names)
            data_key = secrets.token_bytes(KEY_BYTES)
            with _part(folder, names) as (part, file):
                hashing = hashlib.sha256()
                for piece in encrypted(read, data_key, names):
                    hashing.update(piece)
                    file.write(piece)
                durable(file)
                context = Context(names.id, hashing.hexdigest())
                with folder.locked():
                    _refuse_used(folder, names)
                    # Nobody destroys a key between this and the last step below.
                    wrapped = self._keys.wrap(data_key, context)
                    record = Record(context, wrapped).to_bytes()
                    _commit(folder, names, part, record)
        return Sealed(names.id, context.digest)


def _commit(folder: Folder, names: Names, part: str, record: bytes) -> None:
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


def _refuse_used(folder: Folder, names: Names) -> None:
    if folder.has(names.tombstone):
        raise used_before(names.id, is_shredded=True)
    if folder.has(names.key):
        raise used_before(names.id, is_shredded=False)


@contextmanager
def _part(folder: Folder, names: Names) -> Iterator[tuple[str, BinaryIO]]:
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


def _sweep(folder: Folder) -> None:
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


def _reader(file: BinaryIO, path: Path) -> Read:
    def read(size: int) -> bytes:
        try:
            return file.read(size)
        except OSError:
            problem = Problem(Code.FILE_UNREADABLE, f"cannot read {path} to its end")
            raise InputError(problem) from None

    return read


# --- taking out ----------------------------------------------------------------------


def _record(folder: Folder, names: Names, sealed: Sealed) -> Record:
    """Return the wrapped key of what the ledger remembers."""
    data = folder.read(names.key, RECORD_BYTES_MAX + 1)
    # The tombstone is there before the key is overwritten: so look in this order.
    if folder.has(names.tombstone):
        raise shredded(names.id)
    if data is None:
        raise no_key(
            f"no key of `{names.id}` lies in the vault",
            "restore the vault from a copy, if it was ever there",
        )
    record = read_record(data, names.id)
    if record.context != Context(sealed.id, sealed.digest):
        raise broken(names.id, "its wrapped key is for something else")
    return record


@contextmanager
def _content(folder: Folder, names: Names) -> Iterator[BinaryIO]:
    try:
        file = folder.reading(names.content)
    except FileNotFoundError:
        if folder.has(names.tombstone):
            raise shredded(names.id) from None
        raise broken(names.id, "its content is missing") from None
    with file:
        yield file


def _hashed(file: BinaryIO, update: Callable[[bytes], None]) -> Read:
    def read(size: int) -> bytes:
        data = file.read(size)
        update(data)
        return data

    return read


@contextmanager
def _hidden(folder: Folder, name: str) -> Iterator[BinaryIO]:
    """Lend a file that has its name after the block, if that ends well."""
    if folder.has(name):
        raise _name_taken()
    beside = f".{secrets.token_hex(8)}.part"
    try:
        with folder.new(beside) as file:
            yield file
        try:
            folder.link(beside, name)
        except FileExistsError:
            raise _name_taken() from None
    finally:
        folder.remove(beside)


def _not_a_name() -> UsageError:
    return UsageError(
        Problem(
            Code.BAD_NAME,
            "what is opened needs a name that is no path",
            help="give the folder and the name apart",
        )
    )


def _name_taken() -> UsageError:
    return UsageError(
        Problem(
            Code.ALREADY_EXISTS,
            "a file has the name that what is opened should have",
            help="choose another name; nothing is written over",
        )
    )
