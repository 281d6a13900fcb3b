"""The arrays of a round: what is checked, and how costs are cut down."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from budget import examples, seed
from samples.planned import SMALL, integers, some_problem

from modicum.accounting.grid import INFINITE
from modicum.core.errors import InvariantError
from modicum.planner.allocation.problem import Problem


def arrays(**changed: Any) -> dict[str, Any]:
    """Return the arrays of a sound problem: two requests, three places, four rows."""
    sound = {
        "weights": integers([3, 1]),
        "costs": integers([[1, 2], [3, INFINITE]]),
        "run_first": integers([0, 2, 3]),
        "run_start": integers([0, 2, 1]),
        "run_stop": integers([1, 3, 3]),
        "row_first": integers([0, 1, 1, 4]),
        "left": integers([[5, 5], [4, -7], [0, 3], [9, 9]]),
        "block": integers([0, 0, 0, 1]),
        "line": integers([0, 0, 1]),
        "full": integers([[9, 9], [9, 9]]),
    }
    return sound | changed


def test_a_sound_problem_counts() -> None:
    problem = Problem(**arrays())
    assert (problem.requests, problem.places, problem.coordinates) == (2, 3, 2)


@pytest.mark.spec("PLAN-1")
@pytest.mark.parametrize(
    "changed",
    [
        {"run_first": [0, 2]},
        {"run_first": [1, 2, 3]},
        {"run_first": [0, 2, 4]},
        {"run_first": [0, 4, 3]},
        {"row_first": [0, 1, 1, 3]},
        {"row_first": [0, 2, 1, 4]},
        {"weights": [3]},
        {"run_stop": [1, 3]},
        {"left": [[5], [4], [0], [9]]},
        {"block": [0, 0, 0]},
        {"block": [0, 0, 0, 2]},
        {"block": [0, 0, 0, -1]},
        {"full": [[9], [9]]},
        {"run_start": [-1, 2, 1]},
        {"run_stop": [1, 4, 3]},
        {"run_stop": [0, 3, 3]},
        {"run_start": [0, 0, 1]},
        {"run_start": [2, 0, 1], "run_stop": [3, 1, 3]},
        {"weights": [3, -1]},
        {"weights": [INFINITE, 0]},
        {"costs": [[1, 2], [3, INFINITE + 1]]},
        {"costs": [[1, 2], [-1, INFINITE]]},
        {"left": [[5, 5], [4, -7], [0, INFINITE], [9, 9]]},
        {"left": [[5, 5], [4, -INFINITE - 1], [0, 3], [9, 9]]},
    ],
    ids=str,
)
def test_every_index_and_every_number_is_checked(changed: dict[str, Any]) -> None:
    with pytest.raises(InvariantError, match="PLAN-1"):
        Problem(**arrays(**{name: integers(one) for name, one in changed.items()}))


@pytest.mark.spec("PLAN-1")
def test_costs_that_are_cut_down_pass_and_fail_as_before() -> None:
    for n in range(examples(300)):
        rng = Random(f"{seed()}/clamped/{n}")
        problem = some_problem(rng, SMALL)
        clamped = problem.clamped()
        chosen = [i for i in range(problem.requests) if rng.random() < 0.5]
        for row in problem.left.tolist():
            for a, left in enumerate(row):
                true = sum(problem.costs[chosen, a].tolist())
                assert (true <= left) == (sum(clamped[chosen, a].tolist()) <= left)


def test_sums_that_would_not_be_integers_are_refused() -> None:
    much = INFINITE // 3 + 1
    problem = Problem(**arrays(left=integers([[much, 0], [0, 0], [0, 0], [0, 0]])))
    with pytest.raises(InvariantError, match="add up"):
        problem.clamped()
    less = Problem(**arrays(left=integers([[much - 5, 0], [0, 0], [0, 0], [0, 0]])))
    assert less.clamped().max() == 3
    assert np.array_equal(less.clamped()[:, 1], [1, 1])
