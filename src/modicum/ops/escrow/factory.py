"""Beginning a vault, with a file for its keys."""

from __future__ import annotations

from pathlib import Path

from modicum.core.errors import Code, Problem, UnavailableError, UsageError
from modicum.vault.key_files import file_keys, new_key_file
from modicum.vault.vault import open_vault


def begin_vault(vault: Path, keys: Path) -> str:
    """Make a vault, and a file with a key for it.

    Args:
        vault: The folder; nothing may be there.
        keys: The file; nothing may be there, and it does not lie in the vault.

    Returns:
        The id of the key.

    Raises:
        UnavailableError: If the folder cannot be used.
        UsageError: If something is there, or the keys cannot be written.
    """
    if vault.is_symlink() or vault.exists():
        raise _refused(f"{vault} exists", "name a folder that is not there yet")
    if keys.resolve().is_relative_to(vault.resolve()):
        raise _refused(
            f"{keys} would lie in the vault that it opens", "keep the keys elsewhere"
        )
    key = new_key_file(keys)
    try:
        open_vault(vault, file_keys(keys))
    except UnavailableError:
        keys.unlink()  # It was made just now, and wraps nothing.
        raise
    return key


def _refused(message: str, remedy: str) -> UsageError:
    return UsageError(Problem(Code.ALREADY_EXISTS, message, help=remedy))
