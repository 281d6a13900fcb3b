"""Reading which values of a column are public."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import Final

from modicum.core.document import Kind, Node, Scalar
from modicum.core.errors import Code
from modicum.core.reader import Fields, Problems, boolean, count, fail, nearest, text
from modicum.query.tables import ColumnType, Value
from modicum.release.part_parser import LISTED_MAX, listed
from modicum.release.population import Partition

_INTEGER_MAX: Final = 2**63 - 1


def read_values(
    what: str, kind: ColumnType, partition: Partition | None, fields: Fields
) -> tuple[Value, ...] | None:
    """Return the values of a column that may be told apart, if they are public.

    Args:
        what: The column, for messages.
        kind: Its type.
        partition: The partitioning attribute that it holds, in whose domain they lie.
        fields: What is declared about it; `values` is taken.

    Raises:
        InputError: If groups are not told apart by such a column, or with every value
            that is wrong.
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
            notes=("groups are not told apart by it",),
            help="leave them out",
        )
    what_value = f"a value of {what}"
    found = Problems()
    seen: dict[Value, None] = {}
    for one in listed(node, f"`values` of {what}", LISTED_MAX):
        with found.guard():
            value = _READERS[kind](one, what_value)
            if value in seen:
                raise fail(Code.DUPLICATE_NAME, f"{what_value} stands twice", one)
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
        f"{what} is none of the partitioning attribute `{partition.name}`",
        node,
        label=near,
        help="take the values that the policy declares, or add it there",
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
    message = f"{what} must be a day of the calendar"
    raise fail(Code.OUT_OF_RANGE, message, node, help="write it like 2026-11-30")


_READERS: Final[Mapping[ColumnType, Callable[[Node, str], Value]]] = {
    "text": text,
    "integer": _integer,
    "boolean": boolean,
    "date": _day,
}
