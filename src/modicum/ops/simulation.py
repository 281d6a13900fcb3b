"""Running a simulation on this machine: the engine, and the duration of each step."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import TypeAlias

import numpy as np

from modicum.core.errors import Code, InputError, Problem
from modicum.planner.allocation.engine import EngineOf, numba_engine
from modicum.planner.allocation.numpy_kernel import NumpyEngine
from modicum.planner.simulation.setting import Setting
from modicum.planner.simulation.simulation import Run, simulate
from modicum.workloads.model import Workload

#: The choice of engines: numba if installed, or one of the two.
ENGINES = ("auto", "numba", "numpy")
#: The steps of each round.
STEPS = ("problem", "allocate", "spend")
#: Number of requests that suffices to compile all loops.
_FEW = 20

#: Called with the present step, and the number of its rounds done.
OnProgress: TypeAlias = Callable[[str, int], None]


# --- engines --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChosenEngine:
    """An engine and its origin.

    Attributes:
        name: ``numba`` or ``numpy``.
        make: Makes it for a problem.
        remark: What to do about it; empty if nothing.
    """

    name: str
    make: EngineOf
    remark: str = ""


def engine_named(name: str) -> ChosenEngine:
    """Return an engine."""
    if name not in ENGINES:
        problem = Problem(
            Code.UNKNOWN_CHOICE,
            f"unknown engine `{name}`",
            help=f"choose one of {', '.join(ENGINES)}",
        )
        raise InputError(problem)
    if name != "numpy":
        compiled = _compiled()
        if compiled is not None:
            return ChosenEngine("numba", compiled)
        if name == "numba":
            problem = Problem(
                Code.NOT_SUPPORTED,
                "the engine numba needs the library numba",
                help="pip install 'modicum[fast]', or use --engine numpy",
            )
            raise InputError(problem)
        remark = "loops are not compiled; for speed: pip install 'modicum[fast]'"
        return ChosenEngine("numpy", NumpyEngine, remark)
    return ChosenEngine("numpy", NumpyEngine)


def _compiled() -> EngineOf | None:
    """Return the compiled engine; None if numba is missing, or does not load here."""
    try:
        return numba_engine()
    except ImportError:
        return None


def versions(engine: ChosenEngine) -> dict[str, str]:
    """Return the versions of all that a simulation's numbers depend on."""
    libraries = ("modicum", "numpy", *(("numba",) if engine.name == "numba" else ()))
    return {name: version(name) for name in libraries} | {
        "python": platform.python_version()
    }


# --- times ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Duration:
    """A duration in seconds.

    Attributes:
        cpu: Of the processors, all threads together.
        wall: Of the clock on the wall.
    """

    cpu: float = 0.0
    wall: float = 0.0

    def __add__(self, other: Duration) -> Duration:
        return Duration(self.cpu + other.cpu, self.wall + other.wall)

    def __sub__(self, other: Duration) -> Duration:
        return Duration(self.cpu - other.cpu, self.wall - other.wall)


def since_start() -> Duration:
    """Return how long this process is at work, from some beginning."""
    return Duration(time.process_time(), time.perf_counter())


def added(spells: Iterable[Duration]) -> Duration:
    """Return how long several took together."""
    return sum(spells, Duration())


@dataclass
class Stopwatch:
    """Measures the duration of each step of each round. Mutable; starts when created.

    Attributes:
        on_progress: Called after each round with the number done.
        solver: The name passed to it.
        rounds: The steps of each round so far.
    """

    on_progress: OnProgress
    solver: str
    rounds: dict[int, dict[str, Duration]] = field(default_factory=dict)
    _last: Duration = field(default_factory=since_start)

    def __call__(self, number: int, step: str) -> None:
        """Note that a step is done."""
        now = since_start()
        self.rounds.setdefault(number, {})[step] = now - self._last
        if step == STEPS[-1]:
            self.on_progress(self.solver, len(self.rounds))
        self._last = since_start()


# --- running --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Timed:
    """The result of a workload, and its duration.

    Attributes:
        run: The result.
        warm_up: How long it took to load or compile the engine's loops, which is not
            in the rounds; None if it has none.
        rounds: How long each step of each round took. The first round includes the
            prices of all types of requests.
    """

    run: Run
    warm_up: Duration | None
    rounds: Mapping[int, Mapping[str, Duration]]

    def step(self, name: str) -> Duration:
        """Return how long a step took in all rounds together."""
        return added(steps[name] for steps in self.rounds.values())

    def total(self) -> Duration:
        """Return how long all rounds took."""
        return added(self.step(name) for name in STEPS)


def simulate_timed(
    workload: Workload,
    setting: Setting,
    engine: ChosenEngine,
    on_progress: OnProgress | None = None,
) -> Timed:
    """Return the result of a workload, and the duration of each step."""
    report = on_progress or (lambda _doing, _rounds: None)
    warm_up = None
    if engine.name == "numba":
        report("compiling", 0)
        start = since_start()
        simulate(_few(workload), setting, engine.make)
        warm_up = since_start() - start
    report(setting.solver, 0)
    watch = Stopwatch(report, setting.solver)
    run = simulate(workload, setting, engine.make, watch)
    return Timed(run, warm_up, watch.rounds)


def _few(workload: Workload) -> Workload:
    """Return the first requests of a workload as one of a single round.

    All of them are tried in it, whenever they arrive, so that there are some.
    """
    requests = workload.requests.chosen(np.arange(len(workload.requests))[:_FEW])
    first = np.full(len(requests), workload.first_round, np.int64)
    return replace(workload, rounds=1, requests=replace(requests, round=first))
