"""Sums that would not be 64-bit integers are refused before anything is planned."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from modicum.accounting import ApproxBudget
from modicum.accounting.filters.unlock_schedule import AtOnce, Unlocking
from modicum.core.errors import Code, InputError
from modicum.planner.allocation.numpy_kernel import NumpyEngine
from modicum.planner.allocation.problem import Problem
from modicum.planner.rounds import history
from modicum.planner.simulation.scenario import Scenario, simulate_ruled
from modicum.planner.simulation.setting import Setting
from modicum.planner.simulation.simulation import Run, simulate
from modicum.policy.compiler import compile_text
from modicum.workloads.cohere import Recipe, cohere
from modicum.workloads.dpolicy import dpolicy
from modicum.workloads.model import Workload


def small(every: int = 25) -> Workload:
    whole = cohere("w2", Recipe(rounds=3, domain=50))
    kept = np.arange(0, len(whole.requests), every)
    return replace(whole, requests=whole.requests.chosen(kept))


def generous(eps: int) -> Setting:
    return Setting(
        budget=ApproxBudget(Fraction(eps), Fraction(1, 10**7)),
        filter="basic-v1",
        pricing="tight",
        schedule=AtOnce(3),
        attempts=3,
        subsampling=False,
    )


def worth(workload: Workload, utility: int) -> Workload:
    column = np.full(len(workload.requests), utility, np.int64)
    return replace(workload, requests=replace(workload.requests, utility=column))


@pytest.mark.spec("PLAN-11")
@pytest.mark.parametrize("solver", ["fcfs", "dpk", "steady", "dpf-weighted-remaining"])
@pytest.mark.parametrize("blocks", [False, True])
def test_whatever_is_not_refused_is_planned(solver: str, blocks: bool) -> None:
    """Budgets and utilities just below and above what is refused: no sum overflows."""
    outcomes = set()
    for power in range(2, 9):
        setting = replace(generous(10**power), solver=solver, blocks=blocks)
        for utility in (1, 2**54, 2**55, 2**56, 2**57):
            try:
                run = simulate(worth(small(), utility), setting, NumpyEngine)
            except InputError as error:
                (problem,) = error.problems
                assert problem.code is Code.OUT_OF_RANGE
                outcomes.add(problem.message.split(" is so large")[0])
            else:
                count = run.total()
                assert count.utility == count.accepted * utility > 0
                assert count.utility_requested == count.requested * utility
                outcomes.add("planned")
    assert outcomes == {"planned", "the budget", "the utility of a request"}


POLICY = """\
modicum: policy/v1
name: wide
dp: {neighbors: add-remove, bare_budget: {type: approx-dp, delta: 1e-7}}
units: {user: {id: user_id}}
schema: {attributes: {a0: low}}
policies:
  - {name: narrow, when: "true", unit: user, budget: 1}
  - {name: wide, for_each: attribute, unit: user, budget: {low: EPS}}
"""


def under_rules(workload: Workload, setting: Setting, eps: int) -> Run:
    """Return a run in which one rule has the budget, and another a narrow one."""
    text = POLICY.replace("EPS", str(eps))
    scenario = Scenario(compile_text(text.encode(), "wide"), rules=(0, 1))
    return simulate_ruled(workload, setting, scenario, NumpyEngine)


def labeled() -> Workload:
    whole = dpolicy("s1", Recipe(rounds=3, domain=50))
    kept = np.arange(0, len(whole.requests), 25)
    return replace(whole, requests=whole.requests.chosen(kept))


@pytest.mark.spec("PLAN-11")
def test_under_rules_the_largest_budget_of_any_rule_counts() -> None:
    outcomes = set()
    for power in range(2, 9):
        for utility in (1, 2**54, 2**57):
            workload = worth(labeled(), utility)
            try:
                run = under_rules(workload, generous(3), 10**power)
            except InputError as error:
                (problem,) = error.problems
                assert problem.code is Code.OUT_OF_RANGE
                outcomes.add(problem.message.split(" is so large")[0])
            else:
                count = run.total()
                assert count.utility == count.accepted * utility > 0
                outcomes.add("planned")
    assert outcomes == {"planned", "the budget", "the utility of a request"}


def test_nothing_to_plan_under_rules_is_refused() -> None:
    empty = replace(labeled(), requests=labeled().requests.chosen(np.arange(0)))
    with pytest.raises(InputError, match="no requests"):
        under_rules(empty, generous(3), 3)


@pytest.mark.spec("PLAN-11")
@pytest.mark.parametrize("ruled", [False, True])
def test_more_balances_than_there_is_memory_for_are_refused(
    ruled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Just as many numbers as the largest round has are planned, and not one fewer."""
    workload, setting = labeled(), generous(3)

    def run() -> Run:
        if ruled:
            return under_rules(workload, setting, 3)
        return simulate(workload, setting, NumpyEngine)

    sizes: list[int] = []
    made = Problem.__post_init__

    def noted(problem: Problem) -> None:
        made(problem)
        sizes.append(problem.left.size)

    with monkeypatch.context() as patch:
        patch.setattr(Problem, "__post_init__", noted)
        expected = run()
    monkeypatch.setattr(history, "NUMBERS_MAX", max(sizes))
    assert np.array_equal(run().accepted_in, expected.accepted_in)
    monkeypatch.setattr(history, "NUMBERS_MAX", max(sizes) - 1)
    with pytest.raises(InputError) as caught:
        run()
    (problem,) = caught.value.problems
    assert problem.code is Code.OUT_OF_RANGE
    assert "balances" in problem.message
    assert "fewer requests" in problem.help


def test_usual_budgets_pass_with_many_requests() -> None:
    whole = cohere("w1", Recipe(rounds=1))
    many = np.tile(np.arange(len(whole.requests)), 100)
    workload = replace(whole, requests=whole.requests.chosen(many))
    setting = Setting(solver="fcfs", schedule=Unlocking(12, Fraction(0)))
    run = simulate(workload, replace(setting, partitioning=False), NumpyEngine)
    assert run.total().accepted > 0


def test_nothing_to_plan_is_refused() -> None:
    empty = replace(small(), requests=small().requests.chosen(np.arange(0)))
    with pytest.raises(InputError, match="no requests"):
        simulate(empty, Setting(), NumpyEngine)


def test_utilities_are_added_up_over_all_rounds() -> None:
    """One request a round: sums of a group's life fit, the sum of all would not."""
    whole = cohere("w2", Recipe(rounds=40, domain=50))
    first = np.unique(whole.requests.round, return_index=True)[1]
    one_each = replace(whole, requests=whole.requests.chosen(first))
    setting = Setting(schedule=Unlocking(12, Fraction(0)))
    with pytest.raises(InputError, match="utility of a request is so large"):
        simulate(worth(one_each, 2**62 // 13 - 1), setting, NumpyEngine)
    run = simulate(worth(one_each, 2**62 // 41 - 1), setting, NumpyEngine)
    assert run.total().utility_requested == 40 * (2**62 // 41 - 1)
