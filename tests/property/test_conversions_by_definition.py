"""Conversions and profiles against their definitions, in both directions.

The truth comes from integrals and from sums over all outcomes at 50 digits. Nothing
may be below it; above it, only rounding.
"""

from __future__ import annotations

from fractions import Fraction

import pytest
from budget import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle import accounting as oracle
from oracle import profiles as by_definition
from oracle.accounting import MP, Real, real

from modicum.accounting import ORDERS, tightest_epsilon
from modicum.accounting.budgets import ApproxBudget
from modicum.accounting.calibration import Family, calibrate, meets
from modicum.accounting.conversions.epsilon_delta import (
    best_delta,
    best_epsilon,
    curve_delta,
    curve_epsilon,
)
from modicum.accounting.conversions.guarantees import Conversion, Guarantee, Target
from modicum.accounting.conversions.moments import pure_delta, renyi_delta, zcdp_delta
from modicum.accounting.conversions.optimal_composition import (
    optimal_pure_delta,
    optimal_pure_epsilon,
)
from modicum.accounting.conversions.profiles import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu2_cap,
    gaussian_sigma_for,
    laplace_delta,
    laplace_epsilon,
)
from modicum.accounting.conversions.registry import CONVERSIONS, convert
from modicum.accounting.curves import Curve, composed
from modicum.accounting.losses import total_of
from modicum.accounting.mechanisms import (
    declared_gdp,
    declared_pure,
    declared_zcdp,
    gaussian,
    laplace,
    randomized_response,
)
from modicum.accounting.named_mechanisms import calibrated, curve_of_kind, kind_named

pytestmark = pytest.mark.soak

UNIT = Fraction(1, 10**12)
ONE = Fraction(1)

#: A delta that is not 0 is at least this.
LEAST = Fraction(1, 10**100)

#: What an integral or a sum at 50 digits leaves open.
NOISE = MP.mpf(10) ** -25


def quick(n: int) -> settings:
    return settings(max_examples=examples(n), deadline=None)


def magnitudes(low: int, high: int) -> st.SearchStrategy[Fraction]:
    """Rationals of every size from 10^low to 10^high, alike likely."""
    return st.builds(
        lambda mantissa, exponent: Fraction(mantissa) * Fraction(10) ** exponent,
        st.integers(1000, 9999),
        st.integers(low - 3, high - 4),
    )


deltas = magnitudes(-17, 0).map(lambda delta: min(delta, Fraction(9, 10)))
epsilons = magnitudes(-3, 2)


def assert_just_above(found: Fraction, truth: Real, unit: Fraction) -> None:
    """Not below the truth; above it by 1e-6 of it, or by one unit."""
    slack = NOISE + abs(truth) * MP.mpf(10) ** -20
    assert real(found) >= truth - slack
    assert real(found) <= truth + max(truth * MP.mpf(10) ** -6, real(unit)) + slack


# --- exact profiles ---------------------------------------------------------------


@quick(25)
@given(magnitudes(-3, 3), magnitudes(-3, 3))
@example(ONE, Fraction(0))
@example(Fraction(1, 10**6), Fraction(1, 10**8))
@example(Fraction(900), Fraction(900))
def test_gaussian_delta_is_the_integral(mu2: Fraction, eps: Fraction) -> None:
    truth = by_definition.gaussian_delta(MP.sqrt(real(mu2)), real(eps))
    assert_just_above(gaussian_delta(mu2, eps), truth, Fraction(1, 10**18))


@quick(40)
@given(magnitudes(-9, 5), deltas)
def test_gaussian_epsilon_is_where_delta_falls_to(
    mu2: Fraction, delta: Fraction
) -> None:
    eps = gaussian_epsilon(mu2, delta)
    mu = MP.sqrt(real(mu2))
    slack = real(delta) * MP.mpf(10) ** -25
    assert oracle.gaussian_delta(mu, real(eps)) <= real(delta) + slack
    less = eps - 2 * UNIT - eps / 10**12
    if less > 0:
        assert oracle.gaussian_delta(mu, real(less)) >= real(delta) - slack


@quick(40)
@given(magnitudes(-6, 3), deltas)
def test_the_cap_of_mu_is_the_largest(eps: Fraction, delta: Fraction) -> None:
    cap = gaussian_mu2_cap(eps, delta) * UNIT
    more = cap * (1 + Fraction(1, 10**6)) + UNIT
    if cap:
        mu = MP.sqrt(real(cap))
        assert oracle.gaussian_delta(mu, real(eps)) <= real(delta) * (1 + NOISE)
    assert oracle.gaussian_delta(MP.sqrt(real(more)), real(eps)) > real(delta)


@quick(30)
@given(magnitudes(-3, 2), deltas, magnitudes(-3, 4))
def test_sigma_is_the_least(eps: Fraction, delta: Fraction, change: Fraction) -> None:
    sigma = gaussian_sigma_for(eps, delta, change)
    mu = real(change / sigma)
    assert oracle.gaussian_delta(mu, real(eps)) <= real(delta) * (1 + NOISE)
    more = mu * (1 + MP.mpf(10) ** -9)
    assert oracle.gaussian_delta(more, real(eps)) > real(delta)


