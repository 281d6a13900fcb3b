"""The setting of a simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType

import numpy as np

from modicum.accounting import ApproxBudget, filter_for
from modicum.accounting.filters.unlock_schedule import Schedule, Unlocking
from modicum.accounting.grid import DELTA
from modicum.core.errors import Code, InputError, Problem
from modicum.planner.allocation.greedy import GREEDY, Allocate
from modicum.planner.allocation.optimum import BestEachRound
from modicum.planner.allocation.problem import SUM_MAX, Integers, deciding
from modicum.planner.allocation.reserve_price import Steady, as_guided, reserve_under
from modicum.workloads.model import Workload
from modicum.workloads.request_types import Pricing, RequestType

#: The default guarantee of every user.
BUDGET = ApproxBudget(Fraction(3), Fraction(1, 10**7))
#: The filter for tight prices: proven for every budget, with shares for planners.
TIGHT_FILTER = "renyi-v1"
#: A factory of allocators for one run, given the unlocking schedule.
SOLVERS: Mapping[str, Callable[[Schedule], Allocate]] = MappingProxyType(
    {name: lambda _, allocate=allocate: allocate for name, allocate in GREEDY.items()}
    | {
        "guided": lambda schedule: Steady(
            schedule.rounds, reserve_under(schedule), as_guided
        ),
        "ilp": lambda _: BestEachRound(),
        "steady": lambda schedule: Steady(schedule.rounds, reserve_under(schedule)),
    }
)


@dataclass(frozen=True, slots=True)
class Setting:
    """The setting of a simulation.

    Attributes:
        budget: The guarantee of every user, for all releases together.
        filter: The privacy filter of the budget; a key of `accounting.FILTERS`.
        pricing: How mechanisms are priced.
        schedule: The unlocked fraction of a group's budget at each age.
        solver: A key of `SOLVERS`.
        attempts: In how many rounds a request is tried: 1 if a rejection is final.
        partitioning: Whether a request is charged only where it reads. If not, it is
            charged to everybody.
        subsampling: Whether a request that reads a sample is priced as one.
        blocks: Whether users are tracked in blocks, as in PrivateKube, of which a
            request reads the number that it needs: without partitioning, without
            samples.
    """

    budget: ApproxBudget = BUDGET
    filter: str = "as-published"
    pricing: Pricing = "as-published"
    schedule: Schedule = field(default_factory=lambda: Unlocking(12, Fraction(2, 5)))
    solver: str = "dpk"
    attempts: int = 1
    partitioning: bool = True
    subsampling: bool = True
    blocks: bool = False

    def __post_init__(self) -> None:
        if self.solver not in SOLVERS:
            raise _unknown("solver", self.solver, SOLVERS)
        if self.attempts < 1:
            problem = Problem(
                Code.OUT_OF_RANGE,
                f"a request is tried in {self.attempts} rounds",
                help="it is at least 1",
            )
            raise InputError(problem)


@dataclass(frozen=True, slots=True)
class Prices:
    """The costs of types, and the limits of groups, at the decisive coordinates.

    Attributes:
        coordinates: Of the ledger's grid.
        costs: (types, a) in ledger units.
        total: (a,) the limit of a group for its whole life.
    """

    coordinates: tuple[int, ...]
    costs: Integers
    total: Integers

    def caps(self, schedule: Schedule) -> Integers:
        """Return the limits of groups by age, the youngest first."""
        ages = range(1, schedule.rounds + 1)
        return np.array(
            [[schedule.cap(int(cap), age) for cap in self.total] for age in ages],
            dtype=np.int64,
        )


def prices(types: tuple[RequestType, ...], setting: Setting) -> Prices:
    """Return the costs of request types under a setting.

    Raises:
        InputError: If a type has a delta, which no filter of the planner supports; or
            the filter is unknown, or not proven for the budget.
    """
    sampled = setting.subsampling and not setting.blocks
    losses = [
        (kind if sampled else kind.on_everybody()).loss(setting.pricing)
        for kind in types
    ]
    for kind, loss in zip(types, losses, strict=True):
        if loss.coordinates[DELTA]:
            problem = Problem(
                Code.OUT_OF_RANGE,
                f"the mechanism of `{kind.name}` has its own delta",
                help="simulations need mechanisms without delta; the ledger accepts"
                " both",
            )
            raise InputError(problem)
    caps = filter_for(setting.budget, setting.filter).caps
    costs = np.array(
        [[loss.coordinates[index] for index, _ in caps] for loss in losses],
        dtype=np.int64,
    ).reshape(len(types), len(caps))
    total = np.array([cap for _, cap in caps], dtype=np.int64)
    kept = deciding(costs, total)
    return Prices(
        tuple(caps[a][0] for a in kept),
        np.ascontiguousarray(costs[:, kept]),
        total[kept],
    )


def _unknown(what: str, given: str, known: Mapping[str, object]) -> InputError:
    return InputError(
        Problem(
            Code.UNKNOWN_CHOICE,
            f"there is no {what} `{given}`",
            help="choose one of " + ", ".join(known),
        )
    )


def refuse_overflow(workload: Workload, setting: Setting, budget: int) -> None:
    """Refuse a workload of which a sum of costs, or of utilities, may overflow.

    Args:
        workload: The requests.
        setting: How it is planned.
        budget: The maximum balance at any coordinate.

    Raises:
        InputError: If it has none to plan, or its budget or utilities are too large.
    """
    requests = workload.requests
    if not len(requests):
        problem = Problem(
            Code.OUT_OF_RANGE,
            "there is nothing to plan: the workload has no requests",
            help="use one with requests",
        )
        raise InputError(problem)
    numbers = workload.round_numbers
    arriving = np.bincount(requests.round - numbers.start, minlength=len(numbers))
    # What is tried in a round, or is charged to a group in all the rounds of its life.
    rounds = max(setting.schedule.rounds, setting.attempts)
    together = int(arriving.max()) * min(rounds, len(numbers)) + 1
    # A cost counts as one more than the whole budget at most.
    if (budget + 1) * together >= SUM_MAX:
        raise _too_large("the budget", "simulate with a smaller budget")
    # Utilities are added up over all rounds: who counts them, or keeps a price.
    if int(requests.utility.max()) * max(together, len(requests) + 1) >= SUM_MAX:
        raise _too_large("the utility of a request", "scale all utilities down")


def _too_large(what: str, remedy: str) -> InputError:
    return InputError(
        Problem(
            Code.OUT_OF_RANGE,
            f"{what} is so large that sums over requests exceed 64-bit integers",
            help=remedy,
        )
    )
