"""Rounds of the planner: beside plain NumPy, step by step, and for many requests.

Run it with `python bench/planner.py`, or with `--quick`. It needs numba. Times are
processor seconds of one process, warm but for the line that says otherwise.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TypeAlias

import numpy as np
from plain_planner import Batch, PlainPlanner

from modicum.accounting import filter_for
from modicum.planner.allocation.greedy import by_score, efficiencies
from modicum.planner.allocation.numba_kernel import NumbaEngine
from modicum.planner.allocation.problem import Booleans, Problem
from modicum.planner.simulation.setting import Setting, prices
from modicum.planner.simulation.worlds import RingWorld
from modicum.workloads.cohere import Recipe, cohere
from modicum.workloads.model import Requests, Workload

SEED = 20261121
SETTING = Setting()
MIXES = ("w1", "w4")
ROUNDS = 40
#: Rounds from this one on have a history, and are compared.
FIRST = 6
STEPS = (
    "problem",
    "engine",
    "alone",
    "contests",
    "favored",
    "order",
    "greedy",
    "spend",
)
#: Requests a round, in multiples of the 504 of the workloads.
SCALES = (1, 3, 10, 99)

Times: TypeAlias = dict[str, float]


# --- rounds ---------------------------------------------------------------------------


def workload(mix: str, rounds: int, scale: int = 1) -> Workload:
    """Return a workload whose requests arrive at a multiple of the usual rate.

    Args:
        mix: ``w1`` to ``w4``.
        rounds: How many there are.
        scale: So many weeks are taken for one.
    """
    made = cohere(mix, Recipe(seed=SEED, rounds=rounds * scale))
    first = made.first_round
    squeezed = first + (made.requests.round - first) // scale
    return replace(made, rounds=rounds, requests=replace(made.requests, round=squeezed))


def world_of(made: Workload) -> RingWorld:
    """Return a ring that nothing was spent of."""
    return RingWorld(made, SETTING, prices(made.types, SETTING))


def planned(
    world: RingWorld, batch: Requests, number: int, *, charged: bool = True
) -> tuple[Booleans, Times]:
    """Plan a round, and charge it; return what was accepted, and how long steps took.

    Args:
        world: What is charged.
        batch: The requests.
        number: The round.
        charged: Whether it is; otherwise nothing has happened.
    """
    times: Times = {}
    clock = time.process_time()

    def done(step: str) -> None:
        nonlocal clock
        now = time.process_time()
        times[step] = now - clock
        clock = now

    problem: Problem = world.problem(batch, number)
    done("problem")
    engine = NumbaEngine(problem)
    done("engine")
    alive = engine.alone()
    done("alone")
    contests = engine.contests(alive)
    done("contests")
    favored = engine.favored(contests, alive)
    done("favored")
    order = by_score(efficiencies(problem, contests, favored))
    order = order[alive[order]]
    done("order")
    accepted = engine.greedy(order)
    done("greedy")
    if charged:
        world.spend(problem, batch, accepted)
        done("spend")
    return accepted, times


def run(made: Workload) -> list[Times]:
    """Return how long each step of each round took."""
    world = world_of(made)
    return [
        planned(world, made.requests.of_round(number), number)[1]
        for number in made.round_numbers
    ]


def whole(times: Sequence[Times]) -> float:
    """Return how long a round takes: the median."""
    return median(sum(steps.values()) for steps in times)


def said(passes: bool) -> str:  # noqa: FBT001
    """Return what a claim's line ends with."""
    return "PASS" if passes else "FAIL"


# --- beside plain NumPy ---------------------------------------------------------------


def plain_side(made: Workload) -> tuple[PlainPlanner, Callable[[Requests], Batch]]:
    """Return the plain planner, and what puts requests into its numbers."""
    priced = [kind.loss(SETTING.pricing) for kind in made.types]
    caps = filter_for(SETTING.budget, SETTING.filter).caps
    live = [(index, cap) for index, cap in caps if cap > 0]
    costs = np.array([[loss.coordinates[a] for a, _ in live] for loss in priced])
    total = np.array([cap for _, cap in live])
    ages = range(1, SETTING.schedule.rounds + 1)
    by_age = np.array(
        [[SETTING.schedule.cap(cap, age) for _, cap in live] for age in ages]
    )

    def batch_of(requests: Requests) -> Batch:
        return Batch(
            requests.first, requests.width, costs[requests.type], requests.utility
        )

    return PlainPlanner(made.domain, total, by_age), batch_of


def beside(mix: str, rounds: int) -> float:
    """Print both sides' times of some rounds, and return how many times quicker we are.

    Args:
        mix: ``w1`` to ``w4``.
        rounds: How many are compared, after `FIRST` others.
    """
    made = workload(mix, FIRST + rounds)
    world, (plain, batch_of) = world_of(made), plain_side(made)
    ours: list[float] = []
    theirs: list[float] = []
    count = 0
    for number in made.round_numbers:
        requests = made.requests.of_round(number)
        batch = batch_of(requests)
        # A millisecond after the other side all caches are filled with its numbers.
        planned(world, requests, number, charged=False)
        accepted, times = planned(world, requests, number)
        if number >= made.first_round + FIRST:
            start = time.process_time()
            expected = plain.plan(batch)
            theirs.append(time.process_time() - start)
            ours.append(sum(times.values()))
            if not np.array_equal(accepted, expected):
                message = f"{mix}, round {number}: the sides do not agree"
                raise AssertionError(message)
            count += int(accepted.sum())
        plain.spend(batch, accepted)
    ratio = median(theirs) / median(ours)
    print(
        f"| {mix} | {len(plain.total)} | {median(theirs) * 1e3:,.0f} "
        f"| {median(ours) * 1e3:,.1f} | {ratio:,.0f} | {count} |",
        flush=True,
    )
    return ratio


