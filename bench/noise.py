"""Noise in batches, beside OpenDP's samplers; and what it adds to a query.

Run it with `python bench/noise.py`, or with `--quick`. Both sides draw noise of the
same law in one process, in turn; the best of three turns counts, in processor time.
OpenDP draws 20,000 numbers each time, after a few that nobody counts: its time per draw
does not depend on how many there are. A batch of ours begins with a table, which is
kept; it is made anew for every turn here.

The second table is of a private count of 100,000 groups, whose exact numbers are made
up: without noise, with OpenDP's, and with ours. Answers have intervals.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path

from query import write_files

from modicum.api.local.queries.execution import noisy_of
from modicum.api.ports.engine import Sampler
from modicum.engines import noise_cells
from modicum.engines.factory import SystemSecrets
from modicum.engines.noise import NoiseSampler, opendp_draws
from modicum.ops.files.queries import load_query
from modicum.query.compiler import CompiledQuery
from modicum.query.groups import groups_of
from modicum.query.results import answers_of
from modicum.query.statistics import Exact, ExactPlan, Secrets

SCALES = (0.1, 57.735, 1e6, 2.0**40)
OPENDP_DRAWS = 20_000
TURNS = 3
#: Days times pages: 100,006 groups.
PAGES = 3226
#: How much quicker a draw must be, of 100,000 or more.
WANTED = 20


def seconds(*sides: Callable[[], object]) -> list[float]:
    """Return the best processor time of each side, in turn."""
    best = [float("inf")] * len(sides)
    for _ in range(TURNS):
        for place, side in enumerate(sides):
            began = time.process_time()
            side()
            best[place] = min(best[place], time.process_time() - began)
    return best


def forget() -> None:
    """Forget all tables."""
    noise_cells.borders.cache_clear()
    noise_cells.cell_table.cache_clear()


# --- draws ----------------------------------------------------------------------------


def entropy() -> str:
    """Return how quick the system's random bytes are."""
    size = 2**17
    (took,) = seconds(lambda: [os.urandom(size) for _ in range(200)])
    return f"os.urandom: {200 * size / took / 1e6:,.0f} MB/s"


def draws(noise: str, scale: Fraction, number: int) -> None:
    """Draw noise with a new table."""
    forget()
    for _ in NoiseSampler().draws(noise, scale, number):
        pass


def by_scale(numbers: Sequence[int]) -> Iterator[tuple[str, float]]:
    """Yield the lines of the first table, and their ratios; 0 where none is wanted."""
    yield "| noise | scale | draws | OpenDP, ns | batches, ns | ratio |", 0
    yield "| --- | --: | --: | --: | --: | --: |", 0
    for noise in ("laplace", "gaussian"):
        for scale in map(Fraction, SCALES):
            opendp_draws(noise, scale, 100)
            for number in numbers:
                theirs, ours = seconds(
                    partial(opendp_draws, noise, scale, OPENDP_DRAWS),
                    partial(draws, noise, scale, number),
                )
                theirs, ours = theirs / OPENDP_DRAWS * 1e9, ours / number * 1e9
                yield (
                    f"| {noise} | {float(scale):g} | {number:,} | {theirs:,.0f}"
                    f" | {ours:,.0f} | {theirs / ours:.0f} x |",
                    theirs / ours if number >= 10**5 else 0,
                )


# --- a query --------------------------------------------------------------------------


class MadeUp:
    """An engine of made-up counts."""

    name = "made up"

    def __init__(self, compiled: CompiledQuery) -> None:
        request = compiled.request
        groups = groups_of(request.query.keys, request.tables, request.part)
        counts: Exact = {one: 17 + n % 991 for n, one in enumerate(groups)}
        self._found = {line.statistic.name: counts for line in compiled.lines}

    def check(self, plan: ExactPlan) -> None:
        """Accept every plan."""

    def fits(self, table: object) -> None:
        """Accept every table."""

    def run(self, plan: ExactPlan, secrets: Secrets) -> Mapping[str, Exact]:
        """Return the same counts every time."""
        return self._found


class Silence:
    """Adds nothing."""

    def check(self, noise: str, scale: Fraction, sensitivity: Fraction) -> None:
        """Accept all noise."""

    def add(self, noise: str, scale: Fraction, values: Sequence[int]) -> list[int]:
        """Return the same numbers."""
        return list(values)


class Theirs(Silence):
    """Adds OpenDP's noise."""

    def add(self, noise: str, scale: Fraction, values: Sequence[int]) -> list[int]:
        """Return numbers with noise."""
        drawn = opendp_draws(noise, scale, len(values))
        return [one + more for one, more in zip(values, drawn, strict=True)]


def of_a_query() -> Iterator[str]:
    """Yield the lines of the second table."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_files(folder, PAGES)
        query = load_query(folder / "query.yaml", folder / "policy.yaml").compiled
    engine, confidence = MadeUp(query), Fraction(19, 20)
    yield "| noise | noisy counts, s | answers with intervals, s |"
    yield "| --- | --: | --: |"
    samplers: dict[str, Sampler] = {
        "none": Silence(),
        "OpenDP": Theirs(),
        "batches": NoiseSampler(),
    }
    for name, sampler in samplers.items():
        forget()
        noisy = partial(noisy_of, query, engine, sampler, SystemSecrets())
        first, second = seconds(noisy, partial(answers_of, query, noisy(), confidence))
        yield f"| {name} | {first:.3f} | {second:.3f} |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="at most 100,000 draws")
    quick = parser.parse_args().quick
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} CPUs; {entropy()}\n")
    least = float("inf")
    for line, ratio in by_scale((10**3, 10**5) if quick else (10**3, 10**5, 10**7)):
        print(line, flush=True)
        least = min(least, ratio or least)
    verdict = "PASS" if least >= WANTED else "FAIL"
    print(f"\n{verdict}: at least {WANTED} times as quick at 100,000 draws or more\n")
    for line in of_a_query():
        print(line, flush=True)
    sys.exit(verdict == "FAIL")


if __name__ == "__main__":
    main()
