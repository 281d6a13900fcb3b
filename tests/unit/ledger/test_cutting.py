"""Cutting boxes along regions, and regions that would cut too finely."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest
from budget import examples

from modicum.ledger.cells.axes import Box, Region
from modicum.ledger.cells.partition import ARRANGEMENT_MAX, cut, ends_of, simplified
from modicum.ledger.cells.segments import Segments

EXTENT: Box = ((0, 4), (0, 4), (0, 2))
POINTS = list(product(*(range(low, high + 1) for low, high in EXTENT)))


def box(rng: random.Random, extent: Box = EXTENT) -> Box:
    ends = [sorted(rng.randint(low, high) for _ in "ab") for low, high in extent]
    return tuple((low, high) for low, high in ends)


def region(rng: random.Random) -> Region:
    if rng.random() < 0.1:
        return None
    return tuple(box(rng) for _ in range(rng.randint(1, 3)))


def lies_in(point: tuple[int, ...], one: Box) -> bool:
    return all(low <= at <= high for at, (low, high) in zip(point, one, strict=True))


def covers(one: Region, point: tuple[int, ...]) -> bool:
    return one is None or any(lies_in(point, each) for each in one)


def test_pieces_are_disjoint_and_know_their_sides() -> None:
    rng = random.Random(3)
    for _ in range(examples(100)):
        boxes = [((0, 1), *EXTENT[1:]), ((2, 4), *EXTENT[1:])]
        regions = [region(rng) for _ in range(rng.randint(1, 3))]
        found = cut(ends_of(boxes), regions, 10**6)
        assert found is not None
        for point in POINTS:
            (place,) = [
                place
                for place, ends in enumerate(found.ends.tolist())
                if lies_in(point, tuple((low, high) for low, high in ends))
            ]
            assert lies_in(point, boxes[found.source[place]])
            sides = found.sides[place].tolist()
            assert sides == [covers(one, point) for one in regions]


def test_cutting_gives_up_beyond_a_limit() -> None:
    rng = random.Random(4)
    regions = [region(rng) for _ in range(6)]
    found = cut(ends_of([EXTENT]), regions, 10**6)
    assert found is not None
    assert cut(ends_of([EXTENT]), regions, 3) is None


FINE: Box = ((0, 10**6),) * 6


@pytest.mark.spec("DEC-9")
def test_regions_that_cut_too_finely_become_larger_ones() -> None:
    rng = random.Random(5)
    scattered: Region = tuple(box(rng, FINE) for _ in range(60))
    other: Region = (box(rng, FINE),)
    assert cut(ends_of([FINE]), [scattered, other], ARRANGEMENT_MAX) is None
    larger = simplified(FINE, (scattered, other))
    assert larger != (scattered, other)
    assert larger[1] is None or larger[1] == other
    hull = larger[0]
    for one in scattered or ():
        assert hull is None or all(
            low <= first and last <= high
            for (low, high), (first, last) in zip(hull[0], one, strict=True)
        )
    many = tuple((box(rng, FINE),) for _ in range(60))
    assert simplified(FINE, many) == (None,) * 60
    few = (other, None, other)
    assert simplified(FINE, few) is few


@pytest.mark.spec("DEC-9")
def test_what_one_release_cuts_too_finely_leaves_the_space_open_for_others() -> None:
    rng = random.Random(6)
    segments = Segments(FINE)
    scattered: Region = tuple(box(rng, FINE) for _ in range(60))
    overlay = segments.overlay([scattered])
    assert overlay.rounded
    segments.cut(overlay)
    assert not segments.frozen
    again = segments.overlay([scattered])
    assert again.rounded
    assert not again.pieces
    one = segments.overlay([(box(rng, FINE),)])
    assert not one.rounded


def test_tables_by_two_attributes_cut_as_many_segments_as_they_have_cells() -> None:
    extent: Box = ((0, 119), (0, 99))
    rows = [(((at, at), (0, 99)),) for at in range(120)]
    columns = [(((0, 119), (at, at)),) for at in range(100)]
    segments = Segments(extent)
    overlay = segments.overlay([*rows, *columns])
    assert not overlay.rounded
    numbers = segments.cut(overlay)
    assert segments.count == 12_000 == len(np.unique(numbers))
    assert overlay.inside.sum(axis=1).tolist() == [2] * 12_000
