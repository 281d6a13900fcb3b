"""`modicum plan simulate`: what becomes of a workload under a planner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from modicum.cli.options import Json
from modicum.cli.output import note, print_json, reporting
from modicum.cli.plan_options import Slack
from modicum.cli.plan_progress import rounds_drawn
from modicum.cli.plan_simulation_options import (
    Attempts,
    Beside,
    Conversion,
    EngineName,
    Objective,
    OwnFilter,
    Partitioning,
    PlotBudget,
    PlotRounds,
    PlotSizes,
    RoundCount,
    RoundTimes,
    Seed,
    SimulatedActive,
    SimulatedDelta,
    SimulatedEps,
    SolverName,
    Subsampling,
    Upc,
    WorkloadName,
)
from modicum.cli.plan_wishes import Source, Wishes, known, names_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modicum.planner.simulating.setting import Setting
    from modicum.shell.simulation import ChosenEngine, Timed
    from modicum.workloads.model import Workload


def simulate(
    workload: WorkloadName,
    rounds: RoundCount = None,
    solver: SolverName = "dpk",
    partitioning: Partitioning = True,
    subsampling: Subsampling = True,
    upc: Upc = False,
    slack: Slack = "0.4",
    active: SimulatedActive = 12,
    conversion: Conversion = "as-published",
    filter_name: OwnFilter = None,
    eps: SimulatedEps = "3",
    delta: SimulatedDelta = "1e-7",
    attempts: Attempts = 1,
    objective: Objective = None,
    seed: Seed = None,
    engine_name: EngineName = "auto",
    compare: Beside = None,
    round_times: RoundTimes = False,
    plot: PlotRounds = None,
    plot_sizes: PlotSizes = None,
    plot_budget: PlotBudget = None,
    as_json: Json = False,
) -> None:
    """Say how much of a workload's utility a planner accepts.

    Reads no data and no ledger: requests are drawn, or those of a file, and budgets
    are as if nothing had been spent. The first plan on a machine takes half a minute
    longer, because loops are compiled.
    """
    wishes = Wishes(
        eps,
        delta,
        filter_name,
        conversion,
        slack,
        active,
        attempts,
        partitioning,
        subsampling,
        upc,
    )
    with reporting(as_json=as_json):
        from modicum.cli.plan_simulation_plots import Pictures
        from modicum.shell.simulation import ENGINES, engine_named

        pictures = Pictures(plot, plot_sizes, plot_budget)
        pictures.check()
        known("engine", engine_name, ENGINES)
        settings = [wishes.setting(one) for one in _solvers(solver, compare)]
        asked = Source(workload, rounds, seed, objective).read()
        engine = engine_named(engine_name)
        remark(engine, asked)
        timed = _run(asked, settings, engine, quiet=as_json)
        pictures.draw({one.run.setting.solver: [one] for one in timed})
        _answer(timed, engine, as_json=as_json, round_times=round_times)
        if not as_json:
            pictures.tell()


def remark(engine: ChosenEngine, workload: Workload) -> None:
    """Say on standard error what somebody should know beforehand.

    Args:
        engine: What is used.
        workload: What is planned.
    """
    if engine.remark:
        note(f"note: {engine.remark}")
    if workload.requests.labels is not None:
        note("note: one budget for everything; labels of requests are not looked at")


def _solvers(solver: str, compare: str | None) -> list[str]:
    if compare is None:
        return [solver]
    others = names_of(compare, "--compare")
    if solver in others:
        raise typer.BadParameter(f"--compare: `{solver}` is the solver already")
    return [solver, *others]


def _run(
    workload: Workload,
    settings: Sequence[Setting],
    engine: ChosenEngine,
    *,
    quiet: bool,
) -> list[Timed]:
    from modicum.shell.simulation import simulate_timed

    with rounds_drawn(workload.rounds, quiet=quiet) as told:
        return [simulate_timed(workload, one, engine, told) for one in settings]


def _answer(
    timed: Sequence[Timed], engine: ChosenEngine, *, as_json: bool, round_times: bool
) -> None:
    if as_json:
        from modicum.cli.plan_simulation_json import simulation_to_dict

        print_json(simulation_to_dict(timed, engine, round_times=round_times))
    else:
        from modicum.cli.plan_simulation_text import print_simulation

        print_simulation(timed, engine)
