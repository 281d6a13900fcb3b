"""`modicum plan compare`: several planners on the same workloads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from modicum.cli.options import Json
from modicum.cli.output import print_json, reporting
from modicum.cli.plan_options import Slack
from modicum.cli.plan_simulation_options import (
    Attempts,
    Conversion,
    EngineName,
    Objective,
    OwnFilter,
    Partitioning,
    PlotRounds,
    PlotSizes,
    RoundCount,
    Seed,
    Seeds,
    SimulatedActive,
    SimulatedDelta,
    SimulatedEps,
    Solvers,
    Subsampling,
    Upc,
    WorkloadName,
)
from modicum.cli.plan_simulation_runs import Simulations
from modicum.cli.plan_wishes import Source, Wishes, check_baseline, names_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from modicum.ops.simulation import ChosenEngine, Timed
    from modicum.workloads.model import Workload

#: So many seeds are simulated if nothing is said.
_SEEDS = 3


def compare(
    context: typer.Context,
    workload: WorkloadName,
    solvers: Solvers = "fcfs,dpf-weighted-remaining,dpk,steady",
    seeds: Seeds = None,
    seed: Seed = None,
    rounds: RoundCount = None,
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
    engine_name: EngineName = "auto",
    plot: PlotRounds = None,
    plot_sizes: PlotSizes = None,
    as_json: Json = False,
) -> None:
    """Compare planners over several seeds: means, deviations and ratios.

    Every planner gets the same workloads. Otherwise like `plan simulate`.
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
        pictures = Pictures(plot, plot_sizes)
        names = names_of(solvers, "--solvers")
        wanted = Simulations(wishes, names, engine_name, pictures, quiet=as_json)
        source = Source(workload, rounds, seed, objective)
        timed, engine = wanted.run(lambda: _workloads(source, seeds))
        _answer(timed, engine, as_json=as_json)
        if not as_json:
            pictures.tell()


def _workloads(source: Source, seeds: int | None) -> list[Workload]:
    if not source.is_file:
        return [source.read(later) for later in range(seeds or _SEEDS)]
    if seeds not in (None, 1):
        raise typer.BadParameter("--seeds: the requests of a file are of one seed")
    return [source.read()]


def _answer(
    timed: Mapping[str, Sequence[Timed]], engine: ChosenEngine, *, as_json: bool
) -> None:
    if as_json:
        from modicum.cli.plan_simulation_json import comparison_to_dict

        print_json(comparison_to_dict(timed, engine))
    else:
        from modicum.cli.plan_simulation_text import print_comparison

        print_comparison(timed, engine)