@quick(15)
@given(magnitudes(-2, 2), magnitudes(-2, 2))
def test_laplace_delta_is_the_integral(shift: Fraction, eps: Fraction) -> None:
    truth = by_definition.laplace_delta(real(shift), real(eps))
    found = laplace_delta(shift, eps)
    assert_just_above(found, truth, Fraction(1, 10**15))
    if 0 < found < 1:
        assert laplace_epsilon(shift, found) <= eps + UNIT


small_counts = st.dictionaries(
    st.sampled_from([Fraction(n, 4) for n in (1, 2, 3, 4, 7)] + [Fraction(1, 3)]),
    st.integers(0, 3),
    max_size=3,
)
few_deltas = st.dictionaries(
    st.sampled_from([Fraction(1, 10**6), Fraction(1, 100)]),
    st.integers(0, 1),
    max_size=2,
)


@quick(30)
@given(small_counts, few_deltas, magnitudes(-2, 1))
def test_optimal_composition_is_the_sum_over_all_outcomes(
    counts: dict[Fraction, int], deltas: dict[Fraction, int], eps: Fraction
) -> None:
    truth = by_definition.pure_composition_delta(counts, eps, deltas)
    found = optimal_pure_delta(counts, eps, deltas=deltas)
    assert_just_above(found, truth, Fraction(1, 10**18))


@quick(30)
@given(small_counts, magnitudes(-9, 0).map(lambda delta: min(delta, Fraction(9, 10))))
def test_optimal_epsilon_is_where_delta_falls_to(
    counts: dict[Fraction, int], delta: Fraction
) -> None:
    eps = optimal_pure_epsilon(counts, delta)
    assert by_definition.pure_composition_delta(counts, eps, {}) <= real(delta)
    less = eps - 2 * UNIT
    if less > 0:
        assert by_definition.pure_composition_delta(counts, less, {}) > real(delta)


@quick(40)
@given(magnitudes(-6, 2), magnitudes(-6, 2))
def test_a_pure_guarantee_s_delta_is_that_of_the_worst_answer(
    eps0: Fraction, eps: Fraction
) -> None:
    p, q = oracle.pure_pair(eps0)
    truth = by_definition.hockey_stick(p, q, real(eps))
    assert_just_above(pure_delta(eps0, eps), truth, Fraction(1, 10**18))


# --- one conversion at a time -----------------------------------------------------


@quick(60)
@given(st.sampled_from(ORDERS[:-2]), magnitudes(-6, 3), magnitudes(-3, 3))
def test_renyi_delta_undoes_renyi_epsilon(
    order: Fraction, divergence: Fraction, eps: Fraction
) -> None:
    found = renyi_delta(order, divergence, eps)
    if found < 1:
        back = oracle.renyi_epsilon(order, divergence, found)
        assert back <= real(eps) * (1 + MP.mpf(10) ** -20) + NOISE
        if found > LEAST:
            less = oracle.renyi_offset(real(order), found * (1 - Fraction(1, 10**15)))
            assert real(divergence) + less > real(eps)
    else:
        least = real(divergence) + oracle.renyi_offset(real(order), ONE)
        assert least >= real(eps) * (1 - MP.mpf(10) ** -20)


@quick(30)
@given(magnitudes(-9, 3), magnitudes(-3, 3))
def test_zcdp_delta_undoes_zcdp_epsilon(rho: Fraction, eps: Fraction) -> None:
    found = zcdp_delta(rho, eps)
    if LEAST < found < 1:
        assert oracle.zcdp_epsilon(rho, found) <= real(eps) * (1 + MP.mpf(10) ** -15)
        less = found * (1 - Fraction(1, 10**6))
        assert oracle.zcdp_epsilon(rho, less) > real(eps) * (1 - MP.mpf(10) ** -15)


methods = [c for c in CONVERSIONS if c.target in {"eps", "delta"}]


@quick(60)
@given(st.sampled_from(methods), magnitudes(-3, 1), deltas, st.integers(1, 5))
def test_epsilon_and_delta_of_a_method_undo_each_other(
    conversion: Conversion, value: Fraction, delta: Fraction, times: int
) -> None:
    there = {c.name for c in methods if c.target == "delta"}
    if conversion.target != "eps" or conversion.name not in there:
        return
    measure = conversion.sources[0]
    points = ((Fraction(8), value), (Fraction(32), 2 * value))
    proven = (
        Guarantee("rdp", points=points, times=times)
        if measure == "rdp"
        else Guarantee(measure, value, times=times)
    )
    eps = convert(proven, Target("eps", delta), conversion.name).value
    back = convert(proven, Target("delta", eps), conversion.name).value
    assert back <= delta * (1 + Fraction(1, 10**9))


