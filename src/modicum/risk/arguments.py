"""Numeric arguments: read exactly, and refused if out of range."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import Final, TypeAlias

from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import brief, rational

Number: TypeAlias = float | str | Decimal | Fraction

#: How `argument` writes a name.
ARGUMENT: Final = re.compile(r"`([a-z_]+)=`")

_LEAST, _GREATEST = Fraction(1, 10**60), Fraction(10**60)


class ArgumentError(InputError):
    """An argument beside a query is invalid; the query and the data may be fine."""


def argument(name: str) -> str:
    """Return how a message names an argument; a command names its option instead.

    Args:
        name: The argument.

    Returns:
        The name is written such that no column name can be confused with it.

    Neighboring relation:
        None: nothing is read from a table.

    Source:
        The house's rule for remedies.

    Examples:
        >>> argument("rows_max")
        '`rows_max=`'
    """
    return f"`{name}=`"


def exact(name: str, value: Number, *, by: str = "") -> Fraction:
    """Return the exact number; a float means its shortest decimal.

    Args:
        name: Its name, for messages.
        value: A finite number, or its text.
        by: The argument that gives it; empty for none.

    Returns:
        The number.

    Raises:
        InputError: If it is no finite number, or outside of 1e-60 to 1e60 in size:
            floats hold neither squares of such numbers, nor quotients by them.

    Neighboring relation:
        None: nothing is read from a table.

    Source:
        The house's rule for numbers in files.

    Examples:
        >>> exact("epsilon", 0.1)
        Fraction(1, 10)
    """
    try:
        number = rational(value)
    except ValueError:
        raise mistake(
            f"{name} {value!r} is not a finite number",
            f"give {_called(name, by)} such as 0.5",
            Code.NOT_A_NUMBER,
        ) from None
    if number and not _LEAST <= abs(number) <= _GREATEST:
        raise mistake(
            f"{name} {str(value)[:40]} is out of range",
            f"give {_called(name, by)} between 1e-60 and 1e60 in size, or 0",
        )
    return number


def above_zero(name: str, value: Number, *, by: str = "") -> Fraction:
    """Return a number that must be above 0.

    Args:
        name: Its name, for messages.
        value: A finite number, or its text.
        by: The argument that gives it; empty for none.

    Returns:
        The number.

    Raises:
        InputError: If it is no number, or not above 0.

    Neighboring relation:
        None: nothing is read from a table.

    Source:
        The house's rule for numbers in files.

    Examples:
        >>> above_zero("epsilon", "1e-3")
        Fraction(1, 1000)
    """
    number = exact(name, value, by=by)
    if number <= 0:
        raise mistake(
            f"{name} {brief(number)} is not above 0",
            f"give {_called(name, by)} above 0",
        )
    return number


def at_least_zero(name: str, value: Number, *, by: str = "") -> Fraction:
    """Return a number that must not be negative.

    Args:
        name: Its name, for messages.
        value: A finite number, or its text.
        by: The argument that gives it; empty for none.

    Returns:
        The number.

    Raises:
        InputError: If it is no number, or negative.

    Neighboring relation:
        None: nothing is read from a table.

    Source:
        The house's rule for numbers in files.

    Examples:
        >>> at_least_zero("tau", 0)
        Fraction(0, 1)
    """
    number = exact(name, value, by=by)
    if number < 0:
        raise mistake(
            f"{name} {brief(number)} is negative",
            f"give {_called(name, by)} of at least 0",
        )
    return number


def proportion(name: str, value: Number, *, by: str = "") -> Fraction:
    """Return a number that must be above 0 and at most 1.

    Args:
        name: Its name, for messages.
        value: A finite number, or its text.
        by: The argument that gives it; empty for none.

    Returns:
        The number.

    Raises:
        InputError: If it is no number, or not above 0 and at most 1.

    Neighboring relation:
        None: nothing is read from a table.

    Source:
        The house's rule for numbers in files.

    Examples:
        >>> proportion("tau", 1)
        Fraction(1, 1)
    """
    number = exact(name, value, by=by)
    if not 0 < number <= 1:
        raise mistake(
            f"{name} {brief(number)} is not above 0 and at most 1",
            f"give {_called(name, by)} such as 0.5",
        )
    return number


def count(name: str, value: int, *, least: int, by: str = "") -> int:
    """Return an integer that must be large enough.

    Args:
        name: Its name, for messages.
        value: A whole number.
        least: The least one that will do.
        by: The argument that gives it; empty for none.

    Returns:
        The number.

    Raises:
        InputError: If it is not whole, or less.

    Neighboring relation:
        None: nothing is read from a table.

    Source:
        The house's rule for numbers in files.

    Examples:
        >>> count("people", 7, least=1)
        7
    """
    if type(value) is not int or value < least:  # A truth value is no number.
        raise mistake(
            f"{name} {value!r} is not an integer of at least {least}",
            f"give {_called(name, by)} of at least {least}",
        )
    return value


def mistake(
    message: str,
    remedy: str,
    code: Code = Code.OUT_OF_RANGE,
    *,
    near: str = "",
) -> ArgumentError:
    """Return the error for an invalid number.

    Args:
        message: The mistake, with the value.
        remedy: The remedy.
        code: The kind of mistake.
        near: A suggestion, as from `nearest`.

    Returns:
        The error, to be raised.

    Neighboring relation:
        None: nothing is read from a table.

    Source:
        The house's rule for mistakes.

    Examples:
        >>> mistake("tau 2 is above 1", "give tau such as 0.5").code.value
        'MOD106'
    """
    return ArgumentError(Problem(code, message, label=near, help=remedy))


def _called(name: str, by: str) -> str:
    return argument(by) if by else name
