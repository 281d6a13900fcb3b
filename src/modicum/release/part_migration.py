"""Migration of old parts of the data to the present vocabulary: no loss shrinks.

The domain of a partitioning attribute may be refined, coarsened or extended when one
policy replaces another; its `was` maps the old values. An old part is migrated through
all these steps. Wherever a step does not map a value, it may stand for all: the part
becomes larger, never smaller.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple, cast

from msgspec import structs

from modicum.release.parts import Box, Part, Span, Values, in_order, merged
from modicum.release.population import Partition, Population, Was


class Step(NamedTuple):
    """The replacement of a policy by another one.

    Attributes:
        before: How the population was divided before.
        after: How it was divided then.
        returns: Whether the other policy came back. It is unknown whether its `was`
            applied again: an old value that is still a value stands for itself as well.
    """

    before: Population
    after: Population
    returns: bool = False


def steps_of(chain: Sequence[Population]) -> list[Step]:
    """Return the steps between the divisions of several policies.

    Args:
        chain: How each policy divided the population, oldest first.
    """
    return [
        Step(before, after, returns=after != before and after in chain[:place])
        for place, (before, after) in enumerate(pairwise(chain))
    ]


def former_steps_of(chain: Sequence[Population]) -> list[Step]:
    """Return the steps as they counted under policies activated before version 6.

    A division that stayed for a third policy counted as one that came back, and what it
    had made may have been made again by the next. Decisions followed, and are audited
    as they were made.

    Args:
        chain: As for `steps_of`.
    """
    found = [
        _ambiguous(one) if one in chain[: max(place - 1, 0)] else one
        for place, one in enumerate(chain)
    ]
    if len(chain) > 1 and chain[-1] == chain[-2]:
        found[-1] = found[-2]
    return [Step(before, after) for before, after in pairwise(found)]


def re_expressed(part: Part, steps: Iterable[Step]) -> Part:
    """Return a part of the data in the vocabulary that it has after several steps.

    All rows that were in the part when it was recorded are in the returned part: an old
    value stands for what `was` maps it to; a value without a mapping stands for itself
    if the domain still has it, and else for all. Where an attribute is gone, or its
    domain changed between a list and a range, the part may have any value of it.

    An entry of `was` that the policy before already contained was applied by that one,
    and is not applied again.

    Args:
        part: The part, in the vocabulary of the first population.
        steps: The replacements of the policy since the part was recorded.

    Examples:
        >>> from modicum.release.population import Partition, Population, Was
        >>> def by_region(values, *was):
        ...     region = Partition("region", values, 0, 0, (), None, was)
        ...     return Population({"region": region})
        >>> old = by_region(("EU",))
        >>> new = by_region(("DE", "FR", "US"), Was(("EU",), ("DE", "FR")))
        >>> re_expressed(Part(((("region", ("EU",)),),)), [Step(old, new)]).where
        ((('region', ('DE', 'FR')),),)
    """
    where = part.where
    for step in steps:
        if where is None:
            break
        boxes = {_box(box, step) for box in where}
        where = None if () in boxes else in_order(boxes)
    return Part(where, part.periods, part.groups)


def _box(box: Box, step: Step) -> Box:
    kept = []
    for name, values in box:
        old, new = (one.partitions.get(name) for one in (step.before, step.after))
        now = None
        if old is not None and new is not None:
            now = _values(values, old, new, returns=step.returns)
        if now is not None:
            kept.append((name, now))
    return tuple(kept)


def _values(
    values: Values, old: Partition, new: Partition, *, returns: bool
) -> Values | None:
    """Return the meaning of values after one step; None for all."""
    if (old.values is None) != (new.values is None):
        return None
    steps = [one for one in new.was if one not in old.was]
    if returns:
        steps = [_either(one, new) for one in steps]
    if new.values is not None:
        return _listed(cast("tuple[str, ...]", values), steps, new.values)
    return _numbers(cast("tuple[Span, ...]", values), steps, (new.low, new.high))


def _ambiguous(population: Population) -> Population:
    """Return a division whose old values may have kept their meaning."""
    partitions = {
        name: replace(one, was=tuple(_either(was, one) for was in one.was))
        for name, one in population.partitions.items()
    }
    return structs.replace(population, partitions=partitions)


def _either(was: Was, partition: Partition) -> Was:
    """Return the present meaning of values that may also have kept their own."""
    if partition.values is not None:
        known = {*was.now, *was.old} & {*partition.values}
        return Was(was.old, tuple(sorted(one for one in known if isinstance(one, str))))
    spans = [one for one in (*was.now, *was.old) if not isinstance(one, str)]
    inside = [
        (max(low, partition.low), min(high, partition.high))
        for low, high in spans
        if low <= partition.high and high >= partition.low
    ]
    return Was(was.old, merged(inside))


def _listed(
    values: tuple[str, ...], steps: Sequence[Was], domain: tuple[str, ...]
) -> Values | None:
    found: set[str] = set()
    for value in values:
        names = [one.now for one in steps if value in one.old]
        if names:
            found.update(name for now in names for name in cast("tuple[str, ...]", now))
        elif value in domain:
            found.add(value)
        else:
            return None
    return tuple(sorted(found))


def _numbers(
    spans: tuple[Span, ...], steps: Sequence[Was], domain: Span
) -> Values | None:
    found: list[Span] = []
    left = list(spans)
    for step in steps:
        old = cast("tuple[Span, ...]", step.old)
        if any(
            low <= last and first <= high for low, high in spans for first, last in old
        ):
            found.extend(cast("tuple[Span, ...]", step.now))
        left = [piece for span in left for piece in _without(span, old)]
    if any(low < domain[0] or high > domain[1] for low, high in left):
        return None
    return merged([*found, *left])


def _without(span: Span, taken: tuple[Span, ...]) -> list[Span]:
    """Return the rest of a span without others, which are in order."""
    low, high = span
    left: list[Span] = []
    for first, last in taken:
        if last < low or first > high:
            continue
        if first > low:
            left.append((low, first - 1))
        low = last + 1
    if low <= high:
        left.append((low, high))
    return left
