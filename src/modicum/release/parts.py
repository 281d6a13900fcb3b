"""Which part of the data a mechanism reads: whose rows, of when.

All of it is public and fixed before a row is read. A part only ever promises that
rows outside it change nothing, so a larger part is always true as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import NamedTuple, TypeAlias, TypeGuard

from modicum.core.canonical import Plain, Written, encode
from modicum.release.memo import LazyValue

#: Whole numbers from the first to the second, both included.
Span: TypeAlias = tuple[int, int]

#: The values of one partitioning attribute: texts of a list, or spans of a range;
#: in order, without repetition, and spans neither touch nor overlap.
Values: TypeAlias = tuple[str, ...] | tuple[Span, ...]

#: A conjunction: values by partitioning attribute, by name. Other attributes may have
#: any value.
Box: TypeAlias = tuple[tuple[str, Values], ...]

#: The days of open ends of periods.
FIRST_DAY = date.min.toordinal()
LAST_DAY = date.max.toordinal()


class WrittenPart(NamedTuple):
    """A part as plain data, and the canonical bytes of each of its fields."""

    plain: Mapping[str, Plain]
    where: Written
    periods: Written
    groups: Written


@dataclass(frozen=True, slots=True)
class Part:
    """The part of the data that a mechanism reads.

    Attributes:
        where: Boxes over partitioning attributes, any of which a row may lie in;
            None for everybody. At least one, in order.
        periods: The days, as ordinals of the Gregorian calendar, on which the rows
            that it reads happened; None for all of time.
        groups: The user groups that it reads; None for all of them.
        written: Remembers how it is written.
    """

    where: tuple[Box, ...] | None = None
    periods: tuple[Span, ...] | None = None
    groups: tuple[Span, ...] | None = None
    written: LazyValue[WrittenPart] = field(
        init=False, repr=False, compare=False, default_factory=LazyValue
    )


#: The part of a mechanism that may read every row.
EVERYTHING = Part()


def part_to_plain(part: Part) -> dict[str, Plain]:
    """Return a part as plain data: `where`, `periods` and `groups`, None for all.

    Examples:
        >>> november = Part(periods=((739921, 739950),))
        >>> part_to_plain(november)["periods"]
        [['2026-11-01', '2026-11-30']]
        >>> part_to_plain(Part((((("country", ("CH", "DE")),)),)))["where"]
        [{'country': ['CH', 'DE']}]
    """
    return {
        "where": None
        if part.where is None
        else [
            {name: _values_to_plain(values) for name, values in box}
            for box in part.where
        ],
        "periods": None
        if part.periods is None
        else [
            [
                None if first == FIRST_DAY else _day_to_plain(first),
                None if last == LAST_DAY else _day_to_plain(last),
            ]
            for first, last in part.periods
        ],
        "groups": None if part.groups is None else [list(span) for span in part.groups],
    }


def part_written(part: Part) -> WrittenPart:
    """Return the result of `part_to_plain`, and the canonical bytes of each field."""
    known = part.written.get()
    if known is not None:
        return known
    plain = part_to_plain(part)
    fields = {name: Written(encode(value)) for name, value in plain.items()}
    return part.written.keep(WrittenPart(plain, **fields))


def part_from_plain(where: Plain, periods: Plain, groups: Plain) -> Part:
    """Return the part that plain data encodes.

    Args:
        where: The boxes, or None for everybody.
        periods: Pairs of days, None for an open end; or None for all of time.
        groups: Pairs of numbers, or None for all groups.

    Raises:
        ValueError: If it is not exactly a result of `part_to_plain`.
    """
    part = Part(
        None if where is None else tuple(_box(one) for one in _listed(where)),
        None if periods is None else tuple(_days(one) for one in _listed(periods)),
        None if groups is None else tuple(_span(one) for one in _listed(groups)),
    )
    again = part_to_plain(part)
    if (again["where"], again["periods"], again["groups"]) != (where, periods, groups):
        raise ValueError("a part of the data is not in its canonical form")
    if part.where is not None:
        _check_boxes(part.where)
    if part.periods is not None:
        _check_spans(part.periods)
    if part.groups is not None:
        _check_spans(part.groups)
    if part.periods == ((FIRST_DAY, LAST_DAY),):
        raise ValueError("the whole time range is implicit")
    if part.groups is not None and part.groups[0][0] < 0:
        raise ValueError("a user group has a number below 0")
    return part


def merged(spans: list[Span]) -> tuple[Span, ...]:
    """Return the same whole numbers as spans in order that do not touch.

    Examples:
        >>> merged([(5, 9), (1, 2), (3, 3), (8, 12)])
        ((1, 3), (5, 12))
    """
    found: list[Span] = []
    for low, high in sorted(spans):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)


def in_order(boxes: Iterable[Box]) -> tuple[Box, ...]:
    """Return boxes in the order of a part, without duplicates."""
    return tuple(sorted(set(boxes), key=ascii))  # The same in every version of Python.


def _check_boxes(boxes: tuple[Box, ...]) -> None:
    if not boxes or boxes != in_order(boxes):
        raise ValueError("boxes are not sorted")
    for box in boxes:
        if not box:
            raise ValueError("a box has no attribute")
        for _, values in box:
            if not values:
                raise ValueError("an attribute has no value")
            if isinstance(values[0], str):
                if values != tuple(sorted(set(values))):
                    raise ValueError("values are not sorted")
            else:
                _check_spans(values)


def _check_spans(spans: tuple[Span, ...]) -> None:
    if not spans or spans != merged(list(spans)):
        raise ValueError("spans are not sorted")


def _values_to_plain(values: Values) -> list[Plain]:
    return [one if isinstance(one, str) else list(one) for one in values]


def _day_to_plain(day: int) -> str:
    return date.fromordinal(day).isoformat()


def _box(plain: Plain) -> Box:
    if not isinstance(plain, dict):
        raise ValueError("a box must be a mapping")  # noqa: TRY004 - bad data
    return tuple((name, _values(values)) for name, values in sorted(plain.items()))


def _values(plain: Plain) -> Values:
    values = _listed(plain)
    texts = tuple(one for one in values if isinstance(one, str))
    if len(texts) == len(values):
        return texts
    return tuple(_span(one) for one in values)


def _days(plain: Plain) -> Span:
    ends = _listed(plain)
    if len(ends) != 2:
        raise ValueError("periods must be pairs of days")
    first, last = ends
    low = FIRST_DAY if first is None else _day(first)
    high = LAST_DAY if last is None else _day(last)
    if low > high:
        raise ValueError("periods end before they begin")
    return low, high


def _day(plain: Plain) -> int:
    if not isinstance(plain, str):
        raise ValueError("a day must be text")  # noqa: TRY004 - bad data
    return date.fromisoformat(plain).toordinal()


def _span(plain: Plain) -> Span:
    ends = _listed(plain)
    if len(ends) != 2:
        raise ValueError("a span must have two ends")
    low, high = ends
    if _is_whole(low) and _is_whole(high) and low <= high:
        return low, high
    raise ValueError("the ends of a span must be integers, in order")


def _is_whole(plain: Plain) -> TypeGuard[int]:
    return isinstance(plain, int) and not isinstance(plain, bool)


def _listed(plain: Plain) -> list[Plain]:
    if not isinstance(plain, list):
        raise ValueError("a list was expected")  # noqa: TRY004 - bad data
    return plain
