"""A part of the data as conditions on columns, for a layer that filters rows.

The filter selects the rows of the part, never more. A part that cannot be expressed so
is refused: a wider filter would read rows that were not charged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from modicum.core.errors import Code, InputError, Problem
from modicum.release import Part, Partition, Vocabulary
from modicum.release.parts import (
    FIRST_DAY,
    LAST_DAY,
    Box,
    Span,
    Values,
    part_from_plain,
    part_to_plain,
)

#: The default column for the number of a row's user group.
GROUP_COLUMN = "user_group"
#: Longer names of columns are refused.
COLUMN_CHARACTERS_MAX = 128

#: Days from the first to before the second; None where an end is open.
Days: TypeAlias = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class In:
    """A column equals one of some texts."""

    column: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Between:
    """A column is an integer in one of some inclusive ranges."""

    column: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class During:
    """A column is a time within some days."""

    column: str
    days: tuple[Days, ...]


Condition: TypeAlias = In | Between | During


@dataclass(frozen=True, slots=True)
class RowFilter:
    """The readable rows: those in any box that satisfy all other conditions.

    A value that is missing fits no condition.

    Attributes:
        boxes: Conditions that hold together, by box; None for everybody.
        always: Further conditions.
    """

    boxes: tuple[tuple[Condition, ...], ...] | None
    always: tuple[Condition, ...]

    def alternatives(self) -> tuple[tuple[Condition, ...], ...]:
        """Return lists of conditions; a row passes if all of any list hold."""
        return tuple((*box, *self.always) for box in self.boxes or ((),))


@dataclass(frozen=True, slots=True)
class Columns:
    """The column names of a table.

    Attributes:
        group: The column with the number of a row's user group.
        named: Columns by the policy's name for them; others are called as there.
    """

    group: str = GROUP_COLUMN
    named: Mapping[str, str] = field(default_factory=dict)

    def of(self, name: str) -> str:
        """Return the column that an attribute or a time column of the policy is."""
        return column_name(self.named.get(name, name))


def column_name(name: str) -> str:
    """Return the name of a column if it can be one."""
    if not 1 <= len(name) <= COLUMN_CHARACTERS_MAX or not name.isprintable():
        raise InputError(
            Problem(
                Code.BAD_NAME,
                f"invalid column name `{name[:60]}`",
                help=f"give it 1 to {COLUMN_CHARACTERS_MAX} printable characters",
            )
        )
    return name


def row_filter(part: Part, vocabulary: Vocabulary, columns: Columns) -> RowFilter:
    """Return the conditions that the rows of a part fit, and no others."""
    _refuse_odd(part)
    partitions = vocabulary.population.partitions
    boxes = None
    if part.where is not None:
        boxes = tuple(_box(box, partitions, columns) for box in part.where)
    always: list[Condition] = []
    names = sorted({name for box in part.where or () for name, _ in box})
    used = [columns.of(name) for name in names]
    if part.periods is not None:
        clock = columns.of(_clock(vocabulary))
        always.append(During(clock, tuple(map(_half_open, part.periods))))
        used.append(clock)
    if part.groups is not None:
        always.append(Between(column_name(columns.group), part.groups))
        used.append(columns.group)
    _refuse_shared(used)
    return RowFilter(boxes, tuple(always))


def _box(
    box: Box, partitions: Mapping[str, Partition], columns: Columns
) -> tuple[Condition, ...]:
    return tuple(
        _condition(columns.of(name), values, _domain(name, values, partitions))
        for name, values in box
    )


def _condition(column: str, values: Values, partition: Partition) -> Condition:
    if partition.values is not None:
        return In(column, cast("tuple[str, ...]", values))
    return Between(column, cast("tuple[Span, ...]", values))


def _domain(
    name: str, values: Values, partitions: Mapping[str, Partition]
) -> Partition:
    """Return the domain of an attribute, if it has the values that a box names."""
    known = partitions.get(name)
    if known is None:
        raise _unreadable(f"the policy has no partitioning attribute `{name}`")
    if known.values is not None:
        fits = set(values) <= set(known.values)
    else:
        fits = not isinstance(values[0], str) and all(
            known.low <= low and high <= known.high for low, high in values
        )
    if not fits:
        raise _unreadable(f"`{name}` has different values in the policy")
    return known


def _clock(vocabulary: Vocabulary) -> str:
    """Return the single time column that defines days."""
    clocks = sorted(vocabulary.clocks)
    if len(clocks) != 1:
        columns = " and ".join(f"`{one}`" for one in clocks) or "no time column"
        raise _unreadable(
            f"the units of the policy use several time columns: {columns}"
        )
    return clocks[0]


def _half_open(span: Span) -> Days:
    first, last = span
    return (
        None if first == FIRST_DAY else first,
        None if last == LAST_DAY else last + 1,
    )


def _refuse_odd(part: Part) -> None:
    """Refuse a part that is not in the one form that parts have."""
    try:
        plain = part_to_plain(part)
        again = part_from_plain(plain["where"], plain["periods"], plain["groups"])
    except (ValueError, OverflowError, TypeError) as error:
        raise _unreadable(str(error)) from error
    if again != part:
        raise _unreadable("it is not in its canonical form")


def _refuse_shared(used: list[str]) -> None:
    """Refuse one column for two purposes: only one would be checked.

    The comparison ignores case, as many databases do.
    """
    seen: set[str] = set()
    for column in used:
        if column.casefold() in seen:
            raise InputError(
                Problem(
                    Code.DUPLICATE_NAME,
                    f"two names map to the column `{column}`",
                    notes=("many databases ignore case",),
                    help="give the columns with  --group-column  and  --column",
                )
            )
        seen.add(column.casefold())


def _unreadable(why: str) -> InputError:
    return InputError(
        Problem(
            Code.NOT_SUPPORTED,
            f"the part of the data cannot be written as a row filter: {why}",
        )
    )
