"""What people say to requests and proposals; and that it is heard once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from modicum.api.local.balances import Entry
from modicum.api.permissions.identity import Identity
from modicum.ledger.log.approval_statement import Signer
from modicum.writer.idempotency import IdempotencyKey
from modicum.writer.service import Decider

#: Why an approval is taken back, where nobody says more.
TAKEN_BACK: Final = "the approval is taken back"


@dataclass(frozen=True, slots=True)
class VoteInput:
    """What somebody says to a request or a proposal.

    Attributes:
        approves: Whether they agree.
        reason: Why, for the record; 1 to 2000 characters.
        content: The SHA-256 of what they have looked at.
        head: The hash of the last entry that they have looked at; None for whichever.
        key: What signs it; None for nobody.
    """

    approves: bool
    reason: str
    content: str
    head: str | None = None
    key: Signer | None = None


def refuse_repeated(
    decider: Decider, who: Identity, once: IdempotencyKey | None
) -> None:
    """Let whoever asks again hear what was answered, whatever became of it since."""
    if once is not None:
        decider.turn(_nothing, actor=who.name, once=once)


def _nothing(_: Entry) -> None:
    """Add nothing."""
