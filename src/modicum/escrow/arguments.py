"""Arguments of tasks and evaluations: checked, and in their one plain form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, TypeAlias

from modicum.core.canonical import Plain
from modicum.core.diagnostics import nearest
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import brief, number_text, rational
from modicum.escrow.programs import Table

Number: TypeAlias = "int | float | str | Decimal | Fraction"
#: A public table: its columns and rows, in the form given to programs.
PublicTable: TypeAlias = "Table | Mapping[str, Any]"

#: Programs know no larger number.
NUMBER_MAX: Final = Fraction(10**100)
_NAME_MAX: Final = 200
_ROWS_MAX: Final = 10_000


def name_of(what: str, value: object) -> str:
    """Return the name of a column or table.

    Args:
        what: The argument.
        value: Its value.

    Raises:
        InputError: If it is no text, is empty or is too long.
    """
    if not isinstance(value, str):
        raise mistake(Code.WRONG_TYPE, f"`{what}` must be a name, got {_shown(value)}")
    if not 0 < len(value) <= _NAME_MAX:
        raise mistake(
            Code.OUT_OF_RANGE,
            f"`{what}` has 1 to {_NAME_MAX} characters, and this has {len(value):,}",
        )
    return value


def names_of(what: str, values: object) -> tuple[str, ...]:
    """Return the names of columns, without duplicates.

    Args:
        what: The argument.
        values: Its value.

    Raises:
        InputError: If it is no list of names, or has one twice.
    """
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise mistake(
            Code.WRONG_TYPE,
            f"`{what}` must be a list of columns, got {_shown(values)}",
            f'write `{what}=["…"]`',
        )
    found = tuple(name_of(what, one) for one in values)
    twice = next((one for one in found if found.count(one) > 1), None)
    if twice is not None:
        raise mistake(Code.DUPLICATE_NAME, f"`{what}` names `{twice}` twice")
    return found


def whole(what: str, value: object, low: int, high: int) -> int:
    """Return an integer in a range.

    Args:
        what: The argument.
        value: Its value.
        low: The minimum.
        high: The greatest.

    Raises:
        InputError: If it is no integer, or out of range.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise mistake(
            Code.WRONG_TYPE,
            f"`{what}` must be an integer, got {_shown(value)}",
            f"from {low:,} to {high:,}",
        )
    if not low <= value <= high:
        raise mistake(
            Code.OUT_OF_RANGE,
            f"`{what}` is from {low:,} to {high:,}, got {_shown(value)}",
        )
    return value


def exact(
    what: str, value: object, low: Fraction | None = None, high: Fraction | None = None
) -> Fraction:
    """Return an exact number in a range; a float has the value of its decimal text.

    Args:
        what: The argument.
        value: Its value.
        low: The minimum; None for that of programs.
        high: The greatest; None for as much as they know.

    Raises:
        InputError: If it is no number, or out of range.
    """
    if isinstance(value, bool) or not isinstance(
        value, int | float | str | Decimal | Fraction
    ):
        raise mistake(
            Code.WRONG_TYPE, f"`{what}` must be a number, got {_shown(value)}"
        )
    try:
        found = rational(value)
    except ValueError:
        raise mistake(
            Code.NOT_A_NUMBER,
            f"`{what}` must be a finite number, got {_shown(value)}",
            "write it as in `0.25`",
        ) from None
    least = -NUMBER_MAX if low is None else low
    most = NUMBER_MAX if high is None else high
    if not least <= found <= most:
        raise mistake(
            Code.OUT_OF_RANGE,
            f"`{what}` must be from {brief(least)} to {brief(most)}, got"
            f" {_shown(value)}",
        )
    return found


