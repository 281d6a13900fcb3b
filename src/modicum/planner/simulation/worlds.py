"""The accounts of a simulation: parts of a ring, or blocks of users."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np

from modicum.planner.allocation.engine import Engine
from modicum.planner.allocation.problem import Booleans, Contests, Integers, Problem
from modicum.planner.rounds.ring import Ranges, RingHistory, ring_problem, spent_on
from modicum.planner.simulation.setting import Prices, Setting
from modicum.workloads.model import Requests, Workload
from modicum.workloads.random_draws import stream

#: The number of users of a block of the baseline.
BLOCK_USERS = 5_000
#: The average number of users joining in a round: one in ten seconds.
USERS_PER_ROUND = 60_480


class World(Protocol):
    """The accounts, and their charges so far. Mutable."""

    def problem(self, requests: Requests, round_: int) -> Problem:
        """Return the problem of a round."""

    def engine(self, problem: Problem, engine: Engine) -> Engine:
        """Return the engine for allocators."""

    def spend(self, problem: Problem, requests: Requests, accepted: Booleans) -> None:
        """Charge the accepted requests of a problem's round."""

    def unlocked(self, problem: Problem) -> Integers:
        """Return the total limit of each row of the last problem so far."""


class RingWorld:
    """User groups, each divided by a ring of elements.

    Args:
        workload: The requests.
        setting: How it is planned.
        priced: The costs of its types.
    """

    def __init__(self, workload: Workload, setting: Setting, priced: Prices) -> None:
        self._size = workload.domain if setting.partitioning else 1
        self._whole = not setting.partitioning
        self._costs = priced.costs
        # A cost above a whole budget never passes, whatever it is.
        self._charged = np.minimum(priced.costs, priced.total + 1)
        self._caps = priced.caps(setting.schedule)
        self._history = RingHistory()

    def problem(self, requests: Requests, round_: int) -> Problem:
        """Return the problem of a round."""
        return ring_problem(
            self._ranges(requests),
            self._costs[requests.type],
            requests.utility,
            self._caps,
            self._history,
            fresh=requests.round == round_,
        )

    def engine(self, problem: Problem, engine: Engine) -> Engine:
        """Return the engine for allocators: the given one."""
        del problem
        return engine

    def spend(self, problem: Problem, requests: Requests, accepted: Booleans) -> None:
        """Charge the accepted requests of a problem's round."""
        del problem
        costs = self._charged[requests.type]
        spent = spent_on(self._ranges(requests), costs, accepted)
        self._history.add(spent, keep=len(self._caps) - 1)

    def unlocked(self, problem: Problem) -> Integers:
        """Return the total limit of each row of the last problem so far."""
        return self._caps[problem.block]

    def _ranges(self, requests: Requests) -> Ranges:
        if self._whole:
            ones = np.ones(len(requests), np.int64)
            return Ranges(1, ones - 1, ones)
        return Ranges(self._size, requests.first, requests.width)


