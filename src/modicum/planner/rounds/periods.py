"""Periods that a user group distinguishes: some separately, the rest in two.

When a group becomes active, the periods from some before that round's to some after it
get an account each. All earlier ones share one account, and so do all later ones. A
request that reads one of these is charged to all of them: never less than the truth.
Groups that become active in the same period have the same accounts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from modicum.core.errors import Code, InputError, Problem
from modicum.planner.allocation.problem import Booleans, Integers

#: The slot of a rule whose unit knows no periods.
ALWAYS = 0


@dataclass(frozen=True, slots=True)
class Tracked:
    """The periods with separate accounts, beside the one a group becomes active in.

    Attributes:
        before: The number before it.
        after: The number after it.
    """

    before: int = 0
    after: int = 3

    def __post_init__(self) -> None:
        if self.before < 0 or self.after < 0:
            raise InputError(
                Problem(
                    Code.OUT_OF_RANGE,
                    f"{self.before} periods before and {self.after} after are tracked",
                    help="both are at least 0",
                )
            )

    @property
    def cells(self) -> int:
        """The number of accounts for the groups of one period."""
        return self.before + self.after + 3

    def cell(self, period: Integers, own: Integers) -> Integers:
        """Return the account that periods fall in.

        Args:
            period: The periods that are read.
            own: In which period the groups became active.

        Returns:
            0 for the past, the last for the future.

        Examples:
            >>> Tracked(0, 3).cell(np.arange(8, 16), np.array(10)).tolist()
            [0, 0, 1, 2, 3, 4, 5, 5]
        """
        found: Integers = np.clip(period - own + self.before + 1, 0, self.cells - 1)
        return found


@dataclass(frozen=True, slots=True)
class Slots:
    """The accounts of a rule: slot 0 for all of time, then by period.

    Attributes:
        tracked: Which periods have an account each.
        first: The first period in which groups become active.
        last: The last one.
    """

    tracked: Tracked
    first: int
    last: int

    def __len__(self) -> int:
        return 1 + (self.last - self.first + 1) * self.tracked.cells

    def about(self, own: Integers) -> Booleans:
        """Return, by slot and group, whether the account is about the group.

        Args:
            own: (groups,) in which period each became active.
        """
        slots = np.arange(len(self))
        period = self.first + (slots - 1) // self.tracked.cells
        found: Booleans = (slots[:, None] == ALWAYS) | (period[:, None] == own)
        return found

    def of_period(self, period: Integers, own: int) -> Integers:
        """Return the slots that are charged for reading one period.

        Args:
            period: The periods that are read.
            own: In which period the groups that are charged became active.
        """
        return self._begin(own) + self.tracked.cell(period, np.array(own))

    def of_all(self, own: int) -> Integers:
        """Return the slots that are charged for data about every period."""
        return self._begin(own) + np.arange(self.tracked.cells)

    def _begin(self, own: int) -> int:
        return 1 + (own - self.first) * self.tracked.cells
