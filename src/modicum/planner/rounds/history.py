"""The charges of earlier rounds, and the remainders of groups of different ages."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from modicum.core.errors import Code, InputError, Problem, check
from modicum.planner.allocation.problem import SUM_MAX, Booleans, Integers

#: Maximum amount of remainders of a round, of eight bytes each.
NUMBERS_MAX = 100_000_000

_Spent = TypeVar("_Spent")


@dataclass
class History(Generic[_Spent]):
    """The charges of the last rounds. Mutable, with one owner.

    Attributes:
        rounds: The latest first; no more than some group was active in.
    """

    rounds: deque[_Spent] = field(default_factory=deque)

    def add(self, spent: _Spent, keep: int) -> None:
        """Remember a round, and forget those before the last `keep`."""
        self.rounds.appendleft(spent)
        while len(self.rounds) > keep:
            self.rounds.pop()


def left_to_groups(caps: Integers, cells: int, spent: Iterable[Integers]) -> Integers:
    """Return the remainder of each group in each cell.

    All active groups are charged alike: a group of age k was charged the last k - 1
    rounds.

    Args:
        caps: (groups, a) the limit of each active group so far, the youngest first.
        cells: The number of cells.
        spent: By round, the latest first, its charges: (cells, a).

    Returns:
        (cells, groups, a).

    Raises:
        InputError: If these are too many numbers.
    """
    groups, coordinates = caps.shape
    refuse_too_many(cells * groups, coordinates)
    left = np.empty((cells, groups, coordinates), np.int64)
    gone = np.zeros((cells, coordinates), np.int64)
    rounds = iter(spent)
    for group in range(groups):
        past = next(rounds, None) if group else None
        if past is not None:
            gone += past
            check(
                int(gone.max(initial=0)) < SUM_MAX,
                "PLAN-3: what rounds spent adds up to an integer",
            )
        np.subtract(caps[group], gone, out=left[:, group])
    return left


def refuse_too_many(rows: int, coordinates: int) -> None:
    """Refuse a round that would need too much memory.

    Args:
        rows: Of its problem: each group's in each cell, and under each clause.
        coordinates: How many numbers each has.

    Raises:
        InputError: If they are too many.
    """
    if rows * coordinates > NUMBERS_MAX:
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"a round has {rows} balances of {coordinates} numbers each",
                notes=(f"a plan takes at most {NUMBERS_MAX} numbers in a round",),
                help="plan fewer requests at a time, over coarser parts, or with"
                " fewer active groups",
            )
        )


def check_adds_up(costs: Integers, accepted: Booleans) -> None:
    """Check that the accepted costs of a round do not overflow.

    Args:
        costs: (n, a), each at most one more than a full balance: a larger one never
            fits either, and could overflow.
        accepted: (n,).
    """
    check(
        int(costs[accepted].max(initial=0)) * max(1, len(costs)) < SUM_MAX,
        "PLAN-3: what a round spends adds up to an integer",
    )
