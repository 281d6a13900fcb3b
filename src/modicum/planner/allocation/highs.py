"""Mixed-integer linear programs, solved by HiGHS.

Only this module uses the solver. It computes in floats: its results are advice, which
callers check in integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from modicum.core.errors import InputError, check
from modicum.core.extras import not_installed
from modicum.planner.allocation.problem import Booleans, Integers, Numbers

#: Maximum overdraft of a row, as a share of its capacity.
TOLERANCE = 1e-9

#: Entries of a matrix are larger than this; the solver treats others as 0, too.
SMALLEST = 1e-9

#: Entries are no larger; the solver refuses those above a thousand times this.
LARGEST = 1e12

#: Utilities are divided by a power of two until they are no larger than this.
_WORTH_MAX = 2.0**20


@dataclass(frozen=True, slots=True)
class Program:
    """A program: maximize `worth @ x` for `least <= matrix @ x <= most`, 0 <= x <= 1.

    `n` unknowns, `k` rows.

    Attributes:
        worth: (n,) not below 0.
        whole: (n,) which unknowns are 0 or 1, and nothing between.
        column: The unknown of each entry of the matrix, ascending.
        row: Its row.
        value: The entry; at most `LARGEST`.
        least: (k,) the lower bound of each row.
        most: (k,) the upper bound of each row.
    """

    worth: Numbers
    whole: Booleans
    column: Integers
    row: Integers
    value: Numbers
    least: Numbers
    most: Numbers


@dataclass(frozen=True, slots=True)
class Effort:
    """The effort of the search for integers.

    Attributes:
        gap: Stop when the best is within this share of the bound.
        seconds: Stop after so long.
        nodes: The maximum number of nodes of the search tree.
    """

    gap: float = 0.0
    seconds: float = float("inf")
    nodes: int = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Answer:
    """The solver's result.

    Attributes:
        x: (n,) the best solution; empty if there is none.
        bound: The solver's upper bound.
        finished: Whether it finished, and was not stopped.
        seconds: How long it took.
        gain: (n,) the reduced cost of each unknown; only of programs without integers.
        price: (k,) the dual price of each row; likewise.
    """

    x: Numbers
    bound: float
    finished: bool
    seconds: float
    gain: Numbers
    price: Numbers

    def on(self) -> Integers:
        """Return which unknowns are 1 rather than 0."""
        return np.flatnonzero(self.x > 0.5)


def library() -> ModuleType:
    """Return the library of the solver.

    Raises:
        InputError: If it is not installed.
    """
    try:
        import highspy
    except ImportError as error:
        what = "highspy, which optimal and guided plans need,"
        raise InputError(not_installed(what, "modicum[plan]")) from error
    return highspy


def solve(
    program: Program, effort: Effort | None = None, start: Numbers | None = None
) -> Answer:
    """Return the best solution of a program found with an effort.

    One thread and a fixed seed: without a limit in seconds, the same program has the
    same answer.

    Args:
        program: The program.
        effort: When to stop; without it, at the end.
        start: (n,) an answer that is known already.

    Raises:
        InputError: If the solver is not installed.
    """
    highspy = library()
    highs = highspy.Highs()
    mixed = bool(program.whole.any())
    for name, value in _options(mixed, effort or Effort()).items():
        check(
            highs.setOptionValue(name, value) == highspy.HighsStatus.kOk,
            f"PLAN-2: the solver has the option {name}",
        )
    scale = _scale(program.worth)
    passed = highs.passModel(*_arguments(program, scale))
    check(passed == highspy.HighsStatus.kOk, "PLAN-2: the solver takes the program")
    if start is not None:
        known = highspy.HighsSolution()
        known.col_value = start.tolist()
        highs.setSolution(known)
    highs.run()
    return _answer(highs, mixed=mixed, scale=scale)


def _answer(highs: Any, *, mixed: bool, scale: float) -> Answer:
    info, found = highs.getInfo(), highs.getSolution()
    bound = info.mip_dual_bound if mixed else info.objective_function_value
    return Answer(
        x=np.array(found.col_value if found.value_valid else []),
        bound=float(bound) * scale,
        finished=highs.getModelStatus() == library().HighsModelStatus.kOptimal,
        seconds=float(highs.getRunTime()),
        gain=np.array(found.col_dual) * scale,
        price=np.array(found.row_dual) * scale,
    )


def _scale(worth: Numbers) -> float:
    over = float(worth.max(initial=0.0)) / _WORTH_MAX
    return 2.0 ** max(0, int(np.ceil(np.log2(over)))) if over > 1 else 1.0


def _options(mixed: bool, effort: Effort) -> dict[str, bool | int | float | str]:  # noqa: FBT001
    """Return the solver's options. Plain programs are solved soonest as they are."""
    options: dict[str, bool | int | float | str] = {
        "output_flag": False,
        "threads": 1,
        "random_seed": 0,
        "primal_feasibility_tolerance": TOLERANCE,
    }
    if not mixed:
        return options | {"solver": "simplex", "presolve": "off"}
    return options | {
        "mip_feasibility_tolerance": TOLERANCE,
        "mip_rel_gap": effort.gap,
        "mip_max_nodes": effort.nodes,
        "time_limit": effort.seconds,
    }


def _arguments(program: Program, scale: float) -> tuple[object, ...]:
    unknowns, rows = len(program.worth), len(program.most)
    kept = np.abs(program.value) > SMALLEST
    first = np.zeros(unknowns + 1, np.int32)
    np.cumsum(np.bincount(program.column[kept], minlength=unknowns), out=first[1:])
    by_column, maximize, offset = 1, -1, 0.0
    return (
        unknowns,
        rows,
        int(kept.sum()),
        by_column,
        maximize,
        offset,
        program.worth / scale,
        np.zeros(unknowns),
        np.ones(unknowns),
        program.least,
        program.most,
        first,
        program.row[kept].astype(np.int32),
        program.value[kept],
        program.whole.astype(np.int32),
    )
