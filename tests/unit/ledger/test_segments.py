"""Segments, against a grid on which every single point is looked at."""

from __future__ import annotations

import random
from itertools import product

import pytest
from budget import counted, examples

from modicum.ledger.cells.axes import Box, Region
from modicum.ledger.cells.segments import Segments

EXTENT: Box = ((0, 5), (0, 3), (0, 4))
POINTS = list(product(*(range(low, high + 1) for low, high in EXTENT)))


def region(rng: random.Random) -> Region:
    if rng.random() < 0.1:
        return None
    boxes = []
    for _ in range(rng.randint(1, 3)):
        ends = [sorted(rng.randint(low, high) for _ in "ab") for low, high in EXTENT]
        boxes.append(tuple((low, high) for low, high in ends))
    return tuple(boxes)


def lies_in(point: tuple[int, ...], box: Box) -> bool:
    return all(low <= at <= high for at, (low, high) in zip(point, box, strict=True))


def covers(one: Region, point: tuple[int, ...]) -> bool:
    return one is None or any(lies_in(point, box) for box in one)


def owners(segments: Segments) -> dict[tuple[int, ...], int]:
    """Return the segment of every point; the boxes are disjoint and miss none."""
    found: dict[tuple[int, ...], int] = {}
    for segment in range(segments.count):
        for box in segments.then().boxes(segment):
            for point in product(*(range(low, high + 1) for low, high in box)):
                assert point not in found
                found[point] = segment
    assert len(found) == len(POINTS)
    return found


@pytest.mark.spec("DEC-10")
def test_segments_are_the_sets_of_points_that_the_same_regions_cover() -> None:
    rng = random.Random(7)
    for _ in range(examples(60)):
        segments, seen = Segments(EXTENT), list[Region]()
        for _ in range(rng.randint(1, 5)):
            new = [region(rng) for _ in range(rng.randint(1, 3))]
            overlay = segments.overlay(new)
            assert not overlay.rounded
            numbers = segments.cut(overlay)
            seen += new
            inside = {
                int(number): tuple(map(bool, sides))
                for number, sides in zip(numbers, overlay.inside, strict=True)
            }
            for point, number in owners(segments).items():
                sides = inside.get(number, (False,) * len(new))
                assert sides == tuple(covers(one, point) for one in new)
        signatures: dict[int, set[tuple[bool, ...]]] = {}
        for point, number in owners(segments).items():
            signature = tuple(covers(one, point) for one in seen)
            signatures.setdefault(number, set()).add(signature)
        assert all(len(found) == 1 for found in signatures.values())
        assert (
            len(signatures) == segments.count == len({*map(repr, signatures.items())})
        )
        assert len({repr(one) for one in signatures.values()}) == segments.count


def test_looking_cuts_nothing_and_cutting_again_finds_nothing_to_cut() -> None:
    rng = random.Random(8)
    segments = Segments(EXTENT)
    for _ in range(20):
        new = [region(rng), region(rng)]
        before = segments.dump()
        segments.overlay(new)
        assert segments.dump() == before
        segments.cut(segments.overlay(new))
        after = segments.dump()
        again = segments.overlay(new)
        assert not again.pieces
        segments.cut(again)
        assert segments.dump() == after


@pytest.mark.spec("DEC-9")
def test_at_the_cap_regions_are_rounded_out_and_stay_where_they_were() -> None:
    rng = random.Random(9)
    rounded = 0
    for _ in range(counted(60)):
        segments = Segments(EXTENT, segments_max=4)
        covered: list[tuple[list[Region], list[tuple[int, tuple[bool, ...]]]]] = []
        for _ in range(6):
            new = [region(rng)]
            overlay = segments.overlay(new)
            numbers = segments.cut(overlay)
            assert segments.count <= 4
            rounded += overlay.rounded
            owner = owners(segments)
            for place, number in enumerate(numbers.tolist()):
                points = [point for point, one in owner.items() if one == number]
                touched = any(covers(new[0], point) for point in points)
                assert bool(overlay.inside[place, 0]) >= touched
                if not overlay.rounded:
                    assert bool(overlay.inside[place, 0]) == touched
            if segments.frozen:
                lines = [
                    (number, tuple(map(bool, sides)))
                    for number, sides in zip(
                        numbers.tolist(), overlay.inside, strict=True
                    )
                ]
                covered.append((new, lines))
        for new, lines in covered:  # Whoever is taken back finds the same segments.
            again = segments.overlay(new)
            assert [
                (number, tuple(map(bool, sides)))
                for number, sides in zip(
                    again.segments.tolist(), again.inside, strict=True
                )
            ] == lines
    assert rounded > 50


def test_a_space_without_axes_has_one_segment() -> None:
    segments = Segments(())
    overlay = segments.overlay([None, None])
    assert overlay.segments.tolist() == [0]
    assert overlay.inside.tolist() == [[True, True]]
    assert segments.then().box(overlay, 0) == ()


def test_where_a_piece_lay_is_known_after_later_cuts() -> None:
    segments = Segments(((0, 9),))
    overlay = segments.overlay([(((3, 5),),)])
    then = segments.then()
    segments.cut(overlay)
    segments.cut(segments.overlay([(((4, 4),),)]))
    boxes = {then.box(overlay, place) for place in range(len(overlay.segments))}
    assert ((3, 5),) in boxes
    assert boxes <= {((3, 5),), ((0, 2),), ((6, 9),)}