def one_of(what: str, value: object, choices: Iterable[str]) -> str:
    """Return one of some words.

    Args:
        what: The argument.
        value: Its value.
        choices: The words.

    Raises:
        InputError: If it is none of them.
    """
    known = list(choices)
    if isinstance(value, str) and value in known:
        return value
    suggestion = nearest(value, known) if isinstance(value, str) else ""
    listed = ", ".join(f"`{one}`" for one in known)
    raise InputError(
        Problem(
            Code.UNKNOWN_CHOICE,
            f"unknown {what} {_shown(value)}",
            label=suggestion,
            help=f"one of {listed}",
        )
    )


def public_rows(table: PublicTable, keys: Sequence[str], column: str) -> Plain:
    """Return a public table in the form given to programs: keys, and numbers as texts.

    Args:
        table: The table; rows without a number in the column are left out.
        keys: The columns that identify its rows.
        column: The column with the numbers.

    Raises:
        InputError: If it is no table, lacks one of these columns, has rows with the
            same keys, or has no row or too many.
    """
    columns, rows = _parts(table)
    for name in (*keys, column):
        if name not in columns:
            raise unknown_column("`reference`", name, columns)
    at = [columns.index(name) for name in (*keys, column)]
    found: dict[tuple[bool | int | str | None, ...], str] = {}
    for row in rows:
        number = row[at[-1]]
        if number is None:
            continue
        plain = tuple(_key(row[place]) for place in at[:-1])
        if plain in found:
            raise mistake(
                Code.DUPLICATE_NAME,
                "two rows of `reference` have the same keys",
                "list all columns that identify a row in `keys`",
            )
        found[plain] = number_text(exact(f"reference.{column}", number))
    if not found:
        raise mistake(Code.OUT_OF_RANGE, "`reference` has no row with a number")
    return {
        "columns": [*keys, column],
        "rows": [[*key, number] for key, number in found.items()],
    }


def unknown_column(where: str, name: str, columns: Iterable[str]) -> InputError:
    """Return the error for a column that a table does not have.

    Args:
        where: The table.
        name: The column.
        columns: Those that it has.
    """
    known = list(columns)
    listed = ", ".join(f"`{one}`" for one in known)
    return InputError(
        Problem(
            Code.UNKNOWN_NAME,
            f"{where} has no column `{name}`",
            label=nearest(name, known),
            help=f"it has {listed}" if known else "it has no columns",
        )
    )


def mistake(code: Code, message: str, remedy: str = "") -> InputError:
    """Return an error without a place."""
    return InputError(Problem(code, message, help=remedy))


def _parts(table: object) -> tuple[list[str], Sequence[Sequence[object]]]:
    """Return the columns and the rows of a public table."""
    if isinstance(table, Table):
        return list(table.columns), table.rows
    if not isinstance(table, Mapping) or not {"columns", "rows"} <= table.keys():
        raise mistake(
            Code.WRONG_TYPE,
            "`reference` is a table with `columns` and `rows`",
            'write `reference={"columns": ["…"], "rows": [["…"]]}`',
        )
    columns = list(names_of("reference.columns", table["columns"]))
    rows: list[Sequence[object]] = []
    for row in table["rows"]:
        if not isinstance(row, list | tuple) or len(row) != len(columns):
            raise mistake(
                Code.WRONG_TYPE,
                f"a row of `reference` is a list of {len(columns)} cells",
                "one for each column",
            )
        rows.append(row)
    if len(rows) > _ROWS_MAX:
        raise mistake(
            Code.TOO_LARGE,
            f"`reference` has {_ROWS_MAX:,} rows at most, and this has {len(rows):,}",
        )
    return columns, rows


def _key(cell: object) -> bool | int | str | None:
    if cell is None or isinstance(cell, bool | int | str):
        return cell
    raise mistake(
        Code.WRONG_TYPE,
        f"a key of `reference` is a text, an integer or a boolean, got {_shown(cell)}",
    )


def _shown(value: object) -> str:
    """Return a value, cut short."""
    text = str(value) if isinstance(value, str | int | float) else type(value).__name__
    return f"`{text[:60]}{'…' if len(text) > 60 else ''}`"