@quick(25)
@given(magnitudes(-3, 1), st.integers(1, 6), magnitudes(-12, -1))
def test_every_method_bounds_the_exact_epsilon_of_truthful_answers(
    eps: Fraction, times: int, delta: Fraction
) -> None:
    """All that may be concluded from k pure guarantees is true of the worst ones."""
    proven = Guarantee("eps", eps, times=times)
    exact = optimal_pure_epsilon({eps: times}, delta)
    rho = convert(proven, Target("rho")).value
    mu = convert(proven, Target("mu")).value
    chains = [
        convert(proven, Target("eps", delta), "advanced"),
        convert(proven, Target("eps", delta), "advanced-adaptive"),
        convert(proven, Target("eps", delta), "basic"),
        convert(Guarantee("rho", rho), Target("eps", delta), "real-order"),
        convert(Guarantee("rho", rho), Target("eps", delta), "bun-steinke-lemma-3.6"),
        convert(Guarantee("rho", rho), Target("eps", delta), "bun-steinke"),
        convert(Guarantee("mu", mu), Target("eps", delta), "gaussian-exact"),
    ]
    assert all(found.value >= exact - UNIT for found in chains)


@quick(25)
@given(magnitudes(-6, 2), magnitudes(-12, -1))
def test_every_method_bounds_the_exact_epsilon_of_gaussian_noise(
    rho: Fraction, delta: Fraction
) -> None:
    exact = gaussian_epsilon(2 * rho, delta)
    target = Target("eps", delta)
    found = [
        convert(Guarantee("rho", rho), target, name).value
        for name in ("real-order", "bun-steinke-lemma-3.6", "bun-steinke")
    ]
    assert exact <= found[0] + UNIT
    assert found == sorted(found), "each of the three is looser than the one before"


# --- the best of all ways ---------------------------------------------------------

curves = st.one_of(
    st.builds(lambda e: laplace(sensitivity_l1=e, scale=ONE), magnitudes(-3, 1)),
    st.builds(lambda r: gaussian(rho=r), magnitudes(-6, 1)),
    st.builds(lambda e: declared_pure(eps=e), magnitudes(-3, 1)),
    st.builds(lambda r: declared_zcdp(rho=r), magnitudes(-6, 1)),
    st.builds(lambda m: declared_gdp(mu=m), magnitudes(-3, 1)),
    st.builds(
        lambda t, k: randomized_response(truth=t, values=k, answers=1),
        st.integers(51, 99).map(lambda percent: Fraction(percent, 100)),
        st.integers(2, 5),
    ),
)
histories = st.lists(st.tuples(curves, st.integers(1, 50)), min_size=1, max_size=3)


@quick(20)
@given(histories, deltas)
def test_best_epsilon_is_never_more_than_the_tightest_of_the_grid(
    history: list[tuple[Curve, int]], delta: Fraction
) -> None:
    total = total_of([curve.loss() for curve, count in history for _ in range(count)])
    found = best_epsilon(total, delta)
    assert found.units <= tightest_epsilon(total, delta).units
    of_curve = curve_epsilon(composed(history), delta).units
    rounded = sum(count for _, count in history) * 10**3
    assert of_curve <= found.units + rounded + found.units // 10**6
    back = best_delta(total, found.units * UNIT)
    assert back.value <= delta * (1 + Fraction(1, 10**5))


@quick(20)
@given(magnitudes(-3, 1), st.integers(1, 4), magnitudes(-9, -1))
def test_best_epsilon_is_true_of_pure_mechanisms(
    eps: Fraction, times: int, delta: Fraction
) -> None:
    found = curve_epsilon(composed([(declared_pure(eps=eps), times)]), delta)
    truth = by_definition.pure_composition_delta({eps: times}, found.units * UNIT, {})
    assert truth <= real(delta) * (1 + NOISE)


@quick(10)
@given(magnitudes(-1, 1), magnitudes(-2, 1))
def test_best_delta_is_true_of_laplace_noise(shift: Fraction, eps: Fraction) -> None:
    found = curve_delta(laplace(sensitivity_l1=shift, scale=ONE), eps)
    truth = by_definition.laplace_delta(real(shift), real(eps))
    assert real(found.value) >= truth - MP.mpf(10) ** -15


# --- calibration ------------------------------------------------------------------


@quick(8)
@given(magnitudes(-2, 1), magnitudes(-12, -2))
def test_calibrated_gaussian_noise_is_the_least(eps: Fraction, delta: Fraction) -> None:
    target = ApproxBudget(eps, delta)
    noise = Family("sigma", lambda sigma: gaussian(rho=1 / (2 * sigma**2)))
    sigma = calibrate(noise, target)
    assert meets(noise.curve(sigma), target)
    exact = gaussian_sigma_for(eps, delta)
    assert exact * (1 - Fraction(1, 10**12)) <= sigma
    assert sigma <= exact * (1 + Fraction(1, 10**9))


@quick(1)
@given(st.just(Fraction(2)))
def test_calibrated_training_meets_its_target(eps: Fraction) -> None:
    kind = kind_named("dp-sgd")
    given_ = {"sampling-rate": Fraction(1, 100), "steps": Fraction(200)}
    target = ApproxBudget(eps, Fraction(1, 10**6))
    name, noise = calibrated(kind, given_, target)
    assert meets(curve_of_kind(kind, {**given_, name: noise}), target)
    less = noise * (1 - Fraction(1, 10**7))
    assert not meets(curve_of_kind(kind, {**given_, name: less}), target)
