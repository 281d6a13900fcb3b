"""Moves: the change between two neighbors, and the charge of each entry for it."""

from __future__ import annotations

from dataclasses import dataclass, field

from modicum.accounting.losses import Loss, Total, total_of

#: A place for display: the value of a record on each axis, such as ("day", "[3, 4)").
Place = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Charge:
    """The cost of one entry in a move.

    Attributes:
        entry: The number of the entry.
        step: How the move affects it, as text.
        loss: The cost.
    """

    entry: int
    step: str
    loss: Loss


@dataclass(frozen=True, slots=True)
class Move:
    """A change between neighbors.

    Attributes:
        text: The change, as text.
        before: The former place of the record; None if it was absent, or for users.
        after: The new place of the record; None if it is gone, or for users.
        changed: Attributes beside the axes that change, if only some may.
        size: The number of records that make this move at once.
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
        """Return the sum of the move's charges."""
        return total_of(charge.loss for charge in self.charges)


def place_text(place: Place) -> str:
    """Return a place as text.

    Examples:
        >>> place_text((("day", "[3, 4)"), ("city", "Bern")))
        'day [3, 4), city Bern'
        >>> place_text(())
        'anywhere'
    """
    return ", ".join(f"{name} {value}" for name, value in place) or "anywhere"
