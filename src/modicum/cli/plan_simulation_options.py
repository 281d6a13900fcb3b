"""Options of simulations: the requests, the planning, the engine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli import account_options as words
from modicum.cli.options import exclusive_option, from_options, was_given
from modicum.cli.output import count_text
from modicum.cli.plan_options import AT_ONCE

if TYPE_CHECKING:
    from modicum.accounting.budgets import ApproxBudget
    from modicum.accounting.filters.unlock_schedule import Schedule
    from modicum.planner.simulation.setting import Setting
    from modicum.workloads.model import Workload

WorkloadName = Annotated[
    str,
    typer.Option(
        "--workload",
        help="w1 (or gm), w2 (basic), w3 (ml), w4 (all); or a file written by"
        " `modicum workload generate`.",
        metavar="NAME|FILE",
    ),
]
RoundCount = Annotated[
    int | None,
    typer.Option(
        "--rounds",
        min=1,
        help="The number of rounds; by default 40, or those of the file; fewer are its"
        " first ones.",
    ),
]
SolverName = Annotated[
    str,
    typer.Option(
        "--solver",
        help="The solver, such as fcfs, dpf-weighted, dpk or steady; an unknown name"
        " lists all.",
        metavar="NAME",
    ),
]
Solvers = Annotated[
    str,
    typer.Option(
        "--solvers",
        help="The solvers, in order; ratios are to the first.",
        metavar="NAME,NAME...",
    ),
]
Beside = Annotated[
    str | None,
    typer.Option(
        "--compare", help="Other solvers to compare with.", metavar="NAME,NAME..."
    ),
]
Partitioning = Annotated[
    bool,
    typer.Option(
        "--partitioning/--no-partitioning",
        help="Charge requests only to the part of the data that they read.",
    ),
]
Subsampling = Annotated[
    bool,
    typer.Option(
        "--subsampling/--no-subsampling",
        help="Price requests on samples with amplification.",
    ),
]
Upc = Annotated[
    bool,
    typer.Option(
        "--upc",
        help="The baseline, user-parallel composition: blocks of users, without"
        " partitioning and subsampling.",
    ),
]
SimulatedActive = Annotated[
    int,
    typer.Option(
        "--active",
        help="The number of active groups; also the lifetime of a group, in rounds.",
    ),
]
Conversion = Annotated[
    str,
    typer.Option(
        "--conversion",
        help="as-published: prices and filter of the published evaluation; tight:"
        " tighter prices, and a filter that is proven for every budget.",
        metavar="as-published|tight",
    ),
]
OwnFilter = Annotated[
    str | None,
    typer.Option(
        "--filter",
        help="The filter of the budget, in place of the conversion's.",
        metavar="NAME",
    ),
]
SimulatedEps = Annotated[
    str, typer.Option("--eps", help="The lifetime budget of a user.", metavar="NUMBER")
]
SimulatedDelta = Annotated[
    str, typer.Option("--delta", help="Its delta, above 0.", metavar="NUMBER")
]
Attempts = Annotated[
    int,
    typer.Option(
        "--attempts",
        help="The number of rounds in which a request is tried; 1: a rejection is"
        " final.",
    ),
]
Objective = Annotated[
    str | None,
    typer.Option(
        "--objective",
        help="The utility of requests: utility, as published, or requests, 1 for each.",
        metavar="utility|requests",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", min=0, help="The seed of the workload; by default 0."),
]
Seeds = Annotated[
    int | None,
    typer.Option(
        "--seeds",
        min=1,
        help="The number of seeds, from --seed on; by default 3, or 1 with a file.",
    ),
]
EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        help="The engine: numba is much faster; auto uses it if installed.",
        metavar="auto|numba|numpy",
    ),
]
RoundTimes = Annotated[
    bool,
    typer.Option("--round-times", help="With --json: also the times of each round."),
]
PlotRounds = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        help="Plot the utility of each round, as .svg.",
        metavar="FILE",
        dir_okay=False,
    ),
]
PlotSizes = Annotated[
    Path | None,
    typer.Option(
        "--plot-sizes",
        help="Plot accepted requests by size, as .svg.",
        metavar="FILE",
        dir_okay=False,
    ),
]
PlotBudget = Annotated[
    Path | None,
    typer.Option(
        "--plot-budget",
        help="Plot the remaining budgets after each round, as .svg.",
        metavar="FILE",
        dir_okay=False,
    ),
]


#: More planners than that are not seen side by side.
SOLVERS_MAX = 12


@dataclass(frozen=True, slots=True)
class Source:
    """The source of requests, as given.

    Attributes:
        workload: The name of a workload, or a file.
        rounds: How many rounds; None for all.
        seed: The seed; None if not given.
        objective: The utility function of requests; None if not given.
    """

    workload: str
    rounds: int | None = None
    seed: int | None = None
    objective: str | None = None

    @property
    def is_file(self) -> bool:
        """Whether it is a file."""
        from modicum.ops.files.workloads import SUFFIXES

        return Path(self.workload).suffix in SUFFIXES

    def read(self, later: int = 0) -> Workload:
        """Return the workload."""
        if self.is_file:
            return self._from_file()
        with from_options():
            return self._generated(later)

    def _generated(self, later: int) -> Workload:
        from modicum.ops.files.workloads import SUFFIXES
        from modicum.workloads.cohere import OBJECTIVES, Recipe
        from modicum.workloads.registry import NAMES, generated, usual_rounds

        files = f", or a file that ends in {' or '.join(SUFFIXES)}"
        known("workload", self.workload.lower(), NAMES, others=files)
        objective = self.objective or "utility"
        known("objective", objective, OBJECTIVES)
        rounds = self.rounds or usual_rounds(self.workload)
        seed = (self.seed or 0) + later
        recipe = Recipe(seed=seed, rounds=rounds, objective=objective)
        return generated(self.workload, recipe)

    def _from_file(self) -> Workload:
        from modicum.ops.files.workloads import read_workload

        given = {"--seed": self.seed, "--objective": self.objective}
        for option, value in given.items():
            if value is not None:
                raise typer.BadParameter(f"{option} cannot be combined with a file")
        workload = read_workload(self.workload)
        if self.rounds is None:
            return workload
        if self.rounds > workload.rounds:
            raise typer.BadParameter(
                f"--rounds: the file has {count_text(workload.rounds, 'round')}"
            )
        return _shortened(workload, self.rounds)


@dataclass(frozen=True, slots=True)
class SimulationRequest:
    """The parameters of planning, as given, without the solver."""

    eps: str
    delta: str
    filter_name: str | None
    conversion: str
    slack: str
    active: int
    attempts: int
    partitioning: bool
    subsampling: bool
    upc: bool

    def setting(self, solver: str) -> Setting:
        """Return how a workload is planned."""
        from modicum.accounting.filters.budget import FILTERS
        from modicum.planner.simulation.setting import SOLVERS, TIGHT_FILTER, Setting
        from modicum.workloads.request_types import PRICINGS

        known("solver", solver, SOLVERS)
        known("conversion", self.conversion, PRICINGS)
        usual = TIGHT_FILTER if self.conversion == "tight" else "as-published"
        filter_name = usual if self.filter_name is None else self.filter_name
        known("filter", filter_name, FILTERS)
        return Setting(
            budget=_budget(self.eps, self.delta),
            filter=filter_name,
            pricing=next(one for one in PRICINGS if one == self.conversion),
            schedule=_schedule(self.active, self.slack),
            solver=solver,
            attempts=self.attempts,
            partitioning=self.partitioning and not self.upc,
            subsampling=self.subsampling and not self.upc,
            blocks=self.upc,
        )


def check_baseline(context: typer.Context) -> None:
    """Refuse what the baseline does not have, where it was asked for."""
    for name in ("partitioning", "subsampling"):
        asked_for = context.params[name] and was_given(context, name)
        if context.params["upc"] and asked_for:
            raise exclusive_option(f"--{name}", "--upc")


def known(what: str, given: str, names: Iterable[str], others: str = "") -> None:
    """Refuse a word outside of a closed list, and suggest the nearest."""
    from modicum.core.diagnostics import nearest
    from modicum.core.errors import Code, InputError, Problem

    names = tuple(names)
    if given not in names:
        raise InputError(
            Problem(
                Code.UNKNOWN_CHOICE,
                f"unknown {what} `{given[:40]}`",
                label=nearest(given, names),
                help=f"choose one of {', '.join(names)}{others}",
            )
        )


def names_of(text: str, option: str) -> list[str]:
    """Return the solvers of a list such as ``fcfs,dpk``."""
    names = [name.strip() for name in text.split(",")]
    if len(set(names)) < len(names):
        raise typer.BadParameter(f"{option}: a solver is given twice")
    if len(names) > SOLVERS_MAX:
        raise typer.BadParameter(
            f"{option}: {len(names)} solvers, at most {SOLVERS_MAX} are allowed"
        )
    return names


def _budget(eps: str, delta: str) -> ApproxBudget:
    from modicum.accounting.budgets import ApproxBudget

    epsilon, at = words.number(eps, "--eps"), words.number(delta, "--delta")
    if epsilon <= 0:
        raise typer.BadParameter("--eps: it must be above 0")
    if not 0 < at < 1:
        raise typer.BadParameter("--delta: it must be above 0 and below 1")
    return ApproxBudget(epsilon, at)


def _schedule(active: int, slack: str) -> Schedule:
    from modicum.accounting.filters.unlock_schedule import AtOnce, Unlocking

    if slack == AT_ONCE:
        return AtOnce(active)
    return Unlocking(active, Fraction(words.number(slack, "--slack")))


def _shortened(workload: Workload, rounds: int) -> Workload:
    """Return the first rounds of a workload."""
    import numpy as np

    requests = workload.requests
    kept = np.flatnonzero(requests.round < workload.first_round + rounds)
    return replace(workload, rounds=rounds, requests=requests.chosen(kept))
