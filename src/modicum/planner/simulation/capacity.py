"""Whether a simulation's sums stay integers of 64 bits."""

from __future__ import annotations

import numpy as np

from modicum.core.errors import Code, InputError, Problem
from modicum.planner.allocation.problem import SUM_MAX
from modicum.planner.simulation.setting import Setting
from modicum.workloads.model import Workload


def refuse_overflow(workload: Workload, setting: Setting, budget: int) -> None:
    """Refuse a workload of which a sum of costs, or of utilities, may overflow.

    Args:
        workload: What is asked for.
        setting: How it is planned.
        budget: The most that a balance ever holds, at any coordinate.

    Raises:
        InputError: If it has none to plan, or its budget or utilities are too large.
    """
    requests = workload.requests
    if not len(requests):
        problem = Problem(
            Code.OUT_OF_RANGE,
            "there is nothing to plan: the workload has no requests",
            help="give one with requests",
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
            f"{what} is so large that sums over requests are no 64-bit integers",
            help=remedy,
        )
    )
