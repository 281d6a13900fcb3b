"""A round as a linear program: requests may be accepted in part.

Every row uses one coordinate, so that the only choice in the program is how much of
each request is accepted. Its prices show what is scarce.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from modicum.planner.allocation.highs import LARGEST, Answer, Effort, Program, solve
from modicum.planner.allocation.problem import (
    Booleans,
    Contests,
    Integers,
    Numbers,
    Problem,
)
from modicum.planner.allocation.problem_reduction import (
    Narrowed,
    narrowed,
    without_redundant,
)

#: Makes a quotient of rounded numbers no less than the true one.
_ROUNDED_UP = 1 + 2.0**-50
#: The share of a request that exceeds the whole.
_TOO_MUCH = 2.0


@dataclass(frozen=True, slots=True)
class Knapsacks:
    """Rows with one coordinate each, and the competing requests.

    Attributes:
        requests: (m,) which requests of the problem compete, ascending.
        worth: (m,) their weights.
        place: (k,) where each row is.
        coordinate: (k,) its coordinate.
        capacity: (k,) its remainder; 1 if that is nothing.
        column: The request, as a number below m, of each that meets a row; ascending.
        row: The row.
        share: The request's cost there as a share of the remainder, rounded up; more
            than 0, and more than 1 where nothing is left.
    """

    requests: Integers
    worth: Numbers
    place: Integers
    coordinate: Integers
    capacity: Integers
    column: Integers
    row: Integers
    share: Numbers

    def program(self, whole: Booleans) -> Program:
        """Return the program, in which some of the unknowns are whole."""
        rows = len(self.capacity)
        return Program(
            worth=self.worth,
            whole=whole,
            column=self.column,
            row=self.row,
            value=self.share,
            least=np.full(rows, -np.inf),
            most=np.ones(rows),
        )

    def among(self, kept: Booleans) -> Knapsacks:
        """Return the same with some of the requests, and the rows that bind them."""
        entries = kept[self.column]
        rows = len(self.capacity)
        demands = np.bincount(self.row[entries], self.share[entries], rows)
        binds = demands > 1
        entries &= binds[self.row]
        return Knapsacks(
            requests=self.requests[kept],
            worth=self.worth[kept],
            place=self.place[binds],
            coordinate=self.coordinate[binds],
            capacity=self.capacity[binds],
            column=(np.cumsum(kept) - 1)[self.column[entries]],
            row=(np.cumsum(binds) - 1)[self.row[entries]],
            share=self.share[entries],
        )

    def searched(self, effort: Effort, start: Booleans | None = None) -> Answer:
        """Return the best choice of whole requests found with an effort.

        Args:
            effort: How long to search.
            start: (m,) a choice that is known already.

        Raises:
            InputError: If the solver is not installed.
        """
        program = self.program(np.ones(len(self.requests), np.bool_))
        return solve(program, effort, None if start is None else start.astype(float))


@dataclass(frozen=True, slots=True)
class Relaxed:
    """The best fractional acceptance of each request.

    Attributes:
        share: (n,) from 0 to 1: how much of each request; 0 where it may
            not be accepted.
        gain: (n,) its weight less the price of its cost.
        prices: (places, a) the dual price of one more unit; costs are those of
            `Problem.clamped`. The price of a whole range of places is stored at one of
            them, and counts for requests that cover all of it.
        bound: An upper bound for whole requests, with every row at its coordinate. That
            does not bound the utility of the round if rows have a choice.
    """

    share: Numbers
    gain: Numbers
    prices: Numbers
    bound: float


def knapsacks(
    problem: Problem, contests: Contests, favored: Integers, alive: Booleans
) -> Knapsacks:
    """Return a round with every row at the coordinate that its pair favors.

    Where that coordinate accepts nothing, it is the one with the largest remainder
    relative to demand.

    Args:
        problem: The round.
        contests: The contests.
        favored: The coordinate of each contested pair.
        alive: The requests that may be accepted; the contests are theirs.
    """
    found = narrowed(problem, alive)
    coordinate = _held(problem, contests, favored, found)
    left = np.take_along_axis(found.left, coordinate[:, None], axis=1)
    held = replace(found, left=left)
    kept = np.isin(held.row, without_redundant(held, coordinate).row)
    held, coordinate = held.only(kept), coordinate[kept]
    column, row = held.meetings()
    takes = held.costs[column, coordinate[row]]
    column, row, takes = column[takes > 0], row[takes > 0], takes[takes > 0]
    capacity = held.left[:, 0]
    with np.errstate(divide="ignore"):
        share = takes / capacity[row] * _ROUNDED_UP
    return Knapsacks(
        requests=held.requests,
        worth=problem.weights[held.requests].astype(np.float64),
        place=held.place,
        coordinate=coordinate,
        # Where nothing is left, only a cost of 0 passes.
        capacity=np.maximum(capacity, 1),
        column=column,
        row=row,
        share=np.where(capacity[row] > 0, share, _TOO_MUCH).clip(max=LARGEST),
    )


def relaxed(problem: Problem, held: Knapsacks, among: Integers) -> Relaxed:
    """Return how much of each request is best accepted, and at which prices.

    Raises:
        InputError: If the solver is not installed.
    """
    share = np.zeros(problem.requests)
    share[among] = 1
    gain = problem.weights * share
    bound = float(gain.sum())
    prices = np.zeros((problem.places, problem.coordinates))
    found = solve(held.program(np.zeros(len(held.requests), np.bool_)))
    share[held.requests], gain[held.requests] = found.x, found.gain
    bound += found.bound - float(held.worth.sum())
    price = np.maximum(found.price, 0) / held.capacity
    np.add.at(prices, (held.place, held.coordinate), price)
    return Relaxed(share, gain, prices, bound)


def _held(
    problem: Problem, contests: Contests, favored: Integers, found: Narrowed
) -> Integers:
    """Return the coordinate that each row is held to."""
    blocks = len(problem.full)
    pairs = contests.pair_segment * blocks + contests.pair_block
    wanted = contests.segment[found.place] * blocks + problem.block[found.row]
    coordinate = favored[np.searchsorted(pairs, wanted)]
    open_ = np.take_along_axis(found.left, coordinate[:, None], axis=1)[:, 0] > 0
    # In each coordinate of a binding row, demand exceeds the remainder.
    room = np.where(found.left > 0, found.left / np.maximum(found.demands, 1), -1)
    return np.where(open_, coordinate, room.argmax(axis=1))
