"""Planning that can be watched, and ended between its steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from modicum.planner.allocation.engine import Engine, EngineOf
from modicum.planner.allocation.numpy_kernel import NumpyEngine
from modicum.planner.allocation.problem import Booleans, Contests, Integers, Problem

#: Receives the progress of a plan, from 0 to 1, between steps; an exception from it
#: ends planning.
OnStep: TypeAlias = Callable[[float], None]


def nobody(_: float) -> None:
    """Ignore the progress."""


@dataclass(frozen=True, slots=True)
class Means:
    """The means of planning a round.

    Attributes:
        engine_of: Makes the engine for the problem; all give the same plan.
        on_step: Receives the progress. One step of a solver is not interrupted.
    """

    engine_of: EngineOf = NumpyEngine
    on_step: OnStep = nobody

    def engine_at(self, progress: float) -> EngineOf:
        """Return a factory of engines that report every step.

        Args:
            progress: How far the plan is while they work.
        """
        return lambda problem: CancellableEngine(
            problem, self.engine_of, self.on_step, progress
        )


class CancellableEngine:
    """An engine that reports each step in advance; see `engines.Engine`.

    Args:
        problem: The problem.
        engine: Makes the engine.
        on_step: Receives the progress.
        progress: The reported progress.
    """

    def __init__(
        self,
        problem: Problem,
        engine: EngineOf,
        on_step: OnStep,
        progress: float,
    ) -> None:
        on_step(progress)
        self._problem = problem
        self._engine = engine(problem)
        self._on_step = on_step
        self._progress = progress

    def alone(self) -> Booleans:
        """Return, for each request, whether it fits if no other is accepted."""
        return self._next().alone()

    def contests(self, alive: Booleans) -> Contests:
        """Return what the remaining requests compete for."""
        return self._next().contests(alive)

    def favored(self, contests: Contests, alive: Booleans) -> Integers:
        """Return, for each contested pair, the coordinate that can accept the most."""
        return self._next().favored(contests, alive)

    def greedy(self, order: Integers) -> Booleans:
        """Return which requests are accepted if they are tried in an order."""
        return self._next().greedy(order)

    def valued(self, weights: Integers) -> Engine:
        """Return an engine for the same problem, if requests had other weights."""
        own = self._next().valued(weights)
        return CancellableEngine(
            self._problem, lambda _: own, self._on_step, self._progress
        )

    def _next(self) -> Engine:
        self._on_step(self._progress)
        return self._engine
