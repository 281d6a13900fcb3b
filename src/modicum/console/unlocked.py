"""Which part of the budgets the open round has unlocked."""

from __future__ import annotations

from dataclasses import dataclass, field

from modicum.api import operations
from modicum.console.relay import Relay


@dataclass(frozen=True, slots=True)
class Unlocked:
    """The unlocked parts of budgets.

    Attributes:
        round: The open round; empty if there is none.
        units: By unit, the unlocked part of each budget, from 0 to 1; others have all.
        groups: The least part that an active user group has unlocked; 1 without groups.
    """

    round: str = ""
    units: dict[str, float] = field(default_factory=dict)
    groups: float = 1.0

    def part(self, unit: str) -> float:
        """Return the least part of a budget of a unit that may be spent now."""
        return min(self.units.get(unit, 1.0), self.groups)

    @property
    def is_partial(self) -> bool:
        """Whether a limit is not a limit yet, but only a part of it."""
        return min((self.groups, *self.units.values())) < 1


async def unlocked(relay: Relay) -> Unlocked:
    """Return what is unlocked now, or was then."""
    # A visitor who may not know is refused, rather than shown whole budgets.
    rounds = (await relay.get(operations.ROUNDS)).rounds
    if not rounds:
        return Unlocked()
    last = rounds[-1].round
    found = await relay.get(operations.ROUND, round_id=last)
    groups = min((one.unlocked for one in found.active or ()), default=1.0)
    return Unlocked(last, found.unlocked, groups)
