"""The limits of rules as arrays: the caps of their filters."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from modicum.accounting import COORDINATES, Budget
from modicum.accounting.grid import DELTA, INFINITE, RHO
from modicum.ledger.cells.family import Spent
from modicum.ledger.cells.partition import Booleans, Integers
from modicum.ledger.decision.unlocked_shares import WHOLE
from modicum.policy import CompiledPolicy

#: The cap of a coordinate that a filter does not look at: no sum is within it where
#: one coordinate suffices; every sum is where all must hold.
NEVER, ALWAYS = -1, INFINITE
#: More than any column of a sum can be.
_ANYTHING = np.iinfo(np.int64).max


def budget_of(compiled: CompiledPolicy, number: int) -> Budget:
    """Return the budget of a rule over history."""
    rules = compiled.rules
    return rules.budget(*divmod(number, len(rules.contexts)))


class Limits:
    """The filters of a policy's budgets, numbered in the order of first use.

    Args:
        compiled: The policy.
    """

    def __init__(self, compiled: CompiledPolicy) -> None:
        self._compiled = compiled
        self._places: dict[tuple[int, Fraction], int] = {}
        self._kept: list[Budget] = []
        self._lines: list[list[int]] = []
        self._every: list[bool] = []
        self._enforced: list[bool] = []
        self._arrays()

    def place(self, budget: Budget, share: Fraction = WHOLE) -> int:
        """Return the number of a budget's filter, up to its unlocked fraction.

        Args:
            budget: The budget.
            share: The unlocked fraction.
        """
        # The id is far cheaper than a hash of the budget; `_kept` keeps it alive.
        key = id(budget), share
        found = self._places.get(key)
        if found is None:
            own = self._compiled.filter_of(budget).unlocked(share)
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
        caps: Integers = np.array(self._lines, dtype=np.int64).reshape(-1, COORDINATES)
        self._all_hold: Booleans = np.array(self._every, dtype=np.bool_)
        self._all_pass: Booleans = ~np.array(self._enforced, dtype=np.bool_)
        self._some_hold_all = any(self._every)
        self._some_pass = not all(self._enforced)
        self._columns = [_Column(*one) for one in enumerate(caps.T)]
        capped = (caps != NEVER) & (caps != ALWAYS)
        capped[:, DELTA] = False
        columns = np.flatnonzero(capped.any(axis=0)).tolist()
        # In most policies sums of rho decide; then nothing else is looked at.
        self._deciding = sorted(columns, key=lambda column: column != RHO)
        capped[:, DELTA] = True
        order = [*self._deciding, DELTA]
        self._first: Integers = np.array(order)[capped[:, order].argmax(axis=1)]
        self._first_caps: Integers = caps[np.arange(len(caps)), self._first]
        self._tops = self._tops_of(caps)

    def _tops_of(self, caps: Integers) -> Integers:
        """Return, by filter and column of a sum, the most that is admitted at a glance.

        If one coordinate suffices, it is the first one that could.
        """
        tops: Integers = np.full((len(caps), 2 * COORDINATES), _ANYTHING)
        considered: Booleans = np.zeros(caps.shape, dtype=np.bool_)
        considered[:, self._deciding] = self._all_hold[:, None]
        considered[np.arange(len(caps)), self._first] = True
        considered[:, DELTA] = True
        tops[:, :COORDINATES][considered] = caps[considered]
        # Nothing may be carried there: that would be an infinite sum.
        tops[:, COORDINATES:][considered] = 0
        # Where no coordinate could suffice, delta alone does not.
        tops[~self._all_hold & (self._first == DELTA), DELTA] = NEVER
        tops[self._all_pass] = _ANYTHING
        return tops

    def admit_at_a_glance(self, filters: Integers, together: Integers) -> bool:
        """Return whether filters admit sums, if a quick check can decide it.

        If not, `admit` determines which of them do; it may be all.

        Args:
            filters: Numbers of filters.
            together: By filter, the total charge of its cell, as in the table of
                amounts. It need not be normalized.
        """
        within = together <= self._tops.take(filters, axis=0)
        return bool(np.count_nonzero(within) == within.size)

    def left(
        self,
        filters: Sequence[Integers],
        of_piece: Integers | None,
        spent: Spent,
        alone: Integers,
    ) -> Integers:
        """Return, by rule and cell, the remainder after a loss; negative if exceeded.

        It is the remainder of one coordinate, the first that the rule caps. The charge
        everywhere is left out: it is the same in all cells of a rule.

        Args:
            filters: By part of the limits, numbers of filters, one rule each. Those of
                one rule cap the same coordinates, whatever fraction is unlocked.
            of_piece: Which part each cell has; the first if None.
            spent: The charges of the cells before.
            alone: By cell and coordinate, the loss.
        """
        columns = self._first[filters[0]]
        by_part = np.stack([self._first_caps[one] for one in filters], axis=1)
        caps = by_part[:, :1] if of_piece is None else by_part[:, of_piece]
        found = spent.sums.units(spent.lines, columns[:, None])
        # No difference leaves 64 bits: a loss and a sum are at most 2**62 each.
        left: Integers = caps - found - alone.T[columns]
        return left

    def admit(self, filters: Integers, spent: Spent, alone: Integers) -> Booleans:
        """Return, by filter and cell, whether a filter admits a loss.

        Args:
            filters: Numbers of filters.
            spent: The charges of their cells before.
            alone: By cell and coordinate, the loss.
        """
        first = None if self._some_hold_all else self._quickly(filters, spent, alone)
        holds = self._slowly(filters, spent, alone) if first is None else first
        holds &= self._columns[DELTA].hold(filters, spent, alone)
        if self._some_pass:
            holds[self._all_pass[filters]] = True
        return holds

    def _quickly(
        self, filters: Integers, spent: Spent, alone: Integers
    ) -> Booleans | None:
        """Return True for all cells, if the first coordinate shows it; else None."""
        for column in self._deciding[:1]:
            holds = self._columns[column].hold(filters, spent, alone)
            if holds.all():
                return holds
        return None

    def _slowly(self, filters: Integers, spent: Spent, alone: Integers) -> Booleans:
        """Return whether all that decides but delta is within its caps, by cell."""
        every = self._all_hold[filters]
        holds: Booleans = np.repeat(every[:, None], len(alone), axis=1)
        rows: Integers | slice = slice(None)
        for column in self._deciding:
            found = self._columns[column].hold(filters[rows], spent.of(rows), alone)
            both, either = holds[rows] & found, holds[rows] | found
            holds[rows] = np.where(every[rows, None], both, either)
            rows = np.flatnonzero(every | ~holds.all(axis=1))
            if not len(rows):
                break  # Where one coordinate suffices, it was found.
        return holds


class _Column:
    """The caps of a policy's filters in one coordinate.

    Args:
        column: The coordinate.
        caps: By filter, its cap, `NEVER` or `ALWAYS`.
    """

    def __init__(self, column: int, caps: Integers) -> None:
        self._column = column
        self._caps: Integers = np.maximum(caps, 0)
        self._never: Booleans = caps == NEVER
        self._always: Booleans = caps == ALWAYS
        self._some_never = bool(self._never.any())
        self._some_always = bool(self._always.any())

    def hold(self, filters: Integers, spent: Spent, alone: Integers) -> Booleans:
        """Return, by filter and cell, whether this coordinate is within its cap."""
        everywhere, elsewhere = spent.units(self._column)
        # The remainder may be negative, but no difference leaves 64 bits: a loss is at
        # most 2**62, and a cap from 0 to 2**62.
        room = (self._caps[filters] - everywhere)[:, None]
        found: Booleans = elsewhere <= room - alone[:, self._column]
        if self._some_never:
            found &= ~self._never[filters][:, None]
        if self._some_always:
            found |= self._always[filters][:, None]
        return found
