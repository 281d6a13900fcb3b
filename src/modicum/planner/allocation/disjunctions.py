"""Rows that accept what fits in one coordinate or another, as linear constraints.

A row of several coordinates has a binary *switch* for each: the coordinate whose switch
is on must hold. Where another is on, it need not, but then that other one limits what
can be requested of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from modicum.planner.allocation.highs import LARGEST, SMALLEST, Program
from modicum.planner.allocation.problem import Booleans, Integers, Numbers
from modicum.planner.allocation.problem_reduction import Narrowed, without_redundant

#: Makes a quotient of rounded numbers no less than the true one.
_ROUNDED_UP = 1 + 2.0**-50

#: Makes a bound that is a sum of rounded numbers no less than the true one.
_LOOSE = 1 + 1e-9


@dataclass(frozen=True, slots=True)
class Switched:
    """The program of a round, requests first and then switches.

    Attributes:
        program: The program; requests are numbered as in `Narrowed`.
        switch_row: (s,) the row of each switch, as a number in `Narrowed`.
        switch_coordinate: (s,) its coordinate.
    """

    program: Program
    switch_row: Integers
    switch_coordinate: Integers

    def started(self, found: Narrowed, accepted: Booleans) -> Numbers:
        """Return the solution of the program that accepts some requests that fit.

        Args:
            found: The reduced problem of the program.
            accepted: (m,) which of its requests.
        """
        column, row = found.meetings()
        spent = np.zeros_like(found.left)
        np.add.at(spent, row, found.costs[column] * accepted[column, None])
        at = self.switch_row, self.switch_coordinate
        holds = np.flatnonzero(spent[at] <= found.left[at])
        _, first = np.unique(self.switch_row[holds], return_index=True)
        on = np.zeros(len(self.switch_row))
        on[holds[first]] = 1
        return np.concatenate([accepted.astype(np.float64), on])


def simpler(found: Narrowed) -> Narrowed:
    """Return the same without coordinates, and then rows, that never matter."""
    fewer = _with_fewer_coordinates(found)
    # Rows that differed only in such coordinates are now alike.
    return without_redundant(fewer, np.zeros(len(fewer.row), np.int64))


def _with_fewer_coordinates(found: Narrowed) -> Narrowed:
    """Return the same without coordinates that never hold where no other does.

    A coordinate is dropped from a row if another one has, for every request at the row,
    a cost that is no larger a share of the remainder.
    """
    column, row = found.meetings()
    types, type_of = np.unique(found.costs, axis=0, return_inverse=True)
    present = np.zeros((len(found.left), len(types)), np.bool_)
    present[row, type_of.reshape(-1)[column]] = True
    left = found.left.copy()
    coordinates = left.shape[1]
    for a in range(coordinates):
        for other in range(coordinates):
            # A coordinate of which nothing is left can still hold: for costs of 0.
            rows = np.flatnonzero((left[:, a] > 0) & (left[:, other] >= 0))
            if other == a or not len(rows):
                continue
            smaller = _at_most(
                types[:, other], left[rows, a], types[:, a], left[rows, other]
            )
            out = (smaller | ~present[rows]).all(axis=1)
            left[rows[out], a] = -1
    return replace(found, left=left)


def _at_most(a: Integers, x: Integers, b: Integers, y: Integers) -> Booleans:
    """Return, for every k and i, whether `a[i] * x[k] <= b[i] * y[k]`, exactly."""
    one = a.astype(np.float64) * x[:, None]
    two = b.astype(np.float64) * y[:, None]
    answer: Booleans = one <= two
    k, i = np.nonzero(np.abs(one - two) <= two * 1e-12)
    exact = a[i].astype(object) * x[k] <= b[i].astype(object) * y[k]
    answer[k, i] = exact.astype(np.bool_)
    return answer


def loosest(found: Narrowed, worth: Numbers) -> Program:
    """Return a relaxed program, which accepts more where rows have a choice.

    Whichever coordinate of a row holds, the smallest of the shares that each request
    uses of its coordinates add up to at most 1.

    Args:
        found: Requests and rows.
        worth: (m,) the utilities of the requests.
    """
    column, row = found.meetings()
    costs, left = found.costs[column], found.left[row]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(costs > 0, costs / left * _ROUNDED_UP, 0.0)
    # A request that exceeds the whole does not fit, however large the excess.
    share = np.where(left < 0, np.inf, share).min(axis=1).clip(max=2.0)
    takes = share > 0
    return Program(
        worth=worth,
        whole=np.ones(len(worth), np.bool_),
        column=column[takes],
        row=row[takes],
        value=share[takes],
        least=np.full(len(found.left), -np.inf),
        most=np.ones(len(found.left)),
    )


def switched(found: Narrowed, worth: Numbers) -> Switched:
    """Return the program of a round.

    Args:
        found: Requests and rows, without coordinates that never matter.
        worth: (m,) the utilities of the requests.
    """
    column, row = found.meetings()
    order = np.argsort(row, kind="stable")
    first = np.searchsorted(row[order], np.arange(len(found.left) + 1))
    matrix = _Matrix(loosest(found, worth))
    for number in np.flatnonzero((found.left >= 0).sum(axis=1) > 1):
        here = column[order[first[number] : first[number + 1]]]
        matrix.add(int(number), here, found.costs[here], found.left[number])
    return matrix.finished()


class _Matrix:
    """Adds switches to a program. Mutable, and owned by `switched`."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._unknowns = len(program.worth)
        self._column = [program.column]
        self._row = [program.row]
        self._value = [program.value]
        self._least = program.least.tolist()
        self._most = program.most.tolist()
        self._switches: list[tuple[int, int]] = []

    def add(self, number: int, here: Integers, costs: Integers, left: Integers) -> None:
        """Add switches for a row: its requests, their costs, the remainder."""
        live = np.flatnonzero(left >= 0)
        switches = self._unknowns + np.arange(len(live))
        self._unknowns += len(live)
        self._switches += [(number, int(a)) for a in live]
        self._constrain(switches, np.ones(len(live)), 1.0, 1.0)
        costs, left = costs[:, live], left[live]
        for at in range(len(live)):
            # If another switch is on, that coordinate limits the requests of this one.
            takes = costs[:, at].astype(np.float64)
            most = np.array(
                [_filled(takes, *it) for it in zip(costs.T, left.tolist(), strict=True)]
            )
            most[at] = left[at]
            scale = max(float(most.max()), 1.0)
            # A request that exceeds the whole is out; no limit is left out.
            shares = (takes / scale * _ROUNDED_UP).clip(max=LARGEST)
            limits = np.where(most > 0, (most / scale).clip(min=2 * SMALLEST), 0.0)
            self._constrain(
                np.concatenate([here, switches]),
                np.concatenate([shares, -limits]),
                -np.inf,
                0.0,
            )

    def _constrain(
        self, unknowns: Integers, values: Numbers, least: float, most: float
    ) -> None:
        self._column.append(unknowns)
        self._row.append(np.full(len(unknowns), len(self._most)))
        self._value.append(values)
        self._least.append(least)
        self._most.append(most)

    def finished(self) -> Switched:
        """Return the program."""
        column, value = np.concatenate(self._column), np.concatenate(self._value)
        order = np.argsort(column, kind="stable")
        order = order[value[order] != 0]
        switches = np.array(self._switches, np.int64).reshape(-1, 2)
        return Switched(
            Program(
                worth=np.append(self._program.worth, np.zeros(len(switches))),
                whole=np.ones(self._unknowns, np.bool_),
                column=column[order],
                row=np.concatenate(self._row)[order],
                value=value[order],
                least=np.array(self._least),
                most=np.array(self._most),
            ),
            switches[:, 0],
            switches[:, 1],
        )


def _filled(worth: Numbers, costs: Integers, left: int) -> float:
    """Return the maximum request of a coordinate if another one holds."""
    fits = costs <= left
    worth, costs = worth[fits], costs[fits]
    with np.errstate(divide="ignore", invalid="ignore"):
        density = np.where(costs > 0, worth / costs, np.inf)
    order = np.argsort(-density, kind="stable")
    upto = np.cumsum(costs[order])
    full = int(np.searchsorted(upto, left, side="right"))
    most = float(worth[order[:full]].sum())
    if full < len(order):
        rest = left - (int(upto[full - 1]) if full else 0)
        most += rest * float(density[order[full]])
    return most * _LOOSE
