"""The worst substitution among releases over intervals, beside the obvious way.

Run it with `python bench/neighborhoods.py`, or with `--quick`. Each release covers an
interval of one axis. The sweep looks for the pair of places between which a record's
move costs most; the reference fills a table of all pairs of places with NumPy, row by
row, and is stopped where it would take too long. Both must give the same integer. The
growth is the exponent x if time grows as n**x from one row to the next.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass

import numpy as np

from modicum.accounting.neighborhoods.line_sweep import Line, worst_pair

SEED = 20261121
#: The reference is left out for more releases than this.
REFERENCE_MAX = 10_000
UNIT = 10**12

Integers = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True)
class Case:
    """Releases over intervals of segments, and what each costs."""

    first: Integers
    after: Integers
    leave: Integers
    stay: Integers

    @property
    def segments(self) -> int:
        """How many places there are."""
        return int(self.after.max())

    def line(self) -> Line:
        """Return the releases as the sweep takes them."""
        parts = zip(self.first.tolist(), self.after.tolist(), strict=True)
        return Line(self.segments, tuple((a, b, i) for i, (a, b) in enumerate(parts)))


def random_case(n: int, kind: str) -> Case:
    """Return releases whose ends are distinct places, so that all of them matter.

    Args:
        n: How many.
        kind: ``long``: ends anywhere; ``short``: about ten cover each place.
    """
    rng = np.random.default_rng([SEED, n])
    if kind == "long":
        ends = rng.permutation(2 * n).reshape(n, 2)
        ends.sort(axis=1)
    else:
        first = rng.integers(0, 2 * n, n)
        ends = np.column_stack([first, first + rng.integers(1, 40, n)])
    leave = rng.integers(1, UNIT // 1000, n)
    stay = (leave * rng.integers(0, 201, n)) // 100  # From nothing to twice that.
    return Case(ends[:, 0], ends[:, 1], leave, stay)


def reference(case: Case) -> int:
    """Return the maximum over all pairs of places, in O(n) numbers for each place."""
    steps = np.zeros(case.segments + 1, dtype=np.int64)
    np.add.at(steps, case.first, case.leave)
    np.add.at(steps, case.after, -case.leave)
    depth = np.cumsum(steps)[:-1]
    saved = 2 * case.leave - case.stay
    worst = 0
    for place in range(case.segments):
        here = (case.first <= place) & (place < case.after)
        shared = np.zeros(case.segments + 1, dtype=np.int64)
        np.add.at(shared, case.first[here], saved[here])
        np.add.at(shared, case.after[here], -saved[here])
        row = depth + depth[place] - np.cumsum(shared)[:-1]
        worst = max(worst, int(row.max()))
    return worst


def sweep_time(case: Case, repetitions: int) -> tuple[float, int]:
    """Return the best time of the sweep, and what it found."""
    line, leave, stay = case.line(), case.leave.tolist(), case.stay.tolist()
    best, cost = math.inf, -1
    for _ in range(repetitions):
        start = time.perf_counter()
        cost = worst_pair(line, leave, stay).cost
        best = min(best, time.perf_counter() - start)
    return best, cost


def growth(before: tuple[int, float] | None, n: int, seconds: float) -> str:
    """Return the exponent of growth since the row before."""
    if before is None:
        return "-"
    return f"{math.log(seconds / before[1]) / math.log(n / before[0]):.2f}"


def table(kind: str, sizes: list[int], repetitions: int) -> None:
    """Print n against time."""
    print(f"\n{kind} intervals")
    print("| n | sweep, ms | growth | table, ms | growth | ratio | same |")
    print("|---|---|---|---|---|---|---|")
    before = reference_before = None
    for n in sizes:
        case = random_case(n, kind)
        seconds, cost = sweep_time(case, repetitions)
        cells = [str(n), f"{seconds * 1e3:.1f}", growth(before, n, seconds)]
        before = n, seconds
        if n <= REFERENCE_MAX:
            start = time.perf_counter()
            expected = reference(case)
            slow = time.perf_counter() - start
            cells += [f"{slow * 1e3:.1f}", growth(reference_before, n, slow)]
            cells += [f"{slow / seconds:.3g}", "yes" if cost == expected else "NO"]
            reference_before = n, slow
        else:
            cells += ["-"] * 4
        print("| " + " | ".join(cells) + " |")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to 10,000 releases")
    quick = parser.parse_args().quick
    sizes = [1_000, 3_000, 10_000] + ([] if quick else [30_000, 100_000])
    print(f"seed {SEED}, random intervals and random costs, the least of 3 times")
    for kind in ("long", "short"):
        table(kind, sizes, 3)


if __name__ == "__main__":
    main()
