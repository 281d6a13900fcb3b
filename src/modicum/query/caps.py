"""How many rows are kept of each instance: what a query asks for, and what is declared.

A table with one row for each id needs no cap to be told; the engine keeps to it all the
same, so that the price holds whatever the data has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from modicum.query.model import Query
from modicum.query.request import Asked
from modicum.query.statistics import Cap
from modicum.query.tables import Table, Tables
from modicum.release.units import Unit, larger


def main_table(query: Query, tables: Tables) -> Table:
    """Return the table whose rows are read; of others, a row joins at most one row.

    Args:
        query: The query.
        tables: What is declared; of several tables, at most one may have many rows of
            the id that they are joined on.
    """
    read = [tables.by_name[name] for name in query.tables]
    many = [one for one in read if one.one_per != query.joined_on]
    return (many or read)[0]


def caps_of(asked: Asked, units: Mapping[str, Unit]) -> tuple[Cap, ...]:
    """Return the caps of a query: the lowest one of each unit, in no order.

    Args:
        asked: The query.
        units: The units by name.
    """
    caps = {one.unit: one for one in _declared(asked, units)}
    for one in asked.caps:
        declared = caps.get(one.unit, one)
        caps[one.unit] = min(one, declared, key=lambda cap: cap.rows)
    return tuple(caps.values())


def _declared(asked: Asked, units: Mapping[str, Unit]) -> Iterator[Cap]:
    """Yield one row for the largest units of the id that a table has one row for."""
    found = main_table(asked.query, asked.tables).one_per
    same_id = {name: one for name, one in units.items() if one.id == found}
    for name, covers in larger(same_id).items():
        if covers == {name}:
            yield Cap(name, 1)
