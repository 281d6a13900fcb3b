"""Samples of data against their own mixtures: sums and integrals at 50 digits."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from budget import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle import mechanisms as oracle
from oracle.accounting import MP, Real, real, renyi_discrete
from oracle.mechanisms import mixed, value, worse_way

from modicum.accounting.amplification import (
    poisson,
    poisson_gaussian,
    poisson_substitute,
    shared_sample,
    unit_level_rate,
    without_replacement,
)
from modicum.accounting.amplification.sampled_gaussian import _by_quadrature
from modicum.accounting.curves import Curve
from modicum.accounting.decimals import precise
from modicum.accounting.mechanisms import (
    declared_pure,
    declared_renyi,
    poisson_laplace,
    randomized_response,
)

pytestmark = pytest.mark.soak

NOISE = MP.mpf(10) ** -28
INTEGRAL_NOISE = MP.mpf(10) ** -15
UNIT = MP.mpf(10) ** -12

rates = st.one_of(
    st.integers(1, 99).map(lambda n: Fraction(n, 100)),
    st.integers(1, 9).map(lambda n: Fraction(1, 10**n)),
)
integers = st.integers(2, 12).map(Fraction)
quarters = st.integers(5, 40).map(lambda n: Fraction(n, 4))
chances = st.lists(st.integers(1, 400), min_size=3, max_size=3)


def quick(n: int) -> settings:
    return settings(max_examples=examples(n), deadline=None)


def law(weights: list[int]) -> list[Real]:
    return oracle.normalized([MP.mpf(n) for n in weights])


def above(truth: Real) -> Fraction:
    """A rational just above a number of the oracle."""
    return Fraction(str(MP.nstr(truth, 40))) + Fraction(1, 10**36)


def assert_not_below(
    found: Fraction | Decimal, truth: Real, noise: Real = NOISE
) -> None:
    assert value(found) >= truth - noise


def assert_close_above(
    found: Fraction | Decimal, truth: Real, noise: Real = NOISE
) -> None:
    assert_not_below(found, truth, noise)
    assert value(found) <= truth + max(truth * MP.mpf(10) ** -6, UNIT)


def known_curve(pairs: list[tuple[list[Real], list[Real]]], *, pure: bool) -> Curve:
    """The curve of some pairs of laws, at integer orders and perhaps pure eps."""
    points = {
        Fraction(n): above(max(worse_way(p, q, Fraction(n)) for p, q in pairs))
        for n in range(2, 14)
    }
    eps = above(max(oracle.largest_ratio(p, q) for p, q in pairs))
    return declared_renyi(points, eps=eps if pure else None)


# --- Gaussian noise -----------------------------------------------------------


noises = st.sampled_from([Fraction(n, 10) for n in (5, 8, 10, 17, 40, 200)])


@quick(6)
@given(rates, noises, st.one_of(integers, quarters))
@example(Fraction(1, 10), Fraction(1), Fraction(3, 2))
@example(Fraction(1, 2), Fraction(1, 2), Fraction(5, 2))
@example(Fraction(99, 100), Fraction(4, 5), Fraction(5, 4))
def test_a_gaussian_step_is_the_worse_of_both_ways(
    rate: Fraction, noise: Fraction, order: Fraction
) -> None:
    adding, removing = oracle.gaussian_step(rate, noise, order)
    step = poisson_gaussian(sampling_rate=rate, noise_multiplier=noise)
    assert removing <= adding + NOISE
    assert_not_below(step.at(order), adding)
    assert abs(value(step.at(order)) - adding) < NOISE


@quick(40)
@given(rates, st.integers(4, 500).map(lambda n: Fraction(n, 10)), integers)
@example(Fraction(1, 10**9), Fraction(1, 5), Fraction(2))
@example(Fraction(1, 2), Fraction(10**6), Fraction(12))
def test_quadrature_and_the_sum_of_powers_are_one_number(
    rate: Fraction, noise: Fraction, order: Fraction
) -> None:
    """Two proofs, one curve: at integers the quadrature can be checked exactly."""
    step = poisson_gaussian(sampling_rate=rate, noise_multiplier=noise)
    exact = value(precise(step.renyi)(order))
    by_quadrature = value(precise(_by_quadrature)(rate, noise, order))
    assert exact <= by_quadrature <= exact * (1 + MP.mpf(10) ** -30) + 10 * NOISE


@quick(30)
@given(rates, st.integers(1, 60).map(lambda n: Fraction(n, 10)), quarters)
def test_a_gaussian_step_is_never_above_convexity_or_no_sample(
    rate: Fraction, noise: Fraction, order: Fraction
) -> None:
    step = poisson_gaussian(sampling_rate=rate, noise_multiplier=noise)
    low = max(2, int(order))
    assert value(step.at(order)) <= real(order / (2 * noise**2)) + NOISE
    if order <= low:
        assert value(step.at(order)) <= value(step.at(Fraction(low))) + NOISE
    else:
        a, b = Fraction(low), Fraction(low + 1)
        line = (b - order) * real(a - 1) * value(step.at(a))
        line += (order - a) * real(b - 1) * value(step.at(b))
        assert value(step.at(order)) <= line / real(order - 1) + NOISE


# --- any noise ----------------------------------------------------------------


@quick(40)
@given(chances, chances, rates, st.one_of(integers, quarters), st.booleans())
def test_a_poisson_sample_costs_no_more_than_its_curve(
    left: list[int], right: list[int], rate: Fraction, order: Fraction, pure: bool
) -> None:
    p, q = law(left), law(right)
    sampled = mixed(p, q, rate)
    curve = poisson(known_curve([(p, q)], pure=pure), sampling_rate=rate)
    truth = worse_way(sampled, q, order)
    assert_not_below(curve.at(order), truth)
    assert truth <= real(order) * value(curve.rho) + NOISE
    assert oracle.largest_ratio(sampled, q) <= value(curve.eps) + NOISE


@quick(40)
@given(
    st.integers(1, 300).map(lambda n: Fraction(n, 50)),
    rates,
    st.one_of(integers, quarters, st.just(Fraction(900))),
)
def test_sampled_randomized_response_costs_what_the_curve_of_pure_eps_says(
    eps: Fraction, rate: Fraction, order: Fraction
) -> None:
    """Tight: this mechanism is the worst of all that are eps-DP."""
    lie = 1 / (1 + MP.exp(real(eps)))
    p, q = [1 - lie, lie], [lie, 1 - lie]
    curve = poisson(declared_pure(eps=eps), sampling_rate=rate)
    truth = worse_way(mixed(p, q, rate), q, order)
    assert_close_above(curve.at(order), truth)


@quick(60)
@given(st.lists(st.integers(1, 400), min_size=2, max_size=6), rates, quarters)
def test_adding_is_the_worse_way_for_every_mirrored_pair(
    weights: list[int], rate: Fraction, order: Fraction
) -> None:
    p = law(weights)
    q = p[::-1]
    sampled = mixed(p, q, rate)
    adding = renyi_discrete(sampled, q, order)
    assert renyi_discrete(q, sampled, order) <= adding + NOISE


def test_removing_can_be_the_worse_way_for_other_pairs() -> None:
    """Why a bound by adding alone is given to mirrored pairs only."""
    p, q = law([1, 99]), law([50, 50])
    rate, order = Fraction(1, 2), Fraction(3)
    sampled = mixed(p, q, rate)
    adding = renyi_discrete(sampled, q, order)
    assert renyi_discrete(q, sampled, order) > adding * MP.mpf("1.05")


@quick(6)
@given(
    rates,
    st.sampled_from([Fraction(1, 5), Fraction(1), Fraction(3), Fraction(6)]),
    st.one_of(integers, quarters),
)
def test_laplace_noise_on_a_sample_costs_its_integral(
    rate: Fraction, eps: Fraction, order: Fraction
) -> None:
    curve = poisson_laplace(sensitivity_l1=eps, scale=Fraction(1), sampling_rate=rate)
    adding, removing = oracle.laplace_step(rate, eps, order)
    assert removing <= adding + INTEGRAL_NOISE
    assert_not_below(curve.at(order), adding, INTEGRAL_NOISE)
    if order.denominator == 1:
        assert_close_above(curve.at(order), adding, INTEGRAL_NOISE)


@quick(15)
@given(
    st.integers(51, 95).map(lambda n: Fraction(n, 100)),
    st.integers(1, 3),
    rates,
    integers,
)
def test_answers_from_one_sample_cost_no_more_than_their_curve(
    truth: Fraction, count: int, rate: Fraction, order: Fraction
) -> None:
    one = randomized_response(truth=truth, values=2, answers=1)
    curve = shared_sample([(one, count)], sampling_rate=rate)
    honest = [real(truth), 1 - real(truth)]
    p, q = oracle.joint([honest] * count), oracle.joint([honest[::-1]] * count)
    assert_not_below(curve.at(order), worse_way(mixed(p, q, rate), q, order))


@quick(40)
@given(
    st.integers(1, 200).map(lambda n: Fraction(n, 50)),
    st.integers(1, 99).map(lambda n: Fraction(n, 1000)),
    rates,
)
def test_a_sampled_delta_is_the_rate_times_delta(
    eps: Fraction, delta: Fraction, rate: Fraction
) -> None:
    """The worst (eps, delta)-mechanism: it tells all with probability delta."""
    d = real(delta)
    yes = (1 - d) / (1 + MP.exp(-real(eps)))
    p, q = [d, yes, 1 - d - yes, MP.mpf(0)], [MP.mpf(0), 1 - d - yes, yes, d]
    curve = poisson(declared_pure(eps=eps, delta=delta), sampling_rate=rate)
    sampled = mixed(p, q, rate)
    for a, b in ((sampled, q), (q, sampled)):
        found = oracle.hockey_stick(a, b, value(curve.eps))
        assert found <= real(curve.delta) + NOISE
    assert curve.delta == rate * delta


# --- substitution ---------------------------------------------------------------


@quick(60)
@given(chances, chances, chances, rates, quarters)
def test_a_substitution_in_a_poisson_sample_costs_no_more_than_its_curve(
    out: list[int], old: list[int], new: list[int], rate: Fraction, order: Fraction
) -> None:
    without, before, after = law(out), law(old), law(new)
    unit = max(oracle.largest_ratio(p, without) for p in (before, after))
    curve = poisson_substitute(
        eps_add_remove=above(unit),
        eps_substitute=above(oracle.largest_ratio(before, after)),
        sampling_rate=rate,
    )
    p, q = mixed(before, without, rate), mixed(after, without, rate)
    assert_not_below(curve.at(order), worse_way(p, q, order))
    assert oracle.largest_ratio(p, q) <= value(curve.eps) + NOISE


@quick(30)
@given(
    st.integers(1, 100).map(lambda n: Fraction(n, 50)),
    st.integers(1, 50).map(lambda n: Fraction(n, 25)),
    rates,
)
def test_some_substitution_costs_all_that_is_charged(
    unit: Fraction, share: Fraction, rate: Fraction
) -> None:
    """One rare outcome has exp(u) times its probability, then exp(u - b) times."""
    change = share * unit
    rare = MP.mpf(10) ** -30
    high = MP.exp(real(unit)) * rare
    low = MP.exp(real(unit - change)) * rare
    p, q = (mixed([x, 1 - x], [rare, 1 - rare], rate) for x in (high, low))
    curve = poisson_substitute(
        eps_add_remove=unit, eps_substitute=change, sampling_rate=rate
    )
    assert abs(oracle.largest_ratio(p, q) - value(curve.eps)) < NOISE


@quick(40)
@given(
    chances,
    chances,
    chances,
    rates,
    st.one_of(integers, quarters),
    st.booleans(),
)
def test_a_sample_of_fixed_size_costs_no_more_than_its_curve(
    out: list[int],
    old: list[int],
    new: list[int],
    rate: Fraction,
    order: Fraction,
    pure: bool,
) -> None:
    """Another instance in the sample, or one of the two: three laws, all neighbors."""
    without, before, after = law(out), law(old), law(new)
    pairs = [(without, before), (without, after), (before, after)]
    curve = without_replacement(known_curve(pairs, pure=pure), sampling_rate=rate)
    p, q = mixed(before, without, rate), mixed(after, without, rate)
    assert_not_below(curve.at(order), worse_way(p, q, order))
    assert oracle.largest_ratio(p, q) <= value(curve.eps) + NOISE


# --- rows of one unit -------------------------------------------------------------


@quick(60)
@given(rates, st.integers(0, 10**6))
@example(Fraction(1, 10**9), 10**12)
@example(Fraction(1, 3), 3)
def test_the_rate_of_a_unit_is_that_of_any_of_its_rows(
    rate: Fraction, rows: int
) -> None:
    found = unit_level_rate(row_rate=rate, rows=rows)
    with MP.workdps(80):
        truth = 1 - (1 - real(rate)) ** rows
        assert truth - MP.mpf(10) ** -75 <= real(found)
        assert real(found) <= truth + MP.mpf(10) ** -38
    assert 0 <= found <= 1


@quick(30)
@given(
    st.integers(1, 30).map(lambda n: Fraction(n, 10)),
    st.integers(1, 4),
    rates,
    integers,
)
def test_a_unit_of_several_rows_costs_no_more_than_its_whole_loss_at_its_rate(
    eps: Fraction, rows: int, rate: Fraction, order: Fraction
) -> None:
    """Each row in the sample moves the odds of one answer by exp(eps)."""

    def answers(count: int) -> list[Real]:
        yes = 1 / (1 + MP.exp(-real(eps) * (count - real(Fraction(rows, 2)))))
        return [yes, 1 - yes]

    r = real(rate)
    counted = [
        MP.binomial(rows, k) * r**k * (1 - r) ** (rows - k) for k in range(rows + 1)
    ]
    sampled = [
        MP.fsum(w * answers(k)[i] for k, w in enumerate(counted)) for i in (0, 1)
    ]
    whole = declared_pure(eps=eps * rows)
    unit_rate = unit_level_rate(row_rate=rate, rows=rows)
    curve = poisson(whole, sampling_rate=unit_rate)
    assert_not_below(curve.at(order), worse_way(sampled, answers(0), order))
