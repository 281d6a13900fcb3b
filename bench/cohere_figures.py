"""The figures of Cohere's evaluation as lines: what we simulate, what they print.

A line is one number of a figure: the trials whose mean it is, one for each seed, and
what the authors found in five repetitions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from planner_trials import Outcomes, Spread, Trial, published, table

from modicum.accounting.filters.unlock_schedule import AtOnce, Schedule, Unlocking
from modicum.planner.simulation.setting import Setting
from modicum.workloads.cohere import Recipe

#: Where requests are charged, as the columns of the figures name it.
COMPOSITIONS = ("baseline", "without", "with")
SLACK = Unlocking(12, Fraction(2, 5))
#: The rounds of a series that are printed.
FIRST_ROUND = 11
SHOWN_ROUNDS = (11, 14, 17, 20, 30, 40, 50)
#: Of DPK's utility, in points: how far from the published number we may be.
TOLERANCE = {"with": 1.5, "without": 0.6}
#: How many times the baseline's utility the paper reports with partitioning.
RATIOS = (6.4, 28)
#: For these, each seed that is asked for stands for so many.
SEEDS_OF_RATIOS = 4

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One number of a figure.

    Attributes:
        key: What distinguishes it within its figure.
        trials: One for each seed.
        measure: ``utility`` or ``requests``.
        theirs: What was published.
    """

    key: Key
    trials: tuple[Trial, ...]
    measure: str
    theirs: Spread

    def ours(self, found: Outcomes) -> Spread:
        """Return the mean and deviation of our trials."""
        return Spread.of([getattr(found[trial], self.measure) for trial in self.trials])

    def difference(self, found: Outcomes) -> float:
        """Return how many percentage points we are above what was published."""
        return 100 * (self.ours(found).mean - self.theirs.mean)

    def cells(self, found: Outcomes) -> list[str]:
        """Return the cells of a table: the key, ours, theirs, the difference."""
        difference = f"{self.difference(found):+.2f}"
        return [*self.key, str(self.ours(found)), str(self.theirs), difference]


@dataclass(frozen=True, slots=True)
class Figure:
    """The lines of a figure, and how they become text.

    Attributes:
        title: Its heading.
        head: What the parts of the keys are called.
        lines: Its numbers.
        more: Makes the tables below, from the lines by key and what was found.
    """

    title: str
    head: tuple[str, ...]
    lines: tuple[Line, ...]
    more: Callable[[dict[Key, Line], Outcomes], list[str]]

    def of(self, workloads: Sequence[str]) -> Figure:
        """Return the same for some of the workloads."""
        kept = tuple(line for line in self.lines if line.key[0] in workloads)
        return replace(self, lines=kept)

    def text(self, found: Outcomes) -> str:
        """Return the figure as Markdown."""
        head = [*self.head, "ours, %", "published, %", "difference, points"]
        by_key = {line.key: line for line in self.lines}
        parts = [table(head, [line.cells(found) for line in self.lines])]
        return "\n\n".join([f"### {self.title}", *parts, *self.more(by_key, found)])

    def document(self, found: Outcomes) -> list[dict[str, object]]:
        """Return the figure as plain data."""
        return [
            {
                **dict(zip(self.head, line.key, strict=True)),
                "mean": line.ours(found).mean,
                "std": line.ours(found).std,
                "published_mean": line.theirs.mean,
                "published_std": line.theirs.std,
                "difference_points": line.difference(found),
                "by_seed": [
                    getattr(found[trial], line.measure) for trial in line.trials
                ],
            }
            for line in self.lines
        ]


def charged(composition: str, **more: object) -> Setting:
    """Return the published setting for a way of charging."""
    return Setting(
        partitioning=composition == "with",
        blocks=composition == "baseline",
        **more,  # type: ignore[arg-type]
    )


def _theirs(row: dict[str, str]) -> Spread:
    return Spread(float(row["mean"]), float(row["std"]))


# --- figure 7 -------------------------------------------------------------------------


def figure_7(seeds: Sequence[int], rounds: int, ilp: str | None) -> Figure:
    """Return utility and requests for workloads, ways of charging and solvers.

    Args:
        seeds: Of the repetitions.
        rounds: How many rounds have requests.
        ilp: What the exact solver is called; None to leave it out.
    """
    lines = []
    for row in published("cohere_fig7"):
        solver = ilp if row["solver"] == "ilp" else row["solver"]
        if solver is None:
            continue
        setting = charged(row["composition"], solver=solver)
        recipes = [Recipe(seed, 0, rounds, row["objective"]) for seed in seeds]
        trials = tuple(Trial(row["workload"], one, setting) for one in recipes)
        key = tuple(row[name] for name in _HEAD_7)
        lines.append(Line(key, trials, row["objective"], _theirs(row)))
    title = "Figure 7: workloads, ways of charging, and solvers"
    return Figure(title, _HEAD_7, tuple(lines), _ratios)


_HEAD_7 = ("workload", "objective", "composition", "solver")


def _ratios(lines: dict[Key, Line], found: Outcomes) -> list[str]:
    """Return how much more DPK accepts than in the baseline, for each objective."""
    rows = []
    for (workload, objective, composition, solver), line in lines.items():
        if solver != "dpk" or composition == "baseline":
            continue
        base = lines[workload, objective, "baseline", solver]
        assert line.theirs is not None
        assert base.theirs is not None
        ours = line.ours(found).mean / base.ours(found).mean
        theirs = line.theirs.mean / base.theirs.mean
        rows.append((workload, objective, composition, f"{ours:.2f}", f"{theirs:.2f}"))
    head = ("workload", "objective", "composition", "ours", "published")
    return ["How many times as much as in the baseline, with DPK:", table(head, rows)]


