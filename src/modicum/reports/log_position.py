"""Where something stands in a log, and who it is by."""

from __future__ import annotations

from dataclasses import dataclass

from modicum.ledger.log.events import EVENT_VERSION


@dataclass(frozen=True, slots=True)
class Placed:
    """An event, and where it stands.

    Attributes:
        seq: The number of its entry.
        at: When it happened.
        actor: Who asked.
        version: The version of the event.
    """

    seq: int
    at: str
    actor: str
    version: int = EVENT_VERSION

    def to_dict(self) -> dict[str, object]:
        """Return it as plain JSON."""
        return {"seq": self.seq, "at": self.at, "actor": self.actor}
