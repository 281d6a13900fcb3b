"""Reproduce DPolicy's evaluation: Figures 3 and 4 (Küchler et al., S&P 2025).

Three scenarios, six totals, two systems: DPolicy, which holds every rule, and Cohere,
which holds the total alone. All workloads come from seeds, so every run prints the same
numbers; five seeds take about a quarter of an hour. What was published is in
`published/dpolicy.csv`, read off the figures; it is of one run each. `--write-docs`
puts the tables into the page about them.

    .venv/bin/python bench/reproduce_dpolicy.py --seeds 5
    .venv/bin/python bench/reproduce_dpolicy.py --seeds 1 --check
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path
from statistics import mean, stdev

from rich.console import Console
from rich.progress import Progress

from modicum.accounting import ApproxBudget
from modicum.planner.allocation.engine import EngineOf, numba_engine
from modicum.planner.allocation.numpy_kernel import NumpyEngine
from modicum.planner.simulation.loss_meter import Meter
from modicum.planner.simulation.scenario import Scenario, filtered, simulate_ruled
from modicum.planner.simulation.setting import Setting
from modicum.planner.simulation.simulation import Run, simulate
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_text
from modicum.workloads.cohere import Recipe
from modicum.workloads.dpolicy import ROUNDS, dpolicy
from modicum.workloads.model import Workload

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explanation" / "reproducing-dpolicy.md"
PUBLISHED = ROOT / "bench" / "published" / "dpolicy.csv"
#: Each total with what S1 makes of it for what is published.
TOTALS = {3: "1.7", 5: "1.83", 7: "1.9", 10: "2", 15: "2.25", 20: "2.5"}
DELTA = Fraction(1, 10**7)
BEGIN = "*Made by `bench/reproduce_dpolicy.py --write-docs`.* <!-- tables -->"
END = "*End of what the program made.* <!-- end of tables -->"
OURS, TOTAL_ONLY = "dpolicy", "cohere"
#: What reads a static attribute is charged to every month; not done in the original.
EVERYWHERE = "every month"
SHOWN = {OURS: "DPolicy", EVERYWHERE: "static: every month", TOTAL_ONLY: "Cohere"}
#: The rules that the figures measure: the highest loss of each list is shown.
MEASURES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "s1": {"standard": ("total @standard",), "black-box": ("total @black-box",)},
    "s2": {
        "member": ("cat:c9/member",),
        "strong": ("cat:c9/strong",),
        "weak": ("cat:c9/weak",),
        "attribute": tuple(f"attr:a{number}" for number in range(9, 150, 10)),
    },
    "s3": {"month": ("attr-month:a1",)},
}
ABOUT = {
    "s1": "S1, context (Figure 3, left)",
    "s2": "S2, scope (Figure 3, middle, and Figure 4)",
    "s3": "S3, time units (Figure 3, right)",
}


@dataclass(frozen=True)
class Result:
    """What one run came to.

    Attributes:
        scenario: `s1` to `s3`.
        total: The budget of everything together.
        system: `dpolicy`, `cohere`, or `every month`.
        seed: What the workload was drawn from.
        asked: The utility of all requests.
        utility: The utility of those that were accepted.
        highest: The highest loss under each measured rule.
        violated: How many rules of the policy were violated.
        measured_violated: The measures of which a rule was violated.
    """

    scenario: str
    total: int
    system: str
    seed: int
    asked: int
    utility: int
    highest: Mapping[str, float]
    violated: int
    measured_violated: tuple[str, ...]


# --- policies -------------------------------------------------------------------------


def policy_of(scenario: str, total: int) -> CompiledPolicy:
    """Return the policy of a scenario for a total: no budget is above it."""
    text = (ROOT / "examples" / "dpolicy" / f"{scenario}.yaml").read_text("utf-8")
    change = {"s1": _context, "s2": _scope, "s3": _time_units}[scenario]
    name = f"{scenario} at {total}"
    return filtered(compile_text(change(text, total).encode(), name), "as-published")


def _context(text: str, total: int) -> str:
    return text.replace("budget: 2.5}", f"budget: {TOTALS[total]}}}").replace(
        "{low: 2.5}", f"{{low: {TOTALS[total]}}}"
    )


def _scope(text: str, total: int) -> str:
    schema, _ = text.split("\npolicies:\n")
    low, medium, high = (min(total, most) for most in (12, 10, 5))
    strong = {min(total, most): min(total, most * 3 / 2) for most in (12, 10, 5)}
    weak = {min(total, most): min(total, most * 2) for most in (12, 10, 5)}
    attribute = f"{{low: {total}, medium: {min(9, total)}, high: {min(3, total)}}}"
    return f"""{schema}
