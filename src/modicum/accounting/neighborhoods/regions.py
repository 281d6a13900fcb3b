"""Regions: the records that a mechanism reads, as boxes over partitioning attributes.

The values of every axis are divided into *segments* within which no region
distinguishes two values, so that finitely many cells represent all records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

from modicum.accounting.neighborhoods.moves import Place
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import number_text


@dataclass(frozen=True, slots=True)
class Span:
    """The values from `low` up to, but not including, `high`."""

    low: Fraction
    high: Fraction

    def __str__(self) -> str:
        return f"[{number_text(self.low)}, {number_text(self.high)})"


#: The allowed values of a box on one axis: a span of numbers, or a set of values.
Allowed: TypeAlias = Span | frozenset[str]

#: The allowed values of a box, by axis; other axes are not restricted.
Box: TypeAlias = Mapping[str, Allowed]

#: A union of boxes. The empty box is everything; no box at all is nothing.
Region: TypeAlias = tuple[Box, ...]

EVERYTHING: Region = ({},)


@dataclass(frozen=True, slots=True)
class NumericAxis:
    """A public attribute whose values are the numbers of one span.

    Attributes:
        name: The attribute.
        span: All possible values.
    """

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class CategoryAxis:
    """A public attribute with a closed list of values.

    Attributes:
        name: The attribute.
        values: All possible values, at least one.
    """

    name: str
    values: tuple[str, ...]


Axis: TypeAlias = NumericAxis | CategoryAxis


@dataclass(frozen=True)
class Segments:
    """One axis, cut where some region begins or ends.

    Attributes:
        axis: The axis.
        pieces: The contents of each segment: disjoint, and together the whole axis.
    """

    axis: Axis
    pieces: tuple[Allowed, ...]

    def __len__(self) -> int:
        return len(self.pieces)

    @cached_property
    def _lows(self) -> dict[Fraction, int]:
        return {
            piece.low: index
            for index, piece in enumerate(self.pieces)
            if isinstance(piece, Span)
        }

    def range_of(self, span: Span) -> tuple[int, int]:
        """Return the first segment of a span that was cut at, and the one after it."""
        if span.low >= span.high:
            return 0, 0
        return self._lows[span.low], self._lows.get(span.high, len(self.pieces))

    def covered(self, allowed: Allowed | None) -> frozenset[int]:
        """Return the segments that a box's side covers; all of them for None."""
        if allowed is None:
            return frozenset(range(len(self.pieces)))
        if isinstance(allowed, Span):
            return frozenset(range(*self.range_of(allowed)))
        return frozenset(
            index
            for index, piece in enumerate(self.pieces)
            if isinstance(piece, frozenset) and piece <= allowed
        )


def segments(axis: Axis, regions: Iterable[Region]) -> Segments:
    """Return an axis cut at the ends of all regions.

    Args:
        axis: The axis.
        regions: Regions that have been checked against the axes.

    Examples:
        >>> week = NumericAxis("day", Span(Fraction(0), Fraction(7)))
        >>> cut = segments(week, [({"day": Span(Fraction(2), Fraction(5))},)])
        >>> [str(piece) for piece in cut.pieces]
        ['[0, 2)', '[2, 5)', '[5, 7)']
    """
    sides = {box[axis.name] for region in regions for box in region if axis.name in box}
    if isinstance(axis, CategoryAxis):
        kinds: dict[frozenset[Allowed], list[str]] = {}
        sets = [side for side in sides if isinstance(side, frozenset)]
        for value in axis.values:
            inside = frozenset(side for side in sets if value in side)
            kinds.setdefault(inside, []).append(value)
        return Segments(axis, tuple(frozenset(values) for values in kinds.values()))
    cuts = {axis.span.low, axis.span.high}
    for side in sides:
        if isinstance(side, Span):
            cuts |= {
                end
                for end in (side.low, side.high)
                if axis.span.low < end < axis.span.high
            }
    ordered = sorted(cuts)
    return Segments(axis, tuple(Span(a, b) for a, b in pairwise(ordered)))


