"""What a history may have lost, by shortest ways between all tables of a small world.

Nothing is reasoned here. A release is known by what was stated about it: for a unit as
it was defined then, one change costs so much. So the most that it can lose between two
tables is the cheapest way from one to the other, by changes of these units. A unit of
today loses, between two tables that are neighbors today, the sum over all releases.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import NamedTuple, TypeAlias

import numpy as np

from modicum.release import Unit
from oracle.entailment import Row, Table, is_allowed, key_of
from oracle.past_values import Value

Matrix: TypeAlias = "np.ndarray[tuple[int, int], np.dtype[np.float64]]"
Bools: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]"
#: What tells a unit of one policy from one of another.
Meaning: TypeAlias = tuple[str, str | None, str | None, str]
#: By row, all that is the same for the rows of one instance of a unit in any table.
Kept: TypeAlias = tuple[Unit, Sequence[Hashable]]


class Released(NamedTuple):
    """What is known of a release.

    Attributes:
        stated: By unit, as it was defined then, what one change of it costs.
        read: The rows that it reads.
    """

    stated: tuple[tuple[Unit, int], ...]
    read: frozenset[int]


class Lost(NamedTuple):
    """The most that is lost between neighbors of one kind.

    Attributes:
        row: A row of the instance in which they differ.
        before: The values of its rows in the one; that of the other if it has none.
        after: The same for the other.
        loss: The most that all answers differ by.
    """

    row: Row
    before: tuple[Value, ...]
    after: tuple[Value, ...]
    loss: float


class World:
    """All tables of some possible rows.

    Args:
        rows: The rows.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self._tables: list[Table] = [
            frozenset(found)
            for size in range(len(rows) + 1)
            for found in combinations(rows, size)
        ]
        self._bits = np.array([[row in one for row in rows] for one in self._tables])
        self._near: dict[Meaning, list[tuple[list[int], Bools]]] = {}

    def allowed(self, units: Mapping[str, Unit], kept: Iterable[Kept]) -> Bools:
        """Return which tables have all that a policy claims.

        Args:
            units: Its units.
            kept: What instances keep.
        """
        found: Bools = np.array([is_allowed(one, units) for one in self._tables])
        for unit, values in kept:
            for one, other in combinations(range(len(self._rows)), 2):
                keys = {key_of(self._rows[row], unit) for row in (one, other)}
                if len(keys) == 1 and values[one] != values[other]:
                    found &= ~(self._bits[:, one] & self._bits[:, other])
        return found

    def losses(
        self,
        unit: Unit,
        allowed: Bools,
        values: Sequence[tuple[Value, ...]],
        history: Sequence[Released],
    ) -> Iterator[Lost]:
        """Yield the most that changes of a unit change all answers together.

        Args:
            unit: The unit of the last policy.
            allowed: The tables that this policy compares.
            values: By row, the values that divide the instances of the unit.
            history: The releases.
        """
        total = sum(map(self._ways, history), np.zeros((len(self._tables),) * 2))
        total[~allowed] = total[:, ~allowed] = 0
        codes = {value: code for code, value in enumerate(dict.fromkeys(values))}
        texts = [*codes]
        by_row = np.array([codes[value] for value in values])
        for places, near in self._neighbors(unit):
            has = np.where(self._bits[:, places], by_row[places], -1).max(1)
            lost = np.where(near, total, 0)
            for one, other in product(range(-1, len(codes)), repeat=2):
                most = lost[np.ix_(has == one, has == other)].max(initial=0)
                if most:
                    before = texts[one if one >= 0 else other]
                    after = texts[other if other >= 0 else one]
                    yield Lost(self._rows[places[0]], before, after, float(most))

    def _neighbors(self, unit: Unit) -> list[tuple[list[int], Bools]]:
        """Return by instance its rows, and which tables differ in these only."""
        key = unit.id, unit.period, unit.column, unit.neighbors
        if key not in self._near:
            instances: dict[object, list[int]] = {}
            for place, row in enumerate(self._rows):
                instances.setdefault(key_of(row, unit), []).append(place)
            differs: Bools = self._bits[:, None] != self._bits[None]
            found = self._near[key] = []
            for places in instances.values():
                elsewhere = [*{*range(len(self._rows))} - {*places}]
                near = differs.any(2) & ~differs[:, :, elsewhere].any(2)
                has = self._bits[:, places].max(1)
                fits = {
                    "add-remove": has[:, None] != has,
                    "substitute": has[:, None] & has,
                    "any-change": True,
                }[unit.neighbors]
                found.append((places, near & fits))
        return self._near[key]

    def _ways(self, release: Released) -> Matrix:
        """Return the costs of the cheapest ways between all tables.

        Tables of which the same is read answer alike: between them, a way is free.
        """
        read = self._bits[:, sorted(release.read)]
        left, place = np.unique(read, axis=0, return_inverse=True)
        found = np.full((len(left),) * 2, np.inf)
        np.fill_diagonal(found, 0)
        for unit, cost in release.stated:
            for _, near in self._neighbors(unit):
                one, other = np.nonzero(near)
                np.minimum.at(found, (place[one], place[other]), cost)
        for middle in range(len(left)):
            found = np.minimum(found, found[:, [middle]] + found[[middle]])
        return found[np.ix_(place, place)]
