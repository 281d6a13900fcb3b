"""`modicum plan simulate`: what becomes of a workload under a planner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from modicum.cli.options import Json
from modicum.cli.output import print_json, reporting
from modicum.cli.plan_options import Slack
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
from modicum.cli.plan_simulation_runs import Simulations
from modicum.cli.plan_wishes import Source, Wishes, check_baseline, names_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modicum.ops.simulation import ChosenEngine, Timed


def simulate(
    context: typer.Context,
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

        check_baseline(context)
        if round_times and not as_json:
            raise typer.BadParameter(
                "--round-times: they are told in the document only; add --json"
            )
        pictures = Pictures(plot, plot_sizes, plot_budget)
        solvers = _solvers(solver, compare)
        wanted = Simulations(wishes, solvers, engine_name, pictures, quiet=as_json)
        source = Source(workload, rounds, seed, objective)
        timed, engine = wanted.run(lambda: [source.read()])
        runs = [one for (one,) in timed.values()]
        _answer(runs, engine, as_json=as_json, round_times=round_times)
        if not as_json:
            pictures.tell()


def _solvers(solver: str, compare: str | None) -> list[str]:
    if compare is None:
        return [solver]
    others = names_of(compare, "--compare")
    if solver in others:
        raise typer.BadParameter(f"--compare: `{solver}` is the solver already")
    return [solver, *others]


def _answer(
    timed: Sequence[Timed], engine: ChosenEngine, *, as_json: bool, round_times: bool
) -> None:
    if as_json:
        from modicum.cli.plan_simulation_json import simulation_to_dict

        print_json(simulation_to_dict(timed, engine, round_times=round_times))
    else:
        from modicum.cli.plan_simulation_text import print_simulation

        print_simulation(timed, engine)
