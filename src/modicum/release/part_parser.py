"""Reading the part of the data of a mechanism: `where`, `periods`, `groups`.

The result has one form: the same days, groups and (where easily found) the same boxes
give the same part, however they were written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from modicum.core.document import Entries, Items, Kind, Node, Scalar, describe
from modicum.core.errors import Code, InputError
from modicum.core.reader import (
    Fields,
    Problems,
    count,
    fail,
    nearest,
    refuse_nothing,
    text,
)
from modicum.release.parts import FIRST_DAY, LAST_DAY, Box, Part, Span, Values, merged
from modicum.release.period_text import FORMS, days_of
from modicum.release.population import Partition
from modicum.release.vocabulary import Vocabulary

#: Longer lists of values, periods or groups are refused.
LISTED_MAX = 10_000
#: A larger number of a user group is refused.
GROUP_MAX = 10**9

T = TypeVar("T")


def read_numbers(node: Node, what: str, domain: Span) -> tuple[Span, ...]:
    """Return the integers given by one, a span `{from: …, to: …}` or a list.

    Args:
        node: The input.
        what: Its name, for messages.
        domain: The least and the greatest number, the defaults of omitted ends.

    Raises:
        InputError: With every mistake found.
    """

    def number(item: Node) -> Span:
        least, most = domain
        value = count(item, f"a value of {what}", at_least=least, at_most=most)
        return value, value

    return _spans(node, what, number, domain)


def read_groups(node: Node, vocabulary: Vocabulary) -> tuple[Span, ...]:
    """Return the given user groups.

    Raises:
        InputError: With every mistake found.
    """
    if not vocabulary.population.grouped:
        raise fail(
            Code.KEYS_CONFLICT,
            "the policy divides no unit into user groups",
            node,
            help="leave `groups` out, or add to the policy"
            "  population: {groups: {immutable: [UNIT]}}",
        )
    return read_numbers(node, "`groups`", (0, GROUP_MAX))


def read_periods(node: Node, vocabulary: Vocabulary) -> tuple[Span, ...] | None:
    """Return the days of the given periods; None for all of time.

    Args:
        node: A period, a span of them, or a list of both.
        vocabulary: Some of its units must have a period, and all of these one clock.

    Raises:
        InputError: With every mistake found.
    """
    if all(unit.period is None for unit in vocabulary.unit_facts.values()):
        raise fail(
            Code.KEYS_CONFLICT,
            "no unit of the policy has a period",
            node,
            help="leave `periods` out, or give a unit of the policy"
            "  time: {column: …, period: …}",
        )
    if len(vocabulary.clocks) > 1:
        clocks = " and ".join(f"`{one}`" for one in sorted(vocabulary.clocks))
        raise fail(
            Code.KEYS_CONFLICT,
            f"the units of the policy use the time columns {clocks}: `periods` is"
            " ambiguous",
            node,
            help="leave `periods` out: the release is charged for all of time",
        )
    every = (FIRST_DAY, LAST_DAY)
    spans = _spans(node, "`periods`", _period, every)
    return None if spans == (every,) else spans


def _period(node: Node) -> Span:
    named = isinstance(node, Scalar) and node.kind in (Kind.TEXT, Kind.NUMBER)
    word = node.text if isinstance(node, Scalar) and named else ""
    try:
        days = days_of(word)
    except ValueError:
        message = f"invalid date {word}"
        raise fail(Code.OUT_OF_RANGE, message, node) from None
    if days is None:
        raise fail(
            Code.OUT_OF_RANGE,
            f"`periods` must contain days, weeks, months …, got {describe(node)}",
            node,
            help=f"write it like {FORMS}",
        )
    return days


# --- any spans ------------------------------------------------------------------------


def _spans(
    node: Node, what: str, read: Callable[[Node], Span], open_ends: Span
) -> tuple[Span, ...]:
    """Return one item, or each of a list: a span that `read` knows, or its ends."""

    def span(item: Node) -> Span:
        if isinstance(item, Entries):
            return _from_to(item, what, read, open_ends)
        return read(item)

    return merged(each(listed(node, what, LISTED_MAX), span))


def _from_to(
    node: Node, what: str, read: Callable[[Node], Span], open_ends: Span
) -> Span:
    """Return the range from one to another; an omitted end is open."""
    found = Problems()
    fields = Fields(node, f"a span of {what}")
    first, last = fields.take_optional("from"), fields.take_optional("to")
    low, high = open_ends
    with found.guard():
        low = low if first is None else read(first)[0]
    with found.guard():
        high = high if last is None else read(last)[1]
    with found.guard():
        fields.finish()
    found.raise_any()
    if first is None and last is None:
        raise fail(Code.MISSING_KEY, f"a span of {what} needs `from` or `to`", node)
    if low > high:
        raise fail(
            Code.OUT_OF_RANGE, f"a span of {what} ends before it starts", last or first
        )
    return low, high


def listed(node: Node, what: str, most: int) -> tuple[Node, ...]:
    """Return the items of a list, or the single item in its place.

    Args:
        node: The list, or the single item.
        what: Its name, for messages.
        most: How many items it has at most.

    Raises:
        InputError: If it has none, or more.
    """
    items = node.items if isinstance(node, Items) else (node,)
    if not 1 <= len(items) <= most:
        raise fail(
            Code.OUT_OF_RANGE,
            f"{what} must have 1 to {most} items, not {len(items)}",
            node,
            help="" if items else "leave it out to read everything",
        )
    return items


def each(nodes: tuple[Node, ...], read: Callable[[Node], T]) -> list[T]:
    """Return the values of several nodes.

    Args:
        nodes: The nodes.
        read: Reads one of them.

    Raises:
        InputError: With the mistakes of all of them.
    """
    found = Problems()
    values: list[T] = []
    for node in nodes:
        with found.guard():
            values.append(read(node))
    found.raise_any()
    return values


#: More boxes in one `where` are refused.
BOXES_MAX = 100


def read_part(
    fields: Fields, inherited: Part, vocabulary: Vocabulary, found: Problems
) -> Part:
    """Return the part of the data of a release or a mechanism.

    Args:
        fields: Its keys; `where`, `periods` and `groups` are consumed.
        inherited: The defaults.
        vocabulary: The words it may use. A label with the name of one of the keys is
            that label.
        found: Collects the mistakes.
    """

    def read(key: str, reader: Callable[[Node], T], otherwise: T) -> T:
        node = None if key in vocabulary.labels else fields.take_optional(key)
        if node is None:
            return otherwise
        try:
            refuse_nothing(node, f"`{key}`")
            return reader(node)
        except InputError as error:
            for problem in error.problems:
                found.add(problem)
            return otherwise

    return Part(
        read("where", lambda node: _where(node, vocabulary), inherited.where),
        read("periods", lambda node: read_periods(node, vocabulary), inherited.periods),
        read("groups", lambda node: read_groups(node, vocabulary), inherited.groups),
    )


def _where(node: Node, vocabulary: Vocabulary) -> tuple[Box, ...] | None:
    from modicum.release.boxes import union

    boxes = listed(node, "`where`", BOXES_MAX)
    read = each(boxes, lambda box: _box(box, vocabulary))
    return union(read, vocabulary.population.partitions)


def _box(node: Node, vocabulary: Vocabulary) -> Box:
    fields = Fields(node, "`where`")
    found = Problems()
    box: dict[str, Values] = {}
    pairs = fields.rest()
    if not pairs:
        raise fail(
            Code.OUT_OF_RANGE,
            "a box of `where` needs an attribute",
            node,
            help="leave `where` out to read everybody",
        )
    for key, value in pairs:
        with found.guard():
            partition = _partition(key, vocabulary)
            box[partition.name] = _values(value, partition)
    found.raise_any()
    return tuple(sorted(box.items()))


def _partition(key: Scalar, vocabulary: Vocabulary) -> Partition:
    partitions = vocabulary.population.partitions
    name = text(key, "a partitioning attribute")
    if name in partitions:
        return partitions[name]
    notes: tuple[str, ...] = ()
    if name in vocabulary.attributes:
        notes = ("it is an attribute of the data, not a partitioning attribute",)
    raise fail(
        Code.UNKNOWN_ATTRIBUTE,
        f'unknown partitioning attribute "{name[:60]}"',
        key,
        label=nearest(name, partitions),
        notes=notes,
        help="known: " + ", ".join(list(partitions)[:20])
        if partitions
        else "leave `where` out: the policy has no partitioning attribute attribute",
    )


def _values(node: Node, partition: Partition) -> Values:
    what = f"`{partition.name}` of `where`"
    if partition.values is None:
        return read_numbers(node, what, (partition.low, partition.high))
    known = dict.fromkeys(partition.values)
    items = listed(node, what, LISTED_MAX)
    return tuple(sorted({*each(items, lambda item: _value(item, what, known))}))


def _value(node: Node, what: str, known: Mapping[str, None]) -> str:
    if isinstance(node, Entries):
        raise fail(
            Code.WRONG_TYPE,
            f"a value of {what} must be text, got a mapping",
            node,
            notes=("its values have no order",),
            help="list the values",
        )
    value = text(node, f"a value of {what}")
    if value not in known:
        raise fail(
            Code.UNKNOWN_CHOICE,
            f'unknown value "{value[:60]}" of {what}',
            node,
            label=nearest(value, known),
            help="known: " + ", ".join(list(known)[:20]),
        )
    return value
