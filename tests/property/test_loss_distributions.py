"""Certified distributions of privacy losses are never below the truth.

The oracle adds up, or integrates, over all that mechanisms may answer. What a bound
lacks of being attained is printed, and what today's other bounds are.
"""

from __future__ import annotations

import decimal
import random
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from budget import counted, examples, seed
from oracle.privacy_losses import (
    MP,
    Atoms,
    Delta,
    after_laplace,
    discrete_gaussian_atoms,
    discrete_laplace_atoms,
    gaussian,
    laplace,
    many_laplace,
    many_pure,
    nothing,
    of_atoms,
    pure_atoms,
    real,
    response_atoms,
    sampled_gaussian,
    sampled_twice,
    summed,
)

from modicum.accounting.conversions.epsilon_delta import curve_epsilon
from modicum.accounting.curves import composed
from modicum.accounting.grid import INFINITE
from modicum.accounting.mechanisms import ACCOUNT_KINDS
from modicum.accounting.named_mechanisms import complete_values
from modicum.accounting.privacy_loss import batches, discretization, distribution
from modicum.accounting.privacy_loss.batches import (
    batch_epsilon,
    distributions,
    tail_for,
)
from modicum.accounting.privacy_loss.distribution import UNIT, Distribution
from modicum.accounting.privacy_loss.pairs import (
    PURE,
    Batch,
    Pair,
    discrete_gaussian_pair,
    discrete_laplace_pair,
    gaussian_pair,
    laplace_pair,
    merged,
    response_pair,
    sampled_gaussian_pair,
)
from modicum.core.rationals import LOSS_UNIT

#: Deltas are compared at this precision: far finer than a unit of mass.
WITHIN = Fraction(1, 10**30)
#: Truths that quadrature knows less of.
BY_QUADRATURE = Fraction(1, 10**22)


def pure(eps: Fraction, runs: int = 1) -> Batch:
    return ((Pair(PURE, (eps,)), runs),)


def number(draw: random.Random, low: float, high: float) -> Fraction:
    """Return a number between two, some of them dyadic."""
    at = Fraction(draw.uniform(low, high))
    return at.limit_denominator(draw.choice((8, 10, 1000))) or Fraction(1, 10)


def delta_of(side: Distribution, eps: Fraction) -> Any:
    """Return the delta of a distribution by its definition, exactly enough."""
    e, step = real(eps), real(side.step)
    above = (
        mass * -MP.expm1(e - step * place)
        for place, mass in enumerate(side.mass, side.first)
        if step * place > e
    )
    return (side.infinite + MP.fsum(above)) / UNIT


class Case:
    """A batch: its pairs, its exact delta in each direction, its kinds and numbers."""

    def __init__(self, draw: random.Random) -> None:
        self.pairs: list[tuple[Pair, int]] = []
        self.curves: list[Any] = []
        self.within = WITHIN
        atoms = [self.discrete(draw) for _ in range(draw.randint(0, 3))]
        while len(joined := summed(atoms)) > 400:
            atoms.pop()
            self.pairs.pop()
            self.curves.pop()
        rests = self.last(draw, few=len(joined) < 20)
        self.true = [of_atoms(joined, rest) for rest in rests]

    def add(self, found: Batch | None, runs: int, kind: str, **values: Any) -> None:
        assert found is not None
        self.pairs += [(pair, count * runs) for pair, count in found]
        named = {k.replace("_", "-"): Fraction(v) for k, v in values.items()}
        whole = complete_values(ACCOUNT_KINDS[kind], named)
        self.curves.append((ACCOUNT_KINDS[kind].build(whole), runs))

    def discrete(self, draw: random.Random) -> Atoms:
        match draw.choice(("pure", "response", "laplace", "gaussian")):
            case "pure":
                eps, runs = number(draw, 0.05, 2), draw.randint(1, 12)
                self.add(pure(eps), runs, "pure", eps=eps)
                return summed([pure_atoms(eps)] * runs)
            case "response":
                values, runs = draw.randint(2, 5), draw.randint(1, 4)
                truth = Fraction(draw.randint(11, 19), 20)
                kind = "randomized-response"
                answer = response_pair(truth, values, 1)
                self.add(answer, runs, kind, truth=truth, values=values)
                return summed([response_atoms(truth, values)] * runs)
            case "laplace":
                moved, runs = draw.randint(1, 4), draw.randint(1, 4)
                scale = number(draw, 0.5, 8)
                noise = discrete_laplace_pair(moved, scale)
                kind = "discrete-laplace"
                self.add(noise, runs, kind, scale=scale, sensitivity=moved)
                return summed([discrete_laplace_atoms(moved, scale)] * runs)
            case _:
                sigma, runs = number(draw, 0.6, 4), draw.randint(1, 3)
                noise = discrete_gaussian_pair(Fraction(1), sigma)
                self.add(noise, runs, "discrete-gaussian", sigma=sigma)
                return summed([discrete_gaussian_atoms(sigma)] * runs)

    def last(self, draw: random.Random, *, few: bool) -> list[Delta]:
        match draw.choice(("none", "gaussian", "laplace", "two", "sample", "steps")):
            case "gaussian":
                runs, sigma = draw.randint(1, 5), number(draw, 0.7, 9)
                self.add(gaussian_pair(1 / sigma**2), runs, "gaussian", sigma=sigma)
                return [gaussian(runs / sigma**2)]
            case "laplace":
                eps = number(draw, 0.05, 3)
                self.add(laplace_pair(eps), 1, "laplace", scale=1 / eps)
                return [laplace(eps)]
            case "two" if few:
                eps = number(draw, 0.05, 2)
                self.add(laplace_pair(eps), 2, "laplace", scale=1 / eps)
                self.within = BY_QUADRATURE
                return [many_laplace(eps, 2)]
            case ("sample" | "steps") as way:
                rate, noise = number(draw, 0.01, 0.6), number(draw, 0.6, 4)
                steps = 2 if way == "steps" and not self.pairs else 1
                kind = "dp-sgd"
                values = {"noise_multiplier": noise, "sampling_rate": rate}
                self.add(
                    sampled_gaussian_pair(rate, noise), steps, kind, steps=1, **values
                )
                self.within = BY_QUADRATURE if steps == 2 else WITHIN
                exact = sampled_twice if steps == 2 else sampled_gaussian
                return [exact(rate, noise, adds=adds) for adds in (False, True)]
            case _:
                return [nothing]


