"""Plans under rules keep every rule, and turn nothing away without one."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from budget import counted, examples, seed
from oracle.ruled import Told, overdrawn
from samples.ruled import (
    charge,
    random_policy,
    random_setting,
    random_workload,
    told,
)

from modicum.planner import Unlocking
from modicum.planner.allocation.engine import EngineOf
from modicum.planner.allocation.numba_kernel import NumbaEngine
from modicum.planner.allocation.numpy_kernel import NumpyEngine
from modicum.planner.rounds.periods import Tracked
from modicum.planner.simulation.loss_meter import Meter
from modicum.planner.simulation.scenario import Scenario, simulate_ruled
from modicum.planner.simulation.setting import Setting
from modicum.planner.simulation.simulation import Run
from modicum.policy import CompiledPolicy
from modicum.workloads.model import Workload

pytestmark = pytest.mark.soak

#: So many months are told apart that none shares an account with another.
ALL_MONTHS = Tracked(20, 20)


class World:
    """A random policy, and requests under it."""

    def __init__(
        self, name: str, solver: str, policy: CompiledPolicy | None = None
    ) -> None:
        rng = self.rng = Random(f"{seed()}/ruled/{name}")
        self.setting = random_setting(rng, solver)
        self.policy: CompiledPolicy = policy or random_policy(rng)
        self.workload: Workload = random_workload(rng, self.setting.schedule.rounds)
        self.everywhere = rng.random() < 0.5
        self.tracked = Tracked(rng.randint(0, 2), rng.randint(0, 3))

    @property
    def all_rules(self) -> tuple[int, ...]:
        return tuple(range(len(self.policy.rules)))

    def run(
        self,
        rules: tuple[int, ...] | None = None,
        tracked: Tracked | None = None,
        engine: EngineOf = NumpyEngine,
    ) -> Run:
        scenario = Scenario(
            self.policy, rules, tracked or self.tracked, self.everywhere
        )
        return simulate_ruled(self.workload, self.setting, scenario, engine)

    def told(self, run: Run) -> Told:
        return told(run, self.policy, static_everywhere=self.everywhere)


@pytest.mark.spec("PLAN-3", "PLAN-10")
@pytest.mark.parametrize("solver", ["dpk", "fcfs", "dpf-weighted-remaining", "steady"])
def test_no_rule_is_ever_violated(solver: str) -> None:
    accepted = rejected = 0
    for n in range(examples(15)):
        world = World(f"kept/{solver}/{n}", solver)
        run = world.run()
        assert overdrawn(world.told(run)) == [], n
        meter = Meter(run, world.policy, static_everywhere=world.everywhere)
        if world.setting.partitioning:
            assert not any(meter.violates(rule) for rule in world.all_rules), n
        accepted += run.total().accepted
        rejected += run.total().requested - run.total().accepted
    assert min(accepted, rejected) > examples(15)


@pytest.mark.spec("PLAN-3")
def test_what_a_month_was_charged_is_not_forgotten_in_the_next() -> None:
    for n in range(examples(12)):
        policy = random_policy(Random(n), ("user-month",))
        world = World(f"long/{n}", "fcfs", policy)
        schedule = Unlocking(world.rng.randint(6, 12), Fraction(2, 5))
        world.setting = replace(world.setting, schedule=schedule)
        world.workload = random_workload(world.rng, schedule.rounds, long=True)
        assert overdrawn(world.told(world.run())) == [], n


@pytest.mark.spec("PLAN-2", "PLAN-3", "PLAN-10")
def test_who_comes_first_is_turned_away_only_where_a_rule_would_break() -> None:
    """And so the oracle finds a plan that was tampered with."""
    found = 0
    for n in range(counted(15)):
        world = World(f"first/{n}", "fcfs")
        run = world.run(tracked=ALL_MONTHS)
        happened = world.told(run)
        rules = tuple(world.policy.rules)
        for request in np.flatnonzero(~run.accepted).tolist():
            more = charge(
                run, world.policy, rules, request, static_everywhere=world.everywhere
            )
            # What came later, and was accepted without it, is not there yet.
            before = [
                one
                for one, number in zip(
                    happened.charges, np.flatnonzero(run.accepted), strict=True
                )
                if number < request
            ]
            broken = overdrawn(replace(happened, charges=(*before, more)))
            assert broken, (n, request)
            assert {one.round for one in broken} >= {more.round}
            found += 1
    assert found > counted(15)


def test_pruned_rules_would_not_have_turned_anything_away() -> None:
    pruned = 0
    for n in range(counted(40)):
        world = World(f"pruned/{n}", "fcfs")
        kept = world.run()
        assert np.array_equal(kept.accepted_in, world.run(world.all_rules).accepted_in)
        pruned += len(world.all_rules) - len(world.policy.pruned.kept)
    assert pruned > counted(40)


@pytest.mark.spec("PLAN-6")
def test_engines_agree_under_rules() -> None:
    for n in range(examples(15)):
        world = World(f"engines/{n}", "dpk")
        plain, compiled = world.run(), world.run(engine=NumbaEngine)
        assert np.array_equal(plain.accepted_in, compiled.accepted_in), n


@pytest.mark.spec("PLAN-10")
def test_months_that_share_an_account_are_never_charged_less() -> None:
    fewer = 0
    for n in range(counted(40)):
        policy = random_policy(Random(n), ("user-month",))
        world = World(f"months/{n}", "fcfs", policy)
        apart = world.run(tracked=ALL_MONTHS)
        together = world.run(tracked=Tracked(0, 0))
        first = np.flatnonzero(apart.accepted_in != together.accepted_in)
        if len(first):
            # Up to the first difference both had accepted the same.
            assert apart.accepted[first[0]]
            fewer += 1
    assert fewer > counted(40) // 20


@pytest.mark.spec("PLAN-3")
def test_settings_without_a_part_of_the_ring_charge_everybody() -> None:
    for n in range(examples(10)):
        world = World(f"whole/{n}", "dpk")
        world.setting = replace(world.setting, partitioning=False)
        run = world.run()
        assert isinstance(run.setting, Setting)
        assert overdrawn(world.told(run)) == []
