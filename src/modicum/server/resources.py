"""Resources in the settings other than the ledger: tables, and a signing key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from modicum.api.local.escrow.execution import Tools
from modicum.api.ports.storage import Store
from modicum.core.errors import Code, InputError, Problem, UsageError
from modicum.integrations.loader import Adapters
from modicum.ops.escrow.equipment import EscrowEquipment, EscrowPlace
from modicum.ops.wiring import witness_named
from modicum.risk.worker.messages import Bounds
from modicum.server.settings.model import EscrowSettings, Settings
from modicum.server.settings.quotas import Quotas
from modicum.server.settings.tables import TablesOf
from modicum.storage.factory import open_store
from modicum.storage.proofs.signing_keys import SigningKey, load_key, needs_passphrase
from modicum.storage.witness.factory import witnessed


@dataclass(frozen=True, slots=True)
class Equipment:
    """The resources of a server other than its ledger.

    Attributes:
        tables: The tables that can be analyzed, by the name of their data set.
        bounds: How much one analysis may take.
        signing_key: The key for checkpoints and receipts; None if there is none.
        escrow: The vault, sandboxes and engines of its escrow; None if it has none.
        reservations: The limit on one actor's reservations; None for no limit.
    """

    tables: Mapping[str, TablesOf] = field(default_factory=dict)
    bounds: Bounds = field(default_factory=Bounds)
    signing_key: SigningKey | None = field(default=None, repr=False)
    escrow: Tools | None = field(default=None, repr=False)
    reservations: Quotas | None = None


def equipment(settings: Settings) -> Equipment:
    """Return the resources in the settings; the key is read only now."""
    limits = settings.limits
    return Equipment(
        settings.tables,
        Bounds(limits.analysis_rows, limits.analysis_s),
        _key(settings.signing_key_file),
        _escrow(settings.escrow),
        settings.bound,
    )


def opened_ledger(settings: Settings, key: SigningKey | None) -> Store:
    """Return the store of the ledger, with its witness; nothing is read yet."""
    name = settings.witness or witness_named()
    return witnessed(open_store(settings.ledger, keep_open=True), name, key)


def not_set_up(what: str, key: str) -> UsageError:
    """Return the refusal of what is not configured."""
    return UsageError(
        Problem(
            Code.NOT_SET_UP,
            f"this server has {what}",
            help=f"add `{key}` to its settings, and restart it",
        )
    )


def _escrow(given: EscrowSettings | None) -> Tools | None:
    if given is None:
        return None
    if not given.vault.is_dir():
        raise UsageError(
            Problem(
                Code.NOT_SET_UP,
                f"there is no vault {given.vault}",
                help="create it with  modicum escrow init",
            )
        )
    found = EscrowEquipment(EscrowPlace(given.vault, given.keys, given.sandbox_uid))
    found.vault  # noqa: B018 - its errors are reported at start
    return Tools(found, Adapters(), given.task_s)


def _key(path: Path | None) -> SigningKey | None:
    if path is None:
        return None
    if needs_passphrase(path):
        raise InputError(
            Problem(
                Code.FILE_UNREADABLE,
                f"{path} is encrypted, and a server cannot ask for its passphrase",
                help="create a key for the server with  modicum ledger key new ,"
                " without"
                " a passphrase, and  chmod 600  it",
            )
        )
    return load_key(path)
