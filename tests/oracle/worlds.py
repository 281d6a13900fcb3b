"""What a history may have lost, by shortest ways between all tables of a small world.

Nothing is reasoned here. A release is known by what was stated about it: for a unit as
it was defined then, one change costs so much. So the most that it can lose between two
tables is the cheapest way from one to the other, by changes of these units. A unit of
today loses, between two tables that are neighbors today, the sum over all releases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np

from modicum.release import Unit
from oracle.entailment import Row, Table, is_allowed, key_of

Matrix: TypeAlias = "np.ndarray[tuple[int, int], np.dtype[np.float64]]"
Bools: TypeAlias = "np.ndarray[tuple[int, int], np.dtype[np.bool_]]"
#: What tells a unit of one policy from one of another.
Meaning: TypeAlias = tuple[str, str | None, str | None, str]


class Released(NamedTuple):
    """What is known of a release.

    Attributes:
        stated: By unit, as it was defined then, what one change of it costs.
        day: The day that it reads; None for all.
    """

    stated: tuple[tuple[Unit, int], ...]
    day: str | None = None


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
        self._near: dict[Meaning, Bools] = {}
        self._ways: dict[object, Matrix] = {}

    def loss(
        self, unit: Unit, units: Mapping[str, Unit], history: Sequence[Released]
    ) -> float:
        """Return the most that one change of a unit changes all answers together.

        Args:
            unit: The unit of the last policy.
            units: All units of that policy: they say which tables there are.
            history: The releases.
        """
        allowed = np.array([is_allowed(table, units) for table in self._tables])
        pairs = self.near(unit) & allowed & allowed[:, None]
        total = sum(map(self.ways, history), np.zeros(pairs.shape))
        return float(total[pairs].max(initial=0))

    def near(self, unit: Unit) -> Bools:
        """Return which tables differ in the rows of one instance."""
        key = unit.id, unit.period, unit.column, unit.neighbors
        if key not in self._near:
            instances: dict[object, list[int]] = {}
            for place, row in enumerate(self._rows):
                instances.setdefault(key_of(row, unit), []).append(place)
            differs = self._bits[:, None] != self._bits[None]
            touched = np.stack(
                [differs[:, :, places].any(2) for places in instances.values()]
            )
            has = np.stack([self._bits[:, p].any(1) for p in instances.values()])
            one, other = has[:, :, None], has[:, None]
            fits = {
                "add-remove": one != other,
                "substitute": one & other,
                "any-change": one | True,
            }[unit.neighbors]
            self._near[key] = (touched.sum(0) == 1) & (touched & fits).any(0)
        return self._near[key]

    def ways(self, release: Released) -> Matrix:
        """Return the costs of the cheapest ways between all tables."""
        key = (
            (one.id, one.period, one.column, one.neighbors, cost)
            for one, cost in release.stated
        )
        known = release.day, *sorted(key, key=str)
        if known not in self._ways:
            count = len(self._tables)
            found = np.full((count, count), np.inf)
            for unit, cost in release.stated:
                found = np.where(self.near(unit), np.minimum(found, cost), found)
            read = self._bits[
                :, [release.day in (None, dict(row)["at"]) for row in self._rows]
            ]
            # Tables of which the same is read answer alike.
            found[(read[:, None] == read[None]).all(2)] = 0
            for middle in range(count):
                found = np.minimum(found, found[:, [middle]] + found[[middle]])
            self._ways[known] = found
        return self._ways[known]
