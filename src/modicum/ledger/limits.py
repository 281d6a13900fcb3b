"""What rules admit, as arrays: the caps of their filters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from modicum.accounting import COORDINATES, Budget
from modicum.accounting.grid import DELTA, INFINITE, RHO
from modicum.ledger.cells.cutting import Booleans, Integers
from modicum.policy import CompiledPolicy

#: Returns one coordinate of what was spent, by row and cell, for some rows.
Spent: TypeAlias = Callable[[int, Integers], Integers]

#: The cap of a coordinate that a filter does not look at: no sum is within it where
#: one coordinate suffices; every sum is where all must hold.
NEVER, ALWAYS = -1, INFINITE


class Limits:
    """The filters of a policy's budgets, numbered as they are first asked for.

    Args:
        compiled: The policy.
    """

    def __init__(self, compiled: CompiledPolicy) -> None:
        self._compiled = compiled
        self._places: dict[int, int] = {}
        self._kept: list[Budget] = []
        self._lines: list[list[int]] = []
        self._every: list[bool] = []
        self._enforced: list[bool] = []
        self._arrays()

    def place(self, budget: Budget) -> int:
        """Return the number of a budget's filter."""
        key = id(budget)  # Far cheaper than its hash; `_kept` keeps it alive.
        found = self._places.get(key)
        if found is None:
            own = self._compiled.filter_of(budget)
            line = [ALWAYS if own.every else NEVER] * COORDINATES
            for index, cap in own.caps:
                line[index] = min(cap, INFINITE - 1)
            line[DELTA] = min(own.delta_cap, INFINITE - 1)
            self._kept.append(budget)
            self._lines.append(line)
            self._every.append(own.every)
            self._enforced.append(own.enforced)
            found = self._places[key] = len(self._lines) - 1
            self._arrays()
        return found

    def _arrays(self) -> None:
        caps: Integers = np.array(self._lines, dtype=np.int64)
        self._caps = caps.reshape(-1, COORDINATES)
        self._all_hold: Booleans = np.array(self._every, dtype=np.bool_)
        self._all_pass: Booleans = ~np.array(self._enforced, dtype=np.bool_)
        capped = (self._caps != NEVER) & (self._caps != ALWAYS)
        capped[:, DELTA] = False
        columns = np.flatnonzero(capped.any(axis=0)).tolist()
        # In most policies sums of rho decide; then nothing else is looked at.
        self._columns = sorted(columns, key=lambda column: column != RHO)
        capped[:, DELTA] = True
        order = [*self._columns, DELTA]
        self._first: Integers = np.array(order)[capped[:, order].argmax(axis=1)]

    def first_column(self, filters: Integers) -> Integers:
        """Return, by filter, a coordinate that it caps: what cells are compared by."""
        return self._first[filters]

    def admit(
        self, filters: Integers, spent: Spent, everywhere: Integers, alone: Integers
    ) -> Booleans:
        """Return, by filter and cell, whether a filter admits a loss.

        Args:
            filters: Numbers of filters.
            spent: Returns one coordinate of what was spent in each cell, for some
                rows of `filters`.
            everywhere: By filter and coordinate, what was spent in all cells besides.
            alone: By cell and coordinate, the loss.
        """
        caps, every = self._caps[filters], self._all_hold[filters]

        def within(column: int, rows: Integers) -> Booleans:
            # Room may be negative, but no difference leaves 64 bits: a loss is at
            # most 2**62, and a cap from 0 to 2**62.
            cap = caps[rows, column]
            left = np.maximum(cap, 0) - everywhere[rows, column]
            found = spent(column, rows) <= left[:, None] - alone[None, :, column]
            held: Booleans = found & (cap != NEVER)[:, None]
            held |= (cap == ALWAYS)[:, None]
            return held

        holds = np.repeat(every[:, None], len(alone), axis=1)
        for column in self._columns:
            rows = np.flatnonzero(every | ~holds.all(axis=1))
            if not len(rows):
                break  # Where one coordinate suffices, it was found.
            found = within(column, rows)
            both, either = holds[rows] & found, holds[rows] | found
            holds[rows] = np.where(every[rows, None], both, either)
        holds &= within(DELTA, np.arange(len(filters)))
        holds[self._all_pass[filters]] = True
        return holds
