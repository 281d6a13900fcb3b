"""Columns of requests as they come from a file: checked, and turned into arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from modicum.core.errors import Code, InputError, Problem
from modicum.workloads.draws import Booleans, Integers
from modicum.workloads.model import COLUMNS, Labels

#: The columns of labels, in the order of files.
LABELS = ("black_box", "month", "attributes")

# What stands in a column before anybody looked at it.
_Values: TypeAlias = "list[object] | NDArray[Any]"

_MOST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Columns:
    """What the values of columns may be.

    Attributes:
        types: How many types there are.
        rounds: The rounds that may have requests.
        domain: How many elements the ring has.
    """

    types: int
    rounds: range
    domain: int

    def bounds(self, column: str) -> tuple[int, int]:
        """Return the least and the largest value of a column.

        Args:
            column: Its name.
        """
        known = {
            "round": (self.rounds.start, self.rounds.stop - 1),
            "type": (0, self.types - 1),
            "first": (0, self.domain - 1),
            "width": (1, self.domain),
        }
        return known.get(column, (0, _MOST))


def read_columns(
    allowed: Columns,
    requests: Mapping[str, object],
    labels: Mapping[str, object] | None,
) -> tuple[dict[str, Integers], Labels | None]:
    """Return columns as arrays.

    Args:
        allowed: What their values may be.
        requests: The columns of requests, as lists or arrays.
        labels: Those of labels, if there are any.

    Raises:
        InputError: If a column is missing, unknown, or of another length; if a value
            is of another type, or out of its range; if a number of a request stands
            twice.
    """
    _check_names("requests", requests, COLUMNS)
    found = {
        one: _whole_numbers(one, requests[one], allowed.bounds(one)) for one in COLUMNS
    }
    count = len(found["id"])
    for one, column in found.items():
        _check_length(one, len(column), count)
    if len(np.unique(found["id"])) < count:
        problem = Problem(
            Code.DUPLICATE_NAME,
            "two requests have the same id",
            help="give each request an id of its own",
        )
        raise InputError(problem)
    return found, None if labels is None else _labels(labels, count)


def _labels(labels: Mapping[str, object], count: int) -> Labels:
    _check_names("labels", labels, LABELS)
    black_box = _truths("black_box", labels["black_box"])
    month = _whole_numbers("month", labels["month"], (0, _MOST))
    wanted = "lists of whole numbers"
    rows = [
        _sequence("attributes", row, wanted)
        for row in _sequence("attributes", labels["attributes"], wanted)
    ]
    lengths = (len(black_box), len(month), len(rows))
    for one, length in zip(LABELS, lengths, strict=True):
        _check_length(one, length, count)
    flat = list(chain.from_iterable(rows))
    attributes = _whole_numbers("attributes", flat, (0, _MOST))
    starts = np.concatenate(([0], np.cumsum([len(row) for row in rows], dtype=int)))
    _check_rising(starts, attributes)
    return Labels(black_box, month, starts, attributes)


def _check_rising(starts: Integers, attributes: Integers) -> None:
    """Refuse attributes of one request that do not rise, or stand twice."""
    falls = np.flatnonzero(np.diff(attributes) <= 0) + 1
    if not np.isin(falls, starts).all():
        problem = Problem(
            Code.DUPLICATE_NAME,
            "the attributes of a request do not rise",
            help="sort their numbers, each once",
        )
        raise InputError(problem)


# --- single columns -------------------------------------------------------------------


def _check_names(
    what: str, given: Mapping[str, object], known: tuple[str, ...]
) -> None:
    columns = f"its columns are {', '.join(known)}"
    for one in known:
        if one not in given:
            problem = Problem(
                Code.MISSING_KEY, f"`{what}` has no column `{one}`", help=columns
            )
            raise InputError(problem)
    for one in given:
        if one not in known:
            problem = Problem(
                Code.UNKNOWN_KEY,
                f"unknown column `{str(one)[:40]}` in `{what}`",
                help=columns,
            )
            raise InputError(problem)


def _check_length(column: str, length: int, expected: int) -> None:
    if length != expected:
        problem = Problem(
            Code.OUT_OF_RANGE,
            f"column `{column}` has {length} values, and `id` has {expected}",
            help="give one value for each request",
        )
        raise InputError(problem)


def _whole_numbers(column: str, given: object, bounds: tuple[int, int]) -> Integers:
    values = _sequence(column, given, "whole numbers")
    if not _all_whole(values):
        raise _wrong_type(column, "whole numbers")
    low, high = bounds
    if len(values) and not low <= int(min(values)) <= int(max(values)) <= high:
        most = f", at most {high}" if high < _MOST else ""
        problem = Problem(
            Code.OUT_OF_RANGE,
            f"a value of column `{column}` is out of its range",
            help=f"they are at least {low}{most}",
        )
        raise InputError(problem)
    return np.array(values, dtype=np.int64)


def _all_whole(values: _Values) -> TypeGuard[Sequence[int]]:
    if isinstance(values, np.ndarray):
        return values.dtype.kind in "iu"
    return all(type(value) is int for value in values)


def _truths(column: str, given: object) -> Booleans:
    values = _sequence(column, given, "true or false")
    if isinstance(values, np.ndarray):
        usable = values.dtype.kind == "b"
    else:
        usable = all(type(value) is bool for value in values)
    if not usable:
        raise _wrong_type(column, "true or false")
    return np.array(values, dtype=np.bool_)


def _sequence(column: str, given: object, wanted: str) -> _Values:
    if isinstance(given, list | tuple):
        return list(given)
    if isinstance(given, np.ndarray) and given.ndim == 1:
        return given
    raise _wrong_type(column, wanted)


def _wrong_type(column: str, wanted: str) -> InputError:
    return InputError(
        Problem(Code.WRONG_TYPE, f"column `{column}` does not hold {wanted}")
    )
