"""Rounds that are refused: mistakes of who asks for them, and what is too large."""

from __future__ import annotations

from collections.abc import Sequence

from modicum.core.errors import Code, InputError, Problem
from modicum.planner.allocation.problem import SUM_MAX

#: So many numbers each may hold: what is asked of cells, and what is left at rows
#: together with the runs of requests.
NUMBERS_MAX = 40_000_000


def refuse_too_many(numbers: int) -> None:
    """Refuse a round that takes more memory than it should.

    Args:
        numbers: How many numbers it has to hold.

    Raises:
        InputError: If they are too many.
    """
    if numbers > NUMBERS_MAX:
        raise _refused(
            f"the round takes more than {NUMBERS_MAX} numbers: its requests meet too"
            " many cells of too many rules",
            "plan fewer requests at once",
        )


def refuse_odd_weights(weights: Sequence[int], requests: int) -> None:
    """Refuse weights that cannot be added up, or are not one for each request.

    Args:
        weights: The weights.
        requests: How many requests there are.

    Raises:
        InputError: If that is so.
    """
    remedy = "give each request one weight, a whole number from 0 on"
    if len(weights) != requests:
        raise _refused(
            f"there are {len(weights)} weights for {requests} requests", remedy
        )
    if any(weight < 0 for weight in weights):
        raise _refused("a request has a weight below 0", remedy)
    if max(weights, default=0) * (requests + 1) >= SUM_MAX:
        raise _refused(
            "weights are so large that their sums are no 64-bit integers",
            "scale all weights down",
        )


def too_large() -> InputError:
    """Return what is said of a limit too large for sums of costs up to it."""
    return _refused(
        "a limit is so large that sums of costs are no 64-bit integers",
        "plan fewer requests at once, or lower the limit",
    )


def _refused(message: str, remedy: str) -> InputError:
    return InputError(Problem(Code.OUT_OF_RANGE, message, help=remedy))
