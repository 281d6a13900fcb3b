"""Wiring: which store, which clock, who asks."""

from __future__ import annotations

import getpass
import os
from pathlib import Path
from typing import overload

from modicum.policy import CompiledPolicy
from modicum.shell.adapters.adapting import Adapters
from modicum.shell.clock import SystemClock
from modicum.shell.files import load_policy
from modicum.shell.storage.stores import open_store
from modicum.workspace import Clock, Workspace
from modicum.workspace.ledger_view import LedgerView


@overload
def open_workspace(
    ledger: str | Path,
    *,
    policy: str | Path | CompiledPolicy | None = None,
    actor: str | None = None,
    clock: Clock | None = None,
    keep_open: bool = False,
) -> Workspace: ...


@overload
def open_workspace(
    ledger: str | Path,
    *,
    policy: str | Path | CompiledPolicy | None = None,
    actor: str | None = None,
    clock: Clock | None = None,
    keep_open: bool = False,
    as_of: int | str | None,
) -> LedgerView: ...


def open_workspace(
    ledger: str | Path,
    *,
    policy: str | Path | CompiledPolicy | None = None,
    actor: str | None = None,
    clock: Clock | None = None,
    keep_open: bool = False,
    as_of: int | str | None = None,
) -> LedgerView:
    """Open a ledger; one that is not there yet is made by the first `submit`.

    Args:
        ledger: Path of the SQLite file, or a URL of PostgreSQL, `postgresql://…`.
        policy: Path of a policy file, or a compiled policy. None means the ledger's
            active policy.
        actor: Who asks; None for `MODICUM_ACTOR` or the login name.
        clock: The time of day; None for the machine's clock.
        keep_open: Whether to keep a SQLite file open between turns, as a server does.
        as_of: An entry of the log, or a time, to look at the ledger as it was then;
            nothing can be written then. None for the ledger as it is.

    Raises:
        InputError: If the policy is malformed.
        UsageError: If the URL is malformed, or its driver is not installed; or the
            point in the past is none.
    """
    compiled = compiled_policy(policy)
    store = open_store(ledger, keep_open=keep_open)
    workspace = Workspace(
        store,
        clock or SystemClock(),
        policy=compiled,
        actor=printable_actor(actor or current_actor()),
        snapshots=store,
    )
    workspace.adapters = Adapters()
    return workspace if as_of is None else workspace.as_of(as_of)


def compiled_policy(
    policy: str | Path | CompiledPolicy | None,
) -> CompiledPolicy | None:
    """Return a policy that is given as a path, or as it is.

    Raises:
        InputError: If the policy is malformed.
    """
    if policy is None or isinstance(policy, CompiledPolicy):
        return policy
    return load_policy(policy)


def printable_actor(actor: str) -> str:
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
