"""An engine that favors no coordinate that accepts nothing.

Contests contain the remainder, zero where nothing passes; a request that costs nothing
there would seem to fit. With coordinates for each unit, and one for delta, most
requests cost nothing at some.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from modicum.planner.allocation.engine import Engine, EngineOf
from modicum.planner.allocation.problem import Booleans, Contests, Integers, Problem


def open_engine(problem: Problem, engine_of: EngineOf) -> OpenEngine:
    """Return an engine for a problem with coordinates that are closed at some rows.

    Args:
        problem: The problem of a round.
        engine_of: Makes the engine that does the work.
    """
    # A cost of nothing becomes one of a unit, which passes at all that is open.
    dearer = replace(problem, costs=np.maximum(problem.costs, 1))
    return OpenEngine(problem, engine_of(problem), engine_of(dearer))


@dataclass(frozen=True, slots=True)
class OpenEngine:
    """The operations that allocators need on one problem; see `engines.Engine`.

    Attributes:
        problem: The problem.
        engine: Its engine.
        dearer: The engine of the same problem in which nothing is for free.
    """

    problem: Problem
    engine: Engine
    dearer: Engine

    def alone(self) -> Booleans:
        """Return, for each request, whether it fits if no other is accepted."""
        return self.engine.alone()

    def contests(self, alive: Booleans) -> Contests:
        """Return what the remaining requests compete for."""
        return self.engine.contests(alive)

    def greedy(self, order: Integers) -> Booleans:
        """Return which requests are accepted if they are tried in an order."""
        return self.engine.greedy(order)

    def favored(self, contests: Contests, alive: Booleans) -> Integers:
        """Return, for each contested pair, the open coordinate that can accept most."""
        found = self.dearer.favored(contests, alive)
        if not len(found):
            return found
        least = self._least(contests)
        closed = np.take_along_axis(least, found[:, None], axis=1)[:, 0] < 0
        # There nothing fits in any knapsack: most is left where most of it is left.
        share = least / np.maximum(self.problem.full.max(axis=0), 1)
        return np.where(closed, share.argmax(axis=1), found)

    def valued(self, weights: Integers) -> OpenEngine:
        """Return an engine for the same problem, if requests had other weights."""
        return OpenEngine(
            replace(self.problem, weights=weights),
            self.engine.valued(weights),
            self.dearer.valued(weights),
        )

    def _least(self, contests: Contests) -> Integers:
        """Return the least that is left at a row of each pair, below 0 if closed."""
        problem, blocks = self.problem, len(self.problem.full)
        place = np.repeat(np.arange(problem.places), np.diff(problem.row_first))
        at = contests.segment[place]
        pair = np.where(at >= 0, at * blocks + problem.block, -1)
        order = np.argsort(pair, kind="stable")
        wanted = contests.pair_segment * blocks + contests.pair_block
        first = np.searchsorted(pair[order], wanted)
        after = np.searchsorted(pair[order], wanted, side="right")
        bounds = np.column_stack([first, after]).reshape(-1)
        # A line at the end, so that every bound is within.
        rows = np.append(problem.left[order], problem.left[:1], axis=0)
        return np.minimum.reduceat(rows, bounds, axis=0)[::2]
