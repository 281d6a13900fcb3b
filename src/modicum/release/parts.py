"""Which part of the data a mechanism reads: whose rows, of when.

All of it is public and fixed before a row is read. A part only ever promises that
rows outside it change nothing, so a larger part is always true as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TypeAlias, TypeGuard

from modicum.core.canonical import Plain

#: Whole numbers from the first to the second, both included.
Span: TypeAlias = tuple[int, int]

#: The values of one partitioning attribute: texts of a list, or spans of a range;
#: in order, without repetition, and spans neither touch nor overlap.
Values: TypeAlias = tuple[str, ...] | tuple[Span, ...]

#: What holds together: values by partitioning attribute, by name. An attribute that
#: is not named may have any value.
Box: TypeAlias = tuple[tuple[str, Values], ...]

#: The days that open ends of periods stand for.
FIRST_DAY = date.min.toordinal()
LAST_DAY = date.max.toordinal()


@dataclass(frozen=True, slots=True)
class Part:
    """The part of the data that a mechanism reads.

    Attributes:
        where: Boxes over partitioning attributes, any of which a row may lie in;
            None for everybody. At least one, in order.
        periods: The days, as ordinals of the Gregorian calendar, on which the rows
            that it reads happened; None for all of time.
        groups: The user groups that it reads; None for all of them.
    """

    where: tuple[Box, ...] | None = None
    periods: tuple[Span, ...] | None = None
    groups: tuple[Span, ...] | None = None


#: The part of a mechanism that may read every row.
EVERYTHING = Part()


def part_to_plain(part: Part) -> dict[str, Plain]:
    """Return a part as plain data: `where`, `periods` and `groups`, None for all."""
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
            [_day_to_plain(first), _day_to_plain(last)] for first, last in part.periods
        ],
        "groups": None if part.groups is None else [list(span) for span in part.groups],
    }


def part_from_plain(where: Plain, periods: Plain, groups: Plain) -> Part:
    """Return the part that plain data encodes.

    Raises:
        ValueError: If it is not exactly what `part_to_plain` returns.
    """
    part = Part(
        None if where is None else tuple(_box(one) for one in _listed(where)),
        None if periods is None else tuple(_days(one) for one in _listed(periods)),
        None if groups is None else tuple(_span(one) for one in _listed(groups)),
    )
    again = part_to_plain(part)
    if (again["where"], again["periods"], again["groups"]) != (where, periods, groups):
        raise ValueError("a part of the data is not in its canonical form")
    _refuse_unordered(part)
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


def _refuse_unordered(part: Part) -> None:
    spans = [part.periods or (), part.groups or ()]
    for box in part.where or ():
        if list(box) != sorted(box) or not box:
            raise ValueError("a box does not name its attributes in order")
        for _, values in box:
            if values and isinstance(values[0], str):
                if list(values) != sorted(set(values)):
                    raise ValueError("values do not stand in order")
            else:
                spans.append(values)  # type: ignore[arg-type]
    if part.where is not None and list(part.where) != sorted(set(part.where), key=repr):
        raise ValueError("boxes do not stand in order")
    if any(list(one) != list(merged(list(one))) for one in spans):
        raise ValueError("spans do not stand in order")
    if () in (part.where, part.periods, part.groups):
        raise ValueError("a part of the data is empty")
    if any(not values for box in part.where or () for _, values in box):
        raise ValueError("an attribute has no value")


def _values_to_plain(values: Values) -> list[Plain]:
    return [one if isinstance(one, str) else list(one) for one in values]


def _day_to_plain(day: int) -> Plain:
    if day in (FIRST_DAY, LAST_DAY):
        return None
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
    raise ValueError("the ends of a span must be whole numbers, in order")


def _is_whole(plain: Plain) -> TypeGuard[int]:
    return isinstance(plain, int) and not isinstance(plain, bool)


def _listed(plain: Plain) -> list[Plain]:
    if not isinstance(plain, list):
        raise ValueError("a list was expected")  # noqa: TRY004 - bad data
    return plain
