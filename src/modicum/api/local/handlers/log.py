"""The log: its head, its entries, and the proof of an earlier head."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta
from msgspec.structs import asdict

from modicum.api import operations
from modicum.api.local.handlers.errors import not_found
from modicum.api.local.handlers.registry import answers
from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.views.ledger import entry_view
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.api.schema.ledger import Head, StoredEntry
from modicum.ledger import Event, Record
from modicum.ledger.log.chain import event_of


@answers(operations.HEAD, Action.READ_RULES, tag=lambda one: one.head)
def head(view: LedgerView, _: Identity | None) -> Head:
    """Return the head of the log."""
    state = view.state()
    return Head(seq=state.seq, head=state.head)


@answers(operations.ENTRY, Action.READ_LEDGER, tag=lambda one: one.hash)
def entry(
    view: LedgerView, _: Identity | None, seq: Annotated[int, Meta(ge=1, le=2**53)]
) -> StoredEntry:
    """Return an entry as it is stored: `hash` is the SHA-256 of `payload`."""
    known = view.state().seq
    record = view.record(seq) if 1 <= seq <= known else None
    if record is None:
        raise not_found(f"the ledger has no entry {seq}", f"its last one is {known}")
    return stored_entry(record, event_of(record, seq))


def stored_entry(record: Record, event: Event) -> StoredEntry:
    """Return the stored form of an entry, and its event."""
    payload = record.payload.decode("utf-8")
    return StoredEntry(**asdict(entry_view(record, event)), payload=payload)
