"""A replay of a whole run, with every element of a ring in every group of users.

It knows no segment, no cell and no row: for every group, an array of what each element
was charged at each coordinate, since the group became active. It sees all coordinates
with a budget, also those that a planner leaves out.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from oracle.planning import unlocked

Integers: TypeAlias = NDArray[np.int64]


class DenseReplay:
    """Charges a run element by element, and counts what was overspent.

    In the first round, groups of every age are active, and nothing was spent.

    Args:
        size: How many elements the ring has.
        budget: (a,) of every element in every group, for all its rounds.
        rounds: For how many rounds a group is active.
        slack: Of unlocking.
    """

    def __init__(
        self, size: int, budget: Integers, rounds: int, slack: Fraction
    ) -> None:
        whole = tuple(budget.tolist())
        self._caps = [
            np.array(unlocked(whole, rounds, slack, age))
            for age in range(1, rounds + 1)
        ]
        # A cost above the budget is as good as one above it by 1: neither ever fits.
        self._most = budget + 1
        shape = (size, len(budget))
        self._charged = [np.zeros(shape, np.int64) for _ in range(rounds)]
        #: Elements of groups, in all rounds, at which no coordinate was within its cap.
        self.violations = 0

    def play(self, start: Integers, width: Integers, costs: Integers) -> int:
        """Charge the requests that a round accepted, to all active groups.

        Args:
            start: (n,) the first element of each.
            width: (n,) how many elements it reads, on over the end of the ring.
            costs: (n, a).

        Returns:
            At how many elements of groups no coordinate is within its unlocked cap.
        """
        size = len(self._charged[0])
        spent = np.zeros_like(self._charged[0])
        for begin, wide, cost in zip(
            start.tolist(), width.tolist(), np.minimum(costs, self._most), strict=True
        ):
            spent[begin : min(begin + wide, size)] += cost
            spent[: max(0, begin + wide - size)] += cost
        found = 0
        for charged, cap in zip(self._charged, self._caps, strict=True):
            np.add(charged, spent, out=charged)
            within = np.zeros(size, np.bool_)
            for a, most in enumerate(cap):
                within |= charged[:, a] <= most
            found += size - int(within.sum())
        self.violations += found
        self._age()
        return found

    def _age(self) -> None:
        """Retire the oldest group, and let a new one join."""
        oldest = self._charged.pop()
        oldest[:] = 0
        self._charged.insert(0, oldest)