def compare(rounds: int) -> None:
    """Print the comparison with plain NumPy."""
    print(f"## Beside plain NumPy: {rounds} rounds from round {FIRST} on, in turn\n")
    print("| | orders | NumPy, ms | ours, ms | ratio | accepted by both |")
    print("|---|---|---|---|---|---|")
    ratios = {mix: beside(mix, rounds) for mix in MIXES}
    print()
    for mix, ratio in ratios.items():
        print(
            f"- {mix}: {ratio:,.0f} times quicker, at least 100: {said(ratio >= 100)}"
        )


# --- by step --------------------------------------------------------------------------


def steps(rounds: int) -> None:
    """Print how long each step of a whole run takes."""
    print(f"\n## By step: milliseconds, {rounds} rounds of about 504 requests\n")
    print(f"| | {' | '.join(STEPS)} | all |")
    print("|---" * (len(STEPS) + 2) + "|")
    total = 0.0
    for mix in ("w1", "w2", "w3", "w4"):
        times = run(workload(mix, rounds))
        sums = [sum(own[step] for own in times) for step in STEPS]
        total = sum(sums)
        cells = " | ".join(f"{seconds * 1e3:,.0f}" for seconds in (*sums, total))
        print(f"| {mix} | {cells} |", flush=True)
    print(f"\n- {rounds} rounds of w4: {total:.2f} s, at most 2: {said(total <= 2)}")


# --- many requests --------------------------------------------------------------------


def scaling(scales: Sequence[int], rounds: int) -> None:
    """Print how the time of a round grows with its requests."""
    after = range(min(FIRST, rounds - 1), rounds)
    print("\n## Many requests: milliseconds a round (median), by step\n")
    print(f"| | rounds | requests | {' | '.join(STEPS)} | all | times |")
    print("|---" * (len(STEPS) + 5) + "|")
    claims: list[str] = []
    for mix in MIXES:
        base: dict[str, float] = {}
        for scale in scales:
            made = workload(mix, rounds, scale)
            requests, times = len(made.requests) // rounds, run(made)
            for name, chosen in (
                ("0 to 2", times[:3]),
                (f"{after.start} to {after[-1]}", times[after.start :]),
            ):
                total = whole(chosen)
                grown = total / base.setdefault(name, total)
                cells = [median(own[step] for own in chosen) for step in STEPS]
                shown = " | ".join(
                    f"{seconds * 1e3:,.1f}" for seconds in (*cells, total)
                )
                print(f"| {mix} | {name} | {requests:,} | {shown} | {grown:,.1f} |")
                if scale == scales[-1]:
                    claims.append(
                        f"- {mix}, rounds {name}: {grown:,.0f} times the time for "
                        f"{scale} times the requests, at most 100: {said(grown <= 100)}"
                    )
            sys.stdout.flush()
    print("\n" + "\n".join(claims))


# --- memory, and the first time -------------------------------------------------------


def resident(field: str) -> int:
    """Return a line of the process's status, in bytes."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise LookupError(field)


def measure_memory(rounds: int) -> None:
    """Print the memory of a run; in a process of its own."""
    made = workload("w4", rounds)
    # All code is there, but hardly any memory was in use yet.
    few = made.requests.of_round(made.first_round).chosen(np.arange(5))
    run(replace(made, rounds=1, requests=few))
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    before = resident("VmRSS")
    run(made)
    over = (resident("VmHWM") - before) / 1e6
    tracemalloc.start()
    run(made)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    print(
        f"- planning, {rounds} rounds of w4: at its peak {over:.1f} MB above what the "
        f"process had before ({before / 1e6:.0f} MB), at most 30: {said(over <= 30)}\n"
        f"- Python and NumPy allocated {peak:.1f} MB of it at the peak"
    )


def measure_first_time() -> None:
    """Print how long the first round takes; in a process of its own."""
    start = time.process_time()
    run(workload("w4", 1))
    print(
        f"- the first round, compiling everything: {time.process_time() - start:.1f} s"
    )


def apart(part: str, rounds: int, *, cold: bool = False) -> None:
    """Run a part of this program in a process of its own."""
    command = [sys.executable, __file__, "--part", part, "--rounds", str(rounds)]
    with tempfile.TemporaryDirectory() as folder:
        cache = {"NUMBA_CACHE_DIR": folder} if cold else {}
        around = {**os.environ, **cache}  # noqa: TID251 - of another process
        subprocess.run(command, check=True, env=around)  # noqa: S603


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less than a minute")
    parser.add_argument("--part", choices=("memory", "cold"), help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.part == "memory":
        measure_memory(chosen.rounds)
    elif chosen.part == "cold":
        measure_first_time()
    else:
        everything(quick=chosen.quick)


def everything(*, quick: bool) -> None:
    """Print all tables."""
    print(f"seed {SEED}; DPK, {SETTING.filter} prices and filter\n", flush=True)
    for mix in MIXES:
        run(workload(mix, 1))
    compare(2 if quick else 6)
    steps(10 if quick else ROUNDS)
    scaling(SCALES[:2] if quick else SCALES, 8)
    print("\n## Memory, and the first time\n", flush=True)
    apart("memory", 10 if quick else ROUNDS)
    if not quick:
        apart("cold", 1, cold=True)


if __name__ == "__main__":
    main()
