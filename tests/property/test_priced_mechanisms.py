"""Prices of releases against what their mechanisms do, by definition, at 50 digits.

Users have visits, and a loss is priced for both. An answer may move as far as all
stated sensitivities allow; the mechanism that answers so, and its sample, give two laws
for each unit. No stored coordinate is below what tells these two apart, and none is
above what the mechanism is said to cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import pytest
from budget import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracle import accounting
from oracle import mechanisms as oracle
from oracle.accounting import MP, Real, kl_discrete, real, renyi_discrete
from oracle.mechanisms import Law, Mixture
from samples.user_visits import priced, words

from modicum.accounting import INFINITE, ORDERS, Loss
from modicum.accounting.grid import DELTA, EPS, MU2, RHO, order_index
from modicum.core.errors import Code, InputError
from modicum.core.rationals import LOSS_UNIT
from modicum.release import PricedMechanism, Relation
from modicum.release.units import RELATIONS

pytestmark = pytest.mark.soak

#: What the oracle leaves uncertain: of sums, and of integrals.
EXACT = MP.mpf(10) ** -30
INTEGRAL = MP.mpf(10) ** -18
#: A stored number is the next one of these.
UNIT = MP.mpf(1) / LOSS_UNIT
REFUSED = {Code.COST_NOT_DERIVABLE, Code.COST_MISSING}
UNITS = ("user", "visit")


def quick(n: int) -> settings:
    """Return settings of so many examples in the whole suite, ten times in a soak."""
    return settings(max_examples=examples(n), deadline=None)


@dataclass(frozen=True)
class Setting:
    """What a release and its policy say of one mechanism, but for its parameters.

    Attributes:
        relations: Of users and of visits.
        visits: The largest number of visits of a user.
        sizes: The stated sensitivities, by unit.
        sampled: The unit that is sampled; none for all rows.
        rate: The rate of the sample.
    """

    relations: tuple[Relation, Relation]
    visits: int
    sizes: dict[str, Fraction]
    sampled: str | None
    rate: Fraction

    def price(
        self, kind: str, norm: str, parameters: dict[str, Any]
    ) -> PricedMechanism | None:
        """Return the price of a mechanism; None where none is proven."""
        sample = {"unit": self.sampled, "rate": self.rate}
        described = {
            "mechanism": kind,
            "attributes": [],
            **({"sampling": sample} if self.sampled else {}),
            **parameters,
        }
        if norm:
            sizes = {unit: {norm: size} for unit, size in self.sizes.items()}
            described["sensitivity"] = sizes
        try:
            return priced(described, words(*self.relations, self.visits))
        except InputError as error:
            assert {one.code for one in error.problems} <= REFUSED  # noqa: PT017
            return None

    def moved(self, unit: str, visits: int) -> Fraction:
        """Return how far an answer can move by so many visits of one user.

        Visits change one by one, or a user does at once: no fewer changes lead from
        the one table to the other.
        """
        most = []
        if "visit" in self.sizes:
            most.append((visits if unit == "user" else 1) * self.sizes["visit"])
        if "user" in self.sizes:
            most.append(self.sizes["user"])
        return min(most)

    def drawn(self, unit: str) -> list[tuple[Real, Fraction]]:
        """Return how likely an answer moves how far, with an instance and its sample.

        Without the instance, it does not move.
        """
        if self.sampled is None:
            return [(MP.mpf(1), self.moved(unit, self.visits))]
        one_by_one = (unit, self.sampled) == ("user", "visit")
        most = self.visits if one_by_one else 1
        return [
            (chance, self.moved(unit, count if one_by_one else self.visits))
            if count
            else (chance, Fraction(0))
            for count, chance in enumerate(binomial(most, self.rate))
        ]

    def laws(self, unit: str, law: Callable[[Fraction], Law]) -> tuple[Law, Law]:
        """Return the laws of a mechanism with an instance and without."""
        parts = [(chance, law(size)) for chance, size in self.drawn(unit)]
        outcomes = range(len(parts[0][1]))
        there = [MP.fsum(c * part[i] for c, part in parts) for i in outcomes]
        return there, law(Fraction(0))


def binomial(most: int, rate: Fraction) -> list[Real]:
    q = real(rate)
    return [
        MP.binomial(most, k) * q**k * (1 - q) ** (most - k) for k in range(most + 1)
    ]


def coordinate(loss: Loss, index: int) -> Real:
    units = loss.coordinates[index]
    return MP.inf if units >= INFINITE else real(Fraction(units, LOSS_UNIT))


def assert_covers(loss: Loss, laws: tuple[Law, Law], noise: Real = EXACT) -> None:
    """No coordinate is below what tells the two laws apart."""
    p, q = laws
    assert abs(MP.fsum(p) - 1) < noise
    assert coordinate(loss, EPS) >= oracle.largest_ratio(p, q) - noise
    apart = max(kl_discrete(p, q), kl_discrete(q, p))
    assert coordinate(loss, RHO) >= apart - noise
    assert MP.sqrt(coordinate(loss, MU2)) >= oracle.needed_mu(p, q) - noise
    for order, truth in zip(ORDERS, oracle.worse_ways(p, q, ORDERS), strict=True):
        assert coordinate(loss, order_index(order)) >= truth - noise, order
        assert coordinate(loss, RHO) >= truth / real(order) - noise, order
    assert loss.coordinates[DELTA] == 0


@dataclass(frozen=True)
class Claim:
    """What a mechanism is said to cost: not more is stored."""

    eps: Real
    rho: Real
    mu2: Real
    renyi: Callable[[Fraction], Real]

    def assert_not_exceeded(self, loss: Loss, orders: Sequence[Fraction]) -> None:
        fixed = {EPS: self.eps, RHO: self.rho, MU2: self.mu2}
        claimed = fixed | {order_index(order): self.renyi(order) for order in orders}
        for index, most in claimed.items():
            if most >= UNIT * INFINITE:
                continue
            room = most / 10**12 + UNIT + EXACT
            assert coordinate(loss, index) <= most + room, index


def pure_claim(eps: Fraction) -> Claim:
    return Claim(
        real(eps),
        accounting.pure_rho(eps),
        accounting.pure_mu2(eps),
        lambda order: accounting.pure_renyi(eps, order),
    )


# --- what is drawn --------------------------------------------------------------------


def numbers(low: int, high: int) -> st.SearchStrategy[Fraction]:
    """Draw a number of three digits, of these powers of ten, or a third of it."""
    return st.builds(
        lambda digits, power, parts: Fraction(digits, parts) * Fraction(10) ** power,
        st.integers(100, 999),
        st.integers(low - 2, high - 2),
        st.sampled_from((1, 1, 3)),
    )


rates = st.one_of(
    st.builds(Fraction, st.integers(1, 99), st.just(100)),
    st.builds(Fraction, st.integers(1, 99), st.just(10**5)),
)
relations: st.SearchStrategy[Relation] = st.sampled_from(("add-remove", *RELATIONS))
whole = st.integers(1, 5).map(Fraction)


@st.composite
def settings_of(
    draw: st.DrawFn, sizes: st.SearchStrategy[Fraction], *, samples: bool = True
) -> Setting:
    user, visit = draw(relations), draw(relations)
    stated = {unit: draw(sizes) for unit in UNITS}
    one = draw(st.sampled_from((None, None, *UNITS)))
    if one is not None:
        del stated[one]
    sampled = draw(st.sampled_from((None, *UNITS))) if samples else None
    assume(sampled is None or sampled in stated)
    if sampled == "user":
        user = "add-remove"
    elif sampled == "visit":
        visit = "add-remove"
    visits, rate = draw(st.integers(1, 4)), draw(rates)
    return Setting((user, visit), visits, stated, sampled, rate)


few_orders = st.sets(st.sampled_from(ORDERS), min_size=2, max_size=2).map(sorted)
#: How the score of a candidate, or the answer to a query, follows a change.
directions = st.one_of(
    st.sampled_from((Fraction(-1), Fraction(1))),
    st.builds(Fraction, st.integers(-9, 9), st.just(9)),
)


@dataclass(frozen=True)
class Scores:
    """The scores of candidates, and how each of them follows a change."""

    before: tuple[Fraction, ...]
    ways: tuple[Fraction, ...]

    def at(self, size: Fraction) -> list[Fraction]:
        pairs = zip(self.before, self.ways, strict=True)
        return [score + size * way for score, way in pairs]


@st.composite
def scores_near(draw: st.DrawFn, most: int) -> Scores:
    count = draw(st.integers(2, most))
    score = st.builds(Fraction, st.integers(-30, 30), st.just(7))
    before = draw(st.lists(score, min_size=count, max_size=count))
    ways = draw(st.lists(directions, min_size=count, max_size=count))
    return Scores(tuple(before), tuple(ways))


#: Small enough that 50 digits tell the least likely candidate from none.
parameters = numbers(-4, -1)
sizes = numbers(-1, 0)
Chooser: TypeAlias = Callable[[Sequence[Fraction], Fraction], Law]


def assert_choice(
    setting: Setting,
    kind: str,
    eps: Fraction,
    scores: Scores,
    chooser: Chooser,
) -> PricedMechanism:
    """A choice by scores costs each unit what it says, or more."""
    found = setting.price(kind, "linf", {"eps": eps})
    assume(found is not None)
    assert found is not None
    for unit in UNITS:
        laws = setting.laws(unit, lambda size: chooser(scores.at(size), eps))
        assert_covers(found.losses[unit], laws)
    return found


# --- choices by scores ----------------------------------------------------------------


@quick(100)
@given(settings_of(sizes), parameters, scores_near(5), few_orders)
def test_the_exponential_mechanism_costs_what_is_stored(
    setting: Setting, eps: Fraction, scores: Scores, orders: list[Fraction]
) -> None:
    found = assert_choice(setting, "exponential", eps, scores, oracle.exponential)
    for unit, size in setting.sizes.items():
        claim = bounded_range(eps * size)
        claim.assert_not_exceeded(found.losses[unit], orders[:1])


def bounded_range(eps: Fraction) -> Claim:
    """Return the largest cost of ratios that lie within exp(eps) of each other."""
    e = real(eps)

    def negated(order: Fraction) -> Callable[[Real], Real]:
        def at(u: Real) -> Real:
            # Of two outcomes, with ratios high and high / exp(eps).
            high = MP.exp(e / (1 + MP.exp(-u)))
            low = high * MP.exp(-e)
            chance = (1 - low) / (high - low)
            p, q = [chance * high, (1 - chance) * low], [chance, 1 - chance]
            return -renyi_discrete(p, q, order)

        return at

    pure = pure_claim(eps)
    return Claim(
        pure.eps,
        min(e * e / 8, pure.rho),
        pure.mu2,
        # At larger orders, the worst ratio is too near to exp(eps) for a search.
        lambda order: (
            -accounting.least(negated(order), -16, 16) if order < 10**6 else pure.eps
        ),
    )


@quick(100)
@given(settings_of(sizes), parameters, scores_near(5), few_orders)
def test_permute_and_flip_costs_what_is_stored(
    setting: Setting, eps: Fraction, scores: Scores, orders: list[Fraction]
) -> None:
    kind = "permute-and-flip"
    found = assert_choice(setting, kind, eps, scores, oracle.permute_and_flip)
    for unit, size in setting.sizes.items():
        pure_claim(eps * size).assert_not_exceeded(found.losses[unit], orders)


@quick(100)
@given(settings_of(sizes), parameters, scores_near(4), few_orders)
def test_the_largest_noisy_score_costs_what_is_stored(
    setting: Setting, eps: Fraction, scores: Scores, orders: list[Fraction]
) -> None:
    kind = "report-noisy-max"
    found = assert_choice(
        setting, kind, eps, scores, lambda at, e: oracle.laplace_max(at, e / 2)
    )
    for unit, size in setting.sizes.items():
        pure_claim(eps * size).assert_not_exceeded(found.losses[unit], orders)


# --- queries above a threshold --------------------------------------------------------


@st.composite
def questions(draw: st.DrawFn) -> dict[str, tuple[Fraction, Fraction]]:
    """Draw the queries: by the signs before, an answer and how it follows a change."""
    count = draw(st.integers(1, 3))
    answer = st.builds(Fraction, st.integers(-20, 20), st.just(7))
    signs = [""]
    for _ in range(count - 1):
        signs += [f"{text}{sign}" for text in signs for sign in "-+"]
    return {text: (draw(answer), draw(directions)) for text in dict.fromkeys(signs)}


@quick(30)
@given(
    settings_of(sizes),
    st.tuples(parameters, parameters),
    questions(),
    st.integers(1, 3),
    few_orders,
)
def test_sparse_vector_costs_what_is_stored(
    setting: Setting,
    split: tuple[Fraction, Fraction],
    asked: dict[str, tuple[Fraction, Fraction]],
    positives: int,
    orders: list[Fraction],
) -> None:
    threshold, queries = split
    given_ = {
        "eps-threshold": threshold,
        "eps-queries": queries,
        "positives": positives,
    }
    found = setting.price("sparse-vector", "linf", given_)
    assume(found is not None)
    assert found is not None
    count = max(map(len, asked)) + 1

    def law(size: Fraction) -> Law:
        def answer(before: str) -> Fraction:
            return asked[before][0] + size * asked[before][1]

        rates = threshold, queries / 2
        return oracle.laplace_transcripts(answer, count, rates, positives)

    for unit in UNITS:
        assert_covers(found.losses[unit], setting.laws(unit, law))
    for unit, size in setting.sizes.items():
        costs(threshold * size, queries * size, positives).assert_not_exceeded(
            found.losses[unit], orders
        )


def costs(threshold: Fraction, queries: Fraction, positives: int) -> Claim:
    """Return the loss up to a positive answer, so many times."""
    pure = pure_claim(threshold + queries)

    def renyi(order: Fraction) -> Real:
        noisy = accounting.laplace_renyi(threshold, order) + real(queries)
        return positives * min(noisy, pure.renyi(order))

    return Claim(
        positives * pure.eps, positives * pure.rho, positives * pure.mu2, renyi
    )


# --- votes ----------------------------------------------------------------------------


@quick(100)
@given(
    settings_of(whole, samples=False),
    st.lists(st.integers(0, 12), min_size=2, max_size=3),
    numbers(-1, 1).filter(lambda sigma: sigma >= Fraction(1, 3)),
    st.data(),
)
def test_votes_cost_what_is_stored(
    setting: Setting, counts: list[int], sigma: Fraction, data: st.DataObject
) -> None:
    found = setting.price("pate-gnmax", "teachers", {"sigma": sigma})
    assume(found is not None)
    assert found is not None
    for unit in UNITS:
        votes = list(counts)
        for _ in range(int(setting.moved(unit, setting.visits))):
            # A teacher votes for another class, leaves or joins.
            one, other = data.draw(st.permutations([*range(len(counts)), None]))[:2]
            if one is not None and votes[one]:
                votes[one] -= 1
            elif one is not None:
                continue
            if other is not None:
                votes[other] += 1
        laws = oracle.gaussian_max(counts, sigma), oracle.gaussian_max(votes, sigma)
        assert_covers(found.losses[unit], laws, INTEGRAL)
    for unit, teachers in setting.sizes.items():
        rho = (teachers / sigma) ** 2
        fixed = exactly(rho), exactly(2 * rho)
        assert found.losses[unit].coordinates[RHO] <= fixed[0]
        assert found.losses[unit].coordinates[MU2] <= fixed[1]
        for order in ORDERS:
            stored = found.losses[unit].coordinates[order_index(order)]
            assert stored <= exactly(order * rho)


def exactly(loss: Fraction) -> int:
    """Return a loss in stored units."""
    return min(INFINITE, -(-loss * LOSS_UNIT // 1))


# --- training -------------------------------------------------------------------------


@st.composite
def training_settings(draw: st.DrawFn) -> Setting:
    """Draw a sampled unit; the other one has what follows from it."""
    sampled = draw(st.sampled_from(UNITS))
    near = {unit: draw(relations) for unit in UNITS}
    near[sampled] = "add-remove"
    visits, rate = draw(st.integers(1, 3)), draw(rates)
    pair = near["user"], near["visit"]
    return Setting(pair, visits, {sampled: Fraction(1)}, sampled, rate)


def contributions(setting: Setting, unit: str) -> tuple[Mixture, Mixture]:
    """Return what an instance adds to the sum, in clipping norms, before and after."""
    most = setting.visits if (unit, setting.sampled) == ("user", "visit") else 1
    there = list(enumerate(binomial(most, setting.rate)))
    turned = [(-count, chance) for count, chance in there]
    relation = dict(zip(UNITS, setting.relations, strict=True))[unit]
    if unit == setting.sampled or (unit == "user" and relation == "add-remove"):
        return there, [(0, MP.mpf(1))]
    return there, turned  # Another visit of the user, or others of a replaced one.


noises = numbers(-1, 1).filter(lambda noise: noise >= Fraction(2, 5))
step_counts = st.one_of(st.integers(1, 3), st.integers(1, 10**4))
small_orders = st.sampled_from([order for order in ORDERS if order <= 8])
whole_orders = st.sampled_from([o for o in ORDERS if o <= 1024 and o.denominator == 1])


@pytest.mark.spec("REL-13")
@quick(30)
@given(training_settings(), noises, step_counts, small_orders, whole_orders)
def test_training_costs_what_is_stored(
    setting: Setting, noise: Fraction, steps: int, small: Fraction, order: Fraction
) -> None:
    found = setting.price("dp-sgd", "", {"noise-multiplier": noise, "steps": steps})
    assume(found is not None)
    assert found is not None
    assert setting.sampled is not None
    for unit in UNITS:
        loss = found.losses[unit]
        laws = contributions(setting, unit)
        truth = steps * oracle.mixtures_apart(*laws, noise, small)
        assert coordinate(loss, order_index(small)) >= truth - steps * INTEGRAL
        assert coordinate(loss, RHO) >= truth / real(small) - steps * INTEGRAL
        if steps == 1:
            assert MP.sqrt(coordinate(loss, MU2)) >= thresholds(laws, noise) - EXACT
    loss = found.losses[setting.sampled]
    truth = steps * oracle.sampled_power(setting.rate, noise, int(order))
    assert coordinate(loss, order_index(order)) >= truth - steps * EXACT
    rho = steps / (2 * real(noise) ** 2)
    own = contributions(setting, setting.sampled)
    exact = {
        order: truth,
        small: steps * oracle.mixtures_apart(*own, noise, small),
    }
    Claim(MP.inf, rho, 2 * rho, exact.__getitem__).assert_not_exceeded(loss, [*exact])


def thresholds(laws: tuple[Mixture, Mixture], noise: Fraction) -> Real:
    """Return a mu that tests of one step need, which ask whether the sum is large."""

    def below(mixture: Mixture, x: Real) -> list[Real]:
        away = [(w, (x - shift) / real(noise)) for shift, w in mixture]
        return [MP.fsum(w * MP.ncdf(s * z) for w, z in away) for s in (1, -1)]

    places = (real(noise) * n / 2 for n in range(-8, 9))
    return max(
        oracle.quantile(*below(laws[1], x)) - oracle.quantile(*below(laws[0], x))
        for x in places
    )


# --- the oracle's own -----------------------------------------------------------------


@pytest.mark.parametrize("scores", [(0, 1), (0, 0, 2), (3, -1, 1)])
def test_laws_agree_with_numeric_integration(scores: tuple[int, ...]) -> None:
    rate, s = Fraction(2, 3), real(Fraction(3, 2))
    laplace = oracle.laplace_density(s), oracle.laplace_below(s)
    root = MP.sqrt(2 * MP.pi)
    normal = (
        lambda x: MP.exp(-((x / s) ** 2) / 2) / (s * root),
        lambda x: MP.ncdf(x / s),
    )
    places = list(map(Fraction, scores))
    for found, noise, reach in (
        (oracle.laplace_max(places, rate), laplace, 90),
        (oracle.gaussian_max(scores, Fraction(3, 2)), normal, 25),
    ):
        law = oracle.noisy_max(list(map(real, places)), *noise, MP.mpf(reach))
        assert all(abs(a - b) < INTEGRAL for a, b in zip(found, law, strict=True))


def test_transcripts_agree_with_numeric_integration() -> None:
    answers, rates = (1, -1), (Fraction(1, 2), Fraction(1, 3))
    found = oracle.laplace_transcripts(
        lambda before: Fraction(answers[len(before)]), 2, rates, 1
    )
    law = oracle.sparse_vector(answers, MP.mpf(2), MP.mpf(3), 1, fresh=True)
    pairs = zip(found, law.values(), strict=True)
    assert all(abs(a - b) < INTEGRAL for a, b in pairs)


def test_steps_agree_with_numeric_integration() -> None:
    rate, noise, order = Fraction(1, 5), Fraction(3, 2), Fraction(3)
    laws = [(0, real(1 - rate)), (1, real(rate))], [(0, MP.mpf(1))]
    ways = oracle.gaussian_step(rate, noise, order)
    assert abs(oracle.mixtures_apart(*laws, noise, order) - max(ways)) < INTEGRAL
    assert abs(oracle.sampled_power(rate, noise, 3) - ways[0]) < INTEGRAL
