"""`modicum plan simulate` and `compare`: workloads under planners."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING

import typer

from modicum.cli.options import Json, from_options
from modicum.cli.output import note, print_json, reporting
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
    Seeds,
    SimulatedActive,
    SimulatedDelta,
    SimulatedEps,
    SimulationRequest,
    SolverName,
    Solvers,
    Source,
    Subsampling,
    Upc,
    WorkloadName,
    check_baseline,
    known,
    names_of,
)
from modicum.cli.progress import rounds_drawn

if TYPE_CHECKING:
    from modicum.ops.simulation import ChosenEngine, Timed
    from modicum.planner.simulation.setting import Setting
    from modicum.workloads.model import Workload


@dataclass(frozen=True, slots=True)
class Pictures:
    """The charts to draw.

    Attributes:
        rounds: The file for the chart of utility by round.
        sizes: The file for the chart of accepted requests by size.
        budget: The file for the chart of remaining budgets.
    """

    rounds: Path | None = None
    sizes: Path | None = None
    budget: Path | None = None

    @property
    def files(self) -> list[Path]:
        """The files that are drawn."""
        return [
            one for one in (self.rounds, self.sizes, self.budget) if one is not None
        ]

    def check(self) -> None:
        """Refuse invalid charts, before anything is computed."""
        if not self.files:
            return
        from modicum.reports.charts import check_path

        for file in self.files:
            check_path(file)

    def draw(self, timed: Mapping[str, Sequence[Timed]]) -> None:
        """Draw the pictures."""
        if self.rounds is not None:
            _draw_rounds(timed, self.rounds)
        if self.sizes is not None:
            _draw_sizes(timed, self.sizes)
        if self.budget is not None:
            _draw_budget(next(iter(timed.values()))[0], self.budget)

    def note_files(self) -> None:
        """Report the written charts."""
        for file in self.files:
            note(f"drawn: {file}")


def _draw_rounds(timed: Mapping[str, Sequence[Timed]], file: Path) -> None:
    from modicum.reports.charts import save, utility_by_round

    means: dict[str, list[float]] = {}
    spread: dict[str, list[float]] = {}
    for solver, runs in timed.items():
        shares = [
            [100 * float(one.utility_fraction) for one in each.run.by_round().values()]
            for each in runs
        ]
        by_round = list(zip(*shares, strict=True))
        means[solver] = [fmean(values) for values in by_round]
        if len(runs) > 1:
            spread[solver] = [stdev(values) for values in by_round]
    first = next(iter(timed.values()))[0].run.workload.first_round
    save(utility_by_round(means, spread=spread, first_round=first), file)


def _draw_sizes(timed: Mapping[str, Sequence[Timed]], file: Path) -> None:
    from modicum.reports.charts import accepted_by_size, save

    shares: dict[str, dict[str, float]] = {}
    for solver, runs in timed.items():
        counts = [one.run.by_size() for one in runs]
        shares[solver] = {
            size: fmean(float(each[size].requests_fraction) for each in counts)
            for size in counts[0]
        }
    save(accepted_by_size(shares), file)


def _draw_budget(timed: Timed, file: Path) -> None:
    from modicum.planner.simulation.leftovers import left_over
    from modicum.reports.charts import budget_left, save

    found = left_over(timed.run)
    first = timed.run.workload.first_round
    shares = [list(map(float, row)) for row in found.shares]
    save(budget_left(shares, found.names, first_round=first), file)


@dataclass(frozen=True, slots=True)
class Simulations:
    """Simulations of several planners on the same workloads.

    Attributes:
        requests: The parameters of planning.
        solvers: The solvers, in order, without duplicates.
        engine: The name of the engine.
        pictures: The charts.
        quiet: Whether to draw no progress.
    """

    requests: SimulationRequest
    solvers: Sequence[str]
    engine: str
    pictures: Pictures
    quiet: bool

    def run(
        self, read: Callable[[], list[Workload]]
    ) -> tuple[dict[str, list[Timed]], ChosenEngine]:
        """Simulate, draw the charts, and return the runs of each solver.

        Mistakes in options are reported before anything is read or computed.
        """
        from modicum.ops.simulation import ENGINES, engine_named

        self.pictures.check()
        with from_options():
            known("engine", self.engine, ENGINES)
            settings = [self.requests.setting(one) for one in self.solvers]
        workloads = read()
        engine = engine_named(self.engine)
        _remark(engine, workloads[0])
        timed = self._each(workloads, settings, engine)
        self.pictures.draw(timed)
        return timed, engine

    def _each(
        self,
        workloads: Sequence[Workload],
        settings: Sequence[Setting],
        engine: ChosenEngine,
    ) -> dict[str, list[Timed]]:
        from modicum.ops.simulation import simulate_timed

        found: dict[str, list[Timed]] = {one.solver: [] for one in settings}
        with rounds_drawn(workloads[0].rounds, quiet=self.quiet) as progress:
            for workload in workloads:  # One by one: all share a slowdown.
                for one in settings:
                    timed = simulate_timed(workload, one, engine, progress)
                    found[one.solver].append(timed)
        return found


def _remark(engine: ChosenEngine, workload: Workload) -> None:
    """Print notes on standard error before a simulation."""
    if engine.remark:
        note(f"note: {engine.remark}")
    if workload.requests.labels is not None:
        note("note: one budget for everything; labels of requests are ignored")


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
    """Simulate a planner, and show the accepted utility of a workload.

    Reads no data and no ledger: requests are generated, or read from a file, and
    budgets start unspent. The first plan on a machine takes half a minute longer,
    because loops are compiled.
    """
    requests = SimulationRequest(
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
        check_baseline(context)
        if round_times and not as_json:
            raise typer.BadParameter(
                "--round-times: only the JSON document has them; add --json"
            )
        pictures = Pictures(plot, plot_sizes, plot_budget)
        solvers = _solvers(solver, compare)
        wanted = Simulations(requests, solvers, engine_name, pictures, quiet=as_json)
        source = Source(workload, rounds, seed, objective)
        timed, engine = wanted.run(lambda: [source.read()])
        runs = [one for (one,) in timed.values()]
        _answer(runs, engine, as_json=as_json, round_times=round_times)
        if not as_json:
            pictures.note_files()


def _solvers(solver: str, compare: str | None) -> list[str]:
    if compare is None:
        return [solver]
    others = names_of(compare, "--compare")
    if solver in others:
        raise typer.BadParameter(f"--compare: `{solver}` is already the solver")
    return [solver, *others]


def _answer(
    timed: Sequence[Timed], engine: ChosenEngine, *, as_json: bool, round_times: bool
) -> None:
    if as_json:
        from modicum.cli.plan_simulation_text import simulation_to_dict

        print_json(simulation_to_dict(timed, engine, round_times=round_times))
    else:
        from modicum.cli.plan_simulation_text import print_simulation

        print_simulation(timed, engine)


#: Default number of seeds.
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
    requests = SimulationRequest(
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
        check_baseline(context)
        pictures = Pictures(plot, plot_sizes)
        names = names_of(solvers, "--solvers")
        wanted = Simulations(requests, names, engine_name, pictures, quiet=as_json)
        source = Source(workload, rounds, seed, objective)
        timed, engine = wanted.run(lambda: _workloads(source, seeds))
        _answer_compared(timed, engine, as_json=as_json)
        if not as_json:
            pictures.note_files()


def _workloads(source: Source, seeds: int | None) -> list[Workload]:
    if not source.is_file:
        return [source.read(later) for later in range(seeds or _SEEDS)]
    if seeds not in (None, 1):
        raise typer.BadParameter("--seeds: the requests of a file have one seed")
    return [source.read()]


def _answer_compared(
    timed: Mapping[str, Sequence[Timed]], engine: ChosenEngine, *, as_json: bool
) -> None:
    if as_json:
        from modicum.cli.plan_simulation_text import comparison_to_dict

        print_json(comparison_to_dict(timed, engine))
    else:
        from modicum.cli.plan_simulation_text import print_comparison

        print_comparison(timed, engine)
