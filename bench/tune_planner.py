"""Which filter, slack and reserve suit the planner: a measurement.

Run it with `python bench/tune_planner.py`: some ten minutes. It uses seeds of its own,
which it prints, so that what is reported on others is no picking of winners. Gains are
relative to DPK as published, on the same workloads; a mean over workloads is geometric.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from planner_trials import (
    FIRST_TUNING_SEED,
    WORKLOADS,
    Outcomes,
    Trial,
    outcomes,
    table,
)

from modicum.accounting.conversions.moments import renyi_cap, zcdp_cap
from modicum.accounting.filters.budget import FILTERS, Shares
from modicum.accounting.filters.unlock_schedule import AtOnce, Schedule, Unlocking
from modicum.accounting.grid import EPS, INFINITE, ORDERS, RHO, order_index
from modicum.core.rationals import LOSS_UNIT
from modicum.planner.simulation.setting import TIGHT_FILTER, Setting
from modicum.workloads.cohere import SAMPLING, Recipe
from modicum.workloads.request_types import all_types

PARTS = 64
AS_PUBLISHED = Setting()
TIGHT = replace(AS_PUBLISHED, pricing="tight", filter=TIGHT_FILTER)
SLACKS = tuple(Fraction(n, 5) for n in range(6))
#: Slacks at which the reserve is looked for; without slack there is none.
KEEPING = tuple(Fraction(n, 5) for n in (2, 3, 5))
RESERVES = tuple(Fraction(n, 10) for n in (0, 2, 4, 6, 8, 9, 10))
#: Parts of delta that are tried for one coordinate beside the best one.
PIECES = (4,)
BESIDE = ("rho", "8", "16", "24", "32", "64")
ALONE = ("rho", "8", "12", "16", "24")
#: Budgets for which a filter should not be useless, though it is made for another.
BUDGETS = tuple(
    (Fraction(eps), Fraction(1, 10**digits))
    for eps in ("0.3", "1", "3", "5", "10", "20")
    for digits in (7, 9)
)


@dataclass(frozen=True, slots=True)
class Variant:
    """Something that is tried on every workload.

    Attributes:
        name: As it is printed.
        setting: How it is planned.
        reserve: Of `steady`; None for the usual one.
        shares: Of a filter; None for the one that the setting names.
    """

    name: str
    setting: Setting
    reserve: Fraction | None = None
    shares: Shares | None = None

    def trials(self, workload: str, seeds: Sequence[int]) -> list[Trial]:
        """Return one trial for each seed."""
        return [
            Trial(workload, Recipe(seed), self.setting, self.reserve, self.shares)
            for seed in seeds
        ]


@dataclass(frozen=True, slots=True)
class Tuner:
    """Tries variants.

    Attributes:
        seeds: Of the workloads.
        workers: How many processes.
        found: What came of the trials so far.
    """

    seeds: tuple[int, ...]
    workers: int
    found: Outcomes = field(default_factory=dict)

    def gains(self, variants: Iterable[Variant]) -> list[tuple[Variant, list[float]]]:
        """Return, for each variant, its gain on each workload."""
        base = Variant("DPK as published", AS_PUBLISHED)
        tried = list(variants)
        each = (
            trial
            for variant in (base, *tried)
            for workload in WORKLOADS
            for trial in variant.trials(workload, self.seeds)
        )
        missing = [trial for trial in each if trial not in self.found]
        self.found.update(outcomes(missing, self.workers))
        before = self._utilities(base)
        return [
            (one, [a / b for a, b in zip(mine, before, strict=True)])
            for one in tried
            for mine in [self._utilities(one)]
        ]

    def _utilities(self, variant: Variant) -> list[float]:
        found = self.found
        each = (variant.trials(workload, self.seeds) for workload in WORKLOADS)
        return [math.fsum(found[trial].utility for trial in trials) for trials in each]

    def best(self, title: str, variants: Iterable[Variant]) -> Variant:
        """Print how variants do, the best first, and return the best."""
        ranked = sorted(self.gains(variants), key=lambda one: -mean(one[1]))
        rows = [
            (one.name, *(f"{gain:.3f}" for gain in gains), f"{mean(gains):.4f}")
            for one, gains in ranked
        ]
        print(f"\n### {title}\n\n{table(['', *WORKLOADS, 'mean'], rows)}", flush=True)
        return ranked[0][0]


def mean(gains: Sequence[float]) -> float:
    """Return the geometric mean."""
    return math.exp(math.fsum(map(math.log, gains)) / len(gains))


# --- the filter -----------------------------------------------------------------------


def shares_of(parts: Mapping[str, int]) -> Shares:
    """Return the shares of a filter that keeps nothing for mechanisms, in 64ths."""
    orders = sorted((Fraction(name), n) for name, n in parts.items() if name != "rho")
    return Shares(
        mechanisms=Fraction(0),
        rho=Fraction(parts.get("rho", 0), PARTS),
        orders=tuple((order, Fraction(n, PARTS)) for order, n in orders),
    )


def tune_filter(tuner: Tuner) -> None:
    """Print how filters with one and with two coordinates do, for DPK."""

    def variant(parts: Mapping[str, int]) -> Variant:
        name = ", ".join(f"{name}: {n}" for name, n in parts.items())
        return Variant(name, TIGHT, shares=shares_of(parts))

    alone = tuner.best(
        "One coordinate with all of delta", (variant({name: PARTS}) for name in ALONE)
    )
    first = alone.name.split(":")[0]
    pairs = [
        variant({first: PARTS - piece, other: piece})
        for other in BESIDE
        for piece in PIECES
    ]
    named = [Variant(name, replace(TIGHT, filter=name)) for name in named_filters()]
    tuner.best("A second one beside it, in 64ths", [alone, *pairs, *named])


def named_filters() -> list[str]:
    """Return the filters that watch several orders."""
    return [name for name in FILTERS if name.startswith(("combined", "renyi"))]


def print_budgets() -> None:
    """Print how much of a single type of request filters admit, by budget.

    The part of what the best coordinate would admit that was known beforehand: the
    worst type, and the geometric mean of all. Nothing is simulated.
    """
    losses = [kind.loss("tight").coordinates for kind in all_types(SAMPLING)]
    rows = []
    for eps, delta in BUDGETS:
        every = [(EPS, int(eps * LOSS_UNIT)), (RHO, zcdp_cap(eps, delta))]
        every += [(order_index(one), renyi_cap(one, eps, delta)) for one in ORDERS]
        cells = []
        for name in named_filters():
            filter_ = FILTERS[name]
            caps = filter_.caps(eps, delta)
            parts = [admitted(caps, loss) / admitted(every, loss) for loss in losses]
            middle = mean([max(part, 1e-3) for part in parts])
            cells.append(f"{min(parts):.2f} / {middle:.2f}")
        rows.append((f"{float(eps)}, {float(delta)}", *cells))
    head = ["eps, delta", *named_filters()]
    print(f"\n### Filters and budgets, worst / mean\n\n{table(head, rows)}", flush=True)


def admitted(caps: Sequence[tuple[int, int]], loss: Sequence[int]) -> float:
    """Return how many losses caps admit, in part too; one coordinate suffices."""
    return max(
        (
            cap / loss[index]
            for index, cap in caps
            if cap > 0 and 0 < loss[index] < INFINITE
        ),
        default=0.0,
    )


# --- slack and reserve ----------------------------------------------------------------


def tune_slack(tuner: Tuner) -> None:
    """Print how the slack of unlocking does, for DPK."""
    variants = [
        Variant(f"slack {float(slack)}", replace(TIGHT, schedule=Unlocking(12, slack)))
        for slack in SLACKS
    ]
    tuner.best("DPK by the slack of unlocking", variants)


def tune_reserve(tuner: Tuner) -> None:
    """Print how the reserve of `steady` does, for each slack by itself."""
    schedules: dict[str, Schedule] = {
        f"slack {float(slack)}": Unlocking(12, slack) for slack in KEEPING
    }
    schedules["nothing locked"] = AtOnce(12)
    for name, schedule in schedules.items():
        setting = replace(TIGHT, solver="steady", schedule=schedule)
        variants = [
            Variant(f"reserve {float(one)}", setting, reserve=one) for one in RESERVES
        ]
        tuner.best(f"Steady by its reserve, {name}", variants)


PHASES = {"filter": tune_filter, "slack": tune_slack, "reserve": tune_reserve}


def main() -> None:
    """Tune what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("phases", nargs="*", metavar="PHASE", help=", ".join(PHASES))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    if unknown := set(given.phases) - set(PHASES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    seeds = tuple(range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + given.seeds))
    print(f"Seeds {', '.join(map(str, seeds))}.")
    tuner = Tuner(seeds, given.workers)
    for phase in given.phases or PHASES:
        PHASES[phase](tuner)
        if phase == "filter":
            print_budgets()


if __name__ == "__main__":
    main()
