"""What caps cut: instances of their units, told apart by columns of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from modicum.query.sql.cutting import Cut, Cuts, Pieces
from modicum.query.sql.instances import unit_key
from modicum.query.sql.names import Names
from modicum.query.statistics import Cap
from modicum.release.periods import nests


def cuts_of(names: Names, pieces: Pieces) -> list[Cuts]:
    """Return what the caps of a plan cut, in turn; those of one id together.

    Args:
        names: The columns of the plan.
        pieces: What is computed of rows; the keys of instances are added to it.

    Raises:
        InputError: If no table has the columns of a unit.
    """
    units = names.plan.units
    by_id = groupby(names.plan.caps, key=lambda cap: units[cap.unit].id)
    return [_of_one_id(list(caps), names, pieces) for _, caps in by_id]


def _of_one_id(caps: Sequence[Cap], names: Names, pieces: Pieces) -> Cuts:
    cuts = []
    for cap in caps:
        key = unit_key(cap.unit, names)
        cuts.append(Cut(cap.rows, tuple(pieces.called(value) for value, _ in key)))
    whole = all(_covers(caps[-1].unit, cap.unit, names) for cap in caps)
    # If no instance of the last unit covers those of all others, the id does.
    return Cuts(tuple(cuts), cuts[-1].within if whole else cuts[-1].within[:1])


def _covers(large: str, small: str, names: Names) -> bool:
    """Return whether every instance of a unit lies in one of another of the same id."""
    whole, part = names.plan.units[large], names.plan.units[small]
    if whole.period is None:
        return True
    return (
        whole.column == part.column
        and part.period is not None
        and nests(part.period, whole.period)
    )
