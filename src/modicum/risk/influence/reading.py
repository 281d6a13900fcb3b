"""What the statement found, as an `Influence`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from modicum.core.errors import Code, InputError, Problem
from modicum.risk.influence.statement import Statement
from modicum.risk.profile import Counts, Influence, Numbers


def read_influence(
    made: Statement,
    columns: Mapping[str, Numbers],
    moves: Numbers | None = None,
    lengths: Counts | None = None,
    *,
    size: int,
) -> Influence:
    """Return how far the answer moves for everybody.

    Args:
        made: The statement.
        columns: Its columns by name, but for lists; each of shape (kinds,).
        moves: For a statement with lists, their members, one list after the other.
        lengths: And how many each list has; shape (kinds,).
        size: How many groups the answer has; 1 if it has none.

    Raises:
        InputError: If somebody's move is no finite number.
    """
    people = columns["people"].astype(np.int64)
    if moves is None or lengths is None:
        moves, lengths = _sparse(made, columns)
    if not np.all(np.isfinite(moves)):
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                "the answer is infinite or no number with or without some rows",
                help="leave such values out of the query: WHERE isfinite(…)",
            )
        )
    starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    members = {
        name: np.nan_to_num(columns[f"g{number}"]).astype(np.int64)
        for number, name in enumerate(made.groups)
    }
    return Influence(size * made.measures, moves, starts, people, members)


def _sparse(made: Statement, columns: Mapping[str, Numbers]) -> tuple[Numbers, Counts]:
    """Return the moves that are not 0, and how many of these each kind has."""
    wide = np.stack([columns[f"d{n}"] for n in range(made.measures)], axis=1)
    moved = wide != 0
    return wide[moved], moved.sum(axis=1).astype(np.int64)
