"""Reading which part of the data a mechanism reads: `where`, `periods`, `groups`.

What is read has one form: the same days, groups and (where that is easily found) the
same boxes give the same part, however they were written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from modicum.core.document import Entries, Node, Scalar
from modicum.core.errors import Code, InputError
from modicum.core.reader import Fields, Problems, fail, nearest, refuse_nothing, text
from modicum.release.part_parser import (
    LISTED_MAX,
    each,
    listed,
    read_groups,
    read_numbers,
    read_periods,
)
from modicum.release.parts import Box, Part, Values
from modicum.release.population import Partition
from modicum.release.vocabulary import Vocabulary

#: More boxes in one `where` are refused.
BOXES_MAX = 100

T = TypeVar("T")


def read_part(
    fields: Fields, inherited: Part, vocabulary: Vocabulary, found: Problems
) -> Part:
    """Return the part of the data that a release or a mechanism names.

    Args:
        fields: Its keys; `where`, `periods` and `groups` are taken.
        inherited: What holds for those that are left out.
        vocabulary: The words it may use. A label that is named like one of the keys
            is that label.
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
            "a box of `where` must name an attribute",
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
        notes = (
            "it is an attribute of the data, and nothing public divides the"
            " population by it",
        )
    raise fail(
        Code.UNKNOWN_ATTRIBUTE,
        f'unknown partitioning attribute "{name[:60]}"',
        key,
        label=nearest(name, partitions),
        notes=notes,
        help="known: " + ", ".join(list(partitions)[:20])
        if partitions
        else "leave `where` out: the policy divides the population by no attribute",
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
            notes=("its values are listed by the policy, in no order",),
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
