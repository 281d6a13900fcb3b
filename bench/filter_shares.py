"""How to divide delta among the coordinates of a filter: a measurement.

Run it with `python bench/filter_shares.py`, and with `--unseen` to see the filters on
other budgets; it takes under a minute and is the same every time. A *history* repeats
one bundle of releases until the budget is full. Its ratio under a filter is the number
of bundles (a real number) that the filter admits, divided by the number that the best
single coordinate would admit if it had been known beforehand and had the whole delta.
A quarter of delta stays with the mechanisms' own deltas. The search divides the rest,
in 64ths, for the best geometric mean, in which each family of histories weighs the
same. It is done twice: freely, and with eight parts kept for mu squared, the one
coordinate that is exact for Gaussian noise.
"""

from __future__ import annotations

import math
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from modicum.accounting import FILTERS, INFINITE, ORDERS, mechanisms
from modicum.accounting.amplification import poisson_gaussian
from modicum.accounting.conversions.moments import renyi_cap, zcdp_cap
from modicum.accounting.conversions.profiles import gaussian_mu2_cap
from modicum.accounting.curves import Curve, composed
from modicum.accounting.filters.budget import Shares
from modicum.accounting.grid import COORDINATES, MU2, RHO, coordinate_name, order_index
from modicum.accounting.grid import EPS as PURE

SEED = 20261121
PARTS = 64
KEPT_FOR_MU2 = 8
#: As much as `combined-v1` leaves to the mechanisms' own deltas.
FOR_MECHANISMS = 16
MECHANISMS = -1  # The place of the mechanisms' own deltas among the shares.

if "--unseen" in sys.argv:  # Budgets and mixtures that the search never saw.
    SEED = 7
    EPSILONS = tuple(map(Fraction, ("0.7", "2", "5", "8", "15")))
    DELTAS = tuple(Fraction(1, 10**n) for n in (4, 6, 8, 10))
else:
    EPSILONS = tuple(map(Fraction, ("0.5", "1", "3", "10", "20")))
    DELTAS = tuple(Fraction(1, 10**n) for n in (5, 7, 9))
#: Orders that may get a share; the others are extreme.
ORDERS_TRIED = tuple(order for order in ORDERS if 2 <= order <= 256)

Vector = np.ndarray[tuple[int], np.dtype[np.float64]]
Parts = Mapping[int, int]


@dataclass(frozen=True)
class History:
    """One bundle of releases, repeated under one budget.

    Attributes:
        family: What kind of mechanism it is made of.
        name: The bundle.
        eps: Of the budget.
        delta: Of the budget.
        loss: Of one bundle, by coordinate.
        own_delta: What one bundle brings along.
    """

    family: str
    name: str
    eps: Fraction
    delta: Fraction
    loss: Vector
    own_delta: float = 0.0


# --- caps ----------------------------------------------------------------------------


def cap(index: int, eps: Fraction, delta: Fraction) -> int:
    """Return the cap of a coordinate at a delta, 0 if it can admit nothing."""
    if index == PURE:
        return int(eps * 10**12)
    if index == RHO:
        return zcdp_cap(eps, delta)
    if index == MU2:
        return gaussian_mu2_cap(eps, delta)
    return max(0, renyi_cap(ORDERS[index - order_index(ORDERS[0])], eps, delta))


def caps(index: int, eps: Fraction, delta: Fraction) -> Vector:
    """Return the caps at 0, 1, 2, ... parts of delta."""
    whole = [
        cap(index, eps, delta * part / PARTS) if part or index == PURE else 0
        for part in range(PARTS + 1)
    ]
    return np.array(whole, dtype=float)


CAPS = {
    (index, eps, delta): caps(index, eps, delta)
    for eps in EPSILONS
    for delta in DELTAS
    for index in range(COORDINATES - 1)
}


# --- histories -----------------------------------------------------------------------


def vector(curve: Curve) -> Vector:
    """Return a loss as real numbers of units."""
    found = np.array(curve.loss().coordinates[:-1], dtype=float)
    return np.where(found >= INFINITE, np.inf, found)


@lru_cache
def training(rate: str, noise: str, steps: int) -> Vector:
    """Return the loss of DP-SGD."""
    step = poisson_gaussian(
        sampling_rate=Fraction(rate), noise_multiplier=Fraction(noise)
    )
    return vector(composed([(step, steps)]))


def laplace(eps: Fraction) -> Vector:
    """Return the loss of Laplace noise."""
    return vector(mechanisms.laplace(sensitivity_l1=eps, scale=Fraction(1)))


