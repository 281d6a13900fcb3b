"""Common options of escrow commands: its location and the actor."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from modicum.api.local import Workspace
    from modicum.ops.escrow.equipment import EscrowPlace

Vault = Annotated[
    Path | None,
    typer.Option(
        "--vault",
        envvar="MODICUM_VAULT",
        help="The folder of the vault, with encrypted data and results.",
        metavar="DIR",
    ),
]
VaultKeys = Annotated[
    Path | None,
    typer.Option(
        "--vault-keys",
        envvar="MODICUM_VAULT_KEYS",
        help="The key file of the vault, or the file that names its key service.",
        metavar="FILE",
    ),
]
SandboxUid = Annotated[
    int | None,
    typer.Option(
        "--sandbox-uid",
        envvar="MODICUM_SANDBOX_UID",
        help="As root: a dedicated user for programs.",
        min=1,
        metavar="UID",
    ),
]
Contract = Annotated[
    str, typer.Argument(help="The id of the contract.", metavar="NAME")
]


def open_escrow(
    ledger: str,
    actor: str | None = None,
    vault: Path | None = None,
    keys: Path | None = None,
    uid: int | None = None,
) -> Workspace:
    """Return a ledger with its escrow; without a vault where none is given."""
    from modicum.cli.ledger_access import no_ledger_at, open_workspace, refuse_no_ledger

    place = place_of(vault, keys, uid)
    if place is None:
        return open_workspace(ledger, actor=actor)
    from modicum.ops.escrow import factory

    refuse_no_ledger(ledger)
    workspace = factory.open_escrow(ledger, place, actor=actor)
    if not workspace.exists():
        raise no_ledger_at(ledger)
    _must_be_vault(place.vault)
    return workspace


def place_of(
    vault: Path | None, keys: Path | None, uid: int | None = None
) -> EscrowPlace | None:
    """Return the location of an escrow; None without a vault."""
    if vault is None and keys is None:
        return None
    if vault is None or keys is None:
        option = "--vault" if vault is None else "--vault-keys"
        raise typer.BadParameter(
            "a vault is a folder and a file with its keys: give both",
            param_hint=option,
        )
    from modicum.ops.escrow.equipment import EscrowPlace

    return EscrowPlace(vault, keys, uid)


def _must_be_vault(vault: Path) -> None:
    """Refuse a folder that is not there: only `escrow init` makes one."""
    from modicum.core.errors import Code, Problem, UsageError

    if not vault.is_dir():
        raise UsageError(
            Problem(
                Code.FILE_UNREADABLE,
                f"there is no vault at {vault}",
                help="correct --vault, or create one with  modicum escrow init",
            )
        )