policies:
  - {{name: total, when: "true", unit: user, budget: {total}}}
  - {{name: attr, for_each: attribute, unit: user, budget: {attribute}}}
  - name: cat
    for_each: category
    unit: user
    budget: {{low: {low}, medium: {medium}, high: {high}}}
    levels:
      member: same
      strong: {{map: {_table(strong)}}}
      weak: {{map: {_table(weak)}}}
"""


def _table(points: Mapping[int, float]) -> str:
    return "{" + ", ".join(f"{one}: {points[one]:g}" for one in sorted(points)) + "}"


def _time_units(text: str, total: int) -> str:
    return (
        text.replace("budget: 20}", f"budget: {total}}}")
        .replace("{low: 20, medium: 20}", f"{{low: {total}, medium: {total}}}")
        .replace("{low: 20, medium: 3}", f"{{low: {total}, medium: {min(3, total)}}}")
    )


# --- runs -----------------------------------------------------------------------------


def results(seeds: int, totals: Sequence[int], *, check: bool) -> Iterator[Result]:
    """Yield what every run came to."""
    engine = numba_engine() or NumpyEngine
    for seed in range(seeds):
        recipe = Recipe(seed=seed, rounds=ROUNDS)
        workloads = {name: dpolicy(name, recipe) for name in MEASURES}
        for total in totals:
            setting = Setting(budget=ApproxBudget(Fraction(total), DELTA))
            # Labels make no difference to who holds the total alone.
            alone = simulate(workloads["s1"], setting, engine)
            for scenario, workload in workloads.items():
                policy = policy_of(scenario, total)
                runs = {TOTAL_ONLY: replace(alone, workload=workload)}
                runs |= _ruled(workload, setting, policy, engine)
                for system, run in runs.items():
                    everywhere = system == EVERYWHERE
                    if check and system != TOTAL_ONLY:
                        _check(run, policy, everywhere=everywhere)
                    meter = Meter(run, policy, static_everywhere=everywhere)
                    yield _result(scenario, total, system, run, policy, meter)


def _ruled(
    workload: Workload, setting: Setting, policy: CompiledPolicy, engine: EngineOf
) -> dict[str, Run]:
    plain = Scenario(policy, static_everywhere=False)
    runs = {OURS: simulate_ruled(workload, setting, plain, engine)}
    if workload.name == "s3":
        runs[EVERYWHERE] = simulate_ruled(workload, setting, Scenario(policy), engine)
    return runs


def _result(
    scenario: str,
    total: int,
    system: str,
    run: Run,
    policy: CompiledPolicy,
    meter: Meter,
) -> Result:
    violated = {n for n in range(len(policy.rules)) if meter.violates(n)}
    measured = {
        name: [policy.rules.number(rule) or 0 for rule in rules]
        for name, rules in MEASURES[scenario].items()
    }
    highest = {
        name: max(float(meter.highest(rule, Fraction(total))) for rule in rules)
        for name, rules in measured.items()
    }
    return Result(
        scenario=scenario,
        total=total,
        system=system,
        seed=run.workload.seed,
        asked=run.total().utility_requested,
        utility=run.total().utility,
        highest=highest,
        violated=len(violated),
        measured_violated=tuple(
            name for name, rules in measured.items() if violated & set(rules)
        ),
    )


def _check(run: Run, policy: CompiledPolicy, *, everywhere: bool) -> None:
    """Hold a run against every rule once more, by code that shares nothing with it."""
    sys.path.insert(0, str(ROOT / "tests"))
    from oracle.ruled import overdrawn
    from samples.ruled import told

    found = overdrawn(told(run, policy, static_everywhere=everywhere))
    if found:
        raise SystemExit(f"{policy.policy.name} is violated: {found[:3]}")


# --- tables ---------------------------------------------------------------------------


def published() -> dict[tuple[str, int, str], dict[str, str]]:
    """Return what was published, by scenario, total and system."""
    found: dict[tuple[str, int, str], dict[str, str]] = {}
    with PUBLISHED.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            key = row["scenario"], int(row["eps_total"]), row["system"]
            mark = " **V**" if row["violates"] == "yes" else ""
            own = found.setdefault(key, {"utility": row["utility"]})
            own[row["measure"]] = f"{float(row['highest']):.2f}{mark}"
    return found


def tables(found: Sequence[Result]) -> str:
    """Return the tables of all scenarios."""
    return "\n\n".join(
        f"### {about}\n\n" + "\n".join(_rows(name, found))
        for name, about in ABOUT.items()
    )


def _rows(scenario: str, found: Sequence[Result]) -> Iterator[str]:
    measures, known = list(MEASURES[scenario]), published()
    head = ["total", "system", *measures, "utility", "rules violated"]
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    keys = {(one.total, one.system) for one in found if one.scenario == scenario}
    for total, system in sorted(
        keys, key=lambda key: (key[0], list(SHOWN).index(key[1]))
    ):
        runs = [
            one
            for one in found
            if (one.scenario, one.total, one.system) == (scenario, total, system)
        ]
        theirs = known.get((scenario, total, system), {})
        cells = [
            str(total),
            SHOWN[system],
            *(_beside(_highest(runs, one), theirs.get(one)) for one in measures),
            _beside(_utility(runs), theirs.get("utility")),
            f"{mean(one.violated for one in runs):.3g}",
        ]
        yield "| " + " | ".join(cells) + " |"


def _beside(ours: str, theirs: str | None) -> str:
    return f"{ours} ({theirs})" if theirs else ours


def _highest(runs: Sequence[Result], measure: str) -> str:
    mark = " **V**" if any(measure in one.measured_violated for one in runs) else ""
    return f"{mean(one.highest[measure] for one in runs):.2f}{mark}"


def _utility(runs: Sequence[Result]) -> str:
    each = [one.utility / 1e6 for one in runs]
    spread = f" ± {stdev(each):.2f}" if len(each) > 1 else ""
    return f"{mean(each):.2f}{spread}"


def claims(found: Sequence[Result]) -> list[tuple[bool, str]]:
    """Return what must hold, and whether it does."""
    ours = [one for one in found if one.system != TOTAL_ONLY]
    held = [
        (
            not any(one.violated for one in ours),
            f"no rule is violated by any of {len(ours)} plans under rules",
        )
    ]
    for scenario in MEASURES:
        at_20 = [
            one.utility / 1e6
            for one in found
            if (one.scenario, one.total, one.system) == (scenario, 20, OURS)
        ]
        least = float(published()[scenario, 20, OURS]["utility"])
        if at_20:
            text = f"{scenario} at 20: {mean(at_20):.3f} million, published {least:.3f}"
            held.append((mean(at_20) >= least, text))
    return held


# --- the command ----------------------------------------------------------------------


def main() -> None:
    """Run everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--totals", type=int, nargs="*", default=list(TOTALS))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write-docs", action="store_true")
    parser.add_argument("--check", action="store_true", help="once more, by an oracle")
    given = parser.parse_args()
    found = []
    with Progress(console=Console(stderr=True)) as progress:
        # Two systems in each scenario, and a third one in S3.
        task = progress.add_task("runs", total=given.seeds * len(given.totals) * 7)
        for one in results(given.seeds, given.totals, check=given.check):
            found.append(one)
            progress.advance(task)
            progress.print(f"seed {one.seed}: {one.scenario} {one.total} {one.system}")
    held = claims(found)
    if given.json:
        print(json.dumps([asdict(one) for one in found], indent=1))
    else:
        print(tables(found))
        print(*("\n" + ("PASS " if ok else "FAIL ") + given for ok, given in held))
    if given.write_docs:
        write_docs(tables(found))
    sys.exit(0 if all(ok for ok, _ in held) else 1)


def write_docs(text: str) -> None:
    """Put the tables into the page, between its two marks."""
    page = PAGE.read_text("utf-8")
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