def survey(truth: str, values: int) -> Vector:
    """Return the loss of one randomized answer."""
    return vector(
        mechanisms.randomized_response(truth=Fraction(truth), values=values, answers=1)
    )


def bundles(eps: Fraction) -> Iterator[tuple[str, str, Vector]]:
    """Yield family, name and loss of what is repeated under a budget."""
    yield "gaussian", "gaussian", vector(mechanisms.gaussian(rho=Fraction(1, 1000)))
    yield (
        "gaussian",
        "any zCDP",
        vector(mechanisms.declared_zcdp(rho=Fraction(1, 1000))),
    )
    for part in (200, 50, 10):
        yield "small laplace", f"laplace eps/{part}", laplace(eps / part)
    yield "small laplace", "laplace 0.1", laplace(Fraction(1, 10))
    for part in (3, 4, 6):
        pure = mechanisms.declared_pure(eps=eps / part)
        yield "large pure", f"pure eps/{part}", vector(pure)
    yield "answers", "2 values, truth 0.52", survey("0.52", 2)
    yield "answers", "4 values, truth 0.4", survey("0.4", 4)
    yield "answers", "10 values, truth 0.5", survey("0.5", 10)
    runs = (("0.01", "1", 100), ("0.001", "0.8", 1000), ("0.05", "2", 100))
    for rate, noise, steps in runs:
        name = f"q={rate} sigma={noise} x{steps}"
        yield "training", name, training(rate, noise, steps)


def best_single(loss: Vector, eps: Fraction, delta: Fraction, own: float) -> float:
    """Return how many bundles the best coordinate admits, known beforehand."""
    most = 0.0
    parts = np.arange(PARTS + 1)
    for index, unit in enumerate(loss):
        if unit < np.inf:
            admitted = CAPS[index, eps, delta] / unit
            if own:
                admitted = np.minimum(
                    admitted[::-1], parts / PARTS * float(delta) / own
                )
            most = max(most, float(admitted.max()))
    return most


def histories() -> Iterator[History]:
    """Yield every history, with mixtures and with deltas of their own."""
    rng = random.Random(SEED)  # noqa: S311 - a simulation
    for eps in EPSILONS:
        for delta in DELTAS:
            pure = list(bundles(eps))
            for family, name, loss in pure:
                yield History(family, name, eps, delta, loss)
            sizes = {name: best_single(loss, eps, delta, 0) for _, name, loss in pure}
            for _ in range(12):
                picked = rng.sample(pure, rng.choice((2, 3)))
                mixed = sum(
                    (
                        loss * sizes[name] * rng.uniform(0.2, 1)
                        for _, name, loss in picked
                    ),
                    start=np.zeros(COORDINATES - 1),
                )
                name = " + ".join(name for _, name, _ in picked)
                yield History("mixed", name, eps, delta, mixed / 100)
            for part in ("0.01", "0.1", "1"):
                for family, name, loss in (pure[0], pure[2], pure[-3]):
                    own = float(part) * float(delta) / sizes[name]
                    title = f"{family}, own deltas {part}"
                    yield History("own deltas", title, eps, delta, loss, own)


# --- what a division of delta is worth -----------------------------------------------


class Measurement:
    """Every history, and what each coordinate admits of it at each share."""

    def __init__(self) -> None:
        found = [
            (one, best_single(one.loss, one.eps, one.delta, one.own_delta))
            for one in histories()
        ]
        found = [(one, best) for one, best in found if best >= 3]
        self.histories = [one for one, _ in found]
        best = np.array([best for _, best in found])
        self.table: dict[int, np.ndarray[tuple[int, int], np.dtype[np.float64]]] = {}
        for index in range(COORDINATES - 1):
            rows = [
                CAPS[index, one.eps, one.delta] / one.loss[index]
                for one in self.histories
            ]
            self.table[index] = np.array(rows) / best[:, None]
        steps = np.arange(PARTS + 1) / PARTS
        self.table[MECHANISMS] = (
            np.array(
                [
                    steps * float(one.delta) / one.own_delta
                    if one.own_delta
                    else np.full(PARTS + 1, np.inf)
                    for one in self.histories
                ]
            )
            / (best[:, None])
        )
        self.families = sorted({one.family for one in self.histories})
        counts = defaultdict(int)
        for one in self.histories:
            counts[one.family] += 1
        self.weights = np.array([1 / counts[one.family] for one in self.histories])
        self.weights /= len(self.families)

    def ratios(self, parts: Parts) -> Vector:
        """Return the ratio of every history under a division of delta."""
        found = self.table[PURE][:, PARTS]
        for index, part in parts.items():
            if index != MECHANISMS and part:
                found = np.maximum(found, self.table[index][:, part])
        return np.minimum(found, self.table[MECHANISMS][:, parts.get(MECHANISMS, 0)])

    def score(self, parts: Parts) -> float:
        """Return the geometric mean of the ratios, every family weighing the same.

        A history that is hardly admitted at all counts as 0.001. Histories with
        deltas of their own are left out: their share is fixed.
        """
        found = np.log(np.maximum(self.ratios(parts), 0.001))
        chosen = np.array([one.family != "own deltas" for one in self.histories])
        weights = np.where(chosen, self.weights, 0)
        return math.exp(float(found @ weights) / float(weights.sum()))


