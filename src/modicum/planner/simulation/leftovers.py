"""The remaining budgets after each round of a simulation, part by part."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from modicum.planner.allocation.problem import Booleans, Integers, Numbers, Problem
from modicum.planner.simulation.setting import prices
from modicum.planner.simulation.simulation import Run, tried_in
from modicum.planner.simulation.worlds import BlockWorld, world_of

#: Maximum number of equal parts that a ring is shown in.
PARTS = 48


@dataclass(frozen=True, slots=True, eq=False)
class Leftovers:
    """The remaining budgets, for display.

    Attributes:
        names: The parts of the ring by their elements, or the blocks of users.
        shares: (names, rounds) from 0 to 1; NaN where a block is not active.
    """

    names: tuple[str, ...]
    shares: Numbers


def left_over(run: Run, parts: int = PARTS) -> Leftovers:
    """Return the share of the unlocked budget that is left at the end of each round.

    At each place that is the share of the group of users that has least left, at the
    coordinate at which it has most. A part of the ring has the mean of its places.

    Args:
        run: The result of a workload; its rounds are replayed.
        parts: In how many parts a ring is shown.
    """
    workload, setting = run.workload, run.setting
    world = world_of(workload, setting, prices(workload.types, setting))
    parts = min(parts, workload.domain) if setting.partitioning else 1
    columns: list[Numbers] = []
    blocks: list[Integers] = []
    for number in workload.round_numbers:
        before = np.where(run.accepted_in < number, run.accepted_in, -1)
        tried = tried_in(workload.requests, number, setting.attempts, before)
        batch = workload.requests.chosen(tried)
        problem = world.problem(batch, number)
        accepted = run.accepted_in[tried] == number
        places = shares_left(problem, accepted, world.unlocked(problem))
        if isinstance(world, BlockWorld):
            columns.append(places)
            blocks.append(world.active)
        else:
            columns.append(means_of_parts(places, problem, parts))
        world.spend(problem, batch, accepted)
    if blocks:
        return _by_block(columns, blocks)
    return Leftovers(_names(workload.domain, parts), np.column_stack(columns))


def shares_left(problem: Problem, accepted: Booleans, unlocked: Integers) -> Numbers:
    """Return the remainder at each place of a problem after accepting requests.

    Args:
        problem: Of a round; every place has a row.
        accepted: (requests,).
        unlocked: (rows, a) the total limit of each row so far.

    Returns:
        (places,) the remaining share of the unlocked budget at the coordinate that has
        most, in the row that has least; from 0 to 1.
    """
    owner = np.repeat(np.arange(problem.requests), np.diff(problem.run_first))
    runs = np.flatnonzero(accepted[owner])
    steps = np.zeros((problem.places + 1, problem.coordinates), np.int64)
    costs = problem.clamped()[owner[runs]]
    np.add.at(steps, problem.run_start[runs], costs)
    np.subtract.at(steps, problem.run_stop[runs], costs)
    charged = np.cumsum(steps, axis=0)[:-1]
    left = problem.left - np.repeat(charged, np.diff(problem.row_first), axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(unlocked > 0, left / unlocked, 0.0)
    most = np.clip(shares.max(axis=1, initial=0), 0, 1)
    return np.minimum.reduceat(most, problem.row_first[:-1])


def means_of_parts(places: Numbers, problem: Problem, parts: int) -> Numbers:
    """Return the means of equal parts of the whole, each place by its extent.

    Args:
        places: (places,) some number at each place, one after another.
        problem: Gives the extent of each place.
        parts: How many.
    """
    extent = np.ones(problem.places) if problem.extent is None else problem.extent
    extent = extent / extent.sum()
    bounds = np.concatenate([[0.0], np.cumsum(extent)])
    upto = np.concatenate([[0.0], np.cumsum(extent * places)])
    edges = np.linspace(0, 1, parts + 1)
    means: Numbers = np.diff(np.interp(edges, bounds, upto)) * parts
    return means.clip(0, 1)


def _names(domain: int, parts: int) -> tuple[str, ...]:
    if parts == 1:
        return ("everybody",)
    edges = [domain * part // parts for part in range(parts + 1)]
    return tuple(f"{first} to {after - 1}" for first, after in pairwise(edges))


def _by_block(columns: list[Numbers], blocks: list[Integers]) -> Leftovers:
    seen = np.unique(np.concatenate(blocks))
    shares = np.full((len(seen), len(columns)), np.nan)
    for column, (left, active) in enumerate(zip(columns, blocks, strict=True)):
        shares[np.searchsorted(seen, active), column] = left
    return Leftovers(tuple(f"block {one}" for one in seen.tolist()), shares)
