"""Joint losses by trying every move, and native steps by walking through databases."""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from modicum.accounting.neighborhoods.entries import (
    Entry,
    Native,
    Part,
    Relation,
    UserPer,
)
from modicum.accounting.neighborhoods.regions import CategoryAxis, NumericAxis, Region
from modicum.accounting.neighborhoods.target import (
    AddRemove,
    Attributes,
    Group,
    Metric,
    Substitute,
    Target,
)

#: A record: its value on every axis.
Record: TypeAlias = Mapping[str, Fraction | str]
Axis: TypeAlias = NumericAxis | CategoryAxis

#: None is infinity.
Count: TypeAlias = int | None


# --- records ---------------------------------------------------------------------


def every_record(axes: Sequence[Axis]) -> list[Record]:
    """Return a record for every value, with numbers in the middle of whole cells."""
    values: list[list[Fraction | str]] = []
    for axis in axes:
        if isinstance(axis, CategoryAxis):
            values.append(list(axis.values))
        else:
            cells = range(int(axis.span.low), int(axis.span.high))
            values.append([Fraction(2 * cell + 1, 2) for cell in cells])
    names = [axis.name for axis in axes]
    return [
        dict(zip(names, chosen, strict=True)) for chosen in itertools.product(*values)
    ]


def lies(region: Region, record: Record) -> bool:
    """Return whether a record lies in one of the boxes of a region."""
    for box in region:
        inside = True
        for name, side in box.items():
            value = record[name]
            if isinstance(value, str):
                inside = inside and value in side  # type: ignore[operator]
            else:
                inside = inside and side.low <= value < side.high  # type: ignore[union-attr]
        if inside:
            return True
    return False


# --- how many native changes a move of one record amounts to ----------------------


def native_steps(
    entry: Entry,
    records: Sequence[Record],
    before: Record | None,
    after: Record | None,
    changed: frozenset[str] | None,
) -> Count:
    """Return the number of native changes; 0 if the entry cannot see the move."""
    held = before is not None and lies(entry.region, before)
    then = after is not None and lies(entry.region, after)
    if not held and not then:
        return 0
    stays, crosses = held and then, held != then
    if stays and changed is not None and entry.reads is not None:
        unit = entry.native.unit
        used = entry.reads | ({unit.axis} if isinstance(unit, UserPer) else set())
        if not used & changed:
            return 0
    if entry.native.size_public and (crosses or _sizes_move(entry, records, changed)):
        return None
    if entry.native.unit is Part.ATTRIBUTE:
        if before is None or after is None:
            return None
        return _attribute_steps(entry, records, changed, inside=stays)
    if entry.native.unit is Part.ROW:
        return _row_steps(entry, records, stays=stays)
    return _user_steps(entry.native, changed, stays=stays)


def _sizes_move(
    entry: Entry, records: Sequence[Record], changed: frozenset[str] | None
) -> bool:
    """Whether each path for a record that stays must change how many lie inside."""
    unit = entry.native.unit
    if unit is Part.ROW:
        return False  # What a removal would need is said with the rows.
    if unit is Part.ATTRIBUTE:
        boxes = [box for box in entry.region if any(lies((box,), r) for r in records)]
        filters = {name for box in boxes for name in box}
        return len(boxes) > 1 and (changed is None or bool(filters & changed))
    stays_with_its_user = changed is not None and not (
        isinstance(unit, UserPer) and unit.axis in changed
    )
    return entry.native.relation is not Relation.ANY or not stays_with_its_user


def _row_steps(entry: Entry, records: Sequence[Record], *, stays: bool) -> Count:
    if entry.native.relation is Relation.ANY:
        return 1
    if entry.native.relation is Relation.SUBSTITUTE:
        outside = any(not lies(entry.region, record) for record in records)
        return 1 if stays or outside else None
    if stays:
        return None if entry.native.size_public else 2
    return 1


def _user_steps(
    native: Native, changed: frozenset[str] | None, *, stays: bool
) -> Count:
    whole = 2 if native.relation is Relation.ADD_REMOVE else 1
    if not stays:
        return whole
    moves = isinstance(native.unit, UserPer) and (
        changed is None or native.unit.axis in changed
    )
    return whole * (2 if moves or changed is None else 1)


def _attribute_steps(
    entry: Entry,
    records: Sequence[Record],
    changed: frozenset[str] | None,
    *,
    inside: bool,
) -> Count:
    if entry.reads is None:
        return None if changed is None else len(changed)
    boxes = [box for box in entry.region if any(lies((box,), r) for r in records)]
    seen = set(entry.reads) | {name for box in boxes for name in box}
    if inside and len(boxes) == 1:
        seen = set(entry.reads)
    return len(seen if changed is None else seen & changed)


# --- every move ------------------------------------------------------------------

#: For each entry, how many native changes a move amounts to.
Steps: TypeAlias = tuple[Count, ...]


def every_move(
    entries: Sequence[Entry], axes: Sequence[Axis], target: Target
) -> Iterator[Steps]:
    """Yield the native changes of every move of a target of records."""
    records = every_record(axes)

    def steps(
        before: Record | None, after: Record | None, changed: frozenset[str] | None
    ) -> Steps:
        return tuple(
            native_steps(entry, records, before, after, changed) for entry in entries
        )

    match target:
        case AddRemove():
            for record in records:
                yield steps(record, None, None)
        case Substitute():
            for before, after in itertools.product(records, repeat=2):
                yield steps(before, after, None)
        case Attributes():
            for chosen in every_choice_of_attributes(entries, axes, target):
                for before, after in pairs_that_agree(records, chosen, axes):
                    yield steps(before, after, chosen)
        case Group(size=size, of=of):
            yield from every_group(set(every_move(entries, axes, of)), size)
        case _:
            raise NotImplementedError


