"""Random rounds to plan, as the planner sees them and as its oracle does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random

import numpy as np
from oracle.planning import Ask, Block, Element, Life, Pair, Vector, World

from modicum.accounting.grid import INFINITE
from modicum.planner import Unlocking
from modicum.planner.allocation import greedy
from modicum.planner.allocation.engine import Engine, EngineOf
from modicum.planner.allocation.numba_kernel import NumbaEngine
from modicum.planner.allocation.numpy_kernel import NumpyEngine
from modicum.planner.allocation.problem import Booleans, Contests, Integers, Problem
from modicum.planner.rounds.ring import Ranges, RingHistory, ring_problem, spent_on

ENGINES: tuple[Callable[[Problem], Engine], ...] = (NumpyEngine, NumbaEngine)


def integers(values: object, *shape: int) -> Integers:
    """Return an array of integers, of a shape if it is given."""
    array = np.array(values, dtype=np.int64)
    return array.reshape(shape) if shape else array


# --- DPK ------------------------------------------------------------------------------


def dpk_order(problem: Problem, engine: Engine) -> Integers:
    """Return who fits alone, the most efficient first."""
    alive = engine.alone()
    return greedy.dpk_order(problem, engine, alive, engine.contests(alive))


def dpk(problem: Problem, engine_of: EngineOf) -> Booleans:
    """Return who is accepted."""
    return greedy.dpk(problem, engine_of(problem))


def numbers(accepted: Booleans) -> frozenset[int]:
    """Return who is marked."""
    return frozenset(np.flatnonzero(accepted).tolist())


# --- rounds on a ring -----------------------------------------------------------------


def some_cost(rng: Random, budget: tuple[int, ...]) -> tuple[int, ...]:
    """Return a cost: none, some, more than ever fits, or infinite, by coordinate."""

    def one(whole: int) -> int:
        kind = rng.random()
        if kind < 0.08:
            return 0
        if kind < 0.84:
            return rng.randint(1, max(1, whole // 4))
        return rng.randint(whole, 3 * whole + 2) if kind < 0.94 else INFINITE

    return tuple(map(one, budget))


def some_weight(rng: Random) -> int:
    """Return a weight, often that of others, sometimes none."""
    return 0 if rng.random() < 0.12 else rng.choice((1, 1, 2, 3, 5, 40))


@dataclass
class RingLife:
    """The same rounds twice: as the planner keeps them, and as the oracle does."""

    rng: Random
    oracle: Life
    history: RingHistory = field(default_factory=RingHistory)

    @classmethod
    def drawn(cls, rng: Random) -> RingLife:
        """Return the beginning of a life with nothing spent."""
        budget = tuple(rng.choice((0, 7, 20, 45, 90)) for _ in range(rng.randint(1, 4)))
        slack = Fraction(rng.randint(0, 4), 4)
        return cls(rng, Life(rng.randint(1, 9), budget, rng.randint(1, 4), slack))

    @property
    def caps(self) -> Integers:
        """What each active group may have spent by now, the youngest first."""
        life = self.oracle
        plan = Unlocking(life.rounds, life.slack)
        ages = range(1, life.rounds + 1)
        return integers([[plan.cap(one, age) for one in life.budget] for age in ages])

    def round(self, requests: int) -> tuple[Problem, World, list[Ask], Ranges]:
        """Return a round of random requests."""
        rng, life = self.rng, self.oracle
        spans = [self._range() for _ in range(requests)]
        demands = [
            Ask(some_weight(rng), some_cost(rng, life.budget), life.elements(*span))
            for span in spans
        ]
        start, width = integers(spans, requests, 2).T
        ranges = Ranges(life.size, start, width)
        problem = ring_problem(
            ranges,
            integers([ask.cost for ask in demands], requests, len(life.budget)),
            integers([ask.weight for ask in demands], requests),
            self.caps,
            self.history,
        )
        return problem, life.world(demands), demands, ranges

    def _range(self) -> tuple[int, int]:
        size = self.oracle.size
        width = self.rng.choice((1, size, self.rng.randint(1, size)))
        return self.rng.randrange(size), width

    def close(
        self, problem: Problem, demands: list[Ask], ranges: Ranges, accepted: Booleans
    ) -> None:
        """Charge what was accepted, here and there."""
        most = integers(self.oracle.budget) + 1
        spent = spent_on(ranges, np.minimum(problem.costs, most), accepted)
        self.history.add(spent, self.oracle.rounds - 1)
        self.oracle.close(demands, numbers(accepted))


# --- rounds of any shape --------------------------------------------------------------


@dataclass(frozen=True)
class Size:
    """How large a random problem may be."""

    requests: int
    places: int
    blocks: int
    coordinates: int
    runs: int
    rows: int
    scale: int


SMALL = Size(requests=7, places=6, blocks=3, coordinates=4, runs=3, rows=3, scale=24)
LARGE = Size(
    requests=300, places=70, blocks=3, coordinates=3, runs=4, rows=3, scale=600
)


def some_problem(rng: Random, size: Size, *, full: bool = False) -> Problem:
    """Return a problem of several lines, with several runs a request, uneven rows.

    Args:
        rng: What is drawn from.
        size: How large it may be.
        full: Whether it is as large as it may be.
    """

    def number(most: int, least: int = 1) -> int:
        return most if full else rng.randint(least, most)

    requests, places = number(size.requests, 0), number(size.places)
    blocks, coordinates = number(size.blocks), number(size.coordinates)
    scale = (size.scale,) * coordinates
    runs = [_some_runs(rng, places, size.runs) for _ in range(requests)]
    rows = [
        (place, block)
        for place in range(places)
        for block in range(blocks)
        for _ in range(rng.randint(0, size.rows))
    ]
    used_up = 0.01 if full else rng.choice((0.0, 0.02, 0.1, 0.3))
    left = [[_some_left(rng, size.scale, used_up) for _ in scale] for _ in rows]
    most = (size.scale * rng.randint(1, 3),) * coordinates
    counts = np.bincount(integers([place for place, _ in rows]), minlength=places)
    return Problem(
        weights=integers([some_weight(rng) for _ in runs], requests),
        costs=integers([some_cost(rng, most) for _ in runs], requests, coordinates),
        run_first=integers(np.cumsum([0, *map(len, runs)])),
        run_start=integers([start for own in runs for start, _ in own]),
        run_stop=integers([stop for own in runs for _, stop in own]),
        row_first=integers(np.cumsum([0, *counts])),
        left=integers(left, len(rows), coordinates),
        block=integers([block for _, block in rows]),
        line=integers(sorted(rng.randrange(2) for _ in range(places))),
        full=integers([[size.scale] * coordinates] * blocks),
    )


def _some_left(rng: Random, scale: int, used_up: float) -> int:
    if rng.random() < used_up:
        return rng.randint(-scale // 6, 0)
    return rng.randint(scale // 8, scale)


def _some_runs(rng: Random, places: int, most: int) -> list[tuple[int, int]]:
    """Return disjoint runs in order, some of which touch."""
    ends = sorted(rng.choices(range(places + 1), k=2 * rng.randint(1, most)))
    runs = [(a, b) for a, b in zip(ends[::2], ends[1::2], strict=True) if a < b]
    return runs or [(0, places)]


def world_of(problem: Problem) -> World:
    """Return the same round for the oracle: every row of a place is an element."""
    left: dict[Block, Vector] = {}
    elements: dict[int, set[Element]] = {}
    for place, line in enumerate(problem.line.tolist()):
        rows = range(problem.row_first[place], problem.row_first[place + 1])
        elements[place] = {(line, place, row) for row in rows}
        for row in rows:
            block = (line, place, row), int(problem.block[row])
            left[block] = tuple(problem.left[row].tolist())
    if not left:
        left[(-1,), 0] = (0,) * problem.coordinates
    return World(
        tuple(
            Ask(
                int(problem.weights[i]),
                tuple(problem.costs[i].tolist()),
                frozenset(
                    e for place in places_of(problem, i) for e in elements[place]
                ),
            )
            for i in range(problem.requests)
        ),
        left,
    )


def places_of(problem: Problem, request: int) -> list[int]:
    """Return the places that a request asks for."""
    first = problem.run_first[request : request + 2]
    return [
        place
        for run in range(first[0], first[1])
        for place in range(problem.run_start[run], problem.run_stop[run])
    ]


def by_pair(
    problem: Problem, contests: Contests, favored: Integers, alive: Booleans
) -> dict[Pair, tuple[tuple[int, ...], int]]:
    """Return what an engine says of contested pairs, in the words of the oracle."""
    places = {i: set(places_of(problem, i)) for i in np.flatnonzero(alive).tolist()}
    return {
        (
            int(problem.line[place]),
            frozenset(i for i, own in places.items() if place in own),
            block,
        ): (tuple(capacity), best)
        for place, block, capacity, best in zip(
            contests.pair_place.tolist(),
            contests.pair_block.tolist(),
            contests.capacity.tolist(),
            favored.tolist(),
            strict=True,
        )
    }
