"""Reading the division of the population: public attributes, and periods."""

from __future__ import annotations

from collections.abc import Mapping

from modicum.core.document import Entries, Items, Node, Scalar, flow_text
from modicum.core.errors import Code
from modicum.core.reader import (
    Fields,
    Problems,
    choice,
    count,
    fail,
    items,
    name,
    refuse_nothing,
)
from modicum.policy.model import Attribute
from modicum.release import Partition, Population, Unit
from modicum.release.population import Was
from modicum.release.units import clocks_of

#: A larger number in the domain of a partitioning attribute is refused.
DOMAIN_MAX = 10**9

_EVERY = (-DOMAIN_MAX, DOMAIN_MAX)


def read_was_of_values(
    node: Node | None, values: tuple[str, ...], what: str
) -> tuple[Was, ...]:
    """Return the former values of listed values.

    Args:
        node: The mapping `was`: by old value, one or several of the present ones;
            None if there is none.
        values: The present values.
        what: The attribute, for messages.

    Raises:
        InputError: With every mistake found.
    """
    if node is None:
        return ()
    found = Problems()
    read: list[Was] = []
    for key, now in Fields(node, f"`was` of {what}").rest():
        with found.guard():
            old = name(key, f"an old value of {what}")
            present = {
                choice(item, f"value of {what}", values, Code.UNKNOWN_CHOICE)
                for item in _one_or_more(now, what)
            }
            read.append(Was((old,), tuple(sorted(present))))
    found.raise_any()
    return tuple(read)


def read_was_of_range(
    node: Node | None, low: int, high: int, what: str
) -> tuple[Was, ...]:
    """Return the former values of a range of integers.

    Args:
        node: The list `was`, of entries `{old: …, now: …}`; None if there is none.
        low: The least number of the present range.
        high: The greatest.
        what: The attribute, for messages.

    Raises:
        InputError: With every mistake found.
    """
    if node is None:
        return ()
    found = Problems()
    read: list[Was] = []
    for item in items(node, f"`was` of {what}"):
        with found.guard():
            fields = Fields(item, f"an entry of `was` of {what}")
            from modicum.release.part_parser import read_numbers

            old = read_numbers(fields.take("old"), f"`old` of {what}", _EVERY)
            now = read_numbers(fields.take("now"), f"`now` of {what}", (low, high))
            fields.finish()
            read.append(Was(old, now))
    found.raise_any()
    return tuple(read)


def _one_or_more(node: Node, what: str) -> tuple[Node, ...]:
    several = node.items if isinstance(node, Items) else (node,)
    if not several:
        raise fail(
            Code.MISSING_KEY,
            f"an old value of {what} has no current value",
            node,
            help="list its possible values, or leave it out: it then has all of them",
        )
    return several


__all__ = ["DETAIL_MAX", "DOMAIN_MAX", "read_population"]

#: Maximum number of recent periods distinguished.
DETAIL_MAX = 100_000


def read_population(
    node: Node | None, attributes: Mapping[str, Attribute], units: Mapping[str, Unit]
) -> Population:
    """Return the public division of the population.

    Args:
        node: The `population` block; None if there is none.
        attributes: The attributes of the data by name.
        units: The privacy units by name.

    Raises:
        InputError: With every mistake found.
    """
    clocks = clocks_of(units)
    static = frozenset(name for name, one in attributes.items() if one.static)
    if node is None:
        return Population(static=static, clocks=clocks)
    refuse_nothing(node, "`population`")
    found = Problems()
    fields = Fields(node, "`population`")
    partitions: dict[str, Partition] = {}
    listed = fields.take_optional("partition_by")
    if listed is not None:
        for key, value in Fields(listed, "`partition_by`").rest():
            with found.guard():
                own_name = name(key, "a partitioning attribute")
                partitions[own_name] = _partition(own_name, key, value, units)
    grouped: frozenset[str] = frozenset()
    groups = fields.take_optional("groups")
    with found.guard():
        if groups is not None:
            grouped = _grouped(groups, units)
    detail: dict[str, int] = {}
    timed = fields.take_optional("time_detail")
    if timed is not None:
        for key, value in Fields(timed, "`time_detail`").rest():
            with found.guard():
                unit = _timed_unit(key, units)
                detail[unit] = count(
                    value, f"`time_detail` of `{unit}`", at_least=1, at_most=DETAIL_MAX
                )
    with found.guard():
        fields.finish()
    found.raise_any()
    return Population(partitions, grouped, detail, static, clocks)