def checked(region: Region, axes: Mapping[str, Axis]) -> Region:
    """Return the region without its empty boxes.

    Args:
        region: Boxes over some of the axes.
        axes: The axes by name.

    Raises:
        InputError: If a box names an unknown axis or value, has the wrong kind of
            side, or has a span that ends before it begins or leaves the axis.

    Examples:
        >>> axes = {"day": NumericAxis("day", Span(Fraction(0), Fraction(7)))}
        >>> checked(({"day": Span(Fraction(3), Fraction(3))},), axes)
        ()
        >>> checked(({"day": Span(Fraction(6), Fraction(8))},), axes)
        Traceback (most recent call last):
            ...
        modicum.core.errors.InputError: the span [6, 8) of `day` exceeds its axis [0, 7)
    """
    return tuple(box for box in region if _holds_something(box, axes))


def _holds_something(box: Box, axes: Mapping[str, Axis]) -> bool:
    for name, side in box.items():
        axis = axes.get(name)
        if axis is None:
            raise _wrong(Code.UNKNOWN_ATTRIBUTE, f"unknown axis `{name}`")
        if isinstance(side, Span) != isinstance(axis, NumericAxis):
            kind = "numbers" if isinstance(axis, NumericAxis) else "values"
            raise _wrong(Code.WRONG_TYPE, f"the axis `{name}` has {kind}")
        if isinstance(side, Span) and side.low > side.high:
            raise _wrong(
                Code.OUT_OF_RANGE, f"the span {side} of `{name}` ends before it starts"
            )
        if isinstance(side, Span) and isinstance(axis, NumericAxis):
            _check_within(name, side, axis.span)
        if isinstance(side, frozenset) and isinstance(axis, CategoryAxis):
            for value in sorted(side - set(axis.values)):
                raise _wrong(
                    Code.UNKNOWN_CHOICE, f"the axis `{name}` has no value `{value}`"
                )
    return all(
        side.low < side.high if isinstance(side, Span) else bool(side)
        for side in box.values()
    )


def _check_within(name: str, side: Span, whole: Span) -> None:
    """Refuse a span that leaves its axis: to cut it off could hide a mistake."""
    if side.low < whole.low or side.high > whole.high:
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"the span {side} of `{name}` exceeds its axis {whole}",
                notes=("an axis covers the whole domain, without its end",),
                help="make the axis longer, or the span shorter",
            )
        )


def _wrong(code: Code, message: str) -> InputError:
    return InputError(Problem(code, message))


def has_complement(region: Region, axes: Mapping[str, Axis]) -> bool:
    """Return whether some possible record certainly lies outside a region.

    Examples:
        >>> axes = {"city": CategoryAxis("city", ("Basel", "Bern"))}
        >>> basel, bern = ({"city": frozenset({name})} for name in ("Basel", "Bern"))
        >>> has_complement((basel,), axes), has_complement((basel, bern), axes)
        (True, False)
    """
    used = [axes[name] for name in sorted({name for box in region for name in box})]
    cut = [segments(axis, [region]) for axis in used]
    containing = {frozenset(range(len(region)))}  # Sets of boxes that share a cell.
    for axis in cut:
        sides = [axis.covered(box.get(axis.axis.name)) for box in region]
        found = {
            frozenset(box for box in boxes if segment in sides[box])
            for boxes in containing
            for segment in range(len(axis))
        }
        if frozenset() in found:
            return True
        if len(found) > _SETS_MAX:
            return False
        containing = found
    return not region


# Beyond this number of distinct sets of boxes a region counts as everything: never
# cheaper.
_SETS_MAX = 20_000


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
    """Return a place as text, axis by axis.

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
    """Return a segment as text.

    Examples:
        >>> from fractions import Fraction
        >>> piece_text(Span(Fraction(1, 2), Fraction(3)))
        '[0.5, 3)'
        >>> piece_text(frozenset({"Chur", "Basel"}))
        'Basel or Chur'
    """
    return str(piece) if isinstance(piece, Span) else " or ".join(sorted(piece))