def every_group(single: Iterable[Steps], size: int) -> Iterator[Steps]:
    """Yield the native changes of so many moves made together."""
    for moves in itertools.combinations_with_replacement(single, size):
        yield tuple(_sum(counts) for counts in zip(*moves, strict=True))


def pairs_that_agree(
    records: Sequence[Record], chosen: frozenset[str], axes: Sequence[Axis]
) -> Iterator[tuple[Record, Record]]:
    """Yield pairs of records that may differ in some attributes only.

    Numbers of one cell may differ; where only values may, a value is only itself.
    """
    sorts = {axis.name for axis in axes if isinstance(axis, CategoryAxis)}
    for before, after in itertools.product(records, repeat=2):
        agree = all(before[n] == after[n] for n in before if n not in chosen)
        if agree and (before != after or not chosen <= sorts):
            yield before, after


def every_choice_of_attributes(
    entries: Sequence[Entry], axes: Sequence[Axis], target: Attributes
) -> Iterator[frozenset[str]]:
    """Yield the sets of attributes that may differ."""
    names = {axis.name for axis in axes}
    for entry in entries:
        names |= set(entry.reads or ())
    if any(entry.reads is None for entry in entries):
        names |= {f"any other {number}" for number in range(target.at_most)}
    names = names if target.among is None else set(target.among)
    for count in range(1, target.at_most + 1):
        yield from map(frozenset, itertools.combinations(sorted(names), count))


def _sum(counts: Iterable[Count]) -> Count:
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total


# --- users -----------------------------------------------------------------------


@dataclass(frozen=True)
class UserEntry:
    """What the oracle needs to know of an entry, for a user's records.

    Attributes:
        days: The days that it covers.
        each: The cost rule's argument for each block touched; None for infinity.
        block: The length of a block; None if one block holds all.
        twice: Whether a block of both tables costs one change to go and one to come.
    """

    days: frozenset[int]
    each: Count
    block: int | None
    twice: bool = False


def every_choice(
    entries: Sequence[UserEntry], window: Sequence[int], at_most: int | None
) -> Iterator[Steps]:
    """Yield the native changes for every set of days that a user may be active on."""
    largest = len(window) if at_most is None else min(at_most, len(window))
    for count in range(largest + 1):
        for days in itertools.combinations(window, count):
            yield tuple(_steps_of_days(entry, days, ()) for entry in entries)


def every_change(
    entries: Sequence[UserEntry], window: Sequence[int], at_most: int | None
) -> Iterator[Steps]:
    """Yield the native changes for every pair of sets of days, before and after."""
    largest = len(window) if at_most is None else min(at_most, len(window))
    sets = [
        days
        for count in range(largest + 1)
        for days in itertools.combinations(window, count)
    ]
    for before, after in itertools.combinations_with_replacement(sets, 2):
        yield tuple(_steps_of_days(entry, before, after) for entry in entries)


def _steps_of_days(
    entry: UserEntry, before: Sequence[int], after: Sequence[int]
) -> Count:
    def blocks(days: Sequence[int]) -> set[int]:
        hit = [day for day in days if day in entry.days]
        return {0 if entry.block is None else day // entry.block for day in hit}

    either = blocks(before) | blocks(after)
    if either and entry.each is None:
        return None
    twice = blocks(before) & blocks(after) if entry.twice else set()
    return (entry.each or 0) * (len(either) + len(twice))


# --- native steps by walking --------------------------------------------------------

#: A database of few records: how often each value occurs.
Database: TypeAlias = tuple[int, ...]


def databases(values: int, largest: int) -> list[Database]:
    """Return every database of at most so many records."""
    found = []
    for size in range(largest + 1):
        for records in itertools.combinations_with_replacement(range(values), size):
            counts = Counter(records)
            found.append(tuple(counts[value] for value in range(values)))
    return found


def are_neighbors(a: Database, b: Database, relation: Relation) -> bool:
    """Return whether two databases differ by one native change of a record."""
    gone = sum(max(0, x - y) for x, y in zip(a, b, strict=True))
    come = sum(max(0, y - x) for x, y in zip(a, b, strict=True))
    if relation is Relation.ADD_REMOVE:
        return (gone, come) in {(0, 1), (1, 0)}
    return (gone, come) == (1, 1)


def distance_seen(
    a: Database,
    b: Database,
    relation: Relation,
    region: Sequence[int],
    largest: int,
) -> int | None:
    """Return the least number of native changes between what a region shows of two.

    Databases that look alike within the region count as one: walking from one to the
    other is free. None if there is no path.
    """
    every = databases(len(a), largest)

    def seen(database: Database) -> Database:
        return tuple(database[value] for value in region)

    links: dict[Database, set[Database]] = {seen(d): set() for d in every}
    for x, y in itertools.combinations(every, 2):
        if are_neighbors(x, y, relation):
            links[seen(x)].add(seen(y))
            links[seen(y)].add(seen(x))
    start, end = seen(a), seen(b)
    reached, waiting = {start: 0}, deque([start])
    while waiting:
        here = waiting.popleft()
        for there in links[here]:
            if there not in reached:
                reached[there] = reached[here] + 1
                waiting.append(there)
    return reached.get(end)


def metric_steps(target: Metric) -> Iterator[tuple[Record, Record, Fraction]]:
    """Yield the pairs of points that a metric target holds apart."""
    for before, after in itertools.permutations(target.points, 2):
        distance = target.distance(before, after)
        if distance is not None and (
            target.within is None or distance <= target.within
        ):
            yield before, after, distance
