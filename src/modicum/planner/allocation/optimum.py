"""The best choice of a round, or a good one with a bound on the best.

Bounds concern one round. They do not bound the utility of several rounds together: a
best round may spend what a later one needs more.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import isfinite

import numpy as np

from modicum.planner.allocation.disjunctions import loosest, simpler, switched
from modicum.planner.allocation.engine import Engine
from modicum.planner.allocation.highs import Answer, Effort, solve
from modicum.planner.allocation.lp_greedy import (
    by_efficiency,
    improved,
    weight_of,
    with_first,
)
from modicum.planner.allocation.lp_relaxation import Knapsacks, knapsacks
from modicum.planner.allocation.problem import Booleans, Integers, Problem
from modicum.planner.allocation.problem_reduction import Narrowed, narrowed

#: Makes a bound that was computed in floats no less than the true one.
_LOOSE = 1 + 1e-9
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Optimum:
    """A choice for one round, and bounds on better ones.

    Attributes:
        accepted: (n,) the requests to accept; they fit, checked in integers.
        weight: Their weight.
        bound: No choice in this round is worth more, to the solver's precision. It is
            not an upper bound over several rounds.
        proven: Whether the solver finished, and `weight` is within the requested gap.
            False if time ran out, or if the solver's choice did not hold in integers.
        held: Whether all that the solver chose fits in integers. What does not is left
            out, and what still fits besides is added, the best DPK scores first.
        seconds: How long the solver took.
    """

    accepted: Booleans
    weight: int
    bound: int
    proven: bool
    held: bool
    seconds: float

    @property
    def gap(self) -> Fraction:
        """By which part of its weight a better choice can be better, at most."""
        return Fraction(self.bound - self.weight, max(self.weight, 1))

    @property
    def remark(self) -> str:
        """Return the bounds on better choices, as text."""
        tenths = -(-self.gap.numerator * 1000 // self.gap.denominator)
        within = f"the gap to the best choice is below {max(tenths, 1) / 10:g} %"
        return ("proven: " if self.proven else "not proven optimal: ") + within


def optimal(
    problem: Problem,
    engine: Engine,
    *,
    seconds: float = 10.0,
    gap: float = 0.001,
    start: Booleans | None = None,
) -> Optimum:
    """Return the best choice for a round, as far as it is found in time.

    The result depends on the machine only if time runs out. The bound concerns this
    round only; it is not an upper bound over several rounds.

    Args:
        problem: The round.
        engine: Of this problem.
        seconds: How long the solver may take.
        gap: The relative weight by which a better choice may be better.
        start: (n,) a known good choice, besides the guided plan. If it does not fit,
            only a part is used.

    Raises:
        InputError: If the solver is not installed.
    """
    alive = engine.alone()
    contests = engine.contests(alive)
    favored = engine.favored(contests, alive)
    order = by_efficiency(problem, contests, favored, alive)
    held = knapsacks(problem, contests, favored, alive)
    best = improved(problem, engine, order, held)
    if start is not None:
        known = engine.greedy(order[start[order]])
        best = max(best, known, key=lambda plan: weight_of(problem, plan))
    return _Search(problem, engine, order, held).run(best, Effort(gap, seconds))


@dataclass
class BestEachRound:
    """The allocator that makes the best choice of every round, as far as found.

    Not the best over several rounds: see `Optimum`. Mutable: one for each run.

    Attributes:
        seconds: How long the solver may take for a round.
        gap: The relative weight by which a better choice may be better.
        found: The results of each round so far.
    """

    seconds: float = 10.0
    gap: float = 0.001
    found: list[Optimum] = field(default_factory=list)

    @property
    def remark(self) -> str:
        """Return the bounds for the last round, as text; empty before the first."""
        return self.found[-1].remark if self.found else ""

    def __call__(self, problem: Problem, engine: Engine) -> Booleans:
        """Return which requests of the next round are accepted.

        Raises:
            InputError: If the solver is not installed.
        """
        best = optimal(problem, engine, seconds=self.seconds, gap=self.gap)
        self.found.append(best)
        return best.accepted


@dataclass(frozen=True, slots=True)
class _Search:
    """A round, and the order in which requests are tried besides those chosen."""

    problem: Problem
    engine: Engine
    order: Integers
    held: Knapsacks

    def run(self, best: Booleans, effort: Effort) -> Optimum:
        """Return the optimum, as far as it is found, starting from a good choice."""
        alive = np.zeros(self.problem.requests, np.bool_)
        alive[self.order] = True
        found = simpler(narrowed(self.problem, alive))
        if not len(found.row):
            # There is no competition: all that fit alone are accepted.
            weight = self._weight(best)
            return Optimum(best, weight, weight, proven=True, held=True, seconds=0.0)
        gone = 0.0
        if (found.left >= 0).sum() > len(found.row):
            # Rows have a choice. Without it, good solutions are found sooner.
            first = replace(effort, seconds=effort.seconds / 2)
            answer = self.held.searched(first, best[self.held.requests])
            best, _ = self._better(best, self.held.requests[answer.on()])
            gone = answer.seconds
        rest = replace(effort, seconds=max(effort.seconds - gone, 0.0))
        chosen, most, answer = _solved(self.problem, found, best, rest)
        best, held = self._better(best, chosen)
        weight = self._weight(best)
        others = self._weight(alive) - weight_of(self.problem, found.requests)
        bound = max(weight, others + most)
        near = bound - weight <= Fraction(effort.gap) * weight
        proven = answer.finished and held and near
        return Optimum(best, weight, bound, proven, held, gone + answer.seconds)

    def _better(self, best: Booleans, chosen: Integers) -> tuple[Booleans, bool]:
        """Return the better choice, and whether all that a solver chose fits."""
        plan = self.engine.greedy(with_first(chosen, self.order))
        return max(best, plan, key=self._weight), bool(plan[chosen].all())

    def _weight(self, accepted: Booleans) -> int:
        return weight_of(self.problem, accepted)


def _solved(
    problem: Problem, found: Narrowed, best: Booleans, effort: Effort
) -> tuple[Integers, int, Answer]:
    """Return the solver's choice, a bound of its weight, and its result.

    Args:
        problem: The round.
        found: The competing requests, and their rows.
        best: (n,) a good choice.
        effort: How long to search.
    """
    worth = problem.weights[found.requests].astype(np.float64)
    choices = switched(found, worth)
    start = choices.started(found, best[found.requests])
    answer = solve(choices.program, effort, start)
    parts = np.zeros(len(worth), np.bool_)
    simple = solve(replace(loosest(found, worth), whole=parts))
    bounds = [answer.bound]
    if simple.finished:
        # If stopped early, its bound would concern some solution, not the best.
        bounds.append(simple.bound)
    on = answer.on()
    chosen = found.requests[on[on < len(worth)]]
    return chosen, _lowest(bounds, float(worth.sum())), answer


def _lowest(bounds: list[float], everything: float) -> int:
    """Return the lowest of some bounds, but not below what is true.

    Args:
        bounds: The solver's bounds, not finite where it knows none.
        everything: The total weight of all requests.
    """
    lowest = min([everything, *filter(isfinite, bounds)])
    return int(lowest * _LOOSE + _ROUNDING)
