"""Running a workload through the planner, round by round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from modicum.core.errors import check
from modicum.planner.allocation.engine import EngineOf
from modicum.planner.allocation.optimum import BestEachRound, Optimum
from modicum.planner.allocation.problem import Booleans, Integers
from modicum.planner.simulation.setting import SOLVERS, Setting, prices, refuse_overflow
from modicum.planner.simulation.worlds import World, world_of
from modicum.planner.verification import verify
from modicum.workloads.mechanisms import SIZES
from modicum.workloads.model import Requests, Workload

#: Called with the number of a round and the step just done: ``problem``, ``allocate``
#: or ``spend``. The planner has no clock; callers measure times here.
Watch = Callable[[int, str], None]


@dataclass(frozen=True, slots=True)
class Count:
    """The numbers of requests made and accepted.

    Attributes:
        requested: The number of requests.
        accepted: How many of them were accepted.
        utility_requested: Their total utility.
        utility: The total utility of the accepted ones.
    """

    requested: int
    accepted: int
    utility_requested: int
    utility: int

    @property
    def requests_fraction(self) -> Fraction:
        """The part of the requests that was accepted; 0 if there was none."""
        return Fraction(self.accepted, max(self.requested, 1))

    @property
    def utility_fraction(self) -> Fraction:
        """The part of the utility that was accepted; 0 if there was none."""
        return Fraction(self.utility, max(self.utility_requested, 1))


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """The result of a workload.

    Attributes:
        workload: The requests.
        setting: How it was planned.
        accepted_in: For each request the round in which it was accepted; -1 if never.
        optima: The bounds on the best choice of each round, if computed.
    """

    workload: Workload
    setting: Setting
    accepted_in: Integers
    optima: tuple[Optimum, ...] = ()

    @property
    def accepted(self) -> Booleans:
        """Whether each request was accepted."""
        return self.accepted_in >= 0

    def total(self) -> Count:
        """Return the count of all requests."""
        return self._count(np.ones(len(self.accepted_in), np.bool_))

    def by_size(self) -> dict[str, Count]:
        """Return the counts of the requests of each size."""
        requests = self.workload.requests
        size = np.array([SIZES.index(kind.size) for kind in requests.types])
        sizes = size[requests.type]
        return {name: self._count(sizes == k) for k, name in enumerate(SIZES)}

    def by_round(self) -> dict[int, Count]:
        """Return the counts of the requests that arrived in each round."""
        arrived = self.workload.requests.round
        return {t: self._count(arrived == t) for t in self.workload.round_numbers}

    def _count(self, chosen: Booleans) -> Count:
        utility = self.workload.requests.utility[chosen]
        accepted = self.accepted[chosen]
        return Count(
            int(chosen.sum()),
            int(accepted.sum()),
            int(utility.sum()),
            int(utility[accepted].sum()),
        )


def simulate(
    workload: Workload,
    setting: Setting,
    engine_of: EngineOf,
    watch: Watch | None = None,
) -> Run:
    """Return the result of a workload under a setting.

    Args:
        workload: The requests.
        setting: How it is planned.
        engine_of: Makes the engine for each round's problem; all give the same run.
        watch: Called after each step.

    Raises:
        InputError: If the setting does not fit the workload, see `prices`; there are
            no requests, or budgets or utilities are too large to be added up.
    """
    priced = prices(workload.types, setting)
    refuse_overflow(workload, setting, int(priced.total.max(initial=0)))
    world = world_of(workload, setting, priced)
    return play(workload, setting, world, engine_of, watch)


def play(
    workload: Workload,
    setting: Setting,
    world: World,
    engine_of: EngineOf,
    watch: Watch | None = None,
) -> Run:
    """Return the result of a workload in a fresh world.

    Args:
        workload: The requests.
        setting: How it is planned.
        world: What requests are charged to.
        engine_of: Makes the engine for each round's problem; all give the same run.
        watch: Called after each step.
    """
    requests = workload.requests
    done = watch or (lambda _round, _step: None)
    allocate = SOLVERS[setting.solver](setting.schedule)
    accepted_in = np.full(len(requests), -1, np.int64)
    for number in workload.round_numbers:
        tried = tried_in(requests, number, setting.attempts, accepted_in)
        batch = requests.chosen(tried)
        problem = world.problem(batch, number)
        done(number, "problem")
        accepted = allocate(problem, world.engine(problem, engine_of(problem)))
        check(
            not verify(problem, np.flatnonzero(accepted)),
            "PLAN-5: what is accepted fits, by code that is independent of the solver",
        )
        done(number, "allocate")
        world.spend(problem, batch, accepted)
        accepted_in[tried[accepted]] = number
        done(number, "spend")
    optima = tuple(allocate.found) if isinstance(allocate, BestEachRound) else ()
    return Run(workload, setting, accepted_in, optima)


def tried_in(
    requests: Requests, number: int, attempts: int, accepted_in: Integers
) -> Integers:
    """Return the requests that are tried in a round, in the order of arrival.

    Args:
        requests: All of them.
        number: The round.
        attempts: In how many rounds a request is tried.
        accepted_in: For each request the earlier round that accepted it, or -1.
    """
    waiting = (requests.round <= number) & (requests.round > number - attempts)
    return np.flatnonzero(waiting & (accepted_in < 0))
