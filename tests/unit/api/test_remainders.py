"""What is left of boxes when others are taken away, against point by point."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from modicum.api.local.alternatives.denied_boxes import apart, remainder
from modicum.ledger.cells.axes import Box
from modicum.ledger.cells.partition import Integers, ends_of

SIDE = 6


def some_boxes(rng: random.Random, axes: int, most: int) -> list[Box]:
    return [
        tuple(
            (low, rng.randint(low, SIDE))
            for low in (rng.randint(0, SIDE) for _ in range(axes))
        )
        for _ in range(rng.randint(0, most))
    ]


def points(boxes: list[Box]) -> list[tuple[int, ...]]:
    spans = ([range(low, high + 1) for low, high in box] for box in boxes)
    return [point for one in spans for point in product(*one)]


def ends(boxes: list[Box], axes: int) -> Integers:
    return ends_of(boxes) if boxes else np.zeros((0, axes, 2), dtype=np.int64)


@settings(max_examples=examples(150))
@given(st.integers(min_value=0, max_value=2**32), st.integers(1, 3))
def test_each_point_that_is_left_lies_in_one_box(seed: int, axes: int) -> None:
    rng = random.Random(seed)
    own, taken = some_boxes(rng, axes, 4), some_boxes(rng, axes, 5)
    left = remainder(ends(own, axes), ends(taken, axes), 10_000)
    assert left is not None
    found = points(left)
    assert len(found) == len(set(found))
    assert set(found) == set(points(own)) - set(points(taken))
    for one, other in product(left, left):  # On the first axis none can be longer.
        if one[1:] == other[1:] and one != other:
            assert one[0][1] + 1 != other[0][0]
    if left:
        assert remainder(ends(own, axes), ends(taken, axes), len(left)) == left
        assert remainder(ends(own, axes), ends(taken, axes), len(left) - 1) is None


def test_spans_apart_do_not_touch() -> None:
    assert list(apart([(1, 4), (5, 9), (20, 21)], [(0, 1), (21, 30)])) == [
        (2, 9),
        (20, 20),
    ]
    assert list(apart([(3, 3)], [(1, 2), (3, 5)])) == []


def test_what_would_be_cut_too_finely_is_not_begun() -> None:
    diagonal: list[Box] = [((n, n), (n, n), (n, n), (n, n)) for n in range(20)]
    whole: list[Box] = [((0, 99),) * 4]
    assert remainder(ends(whole, 4), ends(diagonal, 4), 10**9) is None
