"""A folder of encrypted objects, each under a separate data key."""

from __future__ import annotations

import hashlib
import io
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from modicum.api.ports.escrow import Sealed
from modicum.core.canonical import digest
from modicum.vault import key_rotation
from modicum.vault.encrypted_stream import KEY_BYTES, Read, decrypted, encrypted
from modicum.vault.folder import Names, durable, made, names_of, opened
from modicum.vault.key_provider import (
    RECORD_BYTES_MAX,
    Context,
    KeyProvider,
    Record,
    read_record,
)
from modicum.vault.open import content_of, hashed, record_of
from modicum.vault.problems import broken
from modicum.vault.seal import commit, part_of, refuse_used, sweep

_READ_BYTES: Final = 2**20


def open_vault(directory: Path, keys: KeyProvider) -> EncryptedVault:
    """Return the vault in a folder, which is created if it is missing.

    Incomplete files of a crash are removed.
    """
    made(directory)
    with opened(directory) as folder, folder.locked():
        sweep(folder)
    return EncryptedVault(directory, keys)


class EncryptedVault:
    """Encrypted objects in a folder. It implements the port `Vault`.

    Several threads and processes may use it; it holds nothing open. Whoever can read
    the memory of a process that seals or opens can read keys there: Python cannot erase
    them.

    Args:
        directory: The folder.
        keys: The provider of its wrapping keys.
    """

    def __init__(self, directory: Path, keys: KeyProvider) -> None:
        self._directory, self._keys = directory, keys

    def seal(self, identifier: str, content: bytes) -> Sealed:
        """Seal content under its own key; it is durable on return."""
        return self._sealed(names_of(identifier), io.BytesIO(content).read)

    def open(self, sealed: Sealed) -> bytes:
        """Return the sealed content."""
        names = names_of(sealed.id)
        with opened(self._directory) as folder:
            record = record_of(folder, names, sealed)
            with content_of(folder, names) as file:
                data = file.read()
        if digest(data) != sealed.digest:
            raise broken(names.id, "its contents differ")
        key = self._keys.unwrap(record.wrapped, record.context)
        return b"".join(decrypted(io.BytesIO(data).read, key, names))

    def find(self, identifier: str) -> Sealed | None:
        """Return the sealed object of an id; None if there is none or it was shredded.

        This is the folder's own claim, which proves nothing. It serves to find out
        after a crash whether `seal` completed.
        """
        names = names_of(identifier)
        with opened(self._directory) as folder:
            data = folder.read(names.key, RECORD_BYTES_MAX + 1)
            if folder.has(names.tombstone) or data is None:
                return None
            context = read_record(data, identifier).context
            hashing = hashlib.sha256()
            with content_of(folder, names) as file:
                read = hashed(file, hashing.update)
                while read(_READ_BYTES):
                    pass
        if context != Context(identifier, hashing.hexdigest()):
            raise broken(identifier, "its contents differ")
        return Sealed(identifier, context.digest)

    def shred(self, identifier: str) -> None:
        """Destroy the key of an object, which makes it unreadable permanently.

        Its wrapped key is overwritten and removed, then its content; an empty file
        stays, so that the id is never used again. Shredding again changes nothing;
        shredding an unused id blocks it.

        Limits: copies of the wrapped key in backups and snapshots stay readable for
        holders of its wrapping key; disks that move blocks, as SSDs and copy-on-write
        file systems do, may keep its old bytes for a while. The remedy for both is to
        rotate, and to destroy the old key at its provider when nothing is wrapped under
        it any more: then old copies open nothing. The provider itself knows nothing of
        single objects.
        """
        names = names_of(identifier)
        with opened(self._directory) as folder, folder.locked():
            if not folder.has(names.tombstone):
                folder.write(names.tombstone, b"")
            folder.sync()  # From here on it cannot be opened, whatever else fails.
            folder.erase(names.new_key)
            folder.erase(names.key)
            folder.remove(names.content)
            folder.sync()

    def rotate(self) -> key_rotation.Rotated:
        """Wrap all data keys under the current key of the provider; contents stay.

        After a crash, the next call completes the rest.
        """
        return key_rotation.rotate(self._directory, self._keys)

    def wrapped_under(self) -> Mapping[str, int]:
        """Return how many data keys are wrapped under each key of the provider."""
        with opened(self._directory) as folder:
            return key_rotation.wrapped_under(folder)

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
            key_rotation.refuse_used(folder, key_id)
            yield

    # --- putting in ------------------------------------------------------------------

    def _sealed(self, names: Names, read: Read) -> Sealed:
        with opened(self._directory) as folder:
            refuse_used(folder, names)
            data_key = secrets.token_bytes(KEY_BYTES)
            with part_of(folder, names) as (part, file):
                hashing = hashlib.sha256()
                for piece in encrypted(read, data_key, names):
                    hashing.update(piece)
                    file.write(piece)
                durable(file)
                context = Context(names.id, hashing.hexdigest())
                with folder.locked():
                    refuse_used(folder, names)
                    # No key may be destroyed between this and the last step below.
                    wrapped = self._keys.wrap(data_key, context)
                    record = Record(context, wrapped).to_bytes()
                    commit(folder, names, part, record)
        return Sealed(names.id, context.digest)
