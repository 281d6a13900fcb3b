"""How many kept rows move with one change of each unit, in the tables of a query.

`bounding` tells it of one table; here stand what joins do, and the days that are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from modicum.query.caps import caps_of
from modicum.query.contribution_bounds import UNBOUNDED, Moves, in_order, moves
from modicum.query.joins import refuse_other_steps, refuse_unproven_joins
from modicum.query.model import Key
from modicum.query.request import Asked
from modicum.query.statistics import Cap
from modicum.release.periods import Overlaps, overlaps
from modicum.release.units import Unit, kinds
from modicum.release.vocabulary import Vocabulary


def all_moves(
    asked: Asked, read: tuple[str, ...], keys: tuple[Key, ...], vocabulary: Vocabulary
) -> dict[str, Moves]:
    """Return by unit how many rows move with one change of it, under its own relation.

    Args:
        asked: The query.
        read: The attributes that it reads.
        keys: Its keys, a date that tells time with its grain.
        vocabulary: The units and attributes of the policy.

    Raises:
        InputError: If tables are joined so that nothing is proven of it.
    """
    refuse_unproven_joins(asked, vocabulary)
    units = vocabulary.unit_facts
    caps = in_order(caps_of(asked, units), units)
    within = within_days(asked, read, keys, vocabulary)
    found = {unit: moves(unit, caps, units, within) for unit in vocabulary.units}
    if len(asked.query.tables) > 1:
        # A row of a table without time may belong to any instance of a timed unit: its
        # change is any change of all rows of the id.
        found = {
            unit: one if units[unit].period is None else _of_the_id(unit, caps, units)
            for unit, one in found.items()
        }
    refuse_other_steps(asked, found, vocabulary)
    return found


def _of_the_id(unit: str, caps: tuple[Cap, ...], units: Mapping[str, Unit]) -> Moves:
    """Return how many rows move with any change of all that one id has."""
    changing = {
        name: replace(one, neighbors="any-change") for name, one in units.items()
    }
    return min(
        (
            moves(name, caps, changing)
            for name, one in units.items()
            if one.id == units[unit].id and one.period is None
        ),
        key=lambda one: one.coming + one.going,
        default=Moves(UNBOUNDED, UNBOUNDED),
    )


def within_days(
    asked: Asked, read: tuple[str, ...], keys: tuple[Key, ...], vocabulary: Vocabulary
) -> Overlaps | None:
    """Return how periods lie on each other on the days that are read, if that helps.

    Args:
        asked: The query.
        read: The attributes that it reads.
        keys: Its keys, a date that tells time with its grain.
        vocabulary: The units and attributes of the policy.
    """
    days = asked.part.periods
    timeless = not vocabulary.population.static.isdisjoint(read)
    if days is None or timeless or len(vocabulary.clocks) != 1:
        return None
    every = (*kinds(vocabulary.unit_facts), None, *(key.grain for key in keys))
    return overlaps(tuple(dict.fromkeys(every)), days)
