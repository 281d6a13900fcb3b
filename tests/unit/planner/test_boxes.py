"""Rounds over several attributes are those over every combination of their values."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from random import Random

import numpy as np
import pytest
from budget import examples, seed
from samples.planned import ENGINES, dpk, integers, numbers, some_cost, some_weight

from modicum.core.errors import Code, InputError, InvariantError
from modicum.planner import Unlocking
from modicum.planner.allocation.problem import Integers
from modicum.planner.rounds import boxes as tested
from modicum.planner.rounds.boxes import (
    Box,
    BoxHistory,
    Regions,
    box_problem,
    spent_in,
)
from modicum.planner.rounds.ring import Ranges, RingHistory, ring_problem, spent_on
from modicum.planner.verification import verify

SIZES = (5, 3, 2)


def some_box(rng: Random, sizes: tuple[int, ...]) -> Box:
    spans = []
    for size in sizes:
        low = rng.randrange(size)
        spans.append(rng.choice([(0, size), (low, rng.randint(low + 1, size))]))
    return tuple(spans)


def some_regions(rng: Random, sizes: tuple[int, ...], requests: int) -> Regions:
    return Regions(
        sizes,
        tuple(
            tuple(some_box(rng, sizes) for _ in range(rng.randint(0, 3)))
            for _ in range(requests)
        ),
    )


def points(regions: Regions, request: int) -> set[tuple[int, ...]]:
    return {
        point
        for box in regions.boxes[request]
        for point in product(*(range(*span) for span in box))
    }


def caps_of(total: tuple[int, ...], groups: int) -> Integers:
    schedule = Unlocking(groups, Fraction(2, 5))
    return integers(
        [[schedule.cap(cap, age) for cap in total] for age in range(1, groups + 1)]
    )


class EveryPoint:
    """The oracle: what each round spent at each point."""

    def __init__(self, caps: Integers) -> None:
        self.caps = caps
        self.rounds: list[dict[tuple[int, ...], Integers]] = []

    def begin(self) -> None:
        nothing = integers([0] * self.caps.shape[1])
        self.rounds.insert(0, dict.fromkeys(product(*map(range, SIZES)), nothing))

    def charge(self, where: set[tuple[int, ...]], cost: Integers) -> None:
        for point in where:
            self.rounds[0][point] = self.rounds[0][point] + cost

    def fits(self, where: set[tuple[int, ...]], cost: Integers) -> bool:
        """Whether a coordinate holds in every group, at each of some points."""
        return all(
            bool((self._gone(point, group) + cost <= self.caps[group]).any())
            for point in where
            for group in range(len(self.caps))
        )

    def _gone(self, point: tuple[int, ...], group: int) -> Integers:
        gone: Integers = sum(
            (one[point] for one in self.rounds[: group + 1]), integers([0])
        )
        return gone


@pytest.mark.parametrize("number", range(examples(60)))
def test_every_point_of_every_group_stays_within_its_cap(number: int) -> None:
    """And whatever is turned away would have broken a cap at some point."""
    rng = Random(f"{seed()} boxes {number}")
    total = (20, 30)
    oracle, history = EveryPoint(caps_of(total, rng.randint(1, 3))), BoxHistory()
    for _ in range(3):
        regions = some_regions(rng, SIZES, rng.randint(0, 6))
        requests = len(regions.boxes)
        costs = integers([some_cost(rng, total) for _ in range(requests)], requests, 2)
        weights = integers([some_weight(rng) for _ in range(requests)], requests)
        problem = box_problem(regions, costs, weights, oracle.caps, history)
        accepted = dpk(problem, ENGINES[0])
        assert dpk(problem, ENGINES[1]).tolist() == accepted.tolist()
        assert verify(problem, sorted(numbers(accepted))) == ()

        clamped = np.minimum(costs, integers(total) + 1)
        wanted = [points(regions, request) for request in range(requests)]
        oracle.begin()
        for request in numbers(accepted):
            # One after the other: sums only grow, so the last look is at all of them.
            assert oracle.fits(wanted[request], clamped[request])
            oracle.charge(wanted[request], clamped[request])
        for request in set(range(requests)) - numbers(accepted):
            assert not oracle.fits(wanted[request], clamped[request])
        history.add(spent_in(regions, clamped, accepted), keep=len(oracle.caps) - 1)


@pytest.mark.parametrize("number", range(examples(30)))
def test_one_attribute_is_a_ring_that_nobody_goes_around(number: int) -> None:
    rng = Random(f"{seed()} one axis {number}")
    size, total, groups = 12, (25, 9), 2
    caps = caps_of(total, groups)
    in_boxes, on_ring = BoxHistory(), RingHistory()
    for _ in range(4):
        requests = rng.randint(1, 8)
        spans = [some_box(rng, (size,))[0] for _ in range(requests)]
        regions = Regions((size,), tuple(((span,),) for span in spans))
        start, stop = integers(spans, requests, 2).T
        ranges = Ranges(size, start, stop - start)
        costs = integers([some_cost(rng, total) for _ in range(requests)], requests, 2)
        weights = integers([some_weight(rng) for _ in range(requests)], requests)
        first = box_problem(regions, costs, weights, caps, in_boxes)
        second = ring_problem(ranges, costs, weights, caps, on_ring)
        for engine in ENGINES:
            assert dpk(first, engine).tolist() == dpk(second, engine).tolist()
        assert first.extent is not None
        assert second.extent is not None
        assert np.allclose(first.extent, second.extent)
        accepted = dpk(first, ENGINES[0])
        clamped = np.minimum(costs, integers(total) + 1)
        in_boxes.add(spent_in(regions, clamped, accepted), keep=1)
        on_ring.add(spent_on(ranges, clamped, accepted), keep=1)


def test_boxes_that_overlap_are_charged_once() -> None:
    both = (((0, 4), (0, 2)), ((2, 5), (1, 3)))
    regions = Regions((5, 3), (both,))
    spent = spent_in(regions, integers([[7]]), np.array([True]))
    dense = spent.at((np.arange(5), np.arange(3)))[:, :, 0]
    assert dense.tolist() == [
        [7, 7, 0],
        [7, 7, 0],
        [7, 7, 7],
        [7, 7, 7],
        [0, 7, 7],
    ]


def test_who_asks_for_nothing_is_accepted_and_charged_nothing() -> None:
    regions = Regions((4,), ((), (((1, 2),),)))
    problem = box_problem(
        regions, integers([[9], [9]]), integers([1, 1]), integers([[5]]), BoxHistory()
    )
    assert dpk(problem, ENGINES[0]).tolist() == [True, False]


@pytest.mark.parametrize(
    "box", [((0, 5), (0, 0)), ((0, 6), (0, 3)), ((-1, 2), (0, 3)), ((0, 5),)]
)
def test_a_box_lies_within_the_axes(box: Box) -> None:
    with pytest.raises(InvariantError):
        Regions((5, 3), ((box,),))


def test_too_many_cells_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tested, "CELLS_MAX", 8)
    fine = Regions((5, 3), ((((1, 2), (1, 2)),),))
    with pytest.raises(InputError) as caught:
        box_problem(fine, integers([[1]]), integers([1]), integers([[5]]), BoxHistory())
    assert caught.value.problems[0].code is Code.OUT_OF_RANGE
    assert "into 9 cells" in caught.value.problems[0].message
