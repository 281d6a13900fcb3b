"""What a server tells, as values."""

from __future__ import annotations

import math
from typing import TypeVar

import msgspec

from modicum.remote.mistakes import not_understood

T = TypeVar("T")

#: What a server writes for a number that has no bound.
_INFINITE = "inf"


def read_as(kind: type[T], told: object) -> T:
    """Return plain data as a value; amounts that are infinite become so.

    Args:
        kind: The type of the value; what else is told is left out.
        told: The data.

    Raises:
        UnavailableError: If it is not of that form.
    """
    return plain_as(kind, _with_infinite(told))


def plain_as(kind: type[T], told: object) -> T:
    """Return plain data without amounts as a value; `inf` is a word there.

    Args:
        kind: The type of the value; what else is told is left out.
        told: The data.

    Raises:
        UnavailableError: If it is not of that form.
    """
    try:
        return msgspec.convert(told, kind)
    except msgspec.ValidationError as error:
        raise not_understood(str(error)).alone() from None


def _with_infinite(told: object) -> object:
    if isinstance(told, dict):
        return {
            key: math.inf
            if value == _INFINITE and key not in _TEXTS
            else _with_infinite(value)
            for key, value in told.items()
        }
    return [_with_infinite(one) for one in told] if isinstance(told, list) else told


#: Where `inf` is a name.
_TEXTS = frozenset({"release", "rule", "unit", "cell", "name", "scope"})
