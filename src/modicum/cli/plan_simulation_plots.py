"""Pictures of simulations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from modicum.cli.output import note

if TYPE_CHECKING:
    from modicum.ops.simulation import Timed


@dataclass(frozen=True, slots=True)
class Pictures:
    """Which pictures to draw.

    Attributes:
        rounds: Where to draw the utility of each round.
        sizes: Where to draw what is accepted by size.
        budget: Where to draw what is left of budgets.
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
        """Refuse what cannot be drawn, before anything is computed.

        Raises:
            UsageError: If a name says no kind of picture.
            InputError: If matplotlib is missing.
        """
        if not self.files:
            return
        from modicum.reports.charts import check_path
        from modicum.reports.charts.canvas import styled

        for file in self.files:
            check_path(file)
        with styled():
            pass

    def draw(self, timed: Mapping[str, Sequence[Timed]]) -> None:
        """Draw the pictures.

        Args:
            timed: For each solver its runs, one for each seed; the budget drawn is
                that of the first.
        """
        if self.rounds is not None:
            _draw_rounds(timed, self.rounds)
        if self.sizes is not None:
            _draw_sizes(timed, self.sizes)
        if self.budget is not None:
            _draw_budget(next(iter(timed.values()))[0], self.budget)

    def tell(self) -> None:
        """Say what was drawn."""
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
