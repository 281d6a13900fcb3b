"""Wiring: which store, which clock, who asks."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

from modicum.policy import CompiledPolicy
from modicum.shell.clock import SystemClock
from modicum.shell.files import load_policy
from modicum.shell.sqlite_store import SqliteStore
from modicum.workspace import Clock, Workspace


def open_workspace(
    ledger: str | Path,
    *,
    policy: str | Path | CompiledPolicy | None = None,
    actor: str | None = None,
    clock: Clock | None = None,
) -> Workspace:
    """Open a ledger; one that is not there yet is made by the first `submit`.

    Args:
        ledger: Path of the SQLite file.
        policy: Path of a policy file, or a compiled policy. None means the ledger's
            active policy.
        actor: Who asks; None for `MODICUM_ACTOR` or the login name.
        clock: The time of day; None for the machine's clock.

    Raises:
        InputError: If the policy is malformed.
    """
    compiled = (
        policy
        if policy is None or isinstance(policy, CompiledPolicy)
        else load_policy(policy)
    )
    return Workspace(
        SqliteStore(ledger),
        clock or SystemClock(),
        policy=compiled,
        actor=_printable(actor or current_actor()),
    )


def _printable(actor: str) -> str:
    """Return a name that can be stored and shown on any terminal."""
    kept = "".join(c if c.isprintable() else "?" for c in actor.strip()[:200])
    return kept or "unknown"


def current_actor() -> str:
    """Return who runs this process: `MODICUM_ACTOR`, else the login name."""
    named = os.environ.get("MODICUM_ACTOR", "").strip()
    if named:
        return named
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
