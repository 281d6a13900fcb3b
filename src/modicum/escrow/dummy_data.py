"""Synthetic rows and answers, from public facts only, for trying tasks.

They have the columns, types and values that are declared, and nothing else of the data.

A score on them shows that a task runs, not its real quality.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from itertools import islice, product
from types import MappingProxyType
from typing import Final, Protocol

from modicum.core.diagnostics import nearest
from modicum.core.errors import Code, InputError, Problem
from modicum.escrow.arguments import mistake, unknown_column, whole
from modicum.escrow.programs import Cell, Table
from modicum.query import tables as declared
from modicum.query.aggregates import column_of as declared_column
from modicum.query.answer_expressions import column_of, shown_groups, sure
from modicum.query.expressions.analysis import facts_of
from modicum.query.groups import values_of
from modicum.query.model import Aggregate, ColumnRef, Grain, Key, Query
from modicum.query.tables import Tables
from modicum.release.parts import EVERYTHING, Part

#: Maximum number of rows for a trial.
ROWS_MAX: Final = 100_000
#: The bound of numbers without declared bounds.
USUAL_MAX: Final = 100
_FIRST: Final = datetime(2026, 1, 1)  # noqa: DTZ001 - timestamps have no zone here
_DAYS: Final = 365
_DAY_SECONDS: Final = 86_400
#: Approximate number of rows per person.
_ROWS_EACH: Final = 3


class RandomSource(Protocol):
    """A random generator, of Python or NumPy."""

    def random(self) -> float:
        """Return a number from 0 up to 1, without 1."""
        ...


def dummy_rows(
    tables: declared.Tables, name: str, many: int, dice: RandomSource
) -> Table:
    """Return synthetic rows of a declared table.

    Each cell is of its column's type, and one of its values, or within its bounds,
    where these are declared. Ids are the same in all tables. No two rows have the same
    row id, nor the same id where a table has one row for each; where declarations
    leave no more of them, there are fewer rows.

    Args:
        tables: The declarations.
        name: The table.
        many: How many rows, at most 100,000.
        dice: The random generator.

    Raises:
        InputError: If there is no such table, or that is no number of rows.
    """
    table = tables.by_name.get(name)
    if table is None:
        known = ", ".join(f"`{one}`" for one in tables.by_name)
        raise InputError(
            Problem(
                Code.UNKNOWN_NAME,
                f"unknown table `{name}`",
                label=nearest(name, tables.by_name),
                help=f"one of {known}",
            )
        )
    whole("many", many, 0, ROWS_MAX)
    columns = tuple(table.columns)
    marks = [[columns.index(one) for one in table.row_id]] if table.row_id else []
    single = (one for one in (table.one_per, table.key) if one is not None)
    marks += [[columns.index(one)] for one in single]
    rows: list[tuple[Cell, ...]] = []
    seen: set[tuple[int, ...] | tuple[object, ...]] = set()
    for place in range(many):
        row = tuple(
            _cell(one, table, tables, (place, many), dice)
            for one in table.columns.values()
        )
        document = {
            (which, *(row[at] for at in places)) for which, places in enumerate(marks)
        }
        if not document & seen:
            seen |= document
            rows.append(row)
    return Table(columns, tuple(rows))


def drawn(column: declared.Column, dice: RandomSource) -> Cell:
    """Return a value that a column may have."""
    if column.values:
        value = column.values[int(dice.random() * len(column.values))]
        return measured(column, value) if isinstance(value, Fraction) else value
    if column.low is not None and column.high is not None:
        steps = int((column.high - column.low) / column.step)
        taken = int(dice.random() * (steps + 1))
        return measured(column, column.low + taken * column.step)
    if column.type == "timestamp":
        seconds = int(dice.random() * _DAYS * _DAY_SECONDS)
        return (_FIRST + timedelta(seconds=seconds)).isoformat()
    return numbered(column, int(dice.random() * USUAL_MAX))


def numbered(column: declared.Column, place: int) -> Cell:
    """Return the value with a number: another one for each, unless it is a boolean."""
    match column.type:
        case "text":
            return f"{column.name}-{place}"
        case "integer" | "number":
            return measured(column, place * column.step)
        case "boolean":
            return place % 2 == 1
        case "date":
            return (date(2026, 1, 1) + timedelta(days=place)).isoformat()
        case "timestamp":
            return (_FIRST + timedelta(seconds=place)).isoformat()


def measured(column: declared.Column, value: Fraction) -> int | float:
    """Return a number as a cell of a column."""
    return float(value) if column.type == "number" else int(value)


def _cell(
    column: declared.Column,
    table: declared.Table,
    tables: declared.Tables,
    place: tuple[int, int],
    dice: RandomSource,
) -> Cell:
    """Return the cell of a column in some row of many."""
    if column.values or column.low is not None:
        return drawn(column, dice)
    if column.name in (table.one_per, table.key) or table.row_id == (column.name,):
        return numbered(column, place[0])
    if column.name in tables.ids:
        people = max(1, place[1] // _ROWS_EACH)
        return numbered(column, int(dice.random() * people))
    if column.name in table.row_id:
        return numbered(column, place[0])
    return drawn(column, dice)


_PEOPLE_MAX: Final = 1000
#: Number of values of a key whose values are not public.
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
    query: Query, tables: Tables, dice: RandomSource, part: Part = EVERYTHING
) -> Table:
    """Return synthetic answers to a query: its keys, and a number for each output.

    Groups are those of public values; a key without them gets five values.

    Args:
        query: The query.
        tables: The declarations.
        dice: The random generator.
        part: The part of the data that is read; it determines the periods.

    Raises:
        InputError: If there are more than 100,000 groups.
    """
    columns = (*(k.name for k in query.keys), *(a.name for a in query.outputs))
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
    if not query.is_plain:
        rows = _computed(query, rows)
    return Table(columns, tuple(rows))


def _computed(query: Query, rows: list[tuple[Cell, ...]]) -> list[tuple[Cell, ...]]:
    """Return what is computed of keys and aggregates, for the groups that are shown."""
    names = (*(key.name for key in query.keys), *(a.name for a in query.aggregates))
    known = {
        name: [sure(Fraction(one) if isinstance(one, float) else one) for one in cells]
        for name, cells in zip(names, zip(*rows, strict=True), strict=True)
    }
    kept, shown = shown_groups(query, known, len(rows))
    columns = [column_of(one.value, known, kept) for one in query.outputs]
    numbers = dict(zip(kept, zip(*columns, strict=True), strict=True))
    keys = len(query.keys)
    return [
        (*rows[group][:keys], *(_plain(one.value) for one in numbers[group]))
        for group in shown
    ]


def _plain(value: object) -> Cell:
    if not isinstance(value, Fraction):
        return None
    return value.numerator if value.denominator == 1 else float(value)


def with_noise(
    table: Table, scale: float | Fraction, dice: RandomSource, *measures: str
) -> Table:
    """Return a table with noisy numbers, to see the effect on a task.

    The noise is Laplace in floats, which protects nobody.

    Args:
        table: Synthetic answers.
        scale: The noise scale, such as 1 / ε for counts; integers stay integers.
        dice: The random generator.
        *measures: The columns that get noise; other values there stay.

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
    column = (
        declared_column(key.value, tables)
        if isinstance(key.value, ColumnRef)
        else declared.Column(key.name, facts_of(key.value, tables).type)
    )
    return tuple(numbered(column, place) for place in range(_MADE_UP))


def _number(one: Aggregate, tables: Tables, people: int, dice: RandomSource) -> Cell:
    """Return a number that an aggregate may have."""
    if one.function in ("count", "count-distinct"):
        return people
    low, high = 0.0, float(USUAL_MAX)
    if one.value is not None:
        facts = facts_of(one.value, tables)
        if not facts.endless:
            low, high = float(facts.low * facts.step), float(facts.high * facts.step)
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


def _shaken(cell: Cell, scale: float, dice: RandomSource) -> Cell:
    """Return a number with noise; other values unchanged."""
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return cell
    noise = scale * (math.log1p(-dice.random()) - math.log1p(-dice.random()))
    return cell + (int(noise) if isinstance(cell, int) else noise)