def _partition(
    own_name: str, key: Scalar, node: Node, units: Mapping[str, Unit]
) -> Partition:
    what = f"partitioning attribute `{own_name}`"
    if isinstance(node, Items):
        written = flow_text(node)
        raise fail(
            Code.WRONG_TYPE,
            f"the domain of {what} must be a mapping or a count, got a list",
            node,
            help=f"write  {{values: {written}}}  instead of  {written}",
        )
    if not isinstance(node, Entries):  # A count is short for the numbers from 0 on.
        size = count(node, f"the domain of {what}", at_least=1, at_most=DOMAIN_MAX)
        return Partition(own_name, None, 0, size - 1, (), key.mark)
    fields = Fields(node, what)
    if "values" in fields and "range" in fields:
        raise fail(Code.KEYS_CONFLICT, f"{what} has either `values` or a `range`", node)
    values: tuple[str, ...] | None = None
    was: tuple[Was, ...] = ()
    earlier = fields.take_optional("was")
    if "range" in fields:
        low, high = _range(fields.take("range"), what)
        was = read_was_of_range(earlier, low, high, what)
    elif "values" in fields:
        values = _values(fields.take("values"), what)
        low, high = 0, len(values) - 1
        was = read_was_of_values(earlier, values, what)
    else:
        raise fail(
            Code.MISSING_KEY,
            f"{what} needs its domain: `values` or a `range`",
            node,
            help="write values: [CH, DE], range: [1900, 2030], or a count alone",
        )
    immutable = fields.take_optional("immutable")
    fields.finish()
    frozen = () if immutable is None else _units_of(immutable, units)
    return Partition(own_name, values, low, high, frozen, key.mark, was)


def _range(node: Node, what: str) -> tuple[int, int]:
    ends = items(node, f"the range of {what}")
    if len(ends) != 2:
        raise fail(Code.WRONG_TYPE, f"the range of {what} must be [low, high]", node)
    low, high = (
        count(end, f"an end of {what}", at_least=-DOMAIN_MAX, at_most=DOMAIN_MAX)
        for end in ends
    )
    if low > high:
        raise fail(Code.OUT_OF_RANGE, f"the range of {what} is empty", node)
    return low, high


def _values(node: Node, what: str) -> tuple[str, ...]:
    values: dict[str, None] = {}
    for item in items(node, f"the values of {what}"):
        value = name(item, f"a value of {what}")
        if value in values:
            raise fail(
                Code.DUPLICATE_NAME, f"value `{value}` of {what} is given twice", item
            )
        values[value] = None
    if not values:
        raise fail(Code.MISSING_KEY, f"{what} needs at least one value", node)
    return tuple(values)


def _units_of(node: Node, units: Mapping[str, Unit]) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(
            choice(item, "privacy unit", units, Code.UNKNOWN_UNIT)
            for item in items(node, "`immutable`")
        )
    )


def _grouped(node: Node, units: Mapping[str, Unit]) -> frozenset[str]:
    fields = Fields(node, "`groups` of `population`")
    immutable = fields.take("immutable", help="write  groups: {immutable: [UNIT]}")
    fields.finish()
    return frozenset(_units_of(immutable, units))


def _timed_unit(key: Scalar, units: Mapping[str, Unit]) -> str:
    unit = choice(key, "privacy unit", units, Code.UNKNOWN_UNIT)
    if units[unit].period is None:
        raise fail(
            Code.KEYS_CONFLICT,
            f"`{unit}` has no time: it has one period only",
            key,
            help=f"give the unit `time: {{column: …, period: …}}`, or leave `{unit}`"
            " out of `time_detail`",
        )
    return unit