def test_nothing_is_below_the_truth(capsys: pytest.CaptureFixture[str]) -> None:
    draw = random.Random(f"loss distributions {seed()}")
    slack: list[float] = []
    against: list[float] = []
    cases = examples(100)
    for _ in range(cases):
        case = Case(draw)
        batch = merged(case.pairs)
        delta = Fraction(1, 10 ** draw.randint(1, 9))
        sides = distributions(batch, tail_for(batch, delta))
        assert sides is not None
        exactly = list(zip(sides, case.true, strict=True)) if batch else []
        for side, true in exactly:
            eps = number(draw, 0, 4)
            bound, truth = delta_of(side, eps), true(real(eps))
            assert bound >= truth - real(case.within), (case.pairs, eps)
            assert real(side.delta(eps)) >= bound - real(WITHIN)
            if truth > real(delta) / 10:  # Below, tails may be cut.
                slack.append(float(bound / truth))
        units = batch_epsilon(batch, delta)
        if units is None or units >= INFINITE:
            continue
        for _, true in exactly:
            at = real(Fraction(units, LOSS_UNIT))
            assert true(at) <= real(delta) + real(case.within), (case.pairs, delta)
        today = curve_epsilon(composed(case.curves), delta).units
        if today and units:
            against.append(min(units, today) / today)
    assert len(slack) > 0.6 * cases
    assert sum(slack) / len(slack) < 1.1
    mean = sum(against) / len(against)
    with capsys.disabled():
        print(
            f"\n{len(slack)} deltas, 0 below the truth: mean {_mean(slack):.5f} of it,"
            f" worst {max(slack):.4f}; epsilon is {mean:.4f} of today's on average,"
            f" {min(against):.4f} at best ({len(against)} batches)"
        )


def test_many_runs_are_not_below_the_truth(capsys: pytest.CaptureFixture[str]) -> None:
    draw = random.Random(f"many runs {seed()}")
    slack: list[float] = []
    for _ in range(counted(12)):
        runs = draw.randint(50, 2000)
        eps = Fraction(draw.uniform(0.3, 3) / runs**0.5).limit_denominator(10**6)
        mu2 = draw.choice((Fraction(0), number(draw, 0.1, 2)))
        batch = merged([*pure(eps, runs), *gaussian_pair(mu2)])
        delta = Fraction(1, 10 ** draw.randint(1, 9))
        rest = gaussian(mu2) if mu2 else nothing
        true = of_atoms(many_pure(eps, runs), rest)
        (side,) = distributions(batch, tail_for(batch, delta)) or ()
        at = side.epsilon(delta)
        for place in (number(draw, 0, 4), Fraction(at, LOSS_UNIT)):
            bound, truth = delta_of(side, place), true(real(place))
            assert bound >= truth
            if truth > real(delta) / 10:
                slack.append(float(bound / truth))
        assert true(real(Fraction(at, LOSS_UNIT))) <= real(delta)
    with capsys.disabled():
        print(
            f"\n{len(slack)} deltas of up to 2000 runs, 0 below the truth:"
            f" mean {_mean(slack):.5f} of it, worst {max(slack):.4f}"
        )


