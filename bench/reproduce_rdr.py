"""The RDR paper's epsilons on the Adult table, by the product's own code.

Run it with `python bench/reproduce_rdr.py --data adult.csv`; `examples/adult` says
where the table is from. Without `--data` it takes made-up people, on whom nothing is
promised.

Figure 7: what Find-epsilon-from-RDR finds for five queries, five thresholds and two
mechanisms, beside the 50 published epsilons. Figure 9: how the epsilons are distributed
that Find-and-release-epsilon-from-RDR tells, at the thresholds that the artifact ran
with (its labels say a tenth of them), beside what the published box plots show; and the
same with the divisor that has a proof. It prints PASS or FAIL for each, and exits with
1 after a FAIL. `--write-docs` puts the tables into docs/explanation/reproducing-rdr.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv

from modicum.risk import PUBLISHED as CANDIDATES
from modicum.risk import Risk, rdr
from modicum.risk.selection.spread import sum_of_squares
from modicum.workloads.adult.people import adult_people
from modicum.workloads.adult.queries import PUBLISHED, QUERIES, ROWS, THRESHOLDS

SEED: Final = 20261122
PAGE: Final = Path(__file__).parents[1] / "docs/explanation/reproducing-rdr.md"
BEGIN: Final = "*Made by `bench/reproduce_rdr.py --write-docs`.* <!-- tables -->"
END: Final = "*End of what the program made.* <!-- end of tables -->"
MECHANISMS: Final = ("laplace", "gaussian")
#: The greatest variances that the artifact ran with.
VARIANCES: Final = (1e-10, 1e-8, 1e-6, 1e-4)
#: Of the epsilon of the sparse vector technique, what the threshold has: 1 : 2**(2/3).
SHARE: Final = 1 / (1 + 2 ** (2 / 3))
#: Medians of the published box plots of 50 runs each, read by eye: by mechanism and
#: query, at each of the four thresholds; None where no box was read.
BOXES: Final[dict[tuple[str, str], tuple[float | None, ...]]] = {
    ("laplace", "Q1"): (0.7, None, None, 1),
    ("laplace", "Q2"): (0.6, None, None, 0.8),
    ("laplace", "Q3"): (0.05, None, None, 0.07),
    ("laplace", "Q4"): (0.1, None, None, 0.2),
    ("laplace", "Q5"): (0.1, None, None, 0.1),
    ("gaussian", "Q1"): (7, 8, 8, 9),
    ("gaussian", "Q2"): (7, 6, 6, 8),
    ("gaussian", "Q3"): (1, 1, 1, 2),
    ("gaussian", "Q4"): (3, 4, 1, 5),
    ("gaussian", "Q5"): (3, 3, 3, 4),
}

Lines = Iterator[str]


def measured(data: object) -> dict[tuple[str, str], Risk]:
    """Return the risk of each query under each mechanism, as it was published."""
    return {
        (mechanism, name): rdr(
            data,
            query.sql,
            mechanism=mechanism,  # type: ignore[arg-type]
            calibration="published",
        )
        for mechanism in MECHANISMS
        for name, query in QUERIES.items()
    }


# --- figure 7 -------------------------------------------------------------------------


def figure_7(found: dict[tuple[str, str], Risk], failed: list[str]) -> Lines:
    """Yield the table of epsilons at ratios, ours beside the published ones."""
    yield "\n**Find-ε-from-RDR** (figure 7): our ε (and theirs if it differs)\n"
    yield f"| noise | least ratio | {' | '.join(QUERIES)} |"
    yield f"| --- | --: | {' | '.join('--:' for _ in QUERIES)} |"
    alike = 0
    for mechanism in MECHANISMS:
        for threshold in THRESHOLDS:
            cells = []
            for name in QUERIES:
                choice = found[mechanism, name].choose(threshold, choice="as-published")
                theirs = PUBLISHED[mechanism, name, threshold]
                same = choice.epsilon == theirs
                alike += same
                cells.append(_told(choice.epsilon) + ("" if same else f" ({theirs})"))
            yield f"| {mechanism} | {threshold} | {' | '.join(cells)} |"
    yield ""
    yield verdict(f"{alike} of {len(PUBLISHED)} are the same", alike == 50, failed)


def _told(epsilon: Fraction | None) -> str:
    return "none" if epsilon is None else f"{float(epsilon):g}"


# --- figure 9 -------------------------------------------------------------------------


def figure_9(found: dict[tuple[str, str], Risk], runs: int, failed: list[str]) -> Lines:
    """Yield the tables of epsilons that are told privately, as published and proven."""
    draw = np.random.default_rng(SEED)
    for title, statistic in (
        ("as published: indicators over the greatest in the table", by_the_greatest),
        ("with a divisor that is public, which has a proof", by_the_possible),
    ):
        yield f"\n**Find-and-release-ε-from-RDR** (figure 9), {title}\n"
        yield (
            f"Median and quartiles of {runs:,} runs at ε = 1 for the choice; *none*:"
            " how often it told none; *over*: how often it told an ε at which the"
            " variance is above the threshold.\n"
        )
        if statistic is by_the_greatest:
            yield "| noise | query | variance | ε | published median | none | over |"
            yield "| --- | --- | --: | --- | --: | --: | --: |"
        else:
            yield "| noise | query | variance | ε | none | over |"
            yield "| --- | --- | --: | --- | --: | --: |"
        near = compared = 0
        for (mechanism, name), risk in found.items():
            spreads = statistic(risk)
            if spreads is None:
                yield f"| {mechanism} | {name} | | not offered: an average | | |"
                continue
            boxes = BOXES[mechanism, name]
            for variance, theirs in zip(VARIANCES, boxes, strict=True):
                chosen = chosen_places(spreads, variance, runs, draw)
                cells = cells_of(chosen, spreads, variance)
                if statistic is by_the_greatest:
                    shown = "" if theirs is None else f"{theirs:g}"
                    yield (
                        f"| {mechanism} | {name} | {variance:g} | {cells[0]}"
                        f" | {shown} | {cells[1]} | {cells[2]} |"
                    )
                    if theirs is not None and name != "Q4":
                        compared += 1
                        near += is_near(chosen, theirs)
                else:
                    yield (
                        f"| {mechanism} | {name} | {variance:g} | {cells[0]}"
                        f" | {cells[1]} | {cells[2]} |"
                    )
        if compared:
            yield ""
            yield verdict(
                f"{near} of {compared} published medians (without Q4) lie within our"
                " quartiles",
                near == compared,
                failed,
            )


def by_the_greatest(risk: Risk) -> np.ndarray[Any, Any]:
    """Return the variances of the indicators over the greatest, at each candidate."""
    return np.array(
        [
            risk.indicator.variance(one) / risk.indicator.quantile(1.0, one) ** 2
            for one in risk.candidates
        ]
    )


def by_the_possible(risk: Risk) -> np.ndarray[Any, Any] | None:
    """Return the same over the greatest possible one; None where nothing is proven."""
    if not risk.question.own_rows_only:
        return None
    distances = risk.influence.profile(risk.noise.norm)
    return np.array(
        [
            float(sum_of_squares(distances, risk.noise, epsilon=one)) / ROWS
            for one in risk.candidates
        ]
    )


def chosen_places(
    spreads: np.ndarray[Any, Any],
    variance: float,
    runs: int,
    draw: np.random.Generator,
) -> np.ndarray[Any, Any]:
    """Return which candidate each run tells; -1 for none.

    From the greatest candidate on, the first whose variance is, with noise, at most the
    threshold, with noise that is drawn once.
    """
    threshold = variance + draw.laplace(0, 1 / (ROWS * SHARE), runs)
    found = np.full(runs, -1)
    open_runs = np.ones(runs, dtype=bool)
    for place in range(len(spreads) - 1, -1, -1):
        noise = draw.laplace(0, 2 / (ROWS * (1 - SHARE)), runs)
        passes = open_runs & (spreads[place] + noise <= threshold)
        found[passes] = place
        open_runs &= ~passes
    return found


def cells_of(
    chosen: np.ndarray[Any, Any], spreads: np.ndarray[Any, Any], variance: float
) -> tuple[str, str, str]:
    """Return the median and quartiles, how often none, how often above what was set."""
    some = chosen[chosen >= 0]
    low, middle, high = (
        f"{float(CANDIDATES[place]):g}"
        for place in np.quantile(some, (0.25, 0.5, 0.75), method="lower").astype(int)
    )
    over = (spreads[some] > variance).mean()
    return (
        f"{middle} ({low} to {high})",
        f"{1 - len(some) / len(chosen):.1%}",
        f"{over:.0%}",
    )


def is_near(chosen: np.ndarray[Any, Any], theirs: float) -> bool:
    """Tell whether a published median lies within the quartiles of our runs."""
    low, high = (
        float(CANDIDATES[place])
        for place in np.quantile(
            chosen[chosen >= 0], (0.25, 0.75), method="lower"
        ).astype(int)
    )
    return low <= theirs <= high


# --- the program ----------------------------------------------------------------------


def verdict(what: str, holds: bool, failed: list[str]) -> str:  # noqa: FBT001
    """Return PASS or FAIL, and remember a failure."""
    if not holds:
        failed.append(what)
    return f"{'PASS' if holds else 'FAIL'}: {what}"


def lines(given: argparse.Namespace, failed: list[str]) -> Lines:
    """Yield all that is printed."""
    if given.data is None:
        data: object = pa.table(adult_people())
        yield "Made-up people, not the Adult table: what follows is not the paper's."
    else:
        data = pyarrow.csv.read_csv(given.data)
    found = measured(data)
    people = next(iter(found.values())).people
    yield f"{people:,} people, seed {SEED}."
    yield from figure_7(found, failed)
    yield from figure_9(found, given.runs, failed)


def write_docs(text: str) -> None:
    """Put the tables into the page."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def main(
    arguments: Sequence[str] | None = None, tell: Callable[[str], None] = print
) -> int:
    """Print the tables, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", help="the table, as CSV; without it, made-up people")
    parser.add_argument(
        "--runs", type=int, default=20_000, help="of the private choice"
    )
    parser.add_argument("--write-docs", action="store_true")
    given = parser.parse_args(arguments)
    failed: list[str] = []
    result = []
    for line in lines(given, failed):
        tell(line)
        result.append(line)
    if given.write_docs:
        write_docs("\n".join(result).strip())
    return 1 if failed and given.data is not None else 0


if __name__ == "__main__":
    sys.exit(main())