def checks_of_figure_7(figure: Figure, found: Outcomes) -> list[tuple[bool, str]]:
    """Return what must hold of DPK's utility, and whether it does."""
    lines = {line.key: line for line in figure.lines}
    checks = []
    for (workload, objective, composition, solver), line in lines.items():
        if (objective, solver) != ("utility", "dpk") or composition not in TOLERANCE:
            continue
        off, most = line.difference(found), TOLERANCE[composition]
        what = f"{workload}, DPK, {composition} partitioning: {off:+.2f} points off"
        checks.append((abs(off) <= most, f"{what}, at most {most} are allowed"))
    return [*checks, *checks_of_ratios(figure, found)]


# --- the ratios of the paper's text ---------------------------------------------------


def ratios(seeds: Sequence[int], rounds: int) -> Figure:
    """Return DPK's utility with partitioning, and in the baseline, of many seeds.

    Beside those of the seeds that are given, which the check of figure 7 holds: how
    far these are chance. Each seed that is given stands for several.

    Args:
        seeds: Of the repetitions.
        rounds: How many rounds have requests.
    """
    many = range(1, SEEDS_OF_RATIOS * len(seeds) + 1)
    lines = [
        line
        for line in figure_7(many, rounds, None).lines
        if line.key[1::2] == ("utility", "dpk") and line.key[2] != "without"
    ]
    title = f"Ratios over the baseline, of {len(many)} seeds"
    return Figure(title, _HEAD_7, tuple(lines), _ratios)


def checks_of_ratios(figure: Figure, found: Outcomes) -> list[tuple[bool, str]]:
    """Return whether our ratios lie in the range of the paper's text, as it stands.

    It is rounded: what the paper's own table gives is said beside ours.
    """
    checks = []
    low, high = RATIOS
    lines = {line.key: line for line in figure.lines}
    for workload in dict.fromkeys(key[0] for key in lines):
        line = lines[workload, "utility", "with", "dpk"]
        base = lines[workload, "utility", "baseline", "dpk"]
        ours = line.ours(found).mean / base.ours(found).mean
        theirs = line.theirs.mean / base.theirs.mean
        what = (
            f"{workload}, DPK, {len(line.trials)} seeds: {ours:.2f} times the utility"
            f" of the baseline; the paper says {low} to {high}, and its table gives"
            f" {theirs:.2f}"
        )
        checks.append((low <= ours <= high, what))
    return checks


# --- figure 6 -------------------------------------------------------------------------


def figure_6(seeds: Sequence[int], rounds: int) -> Figure:
    """Return DPK's utility by the slack of unlocking.

    Args:
        seeds: Of the repetitions.
        rounds: How many rounds have requests.
    """
    lines = []
    for row in published("cohere_fig6"):
        slack = row["slack"]
        schedule: Schedule = AtOnce(12)
        if slack != "none":
            schedule = Unlocking(12, Fraction(slack))
        setting = charged(row["composition"], schedule=schedule)
        recipes = [Recipe(seed, 0, rounds) for seed in seeds]
        trials = tuple(Trial(row["workload"], one, setting) for one in recipes)
        key = tuple(row[name] for name in _HEAD_6)
        lines.append(Line(key, trials, "utility", _theirs(row)))
    title = "Figure 6: the slack of unlocking"
    return Figure(title, _HEAD_6, tuple(lines), _series)


_HEAD_6 = ("workload", "composition", "slack")


def _series(lines: dict[Key, Line], found: Outcomes) -> list[str]:
    """Return the utility of single rounds, and how much it varies from round to round.

    All of W1 with partitioning; means over the seeds.
    """
    rows = []
    rounds: list[int] = []
    for (workload, composition, slack), line in lines.items():
        if (workload, composition) != ("w1", "with"):
            continue
        series = [found[trial].rounds for trial in line.trials]
        means = [sum(each) / len(each) for each in zip(*series, strict=True)]
        rounds = [n for n in SHOWN_ROUNDS if n - FIRST_ROUND < len(means)]
        shown = [means[n - FIRST_ROUND] for n in rounds] + [Spread.of(means).std]
        rows.append([slack, *(f"{100 * one:.1f}" for one in shown)])
    head = ["slack", *(f"round {n}" for n in rounds), "deviation over rounds"]
    text = "W1 with partitioning, the utility accepted in single rounds, %:"
    return [text, table(head, rows)]


# --- figure 5 -------------------------------------------------------------------------


def figure_5(seeds: Sequence[int], rounds: int) -> Figure:
    """Return what is accepted by the part of the users that requests sample.

    Args:
        seeds: Of the repetitions.
        rounds: How many rounds have requests.
    """
    lines = []
    for row in published("cohere_fig5"):
        rate = Fraction(int(row["percent"]), 100)
        recipes = [Recipe(seed, 0, rounds, row["objective"], (rate,)) for seed in seeds]
        setting = charged(row["composition"])
        trials = tuple(Trial(row["workload"], one, setting) for one in recipes)
        key = tuple(row[name] for name in _HEAD_5)
        lines.append(Line(key, trials, row["objective"], _theirs(row)))
    title = "Figure 5: subsampling, beside the baseline"
    return Figure(title, _HEAD_5, tuple(lines), lambda _lines, _found: [])


_HEAD_5 = ("workload", "objective", "composition", "percent")
