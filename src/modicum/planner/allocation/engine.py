"""The two engines for a problem. They give the same results."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Protocol, TypeAlias

from modicum.planner.allocation.problem import Booleans, Contests, Integers, Problem


class Engine(Protocol):
    """The operations that allocators need on one problem."""

    def alone(self) -> Booleans:
        """Return, for each request, whether it fits if no other is accepted."""

    def contests(self, alive: Booleans) -> Contests:
        """Return what the remaining requests compete for."""

    def favored(self, contests: Contests, alive: Booleans) -> Integers:
        """Return, for each contested pair, the coordinate that can accept the most.

        That is the one whose knapsack, of the pair's capacity and the requests that fit
        in it alone, holds the most weight; of several the last. A search that visits
        items more than `EFFORT` times returns the best result so far.
        """

    def greedy(self, order: Integers) -> Booleans:
        """Return which requests are accepted if they are tried in an order.

        Args:
            order: Requests, without duplicates; others are not accepted.
        """

    def valued(self, weights: Integers) -> Engine:
        """Return an engine for the same problem, if requests had other weights."""


#: Makes an engine for a problem.
EngineOf: TypeAlias = Callable[[Problem], Engine]


def numba_engine() -> EngineOf | None:
    """Return the engine with compiled loops, if numba is installed.

    Importing numba takes about a second, and compiling the loops for the first time
    on a machine much longer. It pays for hundreds of requests.
    """
    if find_spec("numba") is None:
        return None
    from modicum.planner.allocation.numba_kernel import NumbaEngine

    return NumbaEngine
