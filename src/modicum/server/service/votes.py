"""What people say to requests and proposals; and that it is heard once."""

from __future__ import annotations

from typing import Final

from modicum.api.local.balances import Entry
from modicum.api.permissions.identity import Identity
from modicum.writer.idempotency import IdempotencyKey
from modicum.writer.service import Decider

#: Why an approval is taken back, where nobody says more.
TAKEN_BACK: Final = "the approval is taken back"


def refuse_repeated(
    decider: Decider, who: Identity, once: IdempotencyKey | None
) -> None:
    """Let whoever asks again hear what was answered, whatever became of it since."""
    if once is not None:
        decider.turn(_nothing, actor=who.name, once=once)


def _nothing(_: Entry) -> None:
    """Add nothing."""
