"""DPolicy's scenarios: what policies mean, who falls under what, what was lost."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from oracle.ruled import overdrawn
from samples.ruled import told

from modicum.accounting import (
    ApproxBudget,
    Total,
)
from modicum.accounting.filters.budget import figure
from modicum.accounting.filters.prototype import PUBLISHED_ORDERS, mironov_epsilon
from modicum.accounting.grid import COORDINATES, order_index
from modicum.core.document import from_python
from modicum.core.errors import InputError, InvariantError
from modicum.ledger.decision.rule_matching import Matching
from modicum.ledger.log.recorded_release import record_release
from modicum.planner.allocation.numba_kernel import NumbaEngine
from modicum.planner.simulation.labels import labels_of, matching
from modicum.planner.simulation.loss_meter import STEPS, Meter
from modicum.planner.simulation.scenario import (
    RuledWorld,
    Scenario,
    filtered,
    simulate_ruled,
)
from modicum.planner.simulation.setting import Setting
from modicum.planner.simulation.simulation import simulate
from modicum.policy import CompiledPolicy
from modicum.policy.budget_maps import apply_map
from modicum.policy.compiler import compile_text
from modicum.release import parse_release, price
from modicum.workloads.cohere import Recipe, cohere
from modicum.workloads.dpolicy import SCENARIOS, dpolicy
from modicum.workloads.model import Workload
from modicum.workloads.releases import release_of

EXAMPLES = Path(__file__).parents[3] / "examples" / "dpolicy"
DELTA_7 = Fraction(1, 10**7)
#: The rule about everything, which alone is held by who looks at nothing else.
TOTAL = {"s1": "total @black-box", "s2": "total", "s3": "total-user"}


@cache
def policy_of(name: str, standard: str = "2.5") -> CompiledPolicy:
    text = (EXAMPLES / f"{name}.yaml").read_text("utf-8")
    text = text.replace("budget: 2.5}", f"budget: {standard}}}")
    text = text.replace("{low: 2.5}", f"{{low: {standard}}}")
    return filtered(compile_text(text.encode(), name), "as-published")


@cache
def workload_of(name: str, rounds: int = 3) -> Workload:
    return dpolicy(name, Recipe(seed=1, rounds=rounds))


# --- the relaxation of S1 -------------------------------------------------------------


@pytest.mark.parametrize(
    ("standard", "relaxed"),
    [
        ("1.7", "3"),
        ("1.83", "5"),  # An interpolation of unsorted points gave 4.9,
        ("1.9", "7"),
        ("2", "10"),  # and 9.2857.
        ("2.25", "15"),
        ("2.5", "20"),
        ("2.125", "12.5"),
        ("0.05", "0.05"),
    ],
)
def test_what_black_box_models_may_lose_in_s1(standard: str, relaxed: str) -> None:
    text = (EXAMPLES / "s1.yaml").read_text("utf-8")
    text = text.replace("budget: 2.5}", f"budget: {standard}}}")
    rules = compile_text(text.encode(), "s1").rules
    numbers = [rules.number(f"total @{one}") for one in ("standard", "black-box")]
    budgets = [rules[one].budget for one in numbers if one is not None]
    assert budgets == [
        ApproxBudget(Fraction(standard), DELTA_7),
        ApproxBudget(Fraction(relaxed), DELTA_7),
    ]


def test_the_relaxation_of_s1_is_sorted_rising_and_ends_at_its_last_point() -> None:
    text = (EXAMPLES / "s1.yaml").read_text("utf-8")
    points = [line.strip() for line in text.splitlines() if line.startswith(" " * 12)]
    points = [line for line in points if line[0].isdigit()]
    assert len(points) == 14
    shuffled = text
    for place, line in enumerate(points):
        shuffled = shuffled.replace(f" {line}\n", f" <{place}>\n", 1)
    for place in range(14):
        shuffled = shuffled.replace(f"<{place}>", points[(place * 5) % 14])
    assert shuffled != text
    assert sorted(shuffled.splitlines()) == sorted(text.splitlines())
    grid = [Fraction(n, 40) for n in range(1, 121)]
    found = [_relaxed(shuffled, standard) for standard in grid]
    assert found == [_relaxed(text, standard) for standard in grid]
    assert found == sorted(found)
    assert all(most >= standard for standard, most in zip(grid, found, strict=True))
    with pytest.raises(InputError, match=r"undefined at 3\.01"):
        _relaxed(text, Fraction(301, 100))


def _relaxed(text: str, standard: Fraction) -> Fraction:
    extension = _policy_of(text).policy.extensions[0]
    maps = {setting.name: setting.budget_map for setting in extension.settings}
    budget = apply_map(maps["black-box"], ApproxBudget(standard, DELTA_7), "total")
    assert isinstance(budget, ApproxBudget)
    return budget.eps


@cache
def _policy_of(text: str) -> CompiledPolicy:
    return compile_text(text.encode(), "s1.yaml")


# --- who falls under what -------------------------------------------------------------


@pytest.mark.parametrize("name", SCENARIOS)
def test_requests_fall_under_the_rules_that_the_ledger_finds(name: str) -> None:
    compiled, workload = policy_of(name), workload_of(name)
    vocabulary = compiled.policy.vocabulary
    labels = labels_of(workload.requests)
    found = matching(compiled, labels, range(len(compiled.rules)))
    ledger = Matching(compiled)
    for one in range(0, len(workload.requests), 31):
        release = parse_release(from_python(release_of(workload, one)), vocabulary)
        matches = ledger.of(record_release(price(release, vocabulary)))
        numbers = {
            number
            for unit in matches.over_history
            for rule in unit.rules
            for number in rule.numbers
        }
        assert set(found[one]) == numbers
        assert numbers


def test_only_the_rules_that_are_held_are_numbered() -> None:
    compiled, workload = policy_of("s2"), workload_of("s2")
    labels = labels_of(workload.requests)
    kept = compiled.pruned.kept
    everything = matching(compiled, labels, range(len(compiled.rules)))
    for mine, rules in zip(matching(compiled, labels, kept), everything, strict=True):
        assert [kept[position] for position in mine] == [r for r in rules if r in kept]


def test_policies_and_workloads_that_do_not_fit_are_refused() -> None:
    plain = cohere("w1", Recipe(rounds=1))
    with pytest.raises(InputError, match="no labels"):
        simulate_ruled(plain, Setting(), Scenario(policy_of("s1")), NumbaEngine)
    with pytest.raises(InputError, match="no attribute `a1"):
        simulate_ruled(
            workload_of("s2"), Setting(), Scenario(policy_of("s1")), NumbaEngine
        )
    text = (
        (EXAMPLES / "s3.yaml")
        .read_text("utf-8")
        .replace("period: month", "period: week")
    )
    weeks = compile_text(text.encode(), "weeks")
    with pytest.raises(InputError, match="has periods that are not months"):
        simulate_ruled(workload_of("s3"), Setting(), Scenario(weeks), NumbaEngine)


# --- runs -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCENARIOS)
def test_who_holds_the_total_alone_plans_like_without_rules(name: str) -> None:
    compiled, workload = policy_of(name), workload_of(name)
    setting = Setting(budget=ApproxBudget(Fraction(20), DELTA_7))
    number = compiled.rules.number(TOTAL[name])
    assert number is not None
    alone = Scenario(compiled, rules=(number,))
    ruled = simulate_ruled(workload, setting, alone, NumbaEngine)
    plain = simulate(workload, setting, NumbaEngine)
    assert np.array_equal(ruled.accepted_in, plain.accepted_in)
    assert 0 < ruled.total().accepted < ruled.total().requested


@pytest.mark.parametrize(
    ("name", "everywhere"),
    [("s1", False), ("s2", False), ("s3", False), ("s3", True)],
)
def test_no_rule_of_a_scenario_is_violated(name: str, *, everywhere: bool) -> None:
    compiled, workload = policy_of(name), workload_of(name, 2)
    scenario = Scenario(compiled, static_everywhere=everywhere)
    run = simulate_ruled(workload, Setting(), scenario, NumbaEngine)
    assert overdrawn(told(run, compiled, static_everywhere=everywhere)) == []
    assert run.total().accepted > 300
    everybody = replace(run, accepted_in=workload.requests.round)
    found = overdrawn(told(everybody, compiled, static_everywhere=everywhere))
    assert {one.rule for one in found} >= {TOTAL[name]}


@pytest.mark.parametrize("name", SCENARIOS)
def test_before_anything_was_charged_all_that_is_unlocked_is_left(name: str) -> None:
    workload = workload_of(name)
    world = RuledWorld(workload, Setting(), Scenario(policy_of(name)))
    batch = workload.requests.of_round(workload.first_round)
    problem = world.problem(batch, workload.first_round)
    assert world.unlocked(problem).tolist() == problem.left.tolist()
    assert (problem.left >= 0).any(axis=1).all()
    with pytest.raises(InvariantError):
        RuledWorld(workload, Setting(), Scenario(policy_of(name))).spend(
            problem, batch, np.ones(len(batch), np.bool_)
        )


def test_the_meter_tells_the_least_budget_that_would_have_been_enough() -> None:
    compiled, workload = policy_of("s3"), workload_of("s3", 10)
    number = compiled.rules.number("total-user")
    assert number is not None
    run = simulate_ruled(
        workload, Setting(), Scenario(compiled, (number,)), NumbaEngine
    )
    meter = Meter(run, compiled, static_everywhere=False)
    budget = ApproxBudget(Fraction(20), DELTA_7)
    for rule in (number, compiled.rules.number("attr-month:a1") or 0):
        indices = [order_index(order) for order in PUBLISHED_ORDERS]
        rows = meter.charged(rule)
        least = [mironov_epsilon(order, 0, DELTA_7) for order in PUBLISHED_ORDERS]
        near = (rows[:, indices] + np.array(least)).min(axis=1)
        worst = max(
            figure(budget, "as-published", Total(tuple(row), (0,) * COORDINATES))
            for row in rows[near.argsort()[-5:]].tolist()
        )
        highest = meter.highest(rule, Fraction(20))
        assert highest * 10**12 >= worst
        assert highest - Fraction(worst, 10**12) < Fraction(1, STEPS)
    assert not meter.violates(number)
    assert meter.violates(compiled.rules.number("attr-month:a1") or 0)
    nobody = replace(run, accepted_in=np.full_like(run.accepted_in, -1))
    unused = Meter(nobody, compiled, static_everywhere=True)
    assert unused.highest(number, Fraction(20)) == 0
    assert not unused.violates(number)
