"""The allocators that look at one round only, and try its requests in some order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from modicum.planner.allocation.contests import Contests
from modicum.planner.allocation.engine import Engine
from modicum.planner.allocation.problem import Booleans, Integers, Numbers, Problem
from modicum.planner.allocation.scores import by_score, efficiencies

#: Decides which requests of a round to accept. What it answers fits.
Allocate: TypeAlias = Callable[[Problem, Engine], Booleans]


def first_come(problem: Problem, engine: Engine) -> Booleans:
    """Accept what still fits, in the order of arrival."""
    return engine.greedy(np.arange(problem.requests))


def dpk(problem: Problem, engine: Engine) -> Booleans:
    """Accept what is worth most for what it takes where it is contested.

    Each pair of a segment and a block has the coordinate at which it can accept the
    most weight; a request's score is its weight over the sum of its cost's shares of
    what is left there. Scores are not computed anew as budget is used up.

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
        remaining: Whether they are shares of what is left where the request is
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
    """Return the largest share that each cost takes of a whole budget."""
    full = problem.full.max(axis=0).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = problem.costs / full
    dominant: Numbers = np.where(full > 0, shares, 0).max(axis=1, initial=0)
    return dominant


def _share_of_left(problem: Problem, contests: Contests) -> Numbers:
    """Return the largest share that each cost takes of what is left at a contest.

    Coordinates that admit nothing do not count; where nothing is left, the share is
    infinite. NaN for a request that nobody contests.
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
