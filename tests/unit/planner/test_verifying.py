"""What the verifier says of a plan that is none, and of a problem that is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from samples.planned import integers

from modicum.accounting.grid import INFINITE
from modicum.planner.allocation.problem import Problem
from modicum.planner.verification import (
    TOLD_MAX,
    AcceptedTwice,
    NoRequest,
    Overspent,
    Unsound,
    verify,
)


def sound() -> Problem:
    """Return two places with a row each, and three requests, two of which fit."""
    return Problem(
        weights=integers([1, 1, 1]),
        costs=integers([[3, 9], [2, 1], [INFINITE, 4]]),
        run_first=integers([0, 2, 3, 4]),
        run_start=integers([0, 1, 0, 1]),
        run_stop=integers([1, 2, 2, 2]),
        row_first=integers([0, 1, 2]),
        left=integers([[5, 0], [-4, 10]]),
        block=integers([0, 1]),
        line=integers([0, 0]),
        full=integers([[9, 9], [9, 12]]),
    )


@pytest.mark.spec("PLAN-5")
@pytest.mark.parametrize("accepted", [[], [0], [1], [2], [0, 1], [1, 0], [1, 2]])
def test_what_fits(accepted: list[int]) -> None:
    assert verify(sound(), accepted) == ()
    assert verify(sound(), integers(accepted)) == ()


@pytest.mark.spec("PLAN-5")
def test_a_row_that_is_overspent_is_told() -> None:
    (found,) = verify(sound(), [0, 1, 2])
    assert found == Overspent(1, 1, 1, (INFINITE, 14), (-4, 10))
    assert found.message == (
        f"row 1, of balance 1 at place 1, has [-4, 10] left and is charged "
        f"[{INFINITE}, 14]"
    )


@pytest.mark.spec("PLAN-5")
def test_only_so_many_rows_are_told() -> None:
    places = TOLD_MAX + 7
    problem = Problem(
        weights=integers([1]),
        costs=integers([[0]]),
        run_first=integers([0, 1]),
        run_start=integers([0]),
        run_stop=integers([places]),
        row_first=np.arange(places + 1),
        left=integers([-1] * places, places, 1),
        block=np.zeros(places, np.int64),
        line=np.zeros(places, np.int64),
        full=integers([[1]]),
    )
    assert verify(problem, []) == ()
    assert len(verify(problem, [0])) == TOLD_MAX


@pytest.mark.spec("PLAN-5")
@pytest.mark.parametrize(
    ("accepted", "message"),
    [
        ([3], "`3` is not the number of a request"),
        ([0, -1], "`-1` is not the number of a request"),
        ([1.0], "`1.0` is not the number of a request"),
        ([True], "`True` is not the number of a request"),
        (np.array([True, False, True]), "`True` is not the number of a request"),
        (np.array([0.0, 1.0]), "`0.0` is not the number of a request"),
        ([1, 0, 1, 1], "request 1 is accepted 3 times"),
        ([0, 2, 2], "request 2 is accepted 2 times"),
    ],
    ids=str,
)
def test_numbers_that_are_no_requests(accepted: Any, message: str) -> None:
    found = verify(sound(), accepted)
    assert all(isinstance(one, NoRequest | AcceptedTwice) for one in found)
    assert found[0].message == message


def changed(name: str, where: int | tuple[int, ...], value: int) -> Problem:
    """Return the problem with one number changed after it was checked."""
    problem = sound()
    getattr(problem, name)[where] = value
    return problem


def replaced(name: str, array: object) -> Problem:
    """Return the problem with an array replaced after it was checked."""
    problem = sound()
    object.__setattr__(problem, name, array)
    return problem


@pytest.mark.spec("PLAN-5")
@pytest.mark.parametrize(
    ("problem", "what"),
    [
        (changed("costs", (0, 0), -1), "`costs` are below 0 or above infinity"),
        (changed("costs", (0, 0), INFINITE + 1), "`costs` are below 0 or above"),
        (changed("weights", 0, -1), "`weights` are below 0"),
        (changed("left", (0, 1), INFINITE), "an infinite amount is left"),
        (changed("run_first", 0, 1), "`run_first` does not divide"),
        (changed("run_first", 1, 7), "`run_first` does not divide"),
        (changed("run_first", 3, 3), "`run_first` does not divide"),
        (changed("row_first", 2, 1), "`row_first` does not divide"),
        (changed("run_start", 0, -1), "a run is empty, or goes beyond"),
        (changed("run_stop", 0, 0), "a run is empty, or goes beyond"),
        (changed("run_stop", 3, 3), "a run is empty, or goes beyond"),
        (changed("run_stop", 0, 2), "two runs of a request overlap"),
        (changed("block", 0, 2), "a balance that does not exist"),
        (changed("block", 0, -1), "a balance that does not exist"),
        (replaced("costs", [[1, 2]]), "`costs` is not an array of 64-bit integers"),
        (replaced("left", np.zeros((2, 2))), "`left` is not an array of 64-bit"),
        (replaced("costs", integers([1, 2, 3])), "not of the shapes"),
        (replaced("costs", np.zeros((3, 0), np.int64)), "not of the shapes"),
        (replaced("full", integers([9, 9])), "not of the shapes"),
        (replaced("weights", integers([1, 1])), "not of the shapes"),
        (replaced("left", integers([[5, 0]])), "not of the shapes"),
        (replaced("run_stop", integers([1, 2, 2])), "not of the shapes"),
    ],
)
def test_a_problem_that_is_unsound(problem: Problem, what: str) -> None:
    found = verify(problem, [])
    assert found
    assert all(isinstance(one, Unsound) for one in found)
    assert found[0].message.startswith("the problem is unsound: ")
    assert what in found[0].message
