"""The best of a random number of runs, against its law by definition at 50 digits."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from statistics import mean

import pytest
from budget import examples, seed
from msgspec.structs import astuple
from oracle import selection as oracle
from oracle.accounting import MP, Real, kl_discrete, real
from oracle.mechanisms import hockey_stick, largest_ratio, value, worse_way

from modicum.accounting import private_selection
from modicum.accounting.amounts import Amount
from modicum.accounting.conversions.epsilon_delta import Delta
from modicum.accounting.curves import Curve
from modicum.accounting.grid import ORDERS
from modicum.accounting.mechanisms import (
    declared_pure,
    declared_renyi,
    declared_zcdp,
    gaussian,
)
from modicum.accounting.number_of_runs import NegativeBinomial, Poisson, Profile, Runs
from modicum.accounting.private_selection import selected

pytestmark = pytest.mark.soak

NOISE = MP.mpf(10) ** -25
UP = Fraction(1, 10**15)
#: Orders at which divergences are compared, some of them between those of the grid.
AT = [Fraction(1001, 1000), *ORDERS[:-2:2], Fraction(7, 3), Fraction(20)]
#: zCDP is about all orders above 1.
NEAR_ONE = [Fraction(n, 100) for n in (101, 110, 150, 200, 300)]


def above(amount: Real) -> Fraction:
    """A rational that is a little larger."""
    return Fraction(math.ceil(amount * 10**20), 10**20) + UP


@dataclass(frozen=True)
class Case:
    """A mechanism on two neighboring tables, and how it is repeated.

    Attributes:
        laws: Its outputs' probabilities on either table.
        ranks: How good each output is.
        base: A curve that it has.
        runs: The number of runs.
        exact: Whether the privacy profile of one run is given, too.
    """

    laws: tuple[oracle.Law, oracle.Law]
    ranks: list[int]
    base: Curve
    runs: Runs
    exact: bool = False

    def curve(self) -> Curve:
        """What is stated of the best output."""
        if not self.exact:
            return selected(self.base, self.runs)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(private_selection, "best_delta", self._profile)
            return selected.__wrapped__(self.base, self.runs)

    def _profile(self, _: object, eps: Fraction) -> Delta:
        p, q = self.laws
        e = real(eps)
        least = max(hockey_stick(p, q, e), hockey_stick(q, p, e))
        return Delta(Fraction(str(least * (1 + NOISE))), "exact")

    def truth(self) -> tuple[oracle.Law, oracle.Law]:
        """The laws of the best output."""
        shape = (
            (None, self.runs.mean)
            if isinstance(self.runs, Poisson)
            else (self.runs.eta, self.runs.gamma)
        )
        f = oracle.generating(*shape)
        p, q = (oracle.best(law, self.ranks, f) for law in self.laws)
        return p, q


# --- random cases -----------------------------------------------------------------


def some_runs(draw: random.Random) -> Runs:
    if draw.random() < 0.35:
        return Poisson(Fraction(f"{10 ** draw.uniform(-2, 2):.4g}"))
    shapes = ["0", "1", "1", "2", "-1/2", "-9/10", "1/3"]
    shape = draw.choice([*shapes, f"{draw.uniform(-0.95, 4):.3f}"])
    return NegativeBinomial(
        Fraction(shape), Fraction(f"{10 ** draw.uniform(-4, -0.02):.4g}")
    )


def two_laws(draw: random.Random) -> tuple[oracle.Law, oracle.Law]:
    """Outputs, some of them rare, with ratios up to e^eps."""
    size, eps = draw.randint(2, 6), 10 ** draw.uniform(-2, 0.7)
    weights = [MP.mpf(10) ** draw.uniform(-7, 0) for _ in range(size)]
    signs = [draw.choice([-1, 1, draw.uniform(-1, 1)]) for _ in weights]
    moved = [w * MP.exp(eps * s / 2) for w, s in zip(weights, signs, strict=True)]
    p, q = ([w / MP.fsum(law) for w in law] for law in (weights, moved))
    return p, q


def rare_success(draw: random.Random) -> tuple[oracle.Law, oracle.Law]:
    """An output that counts at one order, and is rare: more runs make it likelier."""
    exponent, eps = draw.uniform(20, 40), draw.choice([1, 2, 4])
    chance = MP.exp(-exponent)
    return [1 - chance, chance], [1 - chance * MP.exp(eps), chance * MP.exp(eps)]


def worst_pure(draw: random.Random) -> tuple[oracle.Law, oracle.Law]:
    """Randomized response, and between its answers in rank a tiny output."""
    grown, tiny = MP.exp(draw.uniform(0.1, 3)), MP.mpf(10) ** -30
    yes, no = grown / (1 + grown), 1 / (1 + grown)
    return [yes, tiny * grown, no - tiny * grown], [no, tiny, yes - tiny]


def cells_of_gaussian(
    draw: random.Random, mu: Fraction
) -> tuple[oracle.Law, oracle.Law]:
    """Gaussian noise around 0 and mu, rounded to cells."""
    cuts = sorted({real(mu) / 2 + MP.mpf(draw.uniform(-5, 5)) for _ in range(12)})

    def law(center: Real) -> oracle.Law:
        below = [MP.mpf(0), *(MP.ncdf(x - center) for x in cuts), MP.mpf(1)]
        return [b - a for a, b in pairwise(below)]

    return law(MP.mpf(0)), law(real(mu))


def some_ranks(draw: random.Random, p: oracle.Law, q: oracle.Law) -> list[int]:
    """By likelihood, the worst order there can be; at random; or with equal ones."""
    size, how = len(p), draw.random()
    by_ratio = sorted(range(size), key=lambda i: p[i] / q[i], reverse=how < 0.3)
    if how > 0.6:
        draw.shuffle(by_ratio)
    if how > 0.8:
        return [draw.randrange(size) for _ in range(size)]
    return [by_ratio.index(i) for i in range(size)]


KINDS = ("pure", "renyi", "gaussian", "zcdp", "delta", "rare", "worst")


def case(draw: random.Random, *kinds: str) -> Case:
    kind = draw.choice(kinds or KINDS)
    runs = some_runs(draw)
    if kind in {"gaussian", "zcdp"}:
        mu = Fraction(f"{10 ** draw.uniform(-1.5, 0.5):.3g}")
        p, q = cells_of_gaussian(draw, mu)
        rho = mu * mu / 2
        base = gaussian(rho=rho) if kind == "gaussian" else declared_zcdp(rho=rho)
        return Case((p, q), some_ranks(draw, p, q), base, runs)
    pair = {"rare": rare_success, "worst": worst_pure}.get(kind, two_laws)
    p, q = pair(draw)
    eps = above(largest_ratio(p, q))
    base = declared_pure(eps=eps)
    if kind in {"renyi", "rare"}:
        known = {order: above(worse_way(p, q, order)) for order in ORDERS[:-2]}
        base = declared_renyi(known, eps=draw.choice([None, eps]))
    if kind in {"rare", "worst"}:
        return Case((p, q), list(range(len(p))), base, runs, exact=True)
    if kind != "delta":
        exact = draw.random() < 0.5
        return Case((p, q), some_ranks(draw, p, q), base, runs, exact)
    delta = Fraction(f"{10 ** draw.uniform(-6, -2):.3g}")
    ranks = [*some_ranks(draw, p, q), draw.randint(-1, 9), draw.randint(-1, 9)]
    d = real(delta)
    laws = (
        [*((1 - d) * x for x in p), d, MP.mpf(0)],
        [*((1 - d) * x for x in q), MP.mpf(0), d],
    )
    return Case(laws, ranks, replace(base, delta=delta), runs)


# --- the comparison ---------------------------------------------------------------


def comparisons(one: Case) -> Iterator[tuple[str, Real, Real]]:
    """Each measure, what is stated and what is true."""
    curve = one.curve()
    p, q = one.truth()
    if one.base.delta:
        eps = value(curve.eps)
        for a, b in ((p, q), (q, p)):
            yield "delta", real(curve.delta), hockey_stick(a, b, eps)
        return
    for order in AT:
        yield f"rdp({order})", value(curve.at(order)), worse_way(p, q, order)
    yield "eps", value(curve.eps), largest_ratio(p, q)
    yield "rho", value(curve.rho), max(kl_discrete(p, q), kl_discrete(q, p))
    for order in NEAR_ONE:
        truth = worse_way(p, q, order) / real(order)
        yield "rho", value(curve.rho), truth


def understated(one: Case) -> list[str]:
    return [
        measure for measure, ours, truth in comparisons(one) if ours < truth - NOISE
    ]


def some_cases(number: int) -> Iterator[Case]:
    draw = random.Random(f"selection {seed()}")
    return (case(draw) for _ in range(number))


def test_no_measure_is_below_the_truth() -> None:
    slack: dict[str, list[float]] = {}
    number = examples(100)
    for one in some_cases(number):
        for measure, ours, truth in comparisons(one):
            assert ours >= truth - NOISE, (measure, one)
            if truth > NOISE and ours < MP.inf:
                slack.setdefault(measure, []).append(float(ours / truth))
    print(f"\n{number} selections; stated over true: times, least, typical")
    for measure, ratios in sorted(slack.items()):
        typical = math.exp(mean(map(math.log, ratios)))
        print(f"  {measure:15} {len(ratios):6} {min(ratios):8.4f} {typical:8.2f}")


class OneRun(NegativeBinomial, frozen=True):
    """As if it ran once on average: no ln E[K], and delta once."""

    @property
    def mean(self) -> Decimal:
        return Decimal(1)


class LessSurplus(NegativeBinomial, frozen=True):
    """As if what other runs tell were less by a tenth."""

    def surplus(self, profile: Profile, eps: Amount) -> Callable[[Amount], Fraction]:
        whole = super().surplus(profile, eps)
        return lambda order: whole(order) * 9 / 10


class LessPoisson(Poisson, frozen=True):
    """The same."""

    def surplus(self, profile: Profile, eps: Amount) -> Callable[[Amount], Fraction]:
        whole = super().surplus(profile, eps)
        return lambda order: whole(order) * 9 / 10


@pytest.mark.parametrize(
    ("weak", "kind", "measure"),
    [
        (OneRun, "rare", "rdp"),
        (OneRun, "delta", "delta"),
        (LessSurplus, "worst", "eps"),
        (LessPoisson, "worst", "eps"),
    ],
)
def test_less_would_be_found(weak: type[Runs], kind: str, measure: str) -> None:
    draw = random.Random("less")
    cases = (case(draw, kind) for _ in range(40))
    weakened = (
        replace(one, runs=weak(*astuple(one.runs)))
        for one in cases
        if isinstance(one.runs, weak.__mro__[1])
    )
    assert any(measure in "".join(understated(one)) for one in weakened)


# --- the proof, and the paper -----------------------------------------------------


def test_it_is_never_more_than_the_theorem_of_the_paper() -> None:
    """Papernot & Steinke 2022, Thm 2, with both of its orders on the grid."""
    draw = random.Random("paper")
    cases = (case(draw, "renyi", "gaussian", "zcdp") for _ in range(examples(60)))
    for one in cases:
        if isinstance(one.runs, Poisson):
            continue
        eta, gamma = real(one.runs.eta), real(one.runs.gamma)
        each = [(o, real(o), value(one.base.at(o))) for o in ORDERS]
        most = min((1 - 1 / b) * d + MP.log(1 / gamma) / b for _, b, d in each)
        curve = selected(one.base, one.runs)
        for order, a, divergence in each:
            log = MP.log(value(one.runs.mean)) / (a - 1)
            theirs = divergence + (1 + eta) * most + log
            assert value(curve.at(order)) <= theirs * (1 + MP.mpf(10) ** -6)


@pytest.mark.parametrize("eta", [None, *map(Fraction, ("0", "1", "3", "1/2", "-1/2"))])
@pytest.mark.parametrize("size", [Fraction(3, 10), Fraction(9, 10)])
def test_the_distributions_are_what_they_say(
    eta: Fraction | None, size: Fraction
) -> None:
    law = oracle.number_of_runs(eta, size, 400)
    f = oracle.generating(eta, size)
    runs = Poisson(size) if eta is None else NegativeBinomial(eta, size)
    close = MP.mpf(10) ** -30
    for x in (MP.mpf(0), MP.mpf("0.4"), MP.mpf(1)):
        assert abs(MP.fsum(p * x**k for k, p in enumerate(law)) - f(x)) < close
    truth = MP.fsum(k * p for k, p in enumerate(law))
    assert abs(value(runs.mean) - truth) < close
    assert abs(value(runs.none) - law[0]) < close


@pytest.mark.parametrize("eta", [-1, 1, 10**6])
def test_more_runs_cost_more_where_numbers_are_nearly_0_or_1(eta: int) -> None:
    """Where a mean would lose all of its digits, it is that of more runs."""
    for tiny in (Fraction(1, 10**12), Fraction(1, 10**300)):
        for runs, more in (
            (
                NegativeBinomial(eta * tiny, tiny),
                NegativeBinomial(eta * tiny, tiny / 2),
            ),
            (
                NegativeBinomial(Fraction(1), 1 - tiny),
                NegativeBinomial(Fraction(1), Fraction(1, 2)),
            ),
            (
                NegativeBinomial(-tiny, Fraction(1, 2)),
                NegativeBinomial(Fraction(1, 100), Fraction(1, 2)),
            ),
        ):
            assert 1 <= runs.mean < more.mean
    logarithmic = NegativeBinomial(Fraction(0), Fraction(1, 2))
    near = NegativeBinomial(eta * Fraction(1, 10**300), Fraction(1, 2))
    assert logarithmic.mean <= near.mean < logarithmic.mean + Decimal("1e-8")
