"""One round, planned on the balances of a ledger, and decided as the ledger will."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from modicum.core.errors import check
from modicum.ledger import Balances, RecordedRelease, decide
from modicum.planner.allocation.greedy import GREEDY, Allocate, dpk_order
from modicum.planner.allocation.lp_greedy import guided
from modicum.planner.allocation.optimum import BestEachRound
from modicum.planner.allocation.problem import Booleans, Problem
from modicum.planner.ledger_round.cancellation import Means, OnStep
from modicum.planner.ledger_round.coordinates import OpenEngine, open_engine
from modicum.planner.ledger_round.presolve import LeftOut
from modicum.planner.ledger_round.problem import RoundProblem, problem_of
from modicum.planner.verification import verify

#: Factories of allocators for one round, by name. Those that keep a price over the
#: rounds are for simulations only.
ON_LEDGER: Mapping[str, Callable[[], Allocate]] = MappingProxyType(
    {name: lambda allocate=allocate: allocate for name, allocate in GREEDY.items()}
    | {"guided": lambda: guided, "ilp": BestEachRound}
)

#: Approximate progress once the problem is built, and once it is solved.
_ASSEMBLED, _CHOSEN = 0.3, 0.5
_BY_NUMPY = Means()


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """The accepted requests of a round.

    Attributes:
        requests: All requests of the round.
        accepted: The numbers of those that are accepted, in the order in which they
            were decided. In this order the ledger allows them all.
        round: The problem of the round, and the requests left out of it.
    """

    requests: tuple[RecordedRelease, ...]
    accepted: tuple[int, ...]
    round: RoundProblem

    @property
    def problem(self) -> Problem:
        """The problem given to the allocator."""
        return self.round.problem

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """The requests that were not planned."""
        return self.round.left_out


def plan_round(
    balances: Balances,
    requests: Sequence[RecordedRelease],
    weights: Sequence[int],
    allocate: Allocate,
    day: int,
    means: Means = _BY_NUMPY,
) -> RoundPlan:
    """Return which requests of a round to accept.

    The allocator's choice is decided, one after the other in the order of arrival,
    exactly as the ledger will decide it. Then all others are tried, so that nothing
    that still fits is left out.

    Args:
        balances: The charges so far. They are not changed.
        requests: The requests, in the order of arrival.
        weights: Their weights.
        allocate: The allocator; see `ON_LEDGER`.
        day: The day on which they are decided, as an ordinal.
        means: The means of planning, and the receiver of progress.

    Raises:
        InputError: If the round is too large, weights are not integers from 0 on, or a
            solver is not installed.
    """
    means.on_step(0.0)
    dumped = balances.dump()
    found = problem_of(balances.copied(dumped), requests, weights, day)
    engine = open_engine(found.problem, means.engine_at(_ASSEMBLED))
    chosen = _chosen(found.problem, allocate, engine)
    order = found.numbers[_by_worth(found.problem, engine)].tolist()
    batch = found.numbers[chosen].tolist()
    # Each once: a repeated attempt fits no better.
    tried = dict.fromkeys([*batch, *order])
    numbers = _with_progress(tried, means.on_step)
    accepted = _accepted(balances.copied(dumped), requests, numbers, day)
    return RoundPlan(tuple(requests), tuple(accepted), found)


def _with_progress(numbers: Collection[int], on_step: OnStep) -> Iterator[int]:
    """Yield the requests to decide, reporting progress before each."""
    for done, number in enumerate(numbers):
        on_step(_CHOSEN + (1 - _CHOSEN) * done / len(numbers))
        yield number


def _accepted(
    balances: Balances,
    requests: Sequence[RecordedRelease],
    numbers: Iterable[int],
    day: int,
) -> Iterator[int]:
    """Yield the requests that are allowed, one after the other, and charge them."""
    for number in numbers:
        request = requests[number]
        if decide(balances, request, day).allowed:
            balances.charge(request, day)
            yield number


def _chosen(problem: Problem, allocate: Allocate, engine: OpenEngine) -> Booleans:
    """Return the choice of an allocator."""
    if not problem.places:
        return np.ones(problem.requests, np.bool_)
    chosen = allocate(problem, engine)
    wrong = verify(problem, np.flatnonzero(chosen))
    check(not wrong, f"PLAN-4: a plan fits: {[one.message for one in wrong[:1]]}")
    return chosen


def _by_worth(problem: Problem, engine: OpenEngine) -> np.ndarray:
    """Return all requests, those with the highest weight per use first."""
    everybody = np.ones(problem.requests, np.bool_)
    if not problem.places:
        return np.arange(problem.requests)
    contests = engine.contests(everybody)
    return dpk_order(problem, engine, everybody, contests)
