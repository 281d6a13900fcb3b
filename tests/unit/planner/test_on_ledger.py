"""A round on a small ledger: what is left out, what is accepted, and what is said."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from msgspec import structs

from modicum.accounting import COORDINATES, INFINITE, Loss
from modicum.accounting.filters.unlock_schedule import Unlocking
from modicum.accounting.grid import DELTA, EPS, RHO
from modicum.api.local.plans.plan import left_out_lines
from modicum.core.errors import Code, InputError, UsageError
from modicum.ledger import Balances, RecordedRelease
from modicum.ledger.log.events import GroupActivated, RoundOpened
from modicum.ledger.log.recorded_release import RecordedMechanism
from modicum.ledger.state.rounds import Planning
from modicum.planner.allocation.numba_kernel import NumbaEngine
from modicum.planner.allocation.numpy_kernel import NumpyEngine
from modicum.planner.allocation.problem import Problem
from modicum.planner.ledger_round import presolve
from modicum.planner.ledger_round.cancellation import Means
from modicum.planner.ledger_round.coordinates import open_engine
from modicum.planner.ledger_round.denial_reasons import Obstacle, obstacles
from modicum.planner.ledger_round.plan import ON_LEDGER, RoundPlan, plan_round
from modicum.planner.ledger_round.presolve import Reason
from modicum.planner.ledger_round.problem import RoundProblem, problem_of
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_policy, compile_text
from modicum.policy.model import Retired, RotationRule
from modicum.release import Part
from modicum.release.parts import Span

ONE = 10**12

POLICY = """
modicum: policy/v1
name: shop
units: {user: {id: user_id}, home: {id: home_id}}
schema: {attributes: {age: low, pay: low, mood: low}}
population:
  partition_by: {country: {values: [CH, DE, FR], immutable: [user, home]}}
  groups: {immutable: [user]}
policies:
  - {name: user, when: '"age" in m.attributes', unit: user, budget: {rho: 10}}
  - {name: home, when: '"age" in m.attributes', unit: home, budget: {eps: 10}}
  - {name: pay, when: '"pay" in m.attributes', unit: user,
     budget: {eps: 1000, delta: 1e-6}}
per_release:
  - {name: once, when: '"age" in m.attributes', unit: user, budget: {rho: 7}}
