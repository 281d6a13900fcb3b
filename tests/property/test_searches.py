"""The searches beneath the engine against trying everything, in whole numbers."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import pytest
from budget import examples, seed

from modicum.accounting.neighborhoods import line_sweep
from modicum.accounting.neighborhoods.cells import Cell
from modicum.accounting.neighborhoods.line_sweep import Line, Pair, deepest, worst_pair
from modicum.accounting.neighborhoods.records import membership, worst_pair_of_cells
from modicum.accounting.neighborhoods.regions import merged
from modicum.accounting.neighborhoods.user_days import Demand, costliest_days

pytestmark = pytest.mark.soak

INSTANCES = examples(400)
SEED = seed()
SIZES = (1, 10**6, 2**61)  # The last does not fit 64 bits when it is added up.


def cost_of_pair(
    held: Sequence[Sequence[bool]],
    u: Sequence[int],
    b: Sequence[int],
    places: Sequence[int],
) -> int:
    """Return what a move costs, from which entries hold the two places."""
    total = 0
    for row, leave, stay in zip(held, u, b, strict=True):
        inside = row[places[0]] + row[places[1]]
        total += (0, leave, stay)[inside]
    return total


def some_costs(rng: random.Random, count: int) -> tuple[list[int], list[int]]:
    size = rng.choice(SIZES)
    u = [rng.randint(0, 5) * size for _ in range(count)]
    return u, [rng.randint(0, 14) * size for _ in range(count)]


@pytest.mark.parametrize("table", [1, 8, 64, 1 << 16])
def test_the_sweep_finds_the_worst_pair_whatever_the_size_of_its_tables(
    table: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_sweep, "_TABLE_MAX", table)
    rng = random.Random(f"{SEED} {table}")
    for _ in range(INSTANCES):
        size, count = rng.randint(1, 12), rng.randint(0, 8)
        parts = []
        for entry in range(count):
            cuts = sorted(
                rng.sample(range(size + 1), min(size + 1, rng.choice((2, 4))))
            )
            ends = zip(cuts[::2], cuts[1::2], strict=False)
            parts += [(left, right, entry) for left, right in ends]
        line = Line(size, tuple(parts))
        held = [
            [any(a <= x < z and e == entry for a, z, e in parts) for x in range(size)]
            for entry in range(count)
        ]
        u, b = some_costs(rng, count)
        found = worst_pair(line, u, b)
        pairs = itertools.product(range(size), repeat=2)
        assert found.cost == max(cost_of_pair(held, u, b, pair) for pair in pairs)
        assert found.cost == cost_of_pair(held, u, b, (found.first, found.second))
        depth = [
            sum(cost for row, cost in zip(held, u, strict=True) if row[x])
            for x in range(size)
        ]
        assert deepest(line, u)[0] == max(depth)


def test_branch_and_bound_finds_the_worst_pair_or_gives_up() -> None:
    rng = random.Random(SEED)
    for _ in range(INSTANCES):
        count = rng.randint(1, 7)
        cells = [Cell(rng.randrange(2**count), ()) for _ in range(rng.randint(1, 9))]
        held = membership(cells, count)
        rows = [[bool(held[x, i]) for x in range(len(cells))] for i in range(count)]
        u, b = some_costs(rng, count)
        pairs = itertools.product(range(len(cells)), repeat=2)
        truth = max(cost_of_pair(rows, u, b, pair) for pair in pairs)
        found = worst_pair_of_cells(held, u, b, at_most=10**9)
        assert isinstance(found, Pair)
        assert found.cost == truth
        assert cost_of_pair(rows, u, b, (found.first, found.second)) == truth
        hasty = worst_pair_of_cells(held, u, b, at_most=rng.choice((1, 20)))
        assert hasty is None or hasty.cost == truth


#: What the entries of an instance have in common; each has its own exact algorithm.
SORTS = ("straight", "flat", "windows", "mixed")


def some_demand(rng: random.Random, sort: str, at_most: int) -> Demand:
    left = rng.randrange(8)
    right = rng.randint(left + 1, 8)
    runs: tuple[tuple[int, int], ...] = ((left, right),)
    if sort == "windows":
        runs = (rng.choice([(0, 2), (2, 3), (4, 7)]),)
    elif sort in {"straight", "mixed"} and rng.random() < 0.3:
        runs = tuple(merged([(left, left + 1), (right, right + 1)]))
    cost = rng.randint(0, 6)
    straight = tuple(cost * k for k in range(at_most + 1))
    square = tuple(cost * k * k for k in range(at_most + 1))
    flat = (0, cost)
    choices: dict[str, list[tuple[int, ...]]] = {
        "straight": [straight],
        "flat": [flat],
        "windows": [square, flat],
        "mixed": [straight, square, flat],
    }
    return Demand(runs, rng.choice(choices[sort]))


@pytest.mark.parametrize("sort", SORTS)
def test_the_costliest_days_are_found_or_bounded(sort: str) -> None:
    rng = random.Random(SEED)
    exact = 0
    for _ in range(INSTANCES):
        at_most = rng.randint(1, 4)
        demands = [some_demand(rng, sort, at_most) for _ in range(rng.randint(0, 5))]

        def cost(days: Sequence[int], demands: Sequence[Demand] = demands) -> int:
            hits = (
                sum(any(a <= day < z for a, z in demand.runs) for day in days)
                for demand in demands
            )
            return sum(d.cost(hit) for d, hit in zip(demands, hits, strict=True))

        truth = max(map(cost, itertools.combinations(range(10), at_most)))
        found = costliest_days(demands, at_most)
        assert found.cost >= truth
        named = [day for left, right in found.runs for day in range(left, right)]
        if found.exact:
            exact += 1
            assert found.cost == truth
            assert cost(named) == truth
        assert sort == "mixed" or found.exact
    assert exact > INSTANCES / 2
