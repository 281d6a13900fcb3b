"""What `plan simulate` and `plan compare` do alike: from what is asked for to runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from modicum.cli.given import from_options
from modicum.cli.output import note
from modicum.cli.plan_progress import rounds_drawn
from modicum.cli.plan_wishes import Wishes, known

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modicum.cli.plan_simulation_plots import Pictures
    from modicum.ops.simulation import ChosenEngine, Timed
    from modicum.planner.simulation.setting import Setting
    from modicum.workloads.model import Workload


@dataclass(frozen=True, slots=True)
class Simulations:
    """Simulations of several planners on the same workloads, as asked for.

    Attributes:
        wishes: How requests are planned.
        solvers: Who decides, one after the other; each once.
        engine: The name of what computes it.
        pictures: What is drawn of it.
        quiet: Whether to draw no progress.
    """

    wishes: Wishes
    solvers: Sequence[str]
    engine: str
    pictures: Pictures
    quiet: bool

    def run(
        self, read: Callable[[], list[Workload]]
    ) -> tuple[dict[str, list[Timed]], ChosenEngine]:
        """Simulate, draw the pictures, and return the runs of each solver.

        What is wrong with the options is said before anything is read or computed.

        Args:
            read: Returns the workloads, at least one.

        Raises:
            UsageError: If something that was given is unknown or out of range.
            InputError: If a file is no workload, or something does not fit together.
        """
        from modicum.ops.simulation import ENGINES, engine_named

        self.pictures.check()
        with from_options():
            known("engine", self.engine, ENGINES)
            settings = [self.wishes.setting(one) for one in self.solvers]
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
        with rounds_drawn(workloads[0].rounds, quiet=self.quiet) as told:
            for workload in workloads:  # One by one: whatever slows down, slows all.
                for one in settings:
                    timed = simulate_timed(workload, one, engine, told)
                    found[one.solver].append(timed)
        return found


def _remark(engine: ChosenEngine, workload: Workload) -> None:
    """Say on standard error what somebody should know beforehand."""
    if engine.remark:
        note(f"note: {engine.remark}")
    if workload.requests.labels is not None:
        note("note: one budget for everything; labels of requests are not looked at")
