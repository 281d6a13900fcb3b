"""Opening a ledger together with its escrow."""

from __future__ import annotations

from pathlib import Path

from modicum.api.local import Workspace
from modicum.ops.escrow.equipment import EscrowEquipment, EscrowPlace
from modicum.ops.wiring import workspace_on
from modicum.policy import CompiledPolicy
from modicum.storage.factory import open_store


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
        place: Where the escrow keeps its data, and as whom it runs programs.
        policy: Path of a policy file, or a compiled policy. None means the ledger's
            active policy.
        actor: Who acts; None for `MODICUM_ACTOR` or the login name.

    Raises:
        InputError: If the policy is malformed.
        UsageError: If the URL is malformed, or its driver is not installed.
    """
    # A snapshot holds agreements, and nobody signed it: whoever writes beside a ledger
    # could let data go by one. So the log is read, and each signature looked at.
    store = open_store(ledger)
    workspace = workspace_on(store, policy=policy, actor=actor, from_beginning=True)
    workspace.equipment = EscrowEquipment(place)
    return workspace
