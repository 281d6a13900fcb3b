"""What each change brings beyond the published planner: steps that build on each other.

A step's gain is relative to the step it builds on, and to the first one: DPK as it was
published. All steps see the same workloads. Constants were tuned on other seeds, by
bench/tune_planner.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from planner_trials import WORKLOADS, Outcomes, Spread, Trial, table

from modicum.accounting.filters.unlock_schedule import AtOnce, Unlocking
from modicum.planner.simulation.setting import TIGHT_FILTER, Setting
from modicum.workloads.cohere import Recipe

#: How much more of the utility our best must accept than DPK as published.
AT_LEAST = {"w1": 0.08, "w2": 0.08, "w3": 0.05, "w4": 0.08}
#: The slack that suits DPK best, by `tune_planner.py`.
DPK_SLACK = Fraction(4, 5)
#: Allocators that must not fall behind DPK where everything else is equal.
NEW = ("guided", "steady")

FIRST = "DPK as published"
ONCE = "horizon: steady, slack 1"

AS_PUBLISHED = Setting()
TIGHT = replace(AS_PUBLISHED, pricing="tight", filter=TIGHT_FILTER)


@dataclass(frozen=True, slots=True)
class Step:
    """One row of the table.

    Attributes:
        name: What is changed.
        setting: All of how it is planned.
        upon: The row it builds on, from 0; itself if it is the first.
    """

    name: str
    setting: Setting
    upon: int


def steps() -> list[Step]:
    """Return the rows of the table, the published planner first."""
    unlocked = replace(TIGHT, schedule=Unlocking(12, DPK_SLACK))
    steady = replace(TIGHT, solver="steady", schedule=Unlocking(12, Fraction(1)))
    found = [
        Step(FIRST, AS_PUBLISHED, 0),
        Step("tight pricing", replace(AS_PUBLISHED, pricing="tight"), 0),
        Step(f"filter `{TIGHT_FILTER}`", TIGHT, 1),
        Step("packing: guided", replace(TIGHT, solver="guided"), 2),
        Step(f"slack {float(DPK_SLACK)}, DPK", unlocked, 2),
    ]
    by_slack = len(found) - 1
    for attempts in (2, 4, 8):
        setting = replace(unlocked, attempts=attempts)
        found.append(Step(f"{attempts} attempts, DPK", setting, by_slack))
    found.append(Step(ONCE, steady, by_slack))
    by_horizon = len(found) - 1
    at_once = replace(steady, schedule=AtOnce(12))
    found.append(Step("steady, nothing locked", at_once, by_horizon))
    for attempts in (2, 4, 8):
        setting = replace(steady, attempts=attempts)
        found.append(Step(f"{attempts} attempts, steady", setting, by_horizon))
    return found


@dataclass(frozen=True, slots=True)
class Better:
    """The table of steps, and what must hold.

    Attributes:
        seeds: Of the repetitions.
        rounds: How many rounds have requests.
        workloads: Their names.
    """

    seeds: tuple[int, ...]
    rounds: int
    workloads: tuple[str, ...] = WORKLOADS

    def trials(self) -> list[Trial]:
        """Return all that is simulated."""
        wanted = [step.setting for step in steps()]
        wanted += [setting for pair in same_modes() for setting in pair[1:]]
        return [
            trial
            for setting in wanted
            for workload in self.workloads
            for trial in self._of(workload, setting)
        ]

    def _of(self, workload: str, setting: Setting) -> list[Trial]:
        return [
            Trial(workload, Recipe(seed, 0, self.rounds), setting)
            for seed in self.seeds
        ]

    def _utility(self, workload: str, setting: Setting, found: Outcomes) -> Spread:
        return Spread.of([found[one].utility for one in self._of(workload, setting)])

    def text(self, found: Outcomes) -> str:
        """Return the table as Markdown."""
        each = steps()
        rows = []
        for number, step in enumerate(each):
            cells: list[object] = [f"{number + 1}. {step.name}", step.upon + 1]
            for workload in self.workloads:
                mine = self._utility(workload, step.setting, found)
                before = self._utility(workload, each[step.upon].setting, found).mean
                first = self._utility(workload, each[0].setting, found).mean
                gain = f"{mine.mean / before - 1:+.1%} / {mine.mean / first - 1:+.1%}"
                cells.append(f"{mine} ({gain})" if number else str(mine))
            rows.append(cells)
        head = ["step", "builds on", *self.workloads]
        lines = [
            "### Better: what each change brings",
            "Utility accepted, %, mean ± deviation over the seeds; in parentheses the"
            " gain over the step it builds on, and over step 1.",
            table(head, rows),
        ]
        return "\n\n".join(lines)

    def document(self, found: Outcomes) -> list[dict[str, object]]:
        """Return the table as plain data."""
        return [
            {
                "step": step.name,
                "builds_on": step.upon,
                "workload": workload,
                "by_seed": [
                    found[one].utility for one in self._of(workload, step.setting)
                ],
            }
            for step in steps()
            for workload in self.workloads
        ]

    def checks(self, found: Outcomes) -> list[tuple[bool, str]]:
        """Return what must hold, and whether it does."""
        return [*self._best(found), *self._not_behind(found)]

    def _best(self, found: Outcomes) -> list[tuple[bool, str]]:
        checks = []
        for workload in self.workloads:
            means = {
                step.name: self._utility(workload, step.setting, found).mean
                for step in steps()
            }
            first = means.pop(FIRST)
            least = AT_LEAST[workload]
            # Once where every request is tried once only, and once the best of all.
            for name in (ONCE, max(means, key=means.__getitem__)):
                gain = means[name] / first - 1
                what = f"{workload}, {name}: {gain:+.1%}, at least {least:+.0%}"
                checks.append((gain >= least, what))
        return checks

    def _not_behind(self, found: Outcomes) -> list[tuple[bool, str]]:
        checks = []
        for name, dpk, new in same_modes():
            for workload in self.workloads:
                ours = self._utility(workload, new, found).mean
                base = self._utility(workload, dpk, found).mean
                what = f"{workload}, {name}: {ours / base - 1:+.2%} beside DPK"
                checks.append((ours >= base, what))
        return checks


def same_modes() -> list[tuple[str, Setting, Setting]]:
    """Return DPK and each new allocator where everything else is equal."""
    modes = [("as published", AS_PUBLISHED), ("tight", TIGHT)]
    return [
        (f"{solver}, {mode}, slack 0.4", dpk, replace(dpk, solver=solver))
        for solver in NEW
        for mode, dpk in modes
    ]
