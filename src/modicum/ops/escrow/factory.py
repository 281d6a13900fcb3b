"""Opening a ledger together with its escrow, and making a vault for it."""

from __future__ import annotations

from pathlib import Path

from modicum.api.local import Workspace
from modicum.core.errors import Code, Problem, UnavailableError, UsageError
from modicum.ops.escrow.equipment import EscrowEquipment, EscrowPlace
from modicum.ops.wiring import opened_store, workspace_on
from modicum.policy import CompiledPolicy
from modicum.vault.key_files import file_keys, new_key_file
from modicum.vault.vault import open_vault


def create_vault(vault: Path, keys: Path) -> str:
    """Create a vault, and a file with a key for it.

    Args:
        vault: The folder; it must not exist.
        keys: The file; it must not exist, nor be inside the vault.

    Returns:
        The id of the key.

    Raises:
        UnavailableError: If the folder cannot be used.
        UsageError: If something is there, or the keys cannot be written.
    """
    if vault.is_symlink() or vault.exists():
        raise _refused(f"{vault} exists", "name a new folder")
    if keys.resolve().is_relative_to(vault.resolve()):
        raise _refused(
            f"{keys} would be inside the vault that it opens", "keep the keys elsewhere"
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


def open_escrow(
    ledger: str | Path,
    place: EscrowPlace,
    *,
    policy: str | Path | CompiledPolicy | None = None,
    actor: str | None = None,
) -> Workspace:
    """Open a ledger with its escrow, whose verbs are those of `ws.escrow`.

    Args:
        ledger: Path of the SQLite file, or a URL of PostgreSQL, `postgresql://…`.
        place: The location of the escrow's data, and the user of its programs.
        policy: Path of a policy file, or a compiled policy. None means the ledger's
            active policy.
        actor: The actor; None for `MODICUM_ACTOR` or the login name.

    Raises:
        InputError: If the policy is malformed.
        UsageError: If the URL is malformed, or its driver is not installed.
    """
    # A snapshot contains approvals, and is not authenticated: anyone who can write
    # beside a ledger could permit a disclosure with one. So the log is read, and each
    # signature checked.
    store = opened_store(ledger)
    workspace = workspace_on(store, policy=policy, actor=actor, from_beginning=True)
    workspace.equipment = EscrowEquipment(place)
    return workspace
