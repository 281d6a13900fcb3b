"""The keys that wrap those of a vault: looked at, changed, destroyed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from modicum.core.errors import Code, Problem, UsageError
from modicum.vault.key_files import add_key, retire_key
from modicum.vault.named_keys import holds_keys, named_keys
from modicum.vault.vault import EncryptedVault, open_vault


@dataclass(frozen=True, slots=True)
class KeysInUse:
    """The wrapping keys of a vault.

    Attributes:
        current: The key that wraps new data keys.
        wraps: By key, the number of data keys that it wraps; includes the current one.
    """

    current: str
    wraps: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class KeysRotated:
    """The result of a rotation.

    Attributes:
        current: The key that wraps everything now.
        moved: The number of rewrapped data keys.
        kept: Of how many it had wrapped them before.
    """

    current: str
    moved: int
    kept: int


def keys_in_use(vault: Path, keys: Path) -> KeysInUse:
    """Return which keys wrap those of a vault."""
    current = named_keys(keys).current()
    found = _opened(vault, keys).wrapped_under()
    return KeysInUse(current, {current: 0, **found})


def rotate_keys(vault: Path, keys: Path) -> KeysRotated:
    """Wrap all keys of a vault under a new key of a file, or the newest of a service.

    Args:
        vault: Its folder.
        keys: As for `keys_in_use`.

    Raises:
        UnavailableError: If the keys, or the vault, cannot be read.
        UsageError: If there is no vault, or the file cannot be written.
        VerificationError: If some wrapped keys are damaged; all others are done then.
    """
    opened = _opened(vault, keys)
    if holds_keys(keys):
        add_key(keys)
    done = opened.rotate()
    return KeysRotated(named_keys(keys).current(), done.moved, done.kept)


def retire_old_key(key: str, keys: Path, vaults: Sequence[Path]) -> None:
    """Destroy an old key of a file."""
    if not holds_keys(keys):
        raise UsageError(
            Problem(
                Code.NOT_SUPPORTED,
                f"{keys} names a key service",
                help="delete the key in the service: raise its  min_decryption_version",
            )
        )
    retire_key(keys, key, [_opened(one, keys) for one in vaults])


def _opened(vault: Path, keys: Path) -> EncryptedVault:
    if not vault.is_dir():
        raise UsageError(
            Problem(
                Code.FILE_UNREADABLE,
                f"there is no vault at {vault}",
                help="correct --vault, or create one with  modicum escrow init",
            )
        )
    return open_vault(vault, named_keys(keys))
