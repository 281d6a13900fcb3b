"""Reading the declaration of a table's column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from fractions import Fraction
from typing import Final, NamedTuple, cast

from modicum.core.document import Kind, Node, Scalar
from modicum.core.errors import Code, InputError
from modicum.core.rationals import number_text
from modicum.core.reader import (
    Fields,
    Problems,
    boolean,
    choice,
    count,
    fail,
    items,
    nearest,
    number,
    positive,
    text,
)
from modicum.query.tables import TYPES, Column, ColumnType, Value
from modicum.release.part_parser import LISTED_MAX, listed
from modicum.release.population import Partition
from modicum.release.vocabulary import Vocabulary

_INTEGER_MAX: Final = 2**63 - 1


def read_values(
    what: str, kind: ColumnType, partition: Partition | None, fields: Fields
) -> tuple[Value, ...] | None:
    """Return the distinguishable values of a column, if they are public.

    Args:
        what: The column, for messages.
        kind: Its type.
        partition: The partitioning attribute that it holds, whose domain contains them.
        fields: Its declaration; `values` is consumed.

    Raises:
        InputError: If groups cannot be formed by such a column, or with every invalid
            value.
    """
    pair = fields.take_pair("values")
    if pair is None:
        return None
    key, node = pair
    if kind not in _READERS:
        raise fail(
            Code.KEYS_CONFLICT,
            f"{what} is of type {kind}, and has no `values`",
            key,
            notes=("it cannot be a grouping key",),
            help="leave them out",
        )
    what_value = f"a value of {what}"
    found = Problems()
    seen: dict[Value, None] = {}
    for one in listed(node, f"`values` of {what}", LISTED_MAX):
        with found.guard():
            value = _READERS[kind](one, what_value)
            if value in seen:
                raise fail(Code.DUPLICATE_NAME, f"{what_value} is given twice", one)
            _refuse_outside(value, partition, one, what_value)
            seen[value] = None
    found.raise_any()
    return tuple(seen)


def _refuse_outside(
    value: Value, partition: Partition | None, node: Node, what: str
) -> None:
    if partition is None or _inside(value, partition):
        return
    near = nearest(str(value), partition.values or ())
    raise fail(
        Code.UNKNOWN_CHOICE,
        f"{what} is not in the domain of the partitioning attribute `{partition.name}`",
        node,
        label=near,
        help="use values that the policy declares, or add it there",
    )


def _inside(value: Value, partition: Partition) -> bool:
    if partition.values is not None:
        return value in partition.values
    return isinstance(value, int) and partition.low <= value <= partition.high


def _integer(node: Node, what: str) -> int:
    return count(node, what, at_least=-_INTEGER_MAX, at_most=_INTEGER_MAX)


def _day(node: Node, what: str) -> str:
    written = node.text if isinstance(node, Scalar) and node.kind is Kind.TEXT else ""
    try:
        if len(written) == len("2026-11-30"):
            return date.fromisoformat(written).isoformat()
    except ValueError:
        pass
    message = f"{what} must be a valid date"
    raise fail(Code.OUT_OF_RANGE, message, node, help="write it like 2026-11-30")


_READERS: Final[Mapping[ColumnType, Callable[[Node, str], Value]]] = {
    "text": text,
    "integer": _integer,
    "boolean": boolean,
    "date": _day,
}


#: The maximum distance of a bound from 0, in steps.
STEPS_MAX: Final = 2**31
#: Steps outside of these are not exact in the numbers that engines compute with.
STEP_LEAST: Final = Fraction(1, 10**12)
STEP_MOST: Final = Fraction(10**12)


class Roles(NamedTuple):
    """The roles of columns, besides holding attributes.

    Attributes:
        ids: Columns that identify a row's instance, for some unit.
        clocks: Columns with the time of a row, for some unit.
        others: Columns that identify the row, or its user group.
    """

    ids: frozenset[str]
    clocks: frozenset[str]
    others: frozenset[str]


def read_column(
    own_name: str, node: Node, roles: Roles, vocabulary: Vocabulary
) -> Column:
    """Return the declaration of a column.

    Raises:
        InputError: With every mistake found.
    """
    what = f"column `{own_name}`"
    fields = Fields(node, what, help=_in_brackets(own_name, node))
    found = Problems()
    kind_node = fields.take("type", help="write type: " + "|".join(TYPES))
    kind = _kind(kind_node, f"type of {what}")
    attribute: str | None = None
    partition: Partition | None = None
    step, bounds, values = Fraction(1), None, None
    with found.guard():
        _refuse_role_type(own_name, kind, kind_node, roles)
    with found.guard():
        attribute = _attribute(own_name, fields, roles, vocabulary)
    with found.guard():
        partition = _partition(what, kind, fields, vocabulary)
    with found.guard():
        step, bounds = _numbers(what, kind, fields)
    with found.guard():
        values = read_values(what, kind, partition, fields)
    with found.guard():
        fields.finish()
    found.raise_any()
    low, high = bounds or (None, None)
    part = partition.name if partition else None
    return Column(own_name, kind, attribute, part, step, low, high, values)


#: Types as databases call them, and as modicum does.
_ELSEWHERE: Final[Mapping[str, ColumnType]] = {
    **dict.fromkeys(("string", "str", "varchar", "char", "character"), "text"),
    **dict.fromkeys(("int", "bigint", "smallint", "long", "whole"), "integer"),
    **dict.fromkeys(("float", "double", "real", "decimal", "numeric"), "number"),
    "bool": "boolean",
    "datetime": "timestamp",
}


def _kind(node: Node, what: str) -> ColumnType:
    given = text(node, what)
    suggestion = _ELSEWHERE.get(given.casefold())
    if suggestion is not None:
        raise fail(
            Code.UNKNOWN_CHOICE,
            f'unknown {what} "{given}"',
            node,
            label=f'did you mean "{suggestion}"?',
            help="known: " + ", ".join(TYPES),
        )
    return cast("ColumnType", choice(node, what, TYPES, Code.UNKNOWN_CHOICE))


def _in_brackets(own_name: str, node: Node) -> str:
    """Return how a column is written of which only the type is."""
    kind = node.text if isinstance(node, Scalar) and node.text in TYPES else "…"
    return f"write  {own_name}: {{type: {kind}}}"


def _refuse_role_type(
    own_name: str, kind: ColumnType, node: Node, roles: Roles
) -> None:
    if own_name in roles.clocks and kind not in ("date", "timestamp"):
        raise fail(
            Code.KEYS_CONFLICT,
            f"column `{own_name}` is the time of a unit: it must be a date or"
            f" a timestamp, not of type {kind}",
            node,
        )
    if own_name in roles.ids and kind not in ("text", "integer"):
        raise fail(
            Code.KEYS_CONFLICT,
            f"column `{own_name}` is the id of a unit: it must be a text or an"
            f" integer, not of type {kind}",
            node,
        )


# --- its meaning in the policy --------------------------------------------------------


def _attribute(
    own_name: str, fields: Fields, roles: Roles, vocabulary: Vocabulary
) -> str | None:
    """Return the attribute of a column; None if it only identifies rows or times."""
    known = vocabulary.attributes
    node = fields.take_optional("attribute")
    only_tells = own_name in roles.ids | roles.clocks | roles.others
    if node is None:
        if own_name in known:
            return own_name
        if only_tells:
            return None
        raise _no_attribute(own_name, fields.node, known)
    given = text(node, f"`attribute` of column `{own_name}`")
    if given == "none":
        if only_tells:
            return None
        raise _no_attribute(own_name, node, known)
    if given not in known:
        raise fail(
            Code.UNKNOWN_ATTRIBUTE,
            f'unknown attribute "{given[:60]}" of column `{own_name}`',
            node,
            label=nearest(given, known),
            help="known: " + (", ".join(sorted(known)[:20]) or "none"),
        )
    return given


def _no_attribute(own_name: str, node: Node, known: frozenset[str]) -> Exception:
    return fail(
        Code.UNKNOWN_ATTRIBUTE,
        f"column `{own_name}` has no attribute of the policy",
        node,
        label=nearest(own_name, known),
        notes=("a query of it would escape all rules about attributes",),
        help="write  attribute: NAME  , or leave the column out",
    )


def _partition(
    what: str, kind: ColumnType, fields: Fields, vocabulary: Vocabulary
) -> Partition | None:
    node = fields.take_optional("partition")
    if node is None:
        return None
    partitions = vocabulary.population.partitions
    given = text(node, f"`partition` of {what}")
    if given not in partitions:
        raise fail(
            Code.UNKNOWN_ATTRIBUTE,
            f'unknown partitioning attribute "{given[:60]}"',
            node,
            label=nearest(given, partitions),
            help="known: " + (", ".join(list(partitions)[:20]) or "none"),
        )
    needed = "integer" if partitions[given].values is None else "text"
    if kind != needed:
        raise fail(
            Code.KEYS_CONFLICT,
            f"{what} is of type {kind}, and the values of the partitioning attribute"
            f" `{given}` are of type {needed}",
            node,
            help=f"write  type: {needed}  , and convert the data",
        )
    return partitions[given]


# --- numbers --------------------------------------------------------------------------


def _numbers(
    what: str, kind: ColumnType, fields: Fields
) -> tuple[Fraction, tuple[Fraction, Fraction] | None]:
    """Return the step and the bounds of a column."""
    try:
        step = _step(what, kind, fields)
    except InputError:
        fields.take_optional("bounds")  # They cannot be read without a step.
        raise
    return step, _bounds(what, kind, step, fields)


def _step(what: str, kind: ColumnType, fields: Fields) -> Fraction:
    if kind == "number":
        remedy = "give the rounding step of values, such as  step: 0.01"
        node = fields.take("step", help=remedy)
        step = positive(node, f"`step` of {what}")
        if not STEP_LEAST <= step <= STEP_MOST:
            message = f"`step` of {what} must be between 1e-12 and 1e12"
            raise fail(Code.OUT_OF_RANGE, message, node)
        return step
    if "step" in fields:
        key = fields.key_node("step")
        fields.take("step")
        raise fail(
            Code.KEYS_CONFLICT,
            f"{what} is of type {kind}, and has no `step`",
            key,
            help="leave it out" if kind != "integer" else "leave it out: it is 1",
        )
    return Fraction(1)


def _bounds(
    what: str, kind: ColumnType, step: Fraction, fields: Fields
) -> tuple[Fraction, Fraction] | None:
    pair = fields.take_pair("bounds")
    if pair is None:
        return None
    key, node = pair
    if kind not in ("integer", "number"):
        message = f"{what} is of type {kind}, and has no `bounds`"
        raise fail(Code.KEYS_CONFLICT, message, key, help="leave them out")
    ends = items(node, f"`bounds` of {what}")
    if len(ends) != 2:
        raise fail(
            Code.OUT_OF_RANGE,
            f"`bounds` of {what} are two numbers, not {len(ends)}",
            node,
            help="write bounds: [LOW, HIGH]",
        )
    found = Problems()
    read: list[Fraction] = []
    for end in ends:
        with found.guard():
            read.append(_bound(end, what, step))
    found.raise_any()
    low, high = read
    if low >= high:
        message = f"the first of the `bounds` of {what} must be below the second"
        raise fail(Code.OUT_OF_RANGE, message, node)
    return low, high


def _bound(node: Node, what: str, step: Fraction) -> Fraction:
    value = number(node, f"a bound of {what}")
    steps = value / step
    if steps.denominator != 1:
        below = number_text(steps.__floor__() * step)
        above = number_text(steps.__ceil__() * step)
        raise fail(
            Code.OUT_OF_RANGE,
            f"a bound of {what} is not a multiple of the step {number_text(step)}",
            node,
            help=f"write {below} or {above}",
        )
    if abs(steps) >= STEPS_MAX:
        raise fail(
            Code.OUT_OF_RANGE,
            f"a bound of {what} is 2^31 steps or more away from 0",
            node,
            notes=("sums of squares would not be exact",),
            help="take a larger step, or narrower bounds",
        )
    return value
