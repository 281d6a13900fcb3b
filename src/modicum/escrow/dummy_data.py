"""Made-up rows of declared tables, from public facts only: for trying tasks out.

They have the columns, types and values that are declared, and nothing else of the data.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Final, Protocol

from modicum.core.diagnostics import nearest
from modicum.core.errors import Code, InputError, Problem
from modicum.escrow.arguments import whole
from modicum.escrow.programs import Cell, Table
from modicum.query import tables as declared

#: Nobody needs more rows than that to try a task out.
ROWS_MAX: Final = 100_000
#: Where no bounds are declared, numbers are below this.
USUAL_MAX: Final = 100
_FIRST: Final = datetime(2026, 1, 1)  # noqa: DTZ001 - timestamps have no zone here
_DAYS: Final = 365
_DAY_SECONDS: Final = 86_400
#: So many rows are of one person, about.
_ROWS_EACH: Final = 3


class Dice(Protocol):
    """What draws: a generator of Python, or of NumPy."""

    def random(self) -> float:
        """Return a number from 0 up to 1, without 1."""
        ...


def dummy_rows(tables: declared.Tables, name: str, many: int, dice: Dice) -> Table:
    """Return made-up rows of a declared table.

    Each cell is of its column's type, and one of its values, or within its bounds,
    where these are declared. Ids are the same in all tables. No two rows have the same
    row id, nor the same id where a table has one row for each; where declarations
    leave no more of them, there are fewer rows.

    Args:
        tables: What is declared.
        name: The table.
        many: How many rows, at most 100,000.
        dice: What draws.

    Raises:
        InputError: If there is no such table, or that is no number of rows.
    """
    table = tables.by_name.get(name)
    if table is None:
        known = ", ".join(f"`{one}`" for one in tables.by_name)
        raise InputError(
            Problem(
                Code.UNKNOWN_NAME,
                f"there is no table `{name}`",
                label=nearest(name, tables.by_name),
                help=f"one of {known}",
            )
        )
    whole("many", many, 0, ROWS_MAX)
    columns = tuple(table.columns)
    marks = [[columns.index(one) for one in table.row_id]] if table.row_id else []
    marks += [] if table.one_per is None else [[columns.index(table.one_per)]]
    rows: list[tuple[Cell, ...]] = []
    seen: set[tuple[int, ...] | tuple[object, ...]] = set()
    for place in range(many):
        row = tuple(
            _cell(one, table, tables, (place, many), dice)
            for one in table.columns.values()
        )
        told = {
            (which, *(row[at] for at in places)) for which, places in enumerate(marks)
        }
        if not told & seen:
            seen |= told
            rows.append(row)
    return Table(columns, tuple(rows))


def drawn(column: declared.Column, dice: Dice) -> Cell:
    """Return a value that a column may have.

    Args:
        column: The column.
        dice: What draws.
    """
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
    """Return the value with a number: another one for each, unless it is a boolean.

    Args:
        column: The column.
        place: The number.
    """
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
    """Return a number as a cell of a column.

    Args:
        column: The column.
        value: The number.
    """
    return float(value) if column.type == "number" else int(value)


def _cell(
    column: declared.Column,
    table: declared.Table,
    tables: declared.Tables,
    place: tuple[int, int],
    dice: Dice,
) -> Cell:
    """Return the cell of a column in some row of many."""
    if column.values or column.low is not None:
        return drawn(column, dice)
    if column.name == table.one_per or table.row_id == (column.name,):
        return numbered(column, place[0])
    if column.name in tables.ids:
        people = max(1, place[1] // _ROWS_EACH)
        return numbered(column, int(dice.random() * people))
    if column.name in table.row_id:
        return numbered(column, place[0])
    return drawn(column, dice)