"""


def policy() -> CompiledPolicy:
    return compile_text(POLICY.encode(), "policy.yaml")


def loss(units: int, delta: int = 0) -> Loss:
    coordinates = [INFINITE] * COORDINATES
    coordinates[RHO] = coordinates[EPS] = units
    coordinates[DELTA] = delta
    return Loss(tuple(coordinates))


def mechanism(
    rho: int,
    *countries: str,
    home: int = 0,
    reads: str = "age",
    delta: int = 0,
    groups: tuple[Span, ...] | None = None,
) -> RecordedMechanism:
    where = ((("country", countries),),) if countries else None
    return RecordedMechanism(
        description={"name": "m", "kind": "declared"},
        attributes=(reads,),
        labels={},
        losses={"user": loss(rho * ONE, delta), "home": loss(home * ONE)},
        part=Part(where=where, groups=groups),
    )


def release(name: str, *mechanisms: RecordedMechanism) -> RecordedRelease:
    return RecordedRelease(name, "0" * 64, {}, {}, mechanisms)


def planned(
    *requests: RecordedRelease,
    weights: tuple[int, ...] = (),
    balances: Balances | None = None,
    solver: str = "fcfs",
) -> RoundPlan:
    return plan_round(
        balances or Balances(policy()),
        requests,
        weights or (1,) * len(requests),
        ON_LEDGER[solver](),
        0,
    )


def problem(*requests: RecordedRelease) -> RoundProblem:
    return problem_of(Balances(policy()), requests, (1,) * len(requests), 0)


# --- the problem ----------------------------------------------------------------------


def test_a_problem_has_only_cells_that_cannot_let_everybody_pass() -> None:
    found = problem(
        release("a", mechanism(6, "CH")),
        release("b", mechanism(5, "CH", "DE")),
        release("c", mechanism(5, "DE")),
        release("d", mechanism(7, "FR")),
    )
    assert found.coordinates == (("user", RHO),)
    assert found.problem.places == 1
    assert found.cell_text(0) == "country CH"
    assert found.problem.left.tolist() == [[10 * ONE]]
    assert found.problem.full.tolist() == [[10 * ONE]]
    assert found.problem.costs.tolist() == [[6 * ONE], [5 * ONE], [0], [0]]
    assert found.problem.run_first.tolist() == [0, 1, 2, 2, 2]
    assert found.exact.all()


def test_units_have_coordinates_of_their_own() -> None:
    found = problem(
        release("a", mechanism(6, "CH", home=4)),
        release("b", mechanism(5, "CH", home=7)),
    )
    assert found.coordinates == (("home", EPS), ("user", RHO))
    assert found.problem.left.tolist() == [[10 * ONE, -1], [-1, 10 * ONE]]
    assert found.problem.costs.tolist() == [[4 * ONE, 6 * ONE], [7 * ONE, 5 * ONE]]


def test_delta_must_hold_besides() -> None:
    small, large = 10**11, 2 * 10**11
    found = problem(
        release("a", mechanism(1, reads="pay", delta=small)),
        release("b", mechanism(1, reads="pay", delta=large)),
        release("c", mechanism(1, reads="pay")),
    )
    assert found.coordinates == (("user", DELTA),)
    assert found.problem.block.tolist() == [1]
    assert found.problem.left.tolist() == [[25 * 10**10]]
    assert found.problem.costs.tolist() == [[small], [large], [0]]


def test_what_costs_more_at_some_place_is_not_exact() -> None:
    both = release("both", mechanism(3, "CH"), mechanism(2, "CH", "DE"))
    one = release("one", mechanism(6))
    found = problem(both, one, release("more", mechanism(3, "DE")))
    assert found.exact.tolist() == [False, True, True]
    assert found.problem.costs[0].tolist() == [5 * ONE]
    # The problem turns it away in Germany; the ledger does not.
    plan = planned(one, both, release("little", mechanism(2, "DE")), solver="fcfs")
    assert plan.accepted == (0, 2)
    plan = planned(
        release("one", mechanism(6, "CH")),
        release("other", mechanism(6, "DE")),
        release("mixed", mechanism(4, "CH"), mechanism(3, "DE")),
    )
    assert plan.accepted == (0, 1, 2)
    plan = planned(
        release("one", mechanism(6, "CH")),
        release("other", mechanism(7, "DE")),
        release("mixed", mechanism(4, "CH"), mechanism(3, "DE")),
        release("never", mechanism(7)),
    )
    assert plan.accepted == (0, 1, 2)


@pytest.mark.parametrize("turned", [False, True])
def test_rules_about_different_mechanisms_charge_the_most_of_them(
    turned: bool,
) -> None:
    lines = POLICY.splitlines()
    place = next(n for n, line in enumerate(lines) if "name: home" in line)
    everything = lines[place].replace('"age" in m.attributes', "true")
    lines[place] = everything.replace("home", "user").replace("{eps: 10}", "{rho: 12}")
    lines[place] = lines[place].replace("name: user", "name: all")
    if turned:
        lines[place - 1 : place + 1] = lines[place], lines[place - 1]
    balances = Balances(compile_text("\n".join(lines).encode(), "policy.yaml"))
    requests = [
        release("two", mechanism(4), mechanism(5, reads="mood")),
        release("one", mechanism(7)),
    ]
    found = problem_of(balances, requests, (1, 1), 0)
    assert found.problem.places == 2
    assert found.problem.costs.tolist() == [[9 * ONE], [7 * ONE]]
    assert found.exact.tolist() == [False, True]


WITHIN = """
modicum: policy/v1
name: within
units:
  home: {id: home_id, neighbors: any-change}
  user: {id: user_id, within: home}
