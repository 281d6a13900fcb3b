"""Moves: the change between two neighbors, and what each entry is charged for it."""

from __future__ import annotations

from dataclasses import dataclass, field

from modicum.accounting.losses import Loss, Total, total_of

#: A place for people: what a record has on each axis, such as ("day", "[3, 4)").
Place = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Charge:
    """What one entry costs in a move.

    Attributes:
        entry: The number of the entry.
        step: In words: how the move touches it.
        loss: What that costs.
    """

    entry: int
    step: str
    loss: Loss


@dataclass(frozen=True, slots=True)
class Move:
    """A change between neighbors.

    Attributes:
        text: The change in words.
        before: Where the record was; None if it was not there, or for users.
        after: Where it is; None if it is gone, or for users.
        changed: Attributes beside the axes that change, if only some may.
        size: How many records make this move at once.
        possible: Whether a record can move so. Where a place has a single value and
            nothing else may change, a record that stays there is still the same.
        charges: The entries that it touches.
    """

    text: str
    before: Place | None = None
    after: Place | None = None
    changed: tuple[str, ...] = ()
    size: int = 1
    possible: bool = True
    charges: tuple[Charge, ...] = field(default=(), repr=False)

    def total(self) -> Total:
        """Return the sum of what the move is charged."""
        return total_of(charge.loss for charge in self.charges)


def place_text(place: Place) -> str:
    """Return a place in words.

    Examples:
        >>> place_text((("day", "[3, 4)"), ("city", "Bern")))
        'day [3, 4), city Bern'
        >>> place_text(())
        'anywhere'
    """
    return ", ".join(f"{name} {value}" for name, value in place) or "anywhere"
