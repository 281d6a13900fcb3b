"""An allocator that keeps its price over the rounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from modicum.accounting.filters.unlock_schedule import Schedule
from modicum.planner.allocation.engine import Engine
from modicum.planner.allocation.greedy import by_score, efficiencies, per_run
from modicum.planner.allocation.lp_greedy import guided
from modicum.planner.allocation.problem import Booleans, Integers, Numbers, Problem

#: Selects requests, given the part of its weight that counts for each.
Choose: TypeAlias = Callable[[Problem, Engine, Numbers], Booleans]

#: The part of the fluid price below which a request is rejected if all that a round
#: leaves can be used later. Tuned by bench/tune_planner.py on separate seeds.
RESERVE = 0.85


def reserve_under(schedule: Schedule) -> float:
    """Return the part of the fluid price to require under a schedule.

    The less of its budget a group gets before its turn, the less can be saved for
    later; with even steps nothing can, and rejecting is useless.

    Args:
        schedule: Of unlocking.

    Returns:
        `RESERVE`, times the part of an even step by which the first one is larger, at
        most 1.
    """
    ahead = schedule.most * schedule.rounds - 1
    return RESERVE * float(min(ahead, Fraction(1)))


def in_dpk_order(problem: Problem, engine: Engine, beyond: Numbers) -> Booleans:
    """Accept like DPK, with weights reduced by a price.

    Args:
        problem: The round.
        engine: Of this problem.
        beyond: (n,) which part of its weight each request is worth beyond the price.
    """
    alive = engine.alone() & (beyond > 0)
    contests = engine.contests(alive)
    score = efficiencies(problem, contests, engine.favored(contests, alive))
    order = by_score(score * np.where(alive, beyond, 1))
    return engine.greedy(order[alive[order]])


def as_guided(problem: Problem, engine: Engine, beyond: Numbers) -> Booleans:
    """Accept like `guided`, with weights reduced by a price.

    Args:
        problem: The round.
        engine: Of this problem.
        beyond: (n,) which part of its weight each request is worth beyond the price.

    Raises:
        InputError: If the solver is not installed.
    """
    worth = np.floor(problem.weights * beyond).astype(np.int64)
    valued = replace(problem, weights=worth)
    return guided(valued, engine.valued(worth), among=beyond > 0)


@dataclass
class Steady:
    """Accepts requests above a reserve price, and saves budget for later ones.

    A myopic allocator spends the remainder at the end of the round, however little it
    gains. This one uses the *fluid* price: if requests arrived in a steady flow like
    that of the rounds so far, and each round could spend an even part of the budget,
    the best choice would be all requests above a certain weight per budget. A part of
    this price for all that it uses is subtracted from the weight of each request. A
    request with nothing left is rejected, even if it fits: with enough slack, later
    rounds can use what is saved. The others are chosen by their reduced weights, by the
    given allocator. With a reserve of 0 it is that allocator.

    The price is in one coordinate, the one in which the flow could accept the most.
    What is accepted fits, as always, if any coordinate has that much left.

    Mutable: it remembers the requests it has seen. One for each run.

    Attributes:
        rounds: Over how many rounds a budget is spent.
        reserve: The part of the fluid price that is required.
        choose: The allocator, given the part of its weight that each request has beyond
            the price; one with 0 must not be accepted.
    """

    rounds: int
    reserve: float = RESERVE
    choose: Choose = in_dpk_order
    _weights: list[Integers] = field(default_factory=list)
    _uses: list[Numbers] = field(default_factory=list)

    def __call__(self, problem: Problem, engine: Engine) -> Booleans:
        """Return which requests of the next round are accepted."""
        use = uses(problem)
        fresh = slice(None) if problem.fresh is None else problem.fresh
        self._weights.append(problem.weights[fresh])
        self._uses.append(use[fresh])
        favored, price = self._price()
        beyond = beyond_price(problem.weights, use[:, favored], self.reserve * price)
        return self.choose(problem, engine, beyond)

    def _price(self) -> tuple[int, float]:
        """Return the coordinate that accepts the most of the flow, and its price."""
        weights, uses_ = np.concatenate(self._weights), np.concatenate(self._uses)
        may_use = len(self._weights) / self.rounds
        best = (-1.0, 0, 0.0)
        for a in range(uses_.shape[1]):
            value, price = fluid(weights, uses_[:, a], may_use)
            best = max(best, (value, a, price))
        return best[1], best[2]


def uses(problem: Problem) -> Numbers:
    """Return the part of everybody's whole budget that each request uses.

    Returns:
        (n, a): its cost as a share of a full budget, times the part of all that can
        be charged at which it is charged. Infinite where a budget is 0.
    """
    extent = problem.extent
    if extent is None:
        extent = np.full(problem.places, 1 / max(problem.places, 1))
    full = problem.full.max(axis=0).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(full > 0, problem.costs / full, np.inf)
    return shares * per_run(problem, extent[:, None])


def beyond_price(weights: Integers, use: Numbers, price: float) -> Numbers:
    """Return which part of its weight each request is worth beyond a price.

    Args:
        weights: Of the requests, >= 0.
        use: Of the requests, >= 0, or infinite.
        price: For a use of 1, >= 0.

    Returns:
        From 0 to 1; 1 for everybody if the price is 0.

    Examples:
        >>> beyond_price(np.array([8, 8, 0]), np.array([1.0, 4.0, 1.0]), 2.0).tolist()
        [0.75, 0.0, 0.0]
    """
    if price == 0:
        return np.ones(len(weights))
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.where(weights > 0, 1 - price * use / weights, 0)
    return np.maximum(part, 0)


def fluid(weights: Integers, use: Numbers, room: float) -> tuple[float, float]:
    """Return the maximum weight of a flow of requests, and its price.

    Args:
        weights: Of the requests, >= 0.
        use: The use of each request, >= 0; they may be accepted in part.
        room: How much all may use together.

    Returns:
        The weight that is accepted; and the weight per use of the last request that
        is accepted, which is 0 if all are.

    Examples:
        >>> fluid(np.array([6, 4, 1]), np.array([1.0, 1.0, 1.0]), 1.5)
        (8.0, 4.0)
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        density = np.where(weights > 0, weights / use, 0)
    order = np.argsort(-density, kind="stable")
    upto = np.cumsum(use[order])
    accepted = int(np.searchsorted(upto, room, side="right"))
    value = float(weights[order[:accepted]].sum())
    if accepted == len(order):
        return value, 0.0
    price = float(density[order[accepted]])
    rest = room - (float(upto[accepted - 1]) if accepted else 0.0)
    return value + rest * price, price
