"""Opening a ledger for many clients at once."""

from __future__ import annotations

from pathlib import Path

from modicum.api.local import Clock
from modicum.api.ports.storage import Store
from modicum.ops.wiring import compiled_policy, current_actor, opened_store
from modicum.policy import CompiledPolicy
from modicum.system.clock import SystemClock
from modicum.writer.service import Decider, Limits


def open_decider(
    ledger: str | Path | Store,
    *,
    policy: str | Path | CompiledPolicy | None = None,
    actor: str | None = None,
    clock: Clock | None = None,
    limits: Limits | None = None,
    from_beginning: bool = False,
) -> Decider:
    """Open a ledger for many clients; close it, or use it in a `with` block.

    Args:
        ledger: Path of the SQLite file, or a URL of PostgreSQL, `postgresql://…`; or
            an opened store.
        policy: Path of a policy file, or a compiled policy. None means the ledger's
            active policy, whichever that is when a release is decided.
        actor: The default actor; None for `MODICUM_ACTOR` or the login name.
        clock: The time of day; None for the machine's clock.
        limits: The limits on its load.
        from_beginning: Whether decisions are based on the log alone, from its first
            entry, and never on a snapshot; for an escrow.

    Raises:
        InputError: If the policy is malformed.
        UsageError: If there is neither a policy nor a ledger with one; or the URL is
            malformed, or its driver is not installed.
        VerificationError: If the log contradicts itself.
        UnavailableError: If the log cannot be read now.
    """
    store = (
        opened_store(ledger, keep_open=True)
        if isinstance(ledger, str | Path)
        else ledger
    )
    try:
        return Decider(
            store,
            clock or SystemClock(),
            policy=compiled_policy(policy),
            actor=actor or current_actor(),
            limits=limits,
            from_beginning=from_beginning,
        )
    except BaseException:
        store.close()
        raise
