"""Cohere's figures 5, 6 and 7 from the description alone, and what is better by now.

Run it with `python bench/reproduce_cohere.py`: half an hour, or `--seeds 1` for a look.
It prints the tables behind the figures beside the published numbers, how much each of
our changes brings, and PASS or FAIL for what must hold; it exits with 1 after a FAIL.
`--write-docs` puts the tables into docs/explanation/reproducing-cohere.md.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from cohere_better import Better
from cohere_figures import (
    Figure,
    checks_of_figure_7,
    checks_of_ratios,
    figure_5,
    figure_6,
    figure_7,
    ratios,
)
from planner_trials import WORKLOADS, Outcomes, Trial, outcomes

PAGE = Path(__file__).parents[1] / "docs/explanation/reproducing-cohere.md"
#: What stands around the tables on the page.
BEGIN = "*Made by `bench/reproduce_cohere.py --write-docs`.* <!-- tables -->"
END = "*End of what the program made.* <!-- end of tables -->"
PARTS = ("7", "ratios", "6", "5", "better")

Check = tuple[bool, str]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for, print it, and return the exit code."""
    given = _parsed(arguments)
    seeds = tuple(range(1, given.seeds + 1))
    ilp = "ilp" if given.ilp else None
    makers: dict[str, Callable[[], Figure]] = {
        "7": lambda: figure_7(seeds, given.rounds, ilp),
        "ratios": lambda: ratios(seeds, given.rounds),
        "6": lambda: figure_6(seeds, given.rounds),
        "5": lambda: figure_5(seeds, given.rounds),
    }
    figures = {
        part: make().of(given.workloads)
        for part, make in makers.items()
        if part in given.figures
    }
    better = (
        Better(seeds, given.rounds, given.workloads)
        if "better" in given.figures
        else None
    )
    found = outcomes(_trials(figures, better), given.workers)
    checks = _checks(figures, better, found)
    if given.json:
        _print_json(figures, better, found, checks)
    else:
        print(_text(given, figures, better, found, checks))
    if given.write_docs:
        _write_docs(_text(given, figures, better, found, checks))
    return 0 if all(passed for passed, _ in checks) else 1


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="how many, from 1 on")
    parser.add_argument("--rounds", type=int, default=40, help="the paper has 40")
    parser.add_argument(
        "--figures",
        type=lambda text: text.split(","),
        default=list(PARTS),
        help="of " + ",".join(PARTS),
    )
    parser.add_argument(
        "--workloads",
        type=lambda text: tuple(text.split(",")),
        default=WORKLOADS,
        help="of " + ",".join(WORKLOADS),
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--ilp", action="store_true", help="the exact solver too")
    parser.add_argument("--json", action="store_true", help="plain data instead")
    parser.add_argument("--write-docs", action="store_true")
    given = parser.parse_args(arguments)
    for option, known in (("figures", PARTS), ("workloads", WORKLOADS)):
        if unknown := set(getattr(given, option)) - set(known):
            parser.error(f"--{option}: unknown {', '.join(sorted(unknown))}")
    return given


def _trials(figures: dict[str, Figure], better: Better | None) -> list[Trial]:
    lines = [line for figure in figures.values() for line in figure.lines]
    trials = [trial for line in lines for trial in line.trials]
    return trials + (better.trials() if better else [])


def _checks(
    figures: dict[str, Figure], better: Better | None, found: Outcomes
) -> list[Check]:
    checks = checks_of_figure_7(figures["7"], found) if "7" in figures else []
    if "ratios" in figures:
        checks += checks_of_ratios(figures["ratios"], found)
    return checks + (better.checks(found) if better else [])


def _text(
    given: argparse.Namespace,
    figures: dict[str, Figure],
    better: Better | None,
    found: Outcomes,
    checks: list[Check],
) -> str:
    parts = [
        f"Seeds 1 to {given.seeds}, {given.rounds} rounds."
        f" {len(found)} simulations, {sum(one.seconds for one in found.values()):.0f} s"
        " of CPU.",
        *(figure.text(found) for figure in figures.values()),
    ]
    if better:
        parts.append(better.text(found))
    parts.append("### What must hold")
    verdicts = [f"- {'PASS' if passed else 'FAIL'} {what}" for passed, what in checks]
    parts.append("\n".join(verdicts) or "Nothing was checked.")
    return "\n\n".join(parts)


def _print_json(
    figures: dict[str, Figure],
    better: Better | None,
    found: Outcomes,
    checks: list[Check],
) -> None:
    document: dict[str, object] = {
        f"figure_{name}": figure.document(found) for name, figure in figures.items()
    }
    if better:
        document["better"] = better.document(found)
    document["checks"] = [{"passed": passed, "what": what} for passed, what in checks]
    print(json.dumps(document, indent=1))


def _write_docs(text: str) -> None:
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    page = f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