class BlockWorld:
    """Blocks of users by the time they joined; a request reads some of them.

    The baseline: a request is charged to the blocks that it reads, drawn uniformly from
    the active ones, and to nobody else.

    Args:
        workload: The requests.
        setting: How it is planned.
        priced: The costs of its types.
    """

    def __init__(self, workload: Workload, setting: Setting, priced: Prices) -> None:
        self._rounds = setting.schedule.rounds
        self._costs = np.minimum(priced.costs, priced.total + 1)
        self._caps = priced.caps(setting.schedule)
        last = workload.first_round + workload.rounds
        blocks = np.arange(last * USERS_PER_ROUND // BLOCK_USERS)
        # A block is there from the round in which its last user has joined.
        self._since = (blocks + 1) * BLOCK_USERS // USERS_PER_ROUND
        self._spent = np.zeros((len(blocks), len(priced.total)), np.int64)
        self._active = blocks[:0]
        self._open = self._caps[:0]
        self._draws = stream(workload.seed, workload.repetition, "blocks")

    def problem(self, requests: Requests, round_: int) -> Problem:
        """Return the problem of a round; every call chooses blocks anew."""
        age = round_ - self._since + 1
        self._active = np.flatnonzero((age >= 1) & (age <= self._rounds))
        self._open = self._caps[age[self._active] - 1]
        left = self._open - self._spent[self._active]
        chosen = self._chosen(requests, left)
        places = np.concatenate([np.empty(0, np.int64), *chosen])
        blocks = len(self._active)
        return Problem(
            weights=requests.utility,
            costs=self._costs[requests.type],
            run_first=np.cumsum([0, *map(len, chosen)]),
            run_start=places,
            run_stop=places + 1,
            row_first=np.arange(blocks + 1),
            left=left,
            block=np.zeros(blocks, np.int64),
            line=np.zeros(blocks, np.int64),
            full=self._caps[-1:],
            fresh=requests.round == round_,
        )

    def engine(self, problem: Problem, engine: Engine) -> Engine:
        """Return the engine for allocators."""
        return _WantedByAll(problem, engine)

    def spend(self, problem: Problem, requests: Requests, accepted: Booleans) -> None:
        """Charge the accepted requests of the last problem's round."""
        del requests
        owner = np.repeat(np.arange(problem.requests), np.diff(problem.run_first))
        runs = accepted[owner]
        blocks = self._active[problem.run_start[runs]]
        np.add.at(self._spent, blocks, problem.costs[owner[runs]])

    @property
    def active(self) -> Integers:
        """The numbers of the blocks that are the places of the last problem."""
        return self._active

    def unlocked(self, problem: Problem) -> Integers:
        """Return the total limit of each row of the last problem so far."""
        del problem
        return self._open

    def _wanted(self, requests: Requests) -> list[int]:
        """Return how many blocks each request reads."""
        blocks = len(self._active)
        rates = [kind.sampling for kind in requests.types]
        wanted = [blocks * rate.numerator // rate.denominator for rate in rates]
        return [wanted[type_] for type_ in requests.type]

    def _chosen(self, requests: Requests, left: Integers) -> list[Integers]:
        """Return the blocks assigned to each request."""
        return [
            np.sort(self._draws.permutation(len(left))[:count])
            for count in self._wanted(requests)
        ]


class OldestBlocks(BlockWorld):
    """Blocks of users; each request gets the oldest that accept it.

    That is the original's assignment for first come, first served; requests must be
    tried in this order. One with too few blocks gets the oldest, and fails there.
    """

    def _chosen(self, requests: Requests, left: Integers) -> list[Integers]:
        left, chosen = left.copy(), []
        for count, type_ in zip(self._wanted(requests), requests.type, strict=True):
            cost = self._costs[type_]
            open_ = np.flatnonzero((cost <= left).any(axis=1))
            if len(open_) >= count:
                left[open_[:count]] -= cost
                chosen.append(open_[:count])
            else:
                chosen.append(np.arange(count))
        return chosen


class _WantedByAll:
    """An engine for which every request wants every block, as in the original.

    A block is contested if it cannot accept all requests that fit alone, independent of
    the assignment; only then do scores consider the actual requests.
    """

    def __init__(self, problem: Problem, engine: Engine) -> None:
        self._problem = problem
        self._engine = engine
        self.alone = engine.alone
        self.favored = engine.favored
        self.greedy = engine.greedy

    def valued(self, weights: Integers) -> _WantedByAll:
        """Return an engine for the same problem, if requests had other weights."""
        problem = replace(self._problem, weights=weights)
        return _WantedByAll(problem, self._engine.valued(weights))

    def contests(self, alive: Booleans) -> Contests:
        """Return the contests if every request wants everything."""
        problem = self._problem
        demand = problem.clamped()[alive].sum(axis=0, dtype=np.int64)
        places = np.arange(problem.places)
        contested = np.flatnonzero(~(demand <= problem.left).any(axis=1))
        return Contests(
            segment=places,
            place=places,
            pair_segment=contested,
            pair_block=np.zeros(len(contested), np.int64),
            capacity=np.maximum(problem.left[contested], 0),
        )


def world_of(workload: Workload, setting: Setting, priced: Prices) -> World:
    """Return the accounts for the requests of a workload."""
    if not setting.blocks:
        return RingWorld(workload, setting, priced)
    if setting.solver == "fcfs":
        return OldestBlocks(workload, setting, priced)
    return BlockWorld(workload, setting, priced)
