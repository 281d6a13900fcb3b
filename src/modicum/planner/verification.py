"""Independent verification of a plan before it is committed.

Nothing here is shared with the planner: no cost is clamped, no row is left out, no
order matters. The accepted requests are summed place by place in unbounded integers,
and compared with every row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from modicum.accounting.grid import INFINITE
from modicum.planner.allocation.problem import Booleans, Integers, Problem

#: Maximum number of rows reported individually.
TOLD_MAX = 100

# The fields that decide whether a plan fits. A problem's others concern its utility.
_ARRAYS = (
    "weights",
    "costs",
    "run_first",
    "run_start",
    "run_stop",
    "row_first",
    "left",
    "block",
    "line",
    "full",
)


@dataclass(frozen=True, slots=True)
class Violation(ABC):
    """Why a plan must not be committed."""

    @property
    @abstractmethod
    def message(self) -> str:
        """The violation, as text."""


@dataclass(frozen=True, slots=True)
class Unsound(Violation):
    """The problem itself is invalid.

    Attributes:
        what: The violated condition.
    """

    what: str

    @property
    def message(self) -> str:
        """The violation, as text."""
        return f"the problem is unsound: {self.what}"


@dataclass(frozen=True, slots=True)
class NoRequest(Violation):
    """An accepted number is not a request of the round.

    Attributes:
        number: The number.
    """

    number: object

    @property
    def message(self) -> str:
        """The violation, as text."""
        return f"`{self.number}` is not the number of a request"


@dataclass(frozen=True, slots=True)
class AcceptedTwice(Violation):
    """A request was accepted more than once.

    Attributes:
        request: Its number.
        times: How often.
    """

    request: int
    times: int

    @property
    def message(self) -> str:
        """The violation, as text."""
        return f"request {self.request} is accepted {self.times} times"


@dataclass(frozen=True, slots=True)
class Overspent(Violation):
    """At a row, no coordinate has enough left for all that is charged there.

    Attributes:
        row: Its number in the problem.
        place: The place it belongs to.
        block: The balance it belongs to.
        charged: By coordinate; infinite charges count as `INFINITE`.
        left: By coordinate.
    """

    row: int
    place: int
    block: int
    charged: tuple[int, ...]
    left: tuple[int, ...]

    @property
    def message(self) -> str:
        """The violation, as text."""
        return (
            f"row {self.row}, of balance {self.block} at place {self.place}, has "
            f"{list(self.left)} left and is charged {list(self.charged)}"
        )


def verify(
    problem: Problem, accepted: Sequence[int] | Integers
) -> tuple[Violation, ...]:
    """Return why a plan must not be committed; empty if it may be.

    Args:
        problem: The round.
        accepted: The numbers of the requests that the plan accepts.

    Returns:
        The flaws of the problem; else the numbers that are no requests, or duplicates;
        else the overspent rows, at most `TOLD_MAX` of them.
    """
    unsound = tuple(Unsound(what) for what in _unsound(problem))
    if unsound:
        return unsound
    numbers = accepted.tolist() if isinstance(accepted, np.ndarray) else list(accepted)
    misnamed = tuple(_misnamed(numbers, len(problem.weights)))
    if misnamed:
        return misnamed
    return tuple(_overspent(problem, numbers))


# --- the problem ----------------------------------------------------------------------


def _unsound(problem: Problem) -> Iterator[str]:
    for name in _ARRAYS:
        array = getattr(problem, name)
        if not isinstance(array, np.ndarray) or array.dtype != np.int64:
            yield f"`{name}` is not an array of 64-bit integers"
            return
    if not _shaped(problem):
        yield "its arrays are not of the shapes that belong together"
        return
    yield from _wrong_indices(problem)
    for name in ("weights", "costs"):
        array = getattr(problem, name)
        if ((array < 0) | (array > INFINITE)).any():
            yield f"`{name}` are below 0 or above infinity"
    if (problem.left >= INFINITE).any():
        yield "an infinite amount is left at a row"


def _shaped(problem: Problem) -> bool:
    if problem.costs.ndim != 2 or problem.full.ndim != 2:
        return False
    requests, coordinates = problem.costs.shape
    rows, runs, places = len(problem.left), len(problem.run_start), len(problem.line)
    shapes = {
        "weights": (requests,),
        "run_first": (requests + 1,),
        "run_start": (runs,),
        "run_stop": (runs,),
        "row_first": (places + 1,),
        "left": (rows, coordinates),
        "block": (rows,),
        "line": (places,),
        "full": (len(problem.full), coordinates),
    }
    return coordinates > 0 and all(
        getattr(problem, name).shape == shape for name, shape in shapes.items()
    )


def _wrong_indices(problem: Problem) -> Iterator[str]:
    for name, count in (
        ("run_first", len(problem.run_start)),
        ("row_first", len(problem.left)),
    ):
        first = getattr(problem, name)
        if first[0] != 0 or first[-1] != count or (np.diff(first) < 0).any():
            yield f"`{name}` does not divide what it points into"
            return
    start, stop = problem.run_start, problem.run_stop
    if ((start < 0) | (start >= stop) | (stop > len(problem.line))).any():
        yield "a run is empty, or goes beyond the places"
    owner = np.repeat(np.arange(len(problem.weights)), np.diff(problem.run_first))
    if ((owner[1:] == owner[:-1]) & (start[1:] < stop[:-1])).any():
        yield "two runs of a request overlap, or are not in order"
    if ((problem.block < 0) | (problem.block >= len(problem.full))).any():
        yield "a row belongs to a balance that does not exist"


# --- the plan -------------------------------------------------------------------------


def _misnamed(numbers: Sequence[object], requests: int) -> Iterator[Violation]:
    for number, times in Counter(numbers).items():
        # A truth value is an integer in Python: True would be request 1.
        if type(number) is not int or not 0 <= number < requests:
            yield NoRequest(number)
        elif times > 1:
            yield AcceptedTwice(number, times)


def _overspent(problem: Problem, numbers: Sequence[int]) -> Iterator[Overspent]:
    charged = np.array(
        [_charged(problem, numbers, a) for a in range(problem.costs.shape[1])],
        dtype=np.int64,
    )
    place_of = np.repeat(np.arange(len(problem.line)), np.diff(problem.row_first))
    rows = np.flatnonzero(_touched(problem, numbers)[place_of])
    for a, everywhere in enumerate(charged):
        rows = rows[everywhere[place_of[rows]] > problem.left[rows, a]]
    for row in rows[:TOLD_MAX].tolist():
        place = int(place_of[row])
        yield Overspent(
            row=row,
            place=place,
            block=int(problem.block[row]),
            charged=tuple(charged[:, place].tolist()),
            left=tuple(problem.left[row].tolist()),
        )


def _charged(problem: Problem, numbers: Sequence[int], coordinate: int) -> list[int]:
    """Return the charge at each place, at most `INFINITE`.

    Python's integers have no bound, so that an infinite cost makes any sum infinite.
    No row has `INFINITE` left, so that nothing passes that should not.
    """
    costs = problem.costs[:, coordinate].tolist()
    steps = [0] * (len(problem.line) + 1)
    for request, start, stop in _runs(problem, numbers):
        steps[start] += costs[request]
        steps[stop] -= costs[request]
    return [min(total, INFINITE) for total in accumulate(steps[:-1])]


def _touched(problem: Problem, numbers: Sequence[int]) -> Booleans:
    """Return, for each place, whether anything is charged there, be it nothing."""
    steps = [0] * (len(problem.line) + 1)
    for _, start, stop in _runs(problem, numbers):
        steps[start] += 1
        steps[stop] -= 1
    return np.array(list(accumulate(steps[:-1])), dtype=np.int64) > 0


def _runs(problem: Problem, numbers: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    first = problem.run_first.tolist()
    start, stop = problem.run_start.tolist(), problem.run_stop.tolist()
    for request in numbers:
        for run in range(first[request], first[request + 1]):
            yield request, start[run], stop[run]
