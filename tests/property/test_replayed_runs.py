"""Whole runs, replayed with every element of the ring in every group of users.

A soak replays them in full: 40 rounds on a ring of 204,800 elements.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from budget import seed
from oracle.replaying import DenseReplay

from modicum.accounting.grid import order_index
from modicum.planner import AtOnce, Unlocking
from modicum.planner.allocation.engine import Engine
from modicum.planner.allocation.numba_kernel import NumbaEngine
from modicum.planner.allocation.problem import Booleans, Contests, Integers, Problem
from modicum.planner.simulation.setting import Setting
from modicum.planner.simulation.simulation import Run, simulate
from modicum.planner.verification import verify
from modicum.workloads.cohere import Recipe, cohere
from modicum.workloads.model import Workload

pytestmark = pytest.mark.soak

SOAKS = bool(os.environ.get("MODICUM_SOAK"))
ROUNDS, DOMAIN = (40, 204_800) if SOAKS else (15, 3_000)

#: All orders of the original at which there is a budget.
ORDERS = (8, 16, 32, 64, 10**6, 10**10)


class Checked:
    """An engine whose every plan is verified as soon as it is made.

    Args:
        problem: A round.
        plans: How many requests each plan accepts; one is added.
    """

    def __init__(self, problem: Problem, plans: list[int]) -> None:
        self._problem, self._plans = problem, plans
        self._engine = NumbaEngine(problem)

    def valued(self, weights: Integers) -> Engine:
        return Checked(replace(self._problem, weights=weights), self._plans)

    def alone(self) -> Booleans:
        return self._engine.alone()

    def contests(self, alive: Booleans) -> Contests:
        return self._engine.contests(alive)

    def favored(self, contests: Contests, alive: Booleans) -> Integers:
        return self._engine.favored(contests, alive)

    def greedy(self, order: Integers) -> Booleans:
        accepted = self._engine.greedy(order)
        assert verify(self._problem, np.flatnonzero(accepted)) == ()
        self._plans.append(int(accepted.sum()))
        return accepted


def checked(plans: list[int]) -> Callable[[Problem], Engine]:
    return lambda problem: Checked(problem, plans)


def budget() -> Integers:
    """Return what an element may be charged for epsilon 3 and delta 1e-7, by order."""
    log = Decimal(10**7).ln()
    return np.array([int((3 - log / (order - 1)) * 10**12) for order in ORDERS])


def costs(workload: Workload) -> Integers:
    """Return what each request costs, by order."""
    where = [order_index(Fraction(order)) for order in ORDERS]
    by_type = np.array(
        [
            [kind.loss("as-published").coordinates[a] for a in where]
            for kind in workload.types
        ]
    )
    return by_type[workload.requests.type]


def replayed(run: Run, slack: Fraction) -> DenseReplay:
    """Return the replay of a run."""
    workload, requests = run.workload, run.workload.requests
    replay = DenseReplay(workload.domain, budget(), workload.window, slack)
    charged = costs(workload)
    for number in workload.round_numbers:
        kept = run.accepted_in == number
        replay.play(requests.first[kept], requests.width[kept], charged[kept])
    return replay


def workload(name: str) -> Workload:
    return cohere(name, Recipe(seed=int(seed()), rounds=ROUNDS, domain=DOMAIN))


@pytest.mark.spec("PLAN-3")
@pytest.mark.parametrize("name", ["w1", "w2", "w3", "w4"])
def test_no_element_of_any_group_is_ever_overspent(name: str) -> None:
    plans: list[int] = []
    run = simulate(workload(name), Setting(), checked(plans))
    assert replayed(run, Fraction(2, 5)).violations == 0
    assert len(plans) == ROUNDS
    assert sum(plans) == run.accepted.sum() > 0
    assert 0.1 < run.total().utility_fraction < 0.6


@pytest.mark.parametrize("name", ["w1", "w4"])
def test_the_replay_sees_what_is_overspent(name: str) -> None:
    """Less slack, or everything at once, leaves less than these runs spend."""
    short = cohere(name, Recipe(seed=int(seed()), rounds=3, domain=1_000))
    run = simulate(short, Setting(), NumbaEngine)
    assert replayed(run, Fraction(2, 5)).violations == 0
    assert replayed(run, Fraction(1, 5)).violations > 0
    at_once = simulate(short, Setting(schedule=AtOnce(12)), NumbaEngine)
    assert replayed(at_once, Fraction(2, 5)).violations > 0
    generous = Setting(schedule=Unlocking(12, Fraction(9, 20)))
    more = simulate(short, generous, NumbaEngine)
    assert replayed(more, Fraction(2, 5)).violations > 0
    first = int(short.round_numbers[0])
    all_of_it = run.accepted_in.copy()
    all_of_it[short.requests.round == first] = first
    assert replayed(Run(short, run.setting, all_of_it), Fraction(2, 5)).violations > 0
