"""Regions: the records that a mechanism reads, as boxes over partitioning attributes.

The values of every axis are cut into *segments* within which no region tells two
values apart, so that finitely many cells stand for all records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import number_text


@dataclass(frozen=True, slots=True)
class Span:
    """The values from `low` up to, but not including, `high`."""

    low: Fraction
    high: Fraction

    def __str__(self) -> str:
        return f"[{number_text(self.low)}, {number_text(self.high)})"


#: What a box allows on one axis: a span of numbers, or a set of values.
Allowed: TypeAlias = Span | frozenset[str]

#: What a box allows, by axis; an axis that is not named is not restricted.
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
        pieces: What each segment holds: disjoint, and together the whole axis.
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
        modicum.core.errors.InputError: the span [6, 8) of `day` leaves its axis [0, 7)
    """
    return tuple(box for box in region if _holds_something(box, axes))


def _holds_something(box: Box, axes: Mapping[str, Axis]) -> bool:
    for name, side in box.items():
        axis = axes.get(name)
        if axis is None:
            raise _wrong(Code.UNKNOWN_ATTRIBUTE, f"no axis is called `{name}`")
        if isinstance(side, Span) != isinstance(axis, NumericAxis):
            kind = "numbers" if isinstance(axis, NumericAxis) else "values"
            raise _wrong(Code.WRONG_TYPE, f"the axis `{name}` has {kind}")
        if isinstance(side, Span) and side.low > side.high:
            raise _wrong(
                Code.OUT_OF_RANGE, f"the span {side} of `{name}` ends before it begins"
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
                f"the span {side} of `{name}` leaves its axis {whole}",
                notes=("an axis is the whole domain, and its end is not included",),
                help="make the axis longer, or the span shorter",
            )
        )


def _wrong(code: Code, message: str) -> InputError:
    return InputError(Problem(code, message))


def has_complement(region: Region, axes: Mapping[str, Axis]) -> bool:
    """Return whether some possible record certainly lies outside a region.

    Args:
        region: A checked region.
        axes: The axes by name.

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


# Beyond so many distinct sets of boxes a region counts as everything: never cheaper.
_SETS_MAX = 20_000
