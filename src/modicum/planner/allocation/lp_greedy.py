"""A greedy allocator guided by a linear program.

Greedy scores consider one request at a time. A linear program takes competition into
account, but accepts requests in part; a program of whole requests does not, but is slow
for many. So the few that hold most of the weight are chosen by a short search, the rest
in the order of the linear program, and the result is compared with DPK's.
"""

from __future__ import annotations

import numpy as np

from modicum.planner.allocation.engine import Engine
from modicum.planner.allocation.greedy import by_score, efficiencies
from modicum.planner.allocation.highs import Effort
from modicum.planner.allocation.lp_relaxation import (
    Knapsacks,
    Relaxed,
    knapsacks,
    relaxed,
)
from modicum.planner.allocation.problem import Booleans, Contests, Integers, Problem

#: The share of the weight in dispute that the heavy requests hold.
_HEAVY = 0.9

#: Maximum number of heavy requests.
_MOST = 80

#: When a search among the heavy ends; no clock is in it, so that it can be repeated.
_SEARCH = Effort(gap=0.01, nodes=1)


def guided(problem: Problem, engine: Engine, among: Booleans | None = None) -> Booleans:
    """Return which requests to accept: never less weight than DPK accepts.

    That holds within the round. What it leaves for later rounds may be less.

    Args:
        problem: The round.
        engine: Of this problem.
        among: (n,) the requests that may be accepted; by default all.

    Raises:
        InputError: If the solver is not installed.
    """
    alive = engine.alone() if among is None else engine.alone() & among
    contests = engine.contests(alive)
    favored = engine.favored(contests, alive)
    order = by_efficiency(problem, contests, favored, alive)
    held = knapsacks(problem, contests, favored, alive)
    return improved(problem, engine, order, held)


def improved(
    problem: Problem, engine: Engine, order: Integers, held: Knapsacks
) -> Booleans:
    """Return the better of the accepted requests of an order, and of a program.

    Args:
        problem: The round.
        engine: Of this problem.
        order: All requests that may be accepted.
        held: The round, with rows of one coordinate each.

    Raises:
        InputError: If the solver is not installed.
    """
    relaxation = relaxed(problem, held, order)
    by_share = by_linear_program(problem, relaxation, np.sort(order))
    orders = order, by_share, with_first(_heavy(held), by_share)
    plans = [engine.greedy(tried) for tried in orders]
    return max(plans, key=lambda plan: weight_of(problem, plan))


def by_efficiency(
    problem: Problem, contests: Contests, favored: Integers, alive: Booleans
) -> Integers:
    """Return the requests that are alive in the order in which DPK tries them."""
    order = by_score(efficiencies(problem, contests, favored))
    return order[alive[order]]


def by_linear_program(
    problem: Problem, relaxation: Relaxed, among: Integers
) -> Integers:
    """Return requests in the order that a linear program suggests.

    First come those of which it accepts more, then those with a higher reduced cost, as
    a share of their weight.

    Args:
        problem: The round.
        relaxation: The result of the linear program.
        among: The requests; ties keep this order.
    """
    gain = relaxation.gain / np.maximum(problem.weights, 1)
    keys = -np.round(gain, 9), -np.round(relaxation.share, 9)
    return among[np.lexsort([key[among] for key in keys])]


def weight_of(problem: Problem, accepted: Booleans | Integers) -> int:
    """Return the weight of requests together."""
    return sum(problem.weights[accepted].tolist())


def with_first(chosen: Integers, order: Integers) -> Integers:
    """Return an order with some requests moved to the front, in the same order."""
    early = np.isin(order, chosen)
    return np.concatenate([order[early], order[~early]])


def _heavy(held: Knapsacks) -> Integers:
    """Return a good choice of the requests that hold most of the weight in dispute."""
    order = np.argsort(-held.worth, kind="stable")
    upto = np.cumsum(held.worth[order])
    few = int(np.searchsorted(upto, _HEAVY * upto[-1])) + 1 if len(order) else 0
    heavy = np.zeros(len(order), np.bool_)
    heavy[order[: min(few, _MOST)]] = True
    few_held = held.among(heavy)
    return few_held.requests[few_held.searched(_SEARCH).on()]
