"""Wiring: the store, the clock, and the actor."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, overload

from modicum.api.local import Clock, Workspace
from modicum.api.local.ledger_view import LedgerView
from modicum.api.ports.storage import Store, Witness
from modicum.integrations.loader import Adapters
from modicum.ops.files.documents import load_policy
from modicum.policy import CompiledPolicy
from modicum.storage.factory import open_store
from modicum.system.clock import SystemClock

#: Names the folder in which several processes combine their counters; prometheus-client
#: reads it on import.
_METRICS: Final = "PROMETHEUS_MULTIPROC_DIR"


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
    """Open a ledger; a missing one is created by the first `submit`.

    Args:
        ledger: Path of the SQLite file, or a URL of PostgreSQL, `postgresql://…`.
        policy: Path of a policy file, or a compiled policy. None means the ledger's
            active policy.
        actor: The actor; None for `MODICUM_ACTOR` or the login name.
        clock: The time of day; None for the machine's clock.
        keep_open: Whether to keep a SQLite file open between turns, as a server does.
        as_of: An entry of the log, or a time, to look at the ledger as it was then;
            nothing can be written then. None for the ledger as it is.

    Raises:
        InputError: If the policy is malformed.
        UsageError: If the URL is malformed, or its driver is not installed; or the
            point in the past is none.
    """
    store = opened_store(ledger, keep_open=keep_open)
    workspace = workspace_on(store, policy=policy, actor=actor, clock=clock)
    return workspace if as_of is None else workspace.as_of(as_of)


def opened_store(ledger: str | Path, *, keep_open: bool = False) -> Store:
    """Return the store of a ledger, with the witness that the environment names."""
    store, witness = open_store(ledger, keep_open=keep_open), witness_named()
    if witness is None:
        return store
    from modicum.storage.witness.factory import witnessed

    return witnessed(store, witness)


def witness_named() -> str | None:
    """Return the witness of the ledger, `MODICUM_WITNESS`; None for none."""
    return os.environ.get("MODICUM_WITNESS", "").strip() or None


def workspace_on(
    store: Store,
    *,
    policy: str | Path | CompiledPolicy | None = None,
    actor: str | None = None,
    clock: Clock | None = None,
    from_beginning: bool = False,
) -> Workspace:
    """Return a ledger to work with."""
    workspace = Workspace(
        store,
        clock or SystemClock(),
        policy=compiled_policy(policy),
        actor=printable_actor(actor or current_actor()),
        snapshots=Witness(store) if from_beginning else store,
    )
    workspace.adapters = Adapters()
    return workspace


def compiled_policy(
    policy: str | Path | CompiledPolicy | None,
) -> CompiledPolicy | None:
    """Return a policy given as a path, or compiled."""
    if policy is None or isinstance(policy, CompiledPolicy):
        return policy
    return load_policy(policy)


def printable_actor(actor: str) -> str:
    """Return a name that can be stored and shown on any terminal."""
    cleaned = actor.strip()[:200]
    if not cleaned.isprintable():
        cleaned = "".join(c if c.isprintable() else "?" for c in cleaned)
    return cleaned or "unknown"


def current_actor() -> str:
    """Return who runs this process: `MODICUM_ACTOR`, else the login name."""
    named = os.environ.get("MODICUM_ACTOR", "").strip()
    if named:
        return named
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


@contextmanager
def sharing_metrics() -> Iterator[None]:
    """Let processes started in this block combine their counters.

    They use a new folder, deleted at the end of the block: counters of earlier
    processes are not included.
    """
    before = os.environ.get(_METRICS)
    with TemporaryDirectory(prefix="modicum-metrics-") as folder:
        os.environ[_METRICS] = folder
        try:
            yield
        finally:
            del os.environ[_METRICS]
            if before is not None:
                os.environ[_METRICS] = before


def metrics_folder() -> Path | None:
    """Return the folder of combined counters; None for a single process."""
    named = os.environ.get(_METRICS)
    return Path(named) if named else None


def token_from_environment() -> tuple[str | None, str | None]:
    """Return the credentials for a server: `MODICUM_TOKEN`, `MODICUM_TOKEN_FILE`."""
    found = (os.environ.get(f"MODICUM_{name}") for name in ("TOKEN", "TOKEN_FILE"))
    token, file = (one or None for one in found)
    return token, file
