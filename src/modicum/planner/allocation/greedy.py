"""The allocators that look at one round only, and try its requests in some order.

Every order is by a score, and by arrival among requests of equal score. Scores are
rounded to some 34 bits first, so that the order in which a sum was added up decides
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from modicum.planner.allocation.engine import Engine
from modicum.planner.allocation.problem import (
    Booleans,
    Contests,
    Integers,
    Numbers,
    Problem,
)

_BITS = 34


def by_score(score: Numbers) -> Integers:
    """Return the requests of the highest scores first."""
    mantissa, exponent = np.frexp(score)
    rounded = np.ldexp(np.round(np.ldexp(mantissa, _BITS)), exponent - _BITS)
    return np.argsort(-rounded, kind="stable")


def per_run(problem: Problem, price: Numbers) -> Numbers:
    """Return, for each request, the sum over all of its places.

    Nothing is ever subtracted from a sum: where little is left prices are so high that
    others would vanish beside them.

    Args:
        problem: The problem of the requests.
        price: (places, k), not negative.

    Returns:
        (n, k) sums.
    """
    owner = np.repeat(np.arange(problem.requests), np.diff(problem.run_first))
    total = np.zeros((problem.requests, price.shape[1]))
    for k in np.flatnonzero(price.any(axis=0)).tolist():
        runs = _sums(problem.run_start, problem.run_stop, price[:, k])
        total[:, k] = np.bincount(owner, runs, problem.requests)
    return total


def _sums(begin: Integers, end: Integers, price: Numbers) -> Numbers:
    """Return the sum from each place to another, from the few terms of a tree."""
    runs = np.zeros(len(begin))
    sums = np.ascontiguousarray(price)
    going = np.arange(len(begin))
    # Sums are of 1, 2, 4, ... places, which begin at multiples of that.
    while len(going):
        for odd, at in ((begin & 1, begin), (end & 1, end - 1)):
            kept = np.flatnonzero(odd)
            runs[going[kept]] += sums[at[kept]]
        begin, end = (begin + 1) >> 1, end >> 1
        kept = np.flatnonzero(begin < end)
        going, begin, end = going[kept], begin[kept], end[kept]
        sums = sums[: len(sums) - 1 : 2] + sums[1::2]
    return runs


def efficiencies(problem: Problem, contests: Contests, favored: Integers) -> Numbers:
    """Return the DPK score: a request's weight over its use of contested capacity.

    Returns:
        The weight of each request over the sum, over the contested pairs that it
        covers, of its cost as a share of the pair's capacity at the favored coordinate;
        infinite if that sum is 0, and 0 where a capacity is 0.

    Source:
        Tholoniat et al. 2022 (arXiv:2212.13228), as Küchler et al. 2024 (S&P) use it.
    """
    room = np.take_along_axis(contests.capacity, favored[:, None], axis=1)[:, 0]
    open_ = room > 0
    price = np.divide(1, room, out=np.zeros(len(room)), where=open_)
    hurts = (problem.costs * _met(problem, contests, favored, price)).sum(axis=1)
    ends = _met(problem, contests, favored, (~open_).astype(np.float64))
    hopeless = ((problem.costs > 0) & (ends > 0)).any(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.where(hurts > 0, problem.weights / hurts, np.inf)
    return np.where(hopeless, 0.0, score)


def _met(
    problem: Problem, contests: Contests, favored: Integers, price: Numbers
) -> Numbers:
    """Return, for each request and coordinate, the prices of the pairs it requests."""
    shape = problem.places, problem.coordinates
    at = contests.pair_place * problem.coordinates + favored
    total = np.bincount(at, price, minlength=problem.places * problem.coordinates)
    return per_run(problem, total.reshape(shape).astype(np.float64, copy=False))


#: Selects the requests of a round to accept. Its result fits.
Allocate: TypeAlias = Callable[[Problem, Engine], Booleans]


def first_come(problem: Problem, engine: Engine) -> Booleans:
    """Accept what still fits, in the order of arrival."""
    return engine.greedy(np.arange(problem.requests))


def dpk(problem: Problem, engine: Engine) -> Booleans:
    """Accept the highest weight per use of contested capacity first.

    Each pair of a segment and a block has the coordinate at which it can accept the
    most weight; a request's score is its weight over the sum of its cost's shares of
    the remainder there. Scores are not recomputed as budget is used up.

    Source:
        Tholoniat et al. 2022 (arXiv:2212.13228), as Küchler et al. 2024 (S&P) use it.
    """
    alive = engine.alone()
    contests = engine.contests(alive)
    return engine.greedy(dpk_order(problem, engine, alive, contests))


def dpk_order(
    problem: Problem, engine: Engine, alive: Booleans, contests: Contests
) -> Integers:
    """Return the requests that are alive, those of the best DPK score first."""
    favored = engine.favored(contests, alive)
    order = by_score(efficiencies(problem, contests, favored))
    return order[alive[order]]


def dpf(*, weighted: bool, remaining: bool) -> Allocate:
    """Return the allocator that accepts the smallest dominant shares first.

    Args:
        weighted: Whether shares are divided by the weight of the request.
        remaining: Whether they are shares of the remainder where the request is
            contested, and not of the whole budget.

    Source:
        Luo et al. 2021 (OSDI); with weights and what remains, as the implementation
        of Küchler et al. 2024 (S&P) has it.
    """

    def allocate(problem: Problem, engine: Engine) -> Booleans:
        alive = engine.alone()
        share = _share_of_all(problem)
        if remaining:
            left = _share_of_left(problem, engine.contests(alive))
            share = np.where(np.isnan(left), share, left)
        if weighted:
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.where(problem.weights > 0, share / problem.weights, np.inf)
        order = by_score(-share)
        return engine.greedy(order[alive[order]])

    return allocate


def _share_of_all(problem: Problem) -> Numbers:
    """Return the largest share of a whole budget in each cost."""
    full = problem.full.max(axis=0).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = problem.costs / full
    dominant: Numbers = np.where(full > 0, shares, 0).max(axis=1, initial=0)
    return dominant


def _share_of_left(problem: Problem, contests: Contests) -> Numbers:
    """Return the largest share of the remainder at a contest in each cost.

    Coordinates that admit nothing do not count; where nothing is left, the share is
    infinite. NaN for an uncontested request.
    """
    place_of_row = np.repeat(np.arange(problem.places), np.diff(problem.row_first))
    contested = np.zeros((len(contests.place) + 1, len(problem.full)), np.bool_)
    contested[contests.pair_segment, contests.pair_block] = True
    # Places without a request have the segment -1: the last row, which is all False.
    there = contested[contests.segment[place_of_row], problem.block]
    left = np.where(problem.left >= 0, problem.left, np.inf)
    least = np.full((problem.places + 1, problem.coordinates), np.inf)
    np.minimum.at(least, place_of_row[there], left[there])
    bounds = np.column_stack([problem.run_start, problem.run_stop]).reshape(-1)
    by_run = np.minimum.reduceat(least, bounds)[::2] if len(bounds) else least[:0]
    owner = np.repeat(np.arange(problem.requests), np.diff(problem.run_first))
    by_request = np.full((problem.requests, problem.coordinates), np.inf)
    np.minimum.at(by_request, owner, by_run)
    costs = problem.costs
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(costs > 0, costs / by_request, 0).max(axis=1, initial=0)
    touched = np.zeros(problem.requests, np.bool_)
    hit = np.zeros(problem.places + 1, np.int64)
    np.add.at(hit, place_of_row[there], 1)
    upto = np.concatenate([[0], np.cumsum(hit[:-1])])
    np.logical_or.at(touched, owner, upto[problem.run_stop] > upto[problem.run_start])
    return np.where(touched, shares, np.nan)


#: The allocators by the names under which they can be chosen.
GREEDY: Mapping[str, Allocate] = MappingProxyType(
    {
        "fcfs": first_come,
        "dpf": dpf(weighted=False, remaining=False),
        "dpf-weighted": dpf(weighted=True, remaining=False),
        "dpf-remaining": dpf(weighted=False, remaining=True),
        "dpf-weighted-remaining": dpf(weighted=True, remaining=True),
        "dpk": dpk,
    }
)
