"""Cells: where, in people and time, a rule is charged.

The instances of a privacy unit are divided by what is public and fixed about them:
partitioning attributes that never change, the period they last, the user group they
belong to. What reads disjoint parts composes in parallel, and only there.
"""

from modicum.ledger.cells.axes import Space, space_of
from modicum.ledger.cells.segments import SEGMENTS_MAX, Overlay, Segments
from modicum.ledger.cells.sums import Amounts, Sums

__all__ = [
    "SEGMENTS_MAX",
    "Amounts",
    "Overlay",
    "Segments",
    "Space",
    "Sums",
    "space_of",
]
