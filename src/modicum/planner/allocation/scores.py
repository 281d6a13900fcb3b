"""In which order a greedy allocator tries the requests of a round.

Every order is by a score, and by arrival among requests of equal score. Scores are
rounded to some 34 bits first, so that the order in which a sum was added up decides
nothing.
"""

from __future__ import annotations

import numpy as np

from modicum.planner.allocation.contests import Contests
from modicum.planner.allocation.problem import Integers, Numbers, Problem

_BITS = 34


def by_score(score: Numbers) -> Integers:
    """Return the requests of the highest scores first."""
    mantissa, exponent = np.frexp(score)
    rounded = np.ldexp(np.round(np.ldexp(mantissa, _BITS)), exponent - _BITS)
    return np.argsort(-rounded, kind="stable")


def per_run(problem: Problem, price: Numbers) -> Numbers:
    """Return, for each request, what it meets at all of its places together.

    Nothing is ever taken away from a sum: where little is left prices are so high that
    others would vanish beside them.

    Args:
        problem: Whose requests.
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
    """Return the DPK score: what a request is worth for what it takes where it hurts.

    Args:
        problem: The round.
        contests: What is competed for.
        favored: The coordinate of each contested pair.

    Returns:
        The weight of each request over the sum, over the contested pairs it asks for,
        of its cost as a share of the pair's capacity at the favored coordinate;
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
    """Return, for each request and coordinate, the prices of the pairs it asks for."""
    shape = problem.places, problem.coordinates
    at = contests.pair_place * problem.coordinates + favored
    total = np.bincount(at, price, minlength=problem.places * problem.coordinates)
    return per_run(problem, total.reshape(shape).astype(np.float64, copy=False))
