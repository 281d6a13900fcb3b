"""Simulations on this machine: both engines make the same plans; times add up."""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from modicum.accounting import ApproxBudget
from modicum.accounting.filters.unlock_schedule import AtOnce, Unlocking
from modicum.core.errors import Code, InputError
from modicum.ops import simulation as shell
from modicum.ops.simulation import (
    STEPS,
    ChosenEngine,
    Duration,
    added,
    engine_named,
    simulate_timed,
    versions,
)
from modicum.planner.simulation.setting import SOLVERS, Setting
from modicum.planner.simulation.simulation import simulate
from modicum.workloads.cohere import Recipe
from modicum.workloads.model import Workload
from modicum.workloads.registry import generated


def small(name: str = "w4", every: int = 8, rounds: int = 3) -> Workload:
    """Return every so many-th request of a workload."""
    whole = generated(name, Recipe(rounds=rounds, seed=5))
    kept = np.arange(0, len(whole.requests), every)
    return replace(whole, requests=whole.requests.chosen(kept))


# --- engines --------------------------------------------------------------------------

#: A setting of few rounds and little budget, so that much is contested.
TIGHT = Setting(
    budget=ApproxBudget(Fraction(2), Fraction(1, 10**7)),
    schedule=Unlocking(4, Fraction(1, 2)),
    attempts=2,
)
GREEDY = ("fcfs", "dpf", "dpf-weighted", "dpf-weighted-remaining", "dpk", "steady")


@pytest.mark.parametrize("name", ["w1", "w4"])
@pytest.mark.parametrize(
    "setting",
    [
        *(replace(TIGHT, solver=solver) for solver in GREEDY),
        replace(TIGHT, partitioning=False),
        replace(TIGHT, subsampling=False, schedule=AtOnce(3)),
        replace(TIGHT, blocks=True),
        replace(TIGHT, blocks=True, solver="fcfs"),
        replace(TIGHT, pricing="tight", filter="zcdp-v1"),
    ],
    ids=lambda one: f"{one.solver} {one.partitioning} {one.blocks} {one.filter}",
)
def test_both_engines_make_the_same_plans(setting: Setting, name: str) -> None:
    workload = small(name, every=3 if name == "w1" else 10)
    plans = [
        simulate(workload, setting, engine_named(one).make).accepted_in
        for one in ("numba", "numpy")
    ]
    assert plans[0].tolist() == plans[1].tolist()
    accepted = int((plans[0] >= 0).sum())
    assert 0 < accepted < len(workload.requests)


def test_every_solver_of_one_round_is_compared() -> None:
    assert set(GREEDY) <= set(SOLVERS)


def test_an_engine_by_its_name() -> None:
    assert engine_named("numba").name == engine_named("auto").name == "numba"
    assert engine_named("numpy").name == "numpy"
    assert {engine_named(one).remark for one in shell.ENGINES} == {""}
    with pytest.raises(InputError) as refused:
        engine_named("gpu")
    assert refused.value.problems[0].code is Code.UNKNOWN_CHOICE


def broken() -> None:
    raise ImportError("another NumPy is needed")


@pytest.mark.parametrize("missing", [lambda: None, broken], ids=["missing", "broken"])
def test_without_numba(missing: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "numba_engine", missing)
    engine = engine_named("auto")
    assert engine.name == "numpy"
    assert "modicum[fast]" in engine.remark
    assert engine_named("numpy").remark == ""
    with pytest.raises(InputError) as refused:
        engine_named("numba")
    problem = refused.value.problems[0]
    assert problem.code is Code.NOT_SUPPORTED
    assert "modicum[fast]" in problem.help


def test_versions_name_what_was_used() -> None:
    assert set(versions(engine_named("numpy"))) == {"modicum", "numpy", "python"}
    assert set(versions(engine_named("numba"))) > {"numba", "modicum"}


# --- times ----------------------------------------------------------------------------


def timed(engine: ChosenEngine) -> tuple[shell.Timed, list[tuple[str, int]]]:
    received: list[tuple[str, int]] = []
    found = simulate_timed(
        small(), TIGHT, engine, lambda doing, done: received.append((doing, done))
    )
    return found, received


@pytest.mark.parametrize("name", ["numba", "numpy"])
def test_times_are_of_every_step_and_add_up(name: str) -> None:
    found, received = timed(engine_named(name))
    plain = simulate(small(), TIGHT, engine_named(name).make)
    assert found.run.accepted_in.tolist() == plain.accepted_in.tolist()
    assert list(found.rounds) == [11, 12, 13]
    assert all(tuple(steps) == STEPS for steps in found.rounds.values())
    spells = [spell for steps in found.rounds.values() for spell in steps.values()]
    assert all(one.cpu >= 0 and one.wall > 0 for one in spells)
    assert found.total().wall == pytest.approx(sum(one.wall for one in spells))
    assert found.total().wall == pytest.approx(
        sum(found.step(step).wall for step in STEPS)
    )
    assert received[-4:] == [("dpk", 0), ("dpk", 1), ("dpk", 2), ("dpk", 3)]
    assert (found.warm_up is None) == (name == "numpy")
    assert received[:-4] == ([] if name == "numpy" else [("compiling", 0)])


def test_a_step_gets_the_time_that_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(time, "process_time", lambda: float(next(clock)))
    monkeypatch.setattr(time, "perf_counter", lambda: 0.5)
    watch = shell.Stopwatch(lambda _doing, _done: None, "dpk")  # At 0.
    for number in (11, 12):
        for step in STEPS:
            watch(number, step)  # Ends at an odd second, and the next begins then.
    assert {one.cpu for steps in watch.rounds.values() for one in steps.values()} == {1}
    assert {one.wall for one in watch.rounds[11].values()} == {0}


def test_spells_add_up() -> None:
    one, two = Duration(1, 2), Duration(0.5, 4)
    assert added([one, two]) == one + two == Duration(1.5, 6)
    assert added([]) == Duration()
    assert one + two - two == one


def test_the_first_requests_may_come_late() -> None:
    """Compiling needs some requests, whenever they arrive."""
    whole = small(rounds=3)
    last = whole.requests.of_round(13)
    workload = replace(whole, requests=last)
    found = simulate_timed(workload, TIGHT, engine_named("numba"))
    assert list(found.rounds) == [11, 12, 13]
    assert [one.requested for one in found.run.by_round().values()] == [0, 0, len(last)]


def test_a_workload_without_requests_is_refused() -> None:
    whole = small()
    empty = replace(whole, requests=whole.requests.chosen(np.arange(0)))
    for name in ("numba", "numpy"):
        with pytest.raises(InputError, match="no requests"):
            simulate_timed(empty, TIGHT, engine_named(name))
