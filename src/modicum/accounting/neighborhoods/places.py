"""Where records lie: cut axes, the stretches that regions cover, places in words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from modicum.accounting.neighborhoods.moves import Place
from modicum.accounting.neighborhoods.regions import Allowed, Region, Segments, Span


def stretches(axis: Segments, region: Region) -> list[tuple[int, int]]:
    """Return the runs of segments of one axis that a region reaches, disjoint.

    Examples:
        >>> from fractions import Fraction
        >>> from modicum.accounting.neighborhoods.regions import NumericAxis, segments
        >>> region = ({"day": Span(Fraction(2), Fraction(5))},)
        >>> week = NumericAxis("day", Span(Fraction(0), Fraction(7)))
        >>> stretches(segments(week, [region]), region)
        [(1, 2)]
        >>> stretches(segments(week, [region]), ({},))
        [(0, 3)]
    """
    runs: list[tuple[int, int]] = []
    for box in region:
        side = box.get(axis.axis.name)
        if isinstance(side, Span):
            runs.append(axis.range_of(side))
        elif side is None:
            runs.append((0, len(axis)))
        else:
            runs += [(segment, segment + 1) for segment in axis.covered(side)]
    return merged(runs)


def merged(runs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return disjoint runs that cover the same whole numbers, in order.

    Examples:
        >>> merged([(3, 5), (0, 1), (1, 2), (4, 9), (7, 7)])
        [(0, 2), (3, 9)]
    """
    found: list[tuple[int, int]] = []
    for left, right in sorted(run for run in runs if run[0] < run[1]):
        if found and left <= found[-1][1]:
            found[-1] = found[-1][0], max(right, found[-1][1])
        else:
            found.append((left, right))
    return found


def are_apart_or_equal(runs: Sequence[tuple[int, int]]) -> bool:
    """Return whether any two runs are the same or do not meet.

    Examples:
        >>> are_apart_or_equal([(0, 2), (2, 3), (0, 2)])
        True
        >>> are_apart_or_equal([(0, 2), (1, 3)])
        False
    """
    distinct = sorted(set(runs))
    return all(a[1] <= b[0] for a, b in pairwise(distinct))


def holds(axes: Sequence[Segments], region: Region, place: Sequence[int]) -> bool:
    """Return whether a place, a segment of each axis, lies in a region.

    Examples:
        >>> from modicum.accounting.neighborhoods.regions import CategoryAxis, segments
        >>> region = ({"city": frozenset({"Bern"})},)
        >>> cut = segments(CategoryAxis("city", ("Basel", "Bern", "Chur")), [region])
        >>> [holds([cut], region, [place]) for place in range(len(cut))]
        [False, True]
    """
    pieces = [axis.pieces[segment] for axis, segment in zip(axes, place, strict=True)]
    return any(
        all(
            _inside(piece, box.get(axis.axis.name))
            for axis, piece in zip(axes, pieces, strict=True)
        )
        for box in region
    )


def _inside(piece: Allowed, side: Allowed | None) -> bool:
    if side is None:
        return True
    if isinstance(piece, Span) and isinstance(side, Span):
        return side.low <= piece.low and piece.high <= side.high
    if isinstance(piece, Span) or isinstance(side, Span):
        return False
    return piece <= side


def described(axes: Sequence[Segments], place: Sequence[int]) -> Place:
    """Return a place in words, axis by axis.

    Examples:
        >>> from modicum.accounting.neighborhoods.regions import CategoryAxis, segments
        >>> region = ({"city": frozenset({"Bern"})},)
        >>> cut = segments(CategoryAxis("city", ("Basel", "Bern", "Chur")), [region])
        >>> described([cut], [0])
        (('city', 'Basel or Chur'),)
    """
    return tuple(
        (axis.axis.name, piece_text(axis.pieces[segment]))
        for axis, segment in zip(axes, place, strict=True)
    )


def piece_text(piece: Allowed) -> str:
    """Return what a segment holds, in words.

    Examples:
        >>> from fractions import Fraction
        >>> piece_text(Span(Fraction(1, 2), Fraction(3)))
        '[0.5, 3)'
        >>> piece_text(frozenset({"Chur", "Basel"}))
        'Basel or Chur'
    """
    return str(piece) if isinstance(piece, Span) else " or ".join(sorted(piece))
