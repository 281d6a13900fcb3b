"""Why nothing of some limits may have been used yet, or may be any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from modicum.ledger.cells.axes import FAR
from modicum.release import Span
from modicum.release.parts import merged


class Locked(NamedTuple):
    """Why nothing is unlocked in a cell. Spans of groups are in order, and apart.

    Attributes:
        unit: Whether the open round unlocks nothing of its unit; then groups do not
            matter.
        unnamed: Whether what reads the cell names no groups, and so reads all that
            there ever will be.
        ahead: The groups in it that have not begun.
        never: Those that never will: their rounds went by without them.
        closed: Those that retired, where nobody may use what they left over.
        open: All groups of which something is unlocked, in the cell or not.
    """

    unit: bool = False
    unnamed: bool = False
    ahead: tuple[Span, ...] = ()
    never: tuple[Span, ...] = ()
    closed: tuple[Span, ...] = ()
    open: tuple[Span, ...] = ()


class Groups:
    """Of which user groups something is unlocked.

    Args:
        shares: What part is, by number of a group that ever began.
        rounds: How many rounds were opened; a group begins in the one of its number.
    """

    def __init__(self, shares: Mapping[int, Fraction], rounds: int) -> None:
        self._rounds = rounds
        self._open = merged([(one, one) for one, share in shares.items() if share])
        self._closed = merged([(one, one) for one, part in shares.items() if not part])

    def locked(self, spans: Iterable[Span], read: Sequence[Span]) -> Locked:
        """Return of which groups of a cell nothing is unlocked.

        Args:
            spans: The groups of the cell.
            read: The groups that are read.
        """
        here = _both(spans, read)
        missing = tuple(_without(here, merged([*self._open, *self._closed])))
        return Locked(
            ahead=_both(missing, [(self._rounds + 1, FAR)]),
            never=_both(missing, [(0, self._rounds)]),
            closed=_both(here, self._closed),
            open=self._open,
        )


def _both(some: Iterable[Span], others: Sequence[Span]) -> tuple[Span, ...]:
    """Return what lies in some spans and in others, too."""
    common = [
        (max(low, first), min(high, last))
        for low, high in some
        for first, last in others
        if low <= last and first <= high
    ]
    return merged(common)


def _without(spans: Iterable[Span], known: Iterable[Span]) -> Iterator[Span]:
    """Yield what lies in some spans, and in no known one; those are in order."""
    for low, high in spans:
        begin = low
        for first, last in known:
            if first <= high and last >= begin:
                if begin < first:
                    yield begin, first - 1
                begin = last + 1
        if begin <= high:
            yield begin, high
