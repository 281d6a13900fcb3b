"""The rules that can deny, as arrays. Nothing here changes after it was made.

Each rule is a *row*. Rows of one base rule lie side by side, so that from a base rule
to its rows is one step. An inverted index leads from a *key* to base rules: a key is
an attribute, a predicate of a custom rule, or the one that every mechanism has. Only
the coordinates that some filter caps are kept, and delta before them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from modicum.accounting import Budget, Filter
from modicum.accounting.grid import DELTA, INFINITE
from modicum.policy import CompiledPolicy
from modicum.policy.predicates import Constant, Predicate, ReadsAny

Integers: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
Booleans: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

_Name = TypeVar("_Name", bound=Hashable)

#: The key that every mechanism has.
EVERYTHING = 0
#: The cap of a coordinate that a filter ignores: no sum is within it, where one
#: coordinate suffices; every sum is, where all must hold. As a remainder they mean: not
#: even zero, and anything.
NEVER, ALWAYS = -1, INFINITE


class Rows(NamedTuple):
    """The rules, for loops and array operations.

    Attributes:
        first_base: The start of each key's base rules in `bases`; and the end.
        bases: The base rules of all keys, key by key.
        first_row: The start of each base rule's rows; and the end.
        context: The context of each row.
        unit: The number of each row's privacy unit.
        every: For each row, whether every coordinate but delta must be within its
            cap; else one suffices.
    """

    first_base: Integers
    bases: Integers
    first_row: Integers
    context: Integers
    unit: Integers
    every: Booleans


class ReleaseRows(NamedTuple):
    """A release, for loops and array operations.

    Attributes:
        first_key: The start of each mechanism's keys in `keys`; and the end.
        keys: The keys of all mechanisms, one mechanism after the other.
        inside: By mechanism and context, whether the one is in the other.
        losses: By mechanism, unit and coordinate, the loss.
    """

    first_key: Integers
    keys: Integers
    inside: Booleans
    losses: Integers


@dataclass(frozen=True, slots=True)
class Layout:
    """The rules as rows, and the meaning of their numbers.

    Attributes:
        rows: The rules.
        caps: By row and coordinate, the maximum charge; delta comes first.
        attributes: The key of each attribute that some row is about.
        custom: The predicates of custom rules, with their keys.
        units: The privacy units, in the order of their numbers.
        coordinates: Which coordinates of a loss are kept, in order.
    """

    rows: Rows
    caps: Integers
    attributes: Mapping[str, int]
    custom: tuple[tuple[int, Predicate], ...]
    units: tuple[str, ...]
    coordinates: tuple[int, ...]


def layout_of(compiled: CompiledPolicy, numbers: Iterable[int]) -> Layout:
    """Return some of a policy's rules over history as rows.

    Args:
        compiled: The policy.
        numbers: The rules, by ascending number. A rule that allows everything, or that
            no mechanism can match, gets no row.
    """
    filters = _Filters(compiled)
    keys = _Keys()
    units: dict[str, int] = {}
    first_row, context, unit, limit = [0], [], [], []
    contexts = len(compiled.rules.contexts)
    for base, group in groupby(numbers, key=lambda number: number // contexts):
        rule = compiled.rules.bases[base]
        if rule.predicate == Constant(value=False):
            continue
        for number in group:
            place = filters.place(compiled.rules.budget(base, number % contexts))
            if place is not None:
                context.append(number % contexts)
                limit.append(place)
        if len(context) > first_row[-1]:
            keys.add(rule.predicate, len(first_row) - 1)
            of_unit = units.setdefault(rule.unit, len(units))
            unit += [of_unit] * (len(context) - first_row[-1])
            first_row.append(len(context))
    coordinates, caps, every = filters.table()
    rows = Rows(
        *keys.index(),
        _integers(first_row),
        _integers(context),
        _integers(unit),
        every[limit],
    )
    return Layout(
        rows, caps[limit], keys.attributes, keys.custom, tuple(units), coordinates
    )


@dataclass(slots=True)
class _Filters:
    """The distinct filters of the rules; each budget is looked up once."""

    compiled: CompiledPolicy
    _places: dict[int, int | None] = field(default_factory=dict)
    _filters: list[Filter] = field(default_factory=list)
    _kept: list[Budget] = field(default_factory=list)

    def place(self, budget: Budget) -> int | None:
        """Return the number of a budget's filter, None if it allows everything."""
        key = id(budget)  # Far cheaper than its hash; `_kept` keeps it alive.
        if key not in self._places:
            self._kept.append(budget)
            found = self.compiled.filter_of(budget)
            self._places[key] = len(self._filters) if found.enforced else None
            if found.enforced:
                self._filters.append(found)
        return self._places[key]

    def table(self) -> tuple[tuple[int, ...], Integers, Booleans]:
        """Return the coordinates that matter, the caps on them, and `every`."""
        capped = sorted({index for one in self._filters for index, _ in one.caps})
        coordinates = (DELTA, *(index for index in capped if index != DELTA))
        column = {index: place for place, index in enumerate(coordinates)}
        every = np.array([one.every for one in self._filters], dtype=np.bool_)
        caps = np.full((len(self._filters), len(coordinates)), NEVER, dtype=np.int64)
        caps[every] = ALWAYS
        for row, one in zip(caps, self._filters, strict=True):
            for index, cap in one.caps:
                row[column[index]] = min(cap, INFINITE - 1)
            row[0] = min(one.delta_cap, ALWAYS)
        return coordinates, caps, every


class _Keys:
    """The inverted index while it grows."""

    def __init__(self) -> None:
        self.attributes: dict[str, int] = {}
        self._predicates: dict[Predicate, int] = {}
        self._bases: list[list[int]] = [[]]

    def add(self, predicate: Predicate, base: int) -> None:
        """Index a base rule by its predicate."""
        match predicate:
            case Constant():
                self._bases[EVERYTHING].append(base)
            case ReadsAny(attributes=attributes):
                for attribute in attributes:
                    self._bases[self._key(self.attributes, attribute)].append(base)
            case _:
                self._bases[self._key(self._predicates, predicate)].append(base)

    @property
    def custom(self) -> tuple[tuple[int, Predicate], ...]:
        """The predicates that must be evaluated, with their keys."""
        return tuple((key, one) for one, key in self._predicates.items())

    def index(self) -> tuple[Integers, Integers]:
        """Return where the base rules of each key begin, and these."""
        return flattened(self._bases)

    def _key(self, keys: dict[_Name, int], name: _Name) -> int:
        if name not in keys:
            keys[name] = len(self._bases)
            self._bases.append([])
        return keys[name]


def flattened(lists: Sequence[Sequence[int]]) -> tuple[Integers, Integers]:
    """Return where each list begins in all lists together, and the end; and these."""
    first = [0]
    together: list[int] = []
    for one in lists:
        together += one
        first.append(len(together))
    return _integers(first), _integers(together)


def _integers(values: Sequence[int]) -> Integers:
    return np.array(values, dtype=np.int64)