def test_one_number_is_the_worst_case_of_a_vector() -> None:
    """A vector that moves by a and b loses no more than a number that moves by both."""
    draw = random.Random(f"vectors {seed()}")
    for _ in range(counted(12)):
        a, b, eps = number(draw, 0.1, 2), number(draw, 0.1, 2), number(draw, 0, 3)
        kinks = (-real(b), real(b))
        both = after_laplace(a, laplace(b), kinks)(real(eps))
        assert both <= laplace(a + b)(real(eps)) + real(BY_QUADRATURE)
        scale, moves = number(draw, 0.5, 4), (draw.randint(1, 3), draw.randint(1, 3))
        apart = [discrete_laplace_atoms(one, scale) for one in moves]
        whole = discrete_laplace_atoms(sum(moves), scale)
        at = real(eps)
        less, more = (of_atoms(one, nothing)(at) for one in (summed(apart), whole))
        assert less <= more + real(WITHIN)


def _mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)


# --- where the bound is attained: on the grid ----------------------------------------


def on_the_grid() -> list[tuple[Any, Any]]:
    """Return bounds and truths of losses on the grid, at epsilons on it."""
    found = []
    for eps, runs, at in product((Fraction(1, 2), Fraction(3, 8)), (1, 2, 5), (0, 1)):
        (side,) = distributions(pure(eps, runs), 1) or ()
        step = real(side.step) and side.step
        place = at * eps - (at * eps) % step
        true = of_atoms(summed([pure_atoms(eps)] * runs), nothing)
        found.append((delta_of(side, place), true(real(place))))
    return found


def arbitrary(draw: random.Random) -> Distribution:
    mass = tuple(draw.randrange(UNIT) for _ in range(draw.randint(1, 9)))
    return Distribution(3, draw.randint(-9, 9), mass, draw.randrange(UNIT))


def coarsened() -> list[tuple[Any, Any]]:
    """Return losses on grids that are coarser: points of both keep their delta."""
    draw, found = random.Random("coarsened"), []
    for times in (1, 2, 3) * 5:
        side = arbitrary(draw)
        coarse = side.coarser(times)
        for place in range(coarse.first - 2, coarse.last + 1):
            at = place * coarse.step
            found.append((delta_of(coarse, at), delta_of(side, at)))
    return found


def added(tail: int) -> list[tuple[Any, Any]]:
    """Return sums of losses, and the sums over exact products of masses."""
    draw, found = random.Random("added"), []
    for _ in range(10):
        one, other = arbitrary(draw), arbitrary(draw)
        whole = one.plus(other, tail)
        masses: list[tuple[Fraction, Fraction | None]]
        masses = [(Fraction(one.infinite, UNIT), None)]
        masses += [
            (Fraction(mass, UNIT), at * one.step)
            for at, mass in enumerate(one.mass, one.first)
        ]
        everything = real(Fraction(other.infinite + sum(other.mass), UNIT))
        for place in range(one.first + other.first - 2, one.last + other.last + 1):
            eps = place * one.step
            exact = MP.fsum(
                real(mass) * (everything if at is None else delta_of(other, eps - at))
                for mass, at in masses
            )
            found.append((delta_of(whole, eps), exact))
    return found


def laws() -> list[tuple[Any, Any]]:
    """Return bounds and truths of all steps."""
    return [*on_the_grid(), *coarsened(), *added(0), *added(UNIT // 3)]


def test_every_step_leads_up_and_not_far() -> None:
    assert all(truth - MP.mpf("1e-32") <= bound for bound, truth in laws())
    for bound, truth in [*on_the_grid(), *coarsened(), *added(0)]:
        assert bound < truth + MP.mpf("1e-17")


def _mutants(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], None]]:
    """Return the ways in which a rounding may go wrong."""

    def masses() -> None:
        def lower(shape: Any, value: Decimal) -> int:
            scaled = value.scaleb(distribution.DIGITS)
            return int(scaled.to_integral_value(decimal.ROUND_FLOOR))

        monkeypatch.setattr(discretization._Shape, "mass", lower)

    def products() -> None:
        def lower(one: Any, other: Any) -> tuple[int, ...]:
            sums = [0] * (len(one) + len(other) - 1)
            for (i, a), (j, b) in product(enumerate(one), enumerate(other)):
                sums[i + j] += a * b
            return tuple(total // UNIT for total in sums)

        monkeypatch.setattr(distribution, "_product", lower)

    def shares() -> None:
        exact = distribution._up
        monkeypatch.setattr(
            distribution, "_up", lambda value, digits: exact(value, digits) - 10**7
        )

    def tails() -> None:
        exact = Distribution.trimmed

        def lost(side: Distribution, tail: int) -> Distribution:
            found = exact(side, tail)
            return Distribution(found.halvings, found.first, found.mass, side.infinite)

        monkeypatch.setattr(Distribution, "trimmed", lost)

    return {f.__name__: f for f in (masses, products, shares, tails)}


@pytest.mark.parametrize("name", ["masses", "products", "shares", "tails"])
def test_a_rounding_in_the_wrong_direction_is_found(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget()
    try:
        _mutants(monkeypatch)[name]()
        assert any(bound < truth - MP.mpf("1e-30") for bound, truth in laws())
    finally:
        monkeypatch.undo()
        forget()


def forget() -> None:
    for cached in (batches._repeated, distributions, batch_epsilon):
        cached.cache_clear()
