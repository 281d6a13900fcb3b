"""What the values of a partitioning attribute become, one value at a time."""

from __future__ import annotations

from typing import TypeAlias

from modicum.release.population import Partition

#: A value of an attribute: a text, or a number; None where there is no such attribute.
Value: TypeAlias = str | int | None


def domain(partition: Partition | None) -> list[Value]:
    """Return all values of an attribute."""
    if partition is None:
        return [None]
    if partition.values is not None:
        return list(partition.values)
    return list(range(partition.low, partition.high + 1))


def contains(values: tuple[object, ...], value: Value) -> bool:
    """Return whether a value is among texts, or in spans."""
    return any(
        one == value
        if isinstance(one, str)
        else isinstance(value, int) and one[0] <= value <= one[1]  # type: ignore[index]
        for one in values
    )


def becomes(value: Value, old: Partition | None, new: Partition | None) -> set[Value]:
    """Return the values that a row may have after a step, by what policies declare."""
    if old is None or new is None or (old.values is None) != (new.values is None):
        return set(domain(new))
    pieces = [one for one in new.was if one not in old.was and contains(one.old, value)]
    if pieces:
        return {v for v in domain(new) if any(contains(one.now, v) for one in pieces)}
    return {value} if value in domain(new) else set(domain(new))
