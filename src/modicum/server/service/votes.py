"""Votes on requests and proposals, recorded once."""

from __future__ import annotations

from typing import Final

from modicum.api.local.balances import Entry
from modicum.api.permissions.identity import Identity
from modicum.writer.idempotency import IdempotencyKey
from modicum.writer.service import Decider

#: The default reason for withdrawing an approval.
TAKEN_BACK: Final = "the approval is taken back"


def refuse_repeated(
    decider: Decider, who: Identity, once: IdempotencyKey | None
) -> None:
    """Return the stored response of a repeated request, whatever happened since."""
    if once is not None:
        decider.turn(_nothing, actor=who.name, once=once)


def _nothing(_: Entry) -> None:
    """Add nothing."""
