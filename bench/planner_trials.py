"""Simulations that the programs about the planner share: run once each, in processes.

A trial is a value: a workload, its recipe, a setting. What is asked for twice is run
once.
"""

from __future__ import annotations

import csv
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from unittest import mock

from modicum.accounting.filters import budget
from modicum.accounting.filters.budget import FILTERS, Shares
from modicum.cli.progress import counting
from modicum.planner.allocation.engine import EngineOf, numba_engine
from modicum.planner.allocation.numpy_kernel import NumpyEngine
from modicum.planner.allocation.reserve_price import Steady
from modicum.planner.simulation import simulation
from modicum.planner.simulation.setting import SOLVERS, Setting
from modicum.workloads.cohere import Recipe, cohere

WORKLOADS = ("w1", "w2", "w3", "w4")
PUBLISHED = Path(__file__).parent / "published"
#: Whoever tunes uses these; whoever reports counts from 1.
FIRST_TUNING_SEED = 1001


@dataclass(frozen=True, slots=True)
class Trial:
    """One simulation.

    Attributes:
        workload: A name that `cohere` knows.
        recipe: What it is made from.
        setting: How it is planned.
        reserve: The reserve of the allocator `steady`, if not the usual one.
        shares: A filter that is only tried, in place of the one that is named.
    """

    workload: str
    recipe: Recipe
    setting: Setting
    reserve: Fraction | None = None
    shares: Shares | None = None

    def run(self) -> Outcome:
        """Return what comes of it."""
        started = time.process_time()
        workload = cohere(self.workload, self.recipe)
        with self._in_place():
            run = simulation.simulate(workload, self._settled(), _engine())
        total = run.total()
        return Outcome(
            float(total.utility_fraction),
            float(total.requests_fraction),
            tuple(float(one.utility_fraction) for one in run.by_round().values()),
            time.process_time() - started,
        )

    def _settled(self) -> Setting:
        if self.shares is None:
            return self.setting
        # Filters are remembered by name.
        return replace(self.setting, filter=str(self.shares))

    @contextmanager
    def _in_place(self) -> Iterator[None]:
        """Put what is only tried where the program looks for what it has."""
        solvers, filters = dict(SOLVERS), dict(FILTERS)
        if self.reserve is not None:
            reserve = float(self.reserve)
            solvers["steady"] = lambda schedule: Steady(schedule.rounds, reserve)
        if self.shares is not None:
            filters[str(self.shares)] = self.shares
        with (
            mock.patch.object(simulation, "SOLVERS", solvers),
            mock.patch.object(budget, "FILTERS", filters),
        ):
            yield


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a trial.

    Attributes:
        utility: The part of it that was accepted.
        requests: The part of them that was accepted.
        rounds: The part of each round's utility that was accepted.
        seconds: Of CPU that it took.
    """

    utility: float
    requests: float
    rounds: tuple[float, ...]
    seconds: float


Outcomes = dict[Trial, Outcome]


def outcomes(trials: Iterable[Trial], workers: int) -> Outcomes:
    """Return what comes of each of some trials, and draw how far they have come.

    Args:
        trials: Some may be equal.
        workers: How many processes; 1 for this one.
    """
    each = list(dict.fromkeys(trials))
    found: Outcomes = {}
    with counting("trials", quiet=False, total=len(each)) as done:
        if workers == 1:
            _collect(found, each, map(Trial.run, each), done)
            return found
        with ProcessPoolExecutor(workers) as pool:
            _collect(found, each, pool.map(Trial.run, each), done)
    return found


def _collect(
    found: Outcomes,
    each: list[Trial],
    results: Iterable[Outcome],
    done: Callable[[int], None] | None,
) -> None:
    for trial, outcome in zip(each, results, strict=True):
        found[trial] = outcome
        if done is not None:
            done(len(found))


def _engine() -> EngineOf:
    return numba_engine() or NumpyEngine


@dataclass(frozen=True, slots=True)
class Spread:
    """A mean over seeds, or published repetitions, and the sample deviation."""

    mean: float
    std: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the spread of some values; no deviation if there is one."""
        std = statistics.stdev(values) if len(values) > 1 else 0.0
        return cls(statistics.fmean(values), std)

    def __str__(self) -> str:
        return f"{100 * self.mean:.2f} ± {100 * self.std:.2f}"


def published(name: str) -> list[dict[str, str]]:
    """Return the rows of a table of published figures."""
    with (PUBLISHED / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [list(map(str, row)) for row in (head, ["---"] * len(head), *rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
