"""The votes of forms: approved, rejected, or an own approval taken back."""

from __future__ import annotations

from typing import Any

from modicum.api.operations import Operation
from modicum.api.schema.approval import VoteInput
from modicum.console.registry import DONE
from modicum.console.relay import Relay

DONE.update(
    {
        "approved": "Your approval is recorded.",
        "rejected": "Your rejection is recorded. It blocks until you approve.",
        "taken-back": "Your approval is taken back. It blocks until you approve.",
    }
)


async def send_vote(relay: Relay, operation: Operation[Any], **named: str) -> str:
    """Send the vote of a form; return the key of what the next page then says.

    Args:
        relay: The relay of the form, with its `vote` and `reason`.
        operation: What approves or rejects.
        named: The parts of its path.
    """
    approves = relay.fields.get("vote") == "approve"
    ballot = VoteInput(approves=approves, reason=relay.fields.get("reason", ""))
    await relay.call(operation, ballot, **named)
    return "approved" if approves else "rejected"
