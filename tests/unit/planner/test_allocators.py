"""In which order the other allocators try requests, and for how much they go."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from budget import counted, examples, seed
from samples.planned import ENGINES, SMALL, numbers, places_of, some_problem

from modicum.planner.allocation.greedy import GREEDY
from modicum.planner.allocation.numpy_kernel import NumpyEngine
from modicum.planner.allocation.problem import Booleans, Integers, Problem
from modicum.planner.allocation.reserve_price import Steady, fluid, in_dpk_order, uses
from modicum.planner.simulation.setting import SOLVERS, Setting, prices
from modicum.planner.simulation.worlds import BlockWorld, OldestBlocks
from modicum.workloads.cohere import Recipe, cohere

DPF = {
    "dpf": (False, False),
    "dpf-weighted": (True, False),
    "dpf-remaining": (False, True),
    "dpf-weighted-remaining": (True, True),
}
INFINITE = Fraction(2**200)


def test_every_solver_has_an_order_that_is_tested() -> None:
    assert set(GREEDY) == {"fcfs", "dpk", *DPF}
    assert set(SOLVERS) == {*GREEDY, "steady", "guided", "ilp"}


# --- dominant shares ------------------------------------------------------------------


def share(cost: int, whole: int) -> Fraction:
    if not cost:
        return Fraction(0)
    return Fraction(cost, whole) if whole else INFINITE


def share_of_all(problem: Problem, request: int) -> Fraction:
    """The largest share of the largest whole budget, by coordinate."""
    whole = [max(column) for column in problem.full.T.tolist()]
    costs = problem.costs[request].tolist()
    shares = [share(c, w) for c, w in zip(costs, whole, strict=True) if w > 0]
    return max(shares, default=Fraction(0))


def contested_rows(problem: Problem, alive: Booleans) -> Iterator[tuple[set[int], int]]:
    """Yield who asks for a contested pair, and each row of the pair."""
    pairs: dict[tuple[int, frozenset[int], int], list[int]] = {}
    for place in range(problem.places):
        there = frozenset(
            i for i in np.flatnonzero(alive).tolist() if place in places_of(problem, i)
        )
        for row in range(problem.row_first[place], problem.row_first[place + 1]):
            key = int(problem.line[place]), there, int(problem.block[row])
            pairs.setdefault(key, []).append(row)
    for (_, there, _), rows in pairs.items():
        together = [
            sum(problem.costs[i, a].item() for i in there)
            for a in range(problem.coordinates)
        ]
        fit = [
            any(
                t <= left
                for t, left in zip(together, problem.left[row].tolist(), strict=True)
            )
            for row in rows
        ]
        if there and not all(fit):
            yield from ((set(there), row) for row in rows)


def shares_of_left(problem: Problem, alive: Booleans) -> dict[int, Fraction]:
    """By request that is contested, the largest share of what is left there."""
    found: dict[int, Fraction] = {}
    for there, row in contested_rows(problem, alive):
        for i in there:
            shares = [
                share(cost, left)
                for cost, left in zip(
                    problem.costs[i].tolist(), problem.left[row].tolist(), strict=True
                )
                if left >= 0
            ]
            found[i] = max([found.get(i, Fraction(0)), *shares])
    return found


@pytest.mark.spec("PLAN-7")
@pytest.mark.parametrize("name", DPF)
def test_the_smallest_dominant_share_is_tried_first(name: str) -> None:
    weighted, remaining = DPF[name]
    rng = Random(f"{seed()}/dpf/{name}")
    orders_mattered = 0
    for _ in range(counted(120)):
        problem = some_problem(rng, SMALL)
        engine = NumpyEngine(problem)
        alive = engine.alone()
        left = shares_of_left(problem, alive) if remaining else {}
        scores = {}
        for i in range(problem.requests):
            dominant = left.get(i, share_of_all(problem, i))
            weight = int(problem.weights[i])
            if weighted and weight and dominant < INFINITE:
                dominant /= weight
            elif weighted:
                dominant = INFINITE
            scores[i] = dominant
        order = sorted(np.flatnonzero(alive).tolist(), key=lambda i: (scores[i], i))
        expected = numbers(engine.greedy(np.array(order, np.int64)))
        for engine_of in ENGINES:
            assert numbers(GREEDY[name](problem, engine_of(problem))) == expected
        backwards = engine.greedy(np.array(order[::-1], np.int64))
        orders_mattered += expected != numbers(backwards)
    assert orders_mattered > 10


# --- the fluid price ------------------------------------------------------------------


def by_duality(
    weights: list[int], use: list[Fraction], room: Fraction
) -> tuple[Fraction, Fraction]:
    """The worth of a flow, as the least of what any price makes of it; and the price.

    A price may be 0 or that at which a request just pays. The highest of several.
    """
    candidates = [Fraction(0)] + [
        Fraction(w) / u for w, u in zip(weights, use, strict=True) if u
    ]

    def worth(price: Fraction) -> Fraction:
        gains = (w - price * u for w, u in zip(weights, use, strict=True))
        return price * room + sum(max(gain, Fraction(0)) for gain in gains)

    best = min(worth(price) for price in candidates)
    return best, max(price for price in candidates if worth(price) == best)


@pytest.mark.spec("PLAN-8")
def test_the_fluid_price_is_the_best_of_all_prices() -> None:
    rng = Random(f"{seed()}/fluid")
    for _ in range(examples(300)):
        weights = [rng.randint(0, 9) for _ in range(rng.randint(1, 6))]
        use = [Fraction(rng.randint(1, 8), 8) for _ in weights]
        room = Fraction(rng.randint(1, 40), 16)
        value, price = fluid(
            np.array(weights), np.array([float(u) for u in use]), float(room)
        )
        best, highest = by_duality(weights, use, room)
        assert value == pytest.approx(float(best))
        # Any price between two neighbors may be equally good: both make the best.
        gains = (w - price * u for w, u in zip(weights, use, strict=True))
        assert price * room + sum(max(g, 0) for g in gains) == pytest.approx(
            float(best)
        )
        assert price <= float(highest) + 1e-9


@pytest.mark.spec("PLAN-8")
def test_what_a_request_uses_is_its_share_of_all_that_can_be_charged() -> None:
    rng = Random(f"{seed()}/uses")
    for _ in range(examples(60)):
        problem = some_problem(rng, SMALL)
        found = uses(problem)
        for i in range(problem.requests):
            part = Fraction(len(places_of(problem, i)), problem.places)
            whole = problem.full.max(axis=0).tolist()
            expected = [
                float(Fraction(cost, full) * part)
                for cost, full in zip(problem.costs[i].tolist(), whole, strict=True)
            ]
            np.testing.assert_allclose(found[i], expected, rtol=1e-9)


@pytest.mark.spec("PLAN-8")
def test_the_price_is_in_the_coordinate_that_can_accept_the_most() -> None:
    """With everything else by hand; so it matters, among several coordinates."""
    rng = Random(f"{seed()}/favored")
    differed = 0
    for _ in range(counted(120)):
        problem = some_problem(rng, SMALL)
        if not problem.requests:
            continue
        use = uses(problem)
        weights = problem.weights.tolist()
        flows = []
        for a in range(problem.coordinates):
            exact = [Fraction(u) for u in use[:, a].tolist()]
            flows.append(by_duality(weights, exact, Fraction(1, 3))[0])
        favored = max(range(len(flows)), key=lambda a: (flows[a], a))
        steady = Steady(3, 0.7)
        accepted = steady(problem, NumpyEngine(problem))
        outcomes = []
        for a in range(problem.coordinates):
            _, price = fluid(problem.weights, use[:, a], 1 / 3)
            with np.errstate(divide="ignore", invalid="ignore"):
                part = np.where(
                    problem.weights > 0,
                    1 - 0.7 * price * use[:, a] / problem.weights,
                    0,
                )
            beyond = np.maximum(part, 0) if price else np.ones(problem.requests)
            outcomes.append(
                in_dpk_order(problem, NumpyEngine(problem), beyond).tolist()
            )
        ties = [
            a
            for a, flow in enumerate(flows)
            if flow >= flows[favored] * (1 - Fraction(1, 10**9))
        ]
        assert accepted.tolist() in [outcomes[a] for a in ties]
        differed += any(one != accepted.tolist() for one in outcomes)
    assert differed > 5


# --- the baseline's blocks ------------------------------------------------------------


def round_of(world: BlockWorld, requests_of: int) -> tuple[Problem, Integers]:
    requests = WORKLOAD.requests.of_round(requests_of)
    return world.problem(requests, requests_of), requests.utility


WORKLOAD = cohere("w1", Recipe(rounds=2))
FIRST = WORKLOAD.first_round


@pytest.mark.spec("PLAN-9")
def test_who_comes_first_gets_the_oldest_blocks_that_let_it_pass() -> None:
    setting = Setting(blocks=True, solver="fcfs")
    world = OldestBlocks(WORKLOAD, setting, prices(WORKLOAD.types, setting))
    problem, _ = round_of(world, FIRST)
    left = problem.left.copy()
    rejected = 0
    for i in range(problem.requests):
        given = places_of(problem, i)
        lets = [
            place
            for place in range(problem.places)
            if (problem.costs[i] <= left[place]).any()
        ]
        if len(lets) < len(given):
            rejected += 1
            continue
        assert given == lets[: len(given)]
        left[given] -= problem.costs[i]
    assert 0 < rejected < problem.requests
    plan = GREEDY["fcfs"](problem, world.engine(problem, NumpyEngine(problem)))
    assert plan.sum() == problem.requests - rejected


@pytest.mark.spec("PLAN-9")
def test_a_block_is_contested_by_all_even_those_who_were_not_given_it() -> None:
    setting = Setting(blocks=True)
    world = BlockWorld(WORKLOAD, setting, prices(WORKLOAD.types, setting))
    problem, _ = round_of(world, FIRST)
    engine = world.engine(problem, NumpyEngine(problem))
    differed = False
    for first in (2, 10, 20, 40, problem.requests):
        wanted = engine.alone() & (np.arange(problem.requests) < first)
        total = problem.costs[wanted].sum(axis=0)
        contested = [
            place
            for place in range(problem.places)
            if not (total <= problem.left[place]).any()
        ]
        found = engine.contests(wanted)
        assert found.pair_place.tolist() == contested
        assert found.capacity.tolist() == problem.left[contested].tolist()
        by_who_asks = NumpyEngine(problem).contests(wanted)
        differed |= by_who_asks.pair_place.tolist() != contested
    assert differed
