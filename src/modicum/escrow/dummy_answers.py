"""Made-up answers to a query, from public facts only: for trying tasks out.

A score on them says that a task runs, not how good it would be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import islice, product
from types import MappingProxyType
from typing import Final

from modicum.core.errors import Code
from modicum.escrow.arguments import mistake, unknown_column
from modicum.escrow.dummy_data import ROWS_MAX, USUAL_MAX, Dice, numbered
from modicum.escrow.programs import Cell, Table
from modicum.query.aggregates import column_of
from modicum.query.groups import values_of
from modicum.query.model import Aggregate, Grain, Key, Query
from modicum.query.tables import Tables
from modicum.release.parts import EVERYTHING, Part

_PEOPLE_MAX: Final = 1000
#: So many values has a key whose values are not public.
_MADE_UP: Final = 5
#: Days on which periods begin, where the periods that are read are not public.
_PERIODS: Final[Mapping[Grain, tuple[str, ...]]] = MappingProxyType(
    {
        "day": tuple(f"2026-01-{day:02}" for day in range(1, 6)),
        "week": tuple(f"2026-01-{day:02}" for day in (5, 12, 19, 26)),
        "month": tuple(f"2026-{month:02}-01" for month in range(1, 6)),
        "quarter": tuple(f"2026-{month:02}-01" for month in (1, 4, 7, 10)),
        "year": tuple(f"{year}-01-01" for year in range(2022, 2027)),
    }
)


def dummy_answers(
    query: Query, tables: Tables, dice: Dice, part: Part = EVERYTHING
) -> Table:
    """Return made-up answers to a query: its keys, and a number for each aggregate.

    Groups are those that public values make; a key that has none gets five values.

    Args:
        query: The query.
        tables: What is declared.
        dice: What draws.
        part: The part of the data that is read; it tells which periods there are.

    Raises:
        InputError: If there are more than 100,000 groups.
    """
    columns = (*(k.name for k in query.keys), *(a.name for a in query.aggregates))
    values = [_values(key, tables, part) for key in query.keys]
    groups = list(islice(product(*values), ROWS_MAX + 1))
    if len(groups) > ROWS_MAX:
        raise mistake(
            Code.TOO_LARGE,
            f"the answers have more than {ROWS_MAX:,} groups",
            "try the task with fewer keys",
        )
    rows = []
    for group in groups:
        people = int(_PEOPLE_MAX * dice.random() ** 3)  # Many groups are small.
        numbers = (_number(one, tables, people, dice) for one in query.aggregates)
        rows.append((*group, *numbers))
    return Table(columns, tuple(rows))


def with_noise(
    table: Table, scale: float | Fraction, dice: Dice, *measures: str
) -> Table:
    """Return a table whose numbers have noise, to see what that does to a task.

    It is Laplace noise of floats, which protects nobody.

    Args:
        table: Made-up answers.
        scale: Of the noise, such as 1 / ε for counts; what was whole stays whole.
        dice: What draws.
        *measures: The columns that get noise; what is no number there stays.

    Raises:
        InputError: If there is no such column.
    """
    for name in measures:
        if name not in table.columns:
            raise unknown_column("the table", name, table.columns)
    noisy = {table.columns.index(name) for name in measures}
    rows = tuple(
        tuple(
            _shaken(cell, float(scale), dice) if place in noisy else cell
            for place, cell in enumerate(row)
        )
        for row in table.rows
    )
    return replace(table, rows=rows)


def _values(key: Key, tables: Tables, part: Part) -> tuple[Cell, ...]:
    """Return the values of a key, made-up ones where they are not public."""
    public = values_of(key, tables, part)
    if public is not None:
        return public
    if key.grain is not None:
        return _PERIODS[key.grain]
    column = column_of(key.column, tables)
    return tuple(numbered(column, place) for place in range(_MADE_UP))


def _number(one: Aggregate, tables: Tables, people: int, dice: Dice) -> Cell:
    """Return a number that an aggregate may have."""
    if one.function in ("count", "count-distinct"):
        return people
    low, high = 0.0, float(USUAL_MAX)
    if one.column is not None:
        column = column_of(one.column, tables)
        if column.low is not None and column.high is not None:
            low, high = float(column.low), float(column.high)
    typical = low + dice.random() * (high - low)
    spread = dice.random() * (high - low) / 2
    match one.function:
        case "sum":
            return people * typical
        case "variance":
            return spread**2
        case "stddev":
            return spread
        case _:
            return typical


def _shaken(cell: Cell, scale: float, dice: Dice) -> Cell:
    """Return a number with noise; what is none stays."""
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return cell
    noise = scale * (math.log1p(-dice.random()) - math.log1p(-dice.random()))
    return cell + (int(noise) if isinstance(cell, int) else noise)
