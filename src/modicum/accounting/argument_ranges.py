"""The valid ranges of arguments of prices."""

from __future__ import annotations

from fractions import Fraction

from modicum.core.errors import Code, InputError, Problem


def require_at_least_zero(name: str, value: Fraction | int) -> None:
    """Raise InputError unless a value is at least 0.

    Examples:
        >>> require_at_least_zero("delta", Fraction(-1, 10))
        Traceback (most recent call last):
            ...
        modicum.core.errors.InputError: delta is -1/10
    """
    if value < 0:
        raise _out_of_range(f"{name} is {value}", f"{name} is at least 0")


def require_above_zero(name: str, value: Fraction | int) -> None:
    """Raise InputError unless a value is above 0.

    Examples:
        >>> require_above_zero("sigma", 0)
        Traceback (most recent call last):
            ...
        modicum.core.errors.InputError: sigma is 0
    """
    if value <= 0:
        raise _out_of_range(f"{name} is {value}", f"{name} is above 0")


def require_probability(name: str, value: Fraction) -> None:
    """Raise InputError unless a value lies between 0 and 1, ends included.

    Examples:
        >>> require_probability("the rate", Fraction(11, 10))
        Traceback (most recent call last):
            ...
        modicum.core.errors.InputError: the rate is 11/10
    """
    if not 0 <= value <= 1:
        raise _out_of_range(f"{name} is {value}", f"{name} is from 0 to 1")


def require_order(value: Fraction) -> None:
    """Raise InputError unless a value can be a Renyi order: above 1.

    Examples:
        >>> require_order(Fraction(1))
        Traceback (most recent call last):
            ...
        modicum.core.errors.InputError: a Renyi order is 1
    """
    if value <= 1:
        raise _out_of_range(f"a Renyi order is {value}", "an order is above 1")


def require_some(name: str, values: object) -> None:
    """Raise InputError if a collection is empty.

    Examples:
        >>> require_some("limits", {})
        Traceback (most recent call last):
            ...
        modicum.core.errors.InputError: limits are empty
    """
    if not values:
        raise _out_of_range(f"{name} are empty", f"state at least one of the {name}")


def _out_of_range(message: str, remedy: str) -> InputError:
    return InputError(Problem(Code.OUT_OF_RANGE, message, help=remedy))