PLACES = (RHO, MU2, *map(order_index, ORDERS_TRIED))


def climb(measured: Measurement, start: Parts, kept: int) -> dict[int, int]:
    """Return the division that no single exchange of shares improves."""
    parts = {place: start.get(place, 0) for place in PLACES}
    parts[MECHANISMS] = FOR_MECHANISMS
    best = measured.score(parts)
    while True:
        moves = [
            {**parts, giver: parts[giver] - size, taker: parts[taker] + size}
            for giver in PLACES
            for taker in PLACES
            for size in (1, 2, 4, 8)
            if giver != taker and parts[giver] >= size + kept * (giver == MU2)
        ]
        score, parts_next = max(
            ((measured.score(move), move) for move in moves),
            key=lambda found: found[0],
        )
        if score <= best * (1 + 1e-9):
            return {place: part for place, part in parts.items() if part}
        best, parts = score, parts_next


def searched(measured: Measurement, kept: int) -> dict[int, int]:
    """Return the best shares that climbing finds from several starts."""
    rng = random.Random(SEED)  # noqa: S311 - a simulation
    free = PARTS - FOR_MECHANISMS - kept
    starts: list[dict[int, int]] = [
        {MU2: kept, RHO: free // 2, order_index(Fraction(8)): free - free // 2}
    ]
    for _ in range(4):
        start = dict.fromkeys(PLACES, 0)
        start[MU2] = kept
        for _ in range(free):
            start[rng.choice(PLACES)] += 1
        starts.append(start)
    ends = [climb(measured, start, kept) for start in starts]
    return max(ends, key=measured.score)


# --- printing ------------------------------------------------------------------------


def of_filter(shares: Shares, measured: Measurement) -> Vector:
    """Return the ratios of a named filter, whose shares need not be 64ths."""
    caps_of = {
        (eps, delta): dict(shares.caps(eps, delta))
        for eps in EPSILONS
        for delta in DELTAS
    }
    found = []
    for one in measured.histories:
        own = caps_of[one.eps, one.delta]
        most = max(max(0, own[index]) / one.loss[index] for index in own)
        if one.own_delta:
            most = min(most, float(shares.mechanisms * one.delta) / one.own_delta)
        best = best_single(one.loss, one.eps, one.delta, one.own_delta)
        found.append(most / best)
    return np.array(found)


def name_of(place: int) -> str:
    """Return what a share is for."""
    return "mechanisms" if place == MECHANISMS else coordinate_name(place)


def show(title: str, ratios: Vector, measured: Measurement) -> None:
    """Print a row: the worst and the mean ratio, over all and by family."""
    cells = [f"{ratios.min():.3f}", f"{ratios @ measured.weights:.3f}"]
    for family in measured.families:
        own = [
            ratio
            for ratio, one in zip(ratios, measured.histories, strict=True)
            if one.family == family
        ]
        cells.append(f"{min(own):.2f} / {sum(own) / len(own):.2f}")
    print(f"| {title} | " + " | ".join(cells) + " |")


def main() -> None:
    """Print the table."""
    measured = Measurement()
    print(f"seed {SEED}, {len(measured.histories)} histories, shares in 1/{PARTS}")
    print(f"| filter | worst | mean | {' | '.join(measured.families)} |")
    print("|---|---|---|" + "---|" * len(measured.families))
    for name, shares in FILTERS.items():
        if isinstance(shares, Shares):
            show(f"`{name}`", of_filter(shares, measured), measured)
    for kept in () if "--unseen" in sys.argv else (0, KEPT_FOR_MU2):
        parts = searched(measured, kept)
        ratios = measured.ratios(parts)
        show(f"searched, mu2 >= {kept}", ratios, measured)
        print("    " + ", ".join(f"{name_of(i)} {n}" for i, n in parts.items()))
        for place in np.argsort(ratios)[:3]:
            one = measured.histories[place]
            budget = f"eps={float(one.eps):g} delta={float(one.delta):g}"
            print(f"    {ratios[place]:.3f}  {budget}  {one.name}")


if __name__ == "__main__":
    main()
