"""How many changes of one unit make any change of another: by search over all tables.

Nothing is reasoned here. A table is a set of possible rows; two tables are neighbors
for a unit if they differ in the rows of one instance only. A declared fact says which
tables there are; a loss holds on all tables over the schema, so steps may lead through
any.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from itertools import combinations

from modicum.release import Unit

#: A row: its value in each column.
Row = tuple[tuple[str, str], ...]
Table = frozenset[Row]


def tables_over(rows: tuple[Row, ...]) -> list[Table]:
    """Return every table of some possible rows."""
    return [
        frozenset(found)
        for size in range(len(rows) + 1)
        for found in combinations(rows, size)
    ]


def key_of(row: Row, unit: Unit) -> tuple[str, str]:
    """Return the instance of a unit that a row belongs to."""
    values = dict(row)
    if unit.period is None or unit.column is None:
        return values[unit.id], ""
    day = values[unit.column]
    if unit.period == "week":
        return values[unit.id], str(date.fromisoformat(day).isocalendar()[:2])
    return values[unit.id], f"{unit.period} {day[: LENGTH[unit.period]]}"


#: How much of a date names its period.
LENGTH = {"day": 10, "month": 7, "year": 4}


def are_neighbors(one: Table, other: Table, unit: Unit) -> bool:
    """Return whether two tables differ in one instance, as the relation says."""
    touched = {key_of(row, unit) for row in one ^ other}
    if len(touched) != 1:
        return False
    (key,) = touched
    had, has = (any(key_of(row, unit) == key for row in t) for t in (one, other))
    if unit.neighbors == "add-remove":
        return had != has
    return unit.neighbors == "any-change" or (had and has)


def is_allowed(table: Table, units: Mapping[str, Unit]) -> bool:
    """Return whether a table has all that the units claim."""
    for unit in units.values():
        for wide in unit.within:
            inside: dict[object, set[object]] = {}
            parts: dict[object, set[object]] = {}
            for row in table:
                own, whole = key_of(row, unit), key_of(row, units[wide])
                inside.setdefault(own, set()).add(whole)
                parts.setdefault(whole, set()).add(own)
            most = unit.groups.get(wide)
            if any(len(found) > 1 for found in inside.values()):
                return False
            if most is not None and any(len(found) > most for found in parts.values()):
                return False
    return True


def _left(table: Table, read: Callable[[Row], bool]) -> Table:
    return frozenset(row for row in table if read(row))


class Search:
    """Shortest ways between all tables.

    Args:
        rows: The possible rows.
        through: The tables that ways may lead through; all by default.
    """

    def __init__(
        self, rows: tuple[Row, ...], through: Callable[[Table], bool] = lambda _: True
    ) -> None:
        self._tables = [table for table in tables_over(rows) if through(table)]
        self._ways: dict[tuple[object, ...], dict[Table, dict[Table, int]]] = {}

    def steps(
        self,
        unit: Unit,
        new: Mapping[str, Unit],
        old: Unit,
        read: Callable[[Row], bool] = lambda _: True,
    ) -> float:
        """Return the most changes of `old` that a change of `unit` takes.

        Args:
            unit: The unit that changes, between tables that the new policy allows.
            new: The units of the new policy.
            old: The unit of the steps.
            read: Which rows are read: the steps lead from what is left of one table to
                what is left of the other.
        """
        ways = self._ways_of(old, read)
        allowed = [table for table in self._tables if is_allowed(table, new)]
        return max(
            (
                ways[_left(one, read)].get(_left(other, read), float("inf"))
                for one, other in self._pairs(allowed, unit)
            ),
            default=0,
        )

    def way(self, one: Table, other: Table, unit: Unit) -> float:
        """Return the fewest changes of a unit that lead from one table to another."""
        return self._ways_of(unit, lambda _: True)[one].get(other, float("inf"))

    @staticmethod
    def _pairs(tables: list[Table], unit: Unit) -> Iterator[tuple[Table, Table]]:
        for one in tables:
            for other in tables:
                if are_neighbors(one, other, unit):
                    yield one, other

    def _ways_of(
        self, unit: Unit, read: Callable[[Row], bool]
    ) -> dict[Table, dict[Table, int]]:
        """Return the lengths of ways between what is read of tables.

        Tables of which the same is read answer alike: between them, a way is free.
        """
        seen = {table: _left(table, read) for table in self._tables}
        key = (
            unit.id,
            unit.period,
            unit.column,
            unit.neighbors,
            frozenset(seen.values()),
        )
        if key not in self._ways:
            near: dict[Table, set[Table]] = {left: set() for left in seen.values()}
            for one, other in self._pairs(self._tables, unit):
                near[seen[one]].add(seen[other])
            self._ways[key] = {left: _from(left, near) for left in near}
        return self._ways[key]


def _from(start: Table, near: Mapping[Table, set[Table]]) -> dict[Table, int]:
    found, waiting = {start: 0}, deque([start])
    while waiting:
        here = waiting.popleft()
        for there in near[here] - found.keys():
            found[there] = found[here] + 1
            waiting.append(there)
    return found
