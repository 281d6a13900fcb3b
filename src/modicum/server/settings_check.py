"""Checking settings as a starting server does, without serving."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from modicum.api.local.ledger_view import LedgerView
from modicum.server.auth.registry import open_registry
from modicum.server.auth.setup import PublicAddress, authentication
from modicum.server.reload import checked_grants
from modicum.server.resources import equipment, opened_ledger
from modicum.server.settings.binding import bound_address
from modicum.server.settings.model import Settings
from modicum.storage.factory import open_store
from modicum.system.clock import SystemClock
from modicum.writer.factory import open_decider


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of checking valid settings.

    Attributes:
        door: The address and audience; the port is 0 if any free one may be chosen.
        ledger: The display name of the ledger, without passwords.
        entries: How many entries its log has.
        policy: The name of the active policy.
        digest: The digest of that policy.
        key: The id of the key that signs; None if nothing is signed.
        data_sets: How many data sets its escrow has; None if it has no escrow.
    """

    door: PublicAddress
    ledger: str
    entries: int
    policy: str
    digest: str
    key: str | None
    data_sets: int | None


def checked(settings: Settings, user: str) -> Checked:
    """Return what a server would find; nothing is written, no provider contacted.

    Whether the port is free is not looked at: a server may run there that is to begin
    anew with these settings.
    """
    door = PublicAddress(bound_address(settings), settings.listen.port, user)
    own = equipment(settings)
    has_escrow = own.escrow is not None
    with open_decider(
        opened_ledger(settings, own.signing_key),
        actor="unknown",
        from_beginning=has_escrow,
    ) as decider:
        policy = decider.policy().policy
        entries, data_sets = decider.glance(_counted)
    store = open_store(settings.ledger, keep_open=True)
    try:
        settings.refuse_behind(store)
        registry = open_registry(store)
        checked_grants(settings, registry)
        coming_in = authentication(settings, registry, SystemClock(), door)
        asyncio.run(coming_in.aclose())
    finally:
        store.close()
    key = None if own.signing_key is None else own.signing_key.id
    return Checked(
        door,
        store.name,
        entries,
        policy.name,
        policy.digest,
        key,
        data_sets if has_escrow else None,
    )


def _counted(view: LedgerView) -> tuple[int, int]:
    """Return how many entries a log has, and how many data sets its escrow."""
    state = view.state()
    return state.seq, len(state.escrow.data)
