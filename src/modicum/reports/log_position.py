"""The position of an event in a log, and its actor."""

from __future__ import annotations

from dataclasses import dataclass

from modicum.ledger.log.events import EVENT_VERSION


@dataclass(frozen=True, slots=True)
class Placed:
    """An event and its position.

    Attributes:
        seq: The number of its entry.
        at: When it happened.
        actor: The actor.
        version: The version of the event.
    """

    seq: int
    at: str
    actor: str
    version: int = EVENT_VERSION

    def to_dict(self) -> dict[str, object]:
        """Return it as plain JSON."""
        return {"seq": self.seq, "at": self.at, "actor": self.actor}
