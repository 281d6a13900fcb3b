"""Columns of requests from a file: checked, and converted to arrays.

A mistake is reported with its row, counted from 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from modicum.core.errors import Code, InputError, Problem
from modicum.workloads.model import COLUMNS, Labels
from modicum.workloads.random_draws import Booleans, Integers

#: The columns of labels, in the order of files.
LABELS = ("black_box", "month", "attributes")

# The unchecked contents of a column.
_Values: TypeAlias = "list[object] | NDArray[Any]"

_MOST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Columns:
    """The valid values of columns.

    Attributes:
        types: The number of types.
        rounds: The rounds that may have requests.
        domain: How many elements the ring has.
    """

    types: int
    rounds: range
    domain: int

    def bounds(self, column: str) -> tuple[int, int]:
        """Return the least and the largest value of a column."""
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
        allowed: Their valid values.
        requests: The columns of requests, as lists or arrays.
        labels: Those of labels, if there are any.

    Raises:
        InputError: If a column is missing, unknown, or of another length; if a value
            has another type, or is out of range; if a number of a request is repeated.
    """
    _check_names("requests", requests, COLUMNS)
    found = {
        one: _whole_numbers(one, requests[one], allowed.bounds(one)) for one in COLUMNS
    }
    count = len(found["id"])
    for one, column in found.items():
        _check_length(one, len(column), count)
    _check_different(found["id"])
    return found, None if labels is None else _labels(labels, count)


def _labels(labels: Mapping[str, object], count: int) -> Labels:
    _check_names("labels", labels, LABELS)
    black_box = _truths("black_box", labels["black_box"])
    month = _whole_numbers("month", labels["month"], (0, _MOST))
    wanted = "lists of integers"
    rows = [
        _sequence("attributes", values, wanted, row)
        for row, values in enumerate(
            _sequence("attributes", labels["attributes"], wanted), start=1
        )
    ]
    lengths = (len(black_box), len(month), len(rows))
    for one, length in zip(LABELS, lengths, strict=True):
        _check_length(one, length, count)
    starts = np.concatenate(([0], np.cumsum([len(row) for row in rows], dtype=int)))
    flat = list(chain.from_iterable(rows))
    row_of = np.repeat(np.arange(len(rows)), np.diff(starts))
    attributes = _whole_numbers("attributes", flat, (0, _MOST), row_of)
    _check_rising(starts, attributes, row_of)
    return Labels(black_box, month, starts, attributes)


def _check_different(ids: Integers) -> None:
    """Refuse a number that two requests have."""
    order = np.argsort(ids, kind="stable")
    again = np.flatnonzero(np.diff(ids[order]) == 0)
    if len(again):
        one, other = order[again[0] : again[0] + 2].tolist()
        problem = Problem(
            Code.DUPLICATE_NAME,
            f"the requests in rows {one + 1} and {other + 1} have the same id"
            f" {ids[one]}",
            help="give each request a different id",
        )
        raise InputError(problem)


def _check_rising(starts: Integers, attributes: Integers, row_of: Integers) -> None:
    """Refuse attributes of one request that are unsorted or repeated."""
    falls = np.flatnonzero(np.diff(attributes) <= 0) + 1
    wrong = falls[~np.isin(falls, starts)]
    if len(wrong):
        problem = Problem(
            Code.DUPLICATE_NAME,
            f"the attributes of the request in row {row_of[wrong[0]] + 1} are not"
            " increasing",
            help="sort their numbers, without duplicates",
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


def _whole_numbers(
    column: str,
    given: object,
    bounds: tuple[int, int],
    row_of: Integers | None = None,
) -> Integers:
    """Return a column of integers.

    Args:
        column: Its name.
        given: Its values.
        bounds: Their minimum and maximum.
        row_of: The row of each value; None if every row has one.
    """
    values = _sequence(column, given, "integers")
    _check_each(column, values, int, row_of)
    low, high = bounds
    numbers = _exact(values)
    outside = np.flatnonzero((numbers < low) | (numbers > high))
    if len(outside):
        first = int(outside[0])
        most = f", at most {high}" if high < _MOST else ""
        problem = Problem(
            Code.OUT_OF_RANGE,
            f"column `{column}`, row {_row(first, row_of)}:"
            f" {str(values[first])[:40]} is out of its range",
            help=f"its values are at least {low}{most}",
        )
        raise InputError(problem)
    return numbers.astype(np.int64)


def _exact(values: _Values) -> NDArray[Any]:
    """Return whole numbers as they are, however large."""
    if isinstance(values, np.ndarray):
        return values
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        return np.array(values, dtype=object)


def _truths(column: str, given: object) -> Booleans:
    values = _sequence(column, given, "true or false")
    _check_each(column, values, bool)
    return np.array(values, dtype=np.bool_)


#: By type, its name, and the arrays that hold it.
_KINDS = {int: ("integers", "iu"), bool: ("true or false", "b")}


def _check_each(
    column: str, values: _Values, type_: type, row_of: Integers | None = None
) -> None:
    """Refuse values of another type. A truth value is no number here."""
    wanted, kinds = _KINDS[type_]
    if isinstance(values, np.ndarray):
        if values.dtype.kind not in kinds:
            raise _wrong_type(column, wanted)
        return
    for at, value in enumerate(values):
        if type(value) is not type_:
            raise _wrong_type(column, wanted, _row(at, row_of))


def _row(at: int, row_of: Integers | None) -> int:
    """Return the row of a value, counted from 1."""
    return 1 + (at if row_of is None else int(row_of[at]))


def _sequence(
    column: str, given: object, wanted: str, row: int | None = None
) -> _Values:
    if isinstance(given, list | tuple):
        return list(given)
    if isinstance(given, np.ndarray) and given.ndim == 1:
        return given
    raise _wrong_type(column, wanted, row)


def _wrong_type(column: str, wanted: str, row: int | None = None) -> InputError:
    place = f"column `{column}`" + ("" if row is None else f", row {row},")
    return InputError(Problem(Code.WRONG_TYPE, f"{place} does not contain {wanted}"))