schema: {attributes: {age: low}}
policies:
  - {name: home, when: "true", unit: home, budget: {rho: 10}}
  - {name: user, when: "true", unit: user, budget: {rho: 10}}
"""


@pytest.mark.parametrize(
    ("unlocked", "accepted"), [({}, (0, 1)), ({"user": 500_000}, (0,))]
)
def test_rules_are_left_out_only_if_everything_is_unlocked(
    unlocked: dict[str, int], accepted: tuple[int, ...]
) -> None:
    planning = Planning()
    if unlocked:
        planning.open_round(RoundOpened("first", unlocked))
    compiled = compile_text(WITHIN.encode(), "policy.yaml")
    balances = Balances(compiled, planning=planning)
    own = mechanism(4, home=4)
    own = replace(own, neighbors={"home": "any-change"})
    plan = planned(*(release(name, own) for name in "abc"), balances=balances)
    rules = {compiled.rules.rule_id(line) for line in plan.problem.line.tolist()}
    assert rules == ({"home", "user"} if unlocked else {"home"})
    assert plan.accepted == accepted


def test_what_is_unlocked_depends_on_the_group() -> None:
    rule = RotationRule(Unlocking(2, Fraction(0)), Retired.CLOSED)
    compiled = compile_policy(structs.replace(policy().policy, rotation=rule))
    planning = Planning()
    planning.open_round(RoundOpened("first", {}))
    planning.activate(GroupActivated(0, "first"))
    planning.open_round(RoundOpened("second", {}))
    planning.activate(GroupActivated(1, "second"))
    balances = Balances(compiled, planning=planning)
    requests = [
        release("old", mechanism(6, groups=((0, 0),))),
        release("young", mechanism(6, groups=((1, 1),))),
        release("both", mechanism(5, groups=((0, 1),))),
        release("unknown", mechanism(1, groups=((2, 2),))),
    ]
    plan = planned(*requests, balances=balances)
    assert plan.accepted == (0,)
    assert [one.request for one in plan.left_out] == [1, 3]
    assert sorted(plan.problem.left[:, 0].tolist()) == [10 * ONE]
    (obstacle,) = obstacles(plan, 2)
    assert (obstacle.cell, obstacle.before) == ("group 0", 10 * ONE)


# --- what is refused ------------------------------------------------------------------


def test_a_round_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = release("a", mechanism(6)), release("b", mechanism(6))
    coordinates = len(problem(*requests).demands[0].coordinates)
    # Each request costs both units something in a segment; one row is for all units.
    demands, rows = 2 * 2 * (coordinates + 1), 2 * 2 * coordinates + 3 * 2
    assert demands < rows
    monkeypatch.setattr(presolve, "NUMBERS_MAX", rows)
    assert problem(*requests).problem.places == 1
    for too_few in (rows - 1, demands - 1):
        monkeypatch.setattr(presolve, "NUMBERS_MAX", too_few)
        with pytest.raises(InputError, match="too many cells") as caught:
            problem(*requests)
        assert caught.value.code is Code.OUT_OF_RANGE


@pytest.mark.parametrize("weights", [(1,), (1, -1), (1, 2**61)])
def test_odd_weights_are_refused(weights: tuple[int, ...]) -> None:
    requests = [release("a", mechanism(6)), release("b", mechanism(6))]
    with pytest.raises(InputError, match=r"weight"):
        planned(*requests, weights=weights)


def test_a_huge_limit_is_refused_only_if_sums_may_overflow() -> None:
    text = POLICY.replace("{rho: 10}", "{rho: 4e6}").replace("{rho: 7}", "unlimited")
    balances = Balances(compile_text(text.encode(), "policy.yaml"))
    little = [release(name, mechanism(1, home=6)) for name in "abc"]
    assert planned(*little, balances=balances).accepted == (0,)
    much = [release(name, mechanism(3 * 10**6)) for name in "abc"]
    with pytest.raises(InputError, match="64-bit") as caught:
        planned(*much, balances=balances)
    assert caught.value.code is Code.OUT_OF_RANGE


# --- who is left out, and why ---------------------------------------------------------


@pytest.mark.parametrize("unmatched", ["deny", "allow"])
def test_requests_are_left_out_with_a_reason(unmatched: str) -> None:
    text = POLICY + f"unmatched: {unmatched}\n"
    balances = Balances(compile_text(text.encode(), "policy.yaml"))
    balances.charge(release("old", mechanism(5, "DE")))
    plan = planned(
        release("large", mechanism(8)),
        release("late", mechanism(6, "DE")),
        release("free", mechanism(99, reads="mood")),
        release("fine", mechanism(6, "CH")),
        balances=balances,
    )
    assert plan.accepted == (3,)
    assert [(one.request, one.reason) for one in plan.left_out] == [
        (0, Reason.SINGLE),
        (1, Reason.FULL),
        (2, Reason.UNCOVERED if unmatched == "allow" else Reason.UNMATCHED),
    ]
    blocking = [one.verdict.blocking for one in plan.left_out]
    assert blocking == [("once", "user"), ("user",), ()]
    assert list(left_out_lines(plan.left_out[2])) == (
        [
            "no rule limits it, so there is nothing to plan",
            "submit it by itself:  modicum release submit",
        ]
        if unmatched == "allow"
        else [
            "no rule limits a mechanism of it, so it is denied",
            "no rule limits `m`: add a rule to `policies` that matches, or"
            "  unmatched: allow  to the policy",
        ]
    )


def test_why_not_names_the_rule_the_cell_and_the_rivals() -> None:
    plan = planned(
        release("small", mechanism(2, "CH")),
        release("large", mechanism(6, "CH", "DE")),
        release("elsewhere", mechanism(7, "FR")),
        release("refused", mechanism(3, "CH")),
    )
    assert plan.accepted == (0, 1, 2)
    assert obstacles(plan, 3) == (
        Obstacle(
            rule="user",
            cell="country CH",
            coordinate="rho",
            before=10 * ONE,
            left=2 * ONE,
            cost=3 * ONE,
            rivals=("large", "small"),
        ),
    )


@pytest.mark.parametrize("number", [0, 1, 2, -1])
def test_obstacles_are_those_of_requests_that_were_planned(number: int) -> None:
    plan = planned(release("a", mechanism(1)), release("large", mechanism(99)))
    assert plan.accepted == (0,)
    with pytest.raises(UsageError):
        obstacles(plan, number)


def test_nothing_is_said_of_a_coordinate_at_which_nothing_ever_passes() -> None:
    """Though less is missing there, where who was accepted is counted for too much."""
    plan = planned(release("a", mechanism(6)), release("b", mechanism(6)))
    costs = np.array([[12 * ONE, 0], [ONE, INFINITE]])
    counted = replace(
        plan.problem,
        costs=costs,
        left=np.array([[10 * ONE, -1]]),
        full=np.array([[10 * ONE, 0]]),
    )
    coordinates = (("user", RHO), ("user", EPS))
    found = replace(plan.round, problem=counted, coordinates=coordinates)
    (obstacle,) = obstacles(replace(plan, round=found), 1)
    assert (obstacle.coordinate, obstacle.before) == ("rho", 10 * ONE)


# --- plans ----------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ON_LEDGER)
@pytest.mark.parametrize("requests", [0, 1])
def test_where_nobody_competes_everybody_is_accepted(
    solver: str, requests: int
) -> None:
    some = [release("a", mechanism(6))] * requests
    assert planned(*some, solver=solver).accepted == tuple(range(requests))


def test_what_is_worth_most_for_what_it_takes_is_tried_first() -> None:
    requests = [
        release("much", mechanism(7)),
        release("worthy", mechanism(4)),
        release("little", mechanism(4, home=1)),
    ]
    plan = planned(*requests, weights=(3, 3, 2), solver="dpk")
    assert plan.accepted == (1, 2)
    assert planned(*requests, weights=(3, 3, 2)).accepted == (0,)


@pytest.mark.parametrize("engine_of", [NumpyEngine, NumbaEngine])
def test_no_coordinate_is_favored_at_which_nothing_passes(
    engine_of: type[NumpyEngine] | type[NumbaEngine],
) -> None:
    small, large = 10**11, 2 * 10**11
    found = problem(
        release("a", mechanism(600, reads="pay", delta=small)),
        release("b", mechanism(500, reads="pay", delta=large)),
        release("c", mechanism(300, reads="pay")),
    ).problem
    engine = open_engine(found, engine_of)
    contests = engine.contests(np.ones(3, np.bool_))
    favored = engine.favored(contests, np.ones(3, np.bool_))
    for pair, a in enumerate(favored.tolist()):
        rows = found.left[found.block == contests.pair_block[pair]]
        assert (rows[:, a] >= 0).all()
    assert len(set(favored.tolist())) == 2


@pytest.mark.parametrize("engine_of", [NumpyEngine, NumbaEngine])
def test_of_the_open_coordinates_the_one_is_favored_that_accepts_most(
    engine_of: type[NumpyEngine] | type[NumbaEngine],
) -> None:
    one, all_ = np.arange(2), np.arange(4)
    found = Problem(
        weights=np.array([5, 5, 5]),
        costs=np.array([[6, 4, 0], [6, 4, 0], [6, 9, 0]]),
        run_first=all_,
        run_start=np.zeros(3, np.int64),
        run_stop=np.ones(3, np.int64),
        row_first=one,
        left=np.array([[10, 9, -1]]),
        block=one[:1],
        line=one[:1],
        full=np.array([[10, 10, 10]]),
    )
    everybody = np.ones(3, np.bool_)
    engine = open_engine(found, engine_of)
    contests = engine.contests(everybody)
    assert engine.favored(contests, everybody).tolist() == [1]
    # That is what the engine itself would say, were it not for what is free.
    assert engine_of(found).favored(contests, everybody).tolist() == [2]
    # Where nothing fits, it is the one of which most is left.
    nothing = replace(found, costs=np.full((3, 3), 99))
    engine = open_engine(nothing, engine_of)
    contests = engine.contests(everybody)
    assert engine.favored(contests, everybody).tolist() == [0]


# --- watched --------------------------------------------------------------------------


class Enough(Exception):  # noqa: N818 - it is what a test raises to end a plan
    """Somebody has waited long enough."""


@pytest.mark.parametrize("solver", sorted(ON_LEDGER))
def test_a_plan_that_is_watched_is_the_same_and_can_be_ended_at_each_step(
    solver: str,
) -> None:
    requests = [release(f"r{n}", mechanism(1 + n % 4, "CH", "DE")) for n in range(9)]
    weights = [3 + n % 5 for n in range(9)]

    def plan(means: Means) -> RoundPlan:
        balances = Balances(policy())
        return plan_round(balances, requests, weights, ON_LEDGER[solver](), 0, means)

    steps: list[float] = []
    watched = plan(Means(on_step=steps.append))
    assert watched.accepted == plan(Means()).accepted
    assert steps == sorted(steps)
    assert 0 <= steps[0] <= steps[-1] < 1
    assert len([one for one in steps if one >= 0.5]) == len(requests)
    for last in range(len(steps)):
        result: list[float] = []

        def end(
            progress: float, result: list[float] = result, last: int = last
        ) -> None:
            result.append(progress)
            if len(result) > last:
                raise Enough

        with pytest.raises(Enough):
            plan(Means(on_step=end))
        assert result == steps[: last + 1]
