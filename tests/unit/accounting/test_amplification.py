"""Amplification by sampling: vectors, ends, mistakes and the known pitfalls."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from oracle import mechanisms as oracle
from oracle.accounting import MP, real
from oracle.mechanisms import mixed, value, worse_way

from modicum.accounting import COORDINATES, INFINITE, ORDERS
from modicum.accounting.amounts import INFINITY, Amount
from modicum.accounting.amplification import (
    amplified_eps,
    poisson,
    poisson_gaussian,
    poisson_substitute,
    shared_sample,
    unit_level_rate,
    without_replacement,
)
from modicum.accounting.amplification.bounds import log_mean_power
from modicum.accounting.amplification.sampled_gaussian import _by_quadrature
from modicum.accounting.curves import NOTHING, UNKNOWN, Curve
from modicum.accounting.decimals import precise
from modicum.accounting.grid import DELTA, EPS, MU2, RHO
from modicum.accounting.mechanisms import (
    declared_pure,
    declared_renyi,
    gaussian,
    laplace,
    poisson_laplace,
    randomized_response,
)
from modicum.core.errors import Code, InputError

ONE = Fraction(1)
TENTH = Fraction(1, 10)

VECTORS: dict[str, dict[str, Any]] = json.loads(
    (
        Path(__file__).parents[2] / "golden" / "theory_vectors_mechanisms.json"
    ).read_text()
)

Inputs = Mapping[str, Any]


def base_of(given: Inputs) -> Curve:
    parameter = Fraction(given["param"])
    if given["base"] == "laplace":
        return laplace(sensitivity_l1=parameter, scale=ONE)
    if given["base"] == "gaussian":
        return gaussian(rho=1 / (2 * parameter**2))
    return declared_pure(eps=parameter)


def step(given: Inputs) -> Amount:
    curve = poisson_gaussian(sampling_rate=given["q"], noise_multiplier=given["sigma"])
    return curve.at(given["alpha"])


@precise
def tight(given: Inputs) -> Amount:
    """The sum without the factor 3, for a base that nobody vouches for but a test."""
    base, order = base_of(given), int(given["alpha"])
    growths = [
        ((n - 1) * Decimal(str(value(base.at(Fraction(n)))))).exp()
        for n in range(2, order + 1)
    ]
    return log_mean_power(given["gamma"], order, growths)


def substituted(given: Inputs) -> Amount:
    return poisson_substitute(
        eps_add_remove=given["eps_addremove"],
        eps_substitute=given["eps_substitute"],
        sampling_rate=given["q"],
    ).eps


COMPUTED: Mapping[str, Callable[[Inputs], Amount]] = {
    "poisson_gaussian_rdp_int": step,
    "poisson_gaussian_rdp_frac": step,
    "poisson_generic_rdp_tight": tight,
    "poisson_amplify_approx": lambda v: amplified_eps(v["eps"], v["q"]),
    "poisson_amplify_substitute": substituted,
}
BOUNDS: Mapping[str, Callable[[Curve, Fraction], Curve]] = {
    "poisson_generic_rdp_ub": lambda base, q: poisson(base, sampling_rate=q),
    "wor_generic_rdp_ub": lambda base, q: without_replacement(base, sampling_rate=q),
}


def cases(names: Mapping[str, object]) -> list[Any]:
    return [(name, case) for name in names for case in VECTORS[name]["cases"]]


def inputs(case: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v if k == "base" else Fraction(str(v)) for k, v in case["in"].items()}


@pytest.mark.parametrize(("name", "case"), cases(COMPUTED))
def test_the_value_is_the_vector(name: str, case: dict[str, Any]) -> None:
    found = Fraction(COMPUTED[name](inputs(case)))
    truth = Fraction(case["out_str"])
    assert abs(found - truth) <= truth / 10**9
    assert found >= truth * (1 - Fraction(1, 10**15)), "their inputs were floats"


@pytest.mark.parametrize(("name", "case"), cases(BOUNDS))
def test_the_bound_is_the_vector_or_a_better_bound(
    name: str, case: dict[str, Any]
) -> None:
    """Of a base whose eps is known, the bound by eps may be the better one."""
    given = inputs(case)
    base, rate, order = base_of(given), given["gamma"], given["alpha"]
    truth = Fraction(case["out_str"])
    found = Fraction(BOUNDS[name](base, rate).at(order))
    assert found <= truth * (1 + Fraction(1, 10**9))
    without_eps = Curve(INFINITY, base.rho, base.mu2, base.at)
    if name == "poisson_generic_rdp_ub":
        alone = Fraction(poisson(without_eps, sampling_rate=rate).at(order))
        assert abs(alone - truth) <= truth / 10**9
    elif given["base"] == "gaussian":
        assert abs(found - truth) <= truth / 10**9


def test_every_group_of_vectors_is_tested() -> None:
    mechanisms = {"bounded_range_zcdp", "svt_rdp_bound", "gnmax_rdp"}
    elsewhere = {*mechanisms, "gnmax_rdp_data_dependent"}
    assert set(VECTORS) == {*COMPUTED, *BOUNDS, *elsewhere}
    assert all(group["cases"] for group in VECTORS.values())


# --- the ends of every rate ---------------------------------------------------


BASES = [
    gaussian(rho=Fraction(1, 2)),
    laplace(sensitivity_l1=ONE, scale=ONE),
    declared_pure(eps=ONE, delta=Fraction(1, 10**6)),
    declared_renyi({Fraction(2): ONE}),
    UNKNOWN,
    NOTHING,
]


@pytest.mark.parametrize("base", BASES)
def test_pitfall_16_a_rate_of_zero_times_an_infinite_loss_is_zero(base: Curve) -> None:
    zero = Fraction(0)
    for curve in (
        poisson(base, sampling_rate=zero),
        without_replacement(base, sampling_rate=zero),
        shared_sample([(base, 3)], sampling_rate=zero),
        poisson_gaussian(sampling_rate=zero, noise_multiplier=ONE),
        poisson_laplace(sensitivity_l1=ONE, scale=ONE, sampling_rate=zero),
        poisson_substitute(eps_add_remove=None, eps_substitute=ONE, sampling_rate=zero),
    ):
        assert curve.loss().coordinates == (0,) * COORDINATES


@pytest.mark.parametrize("base", BASES)
def test_a_rate_of_one_is_no_sample(base: Curve) -> None:
    for sample in (poisson, without_replacement):
        assert sample(base, sampling_rate=ONE).loss() == base.loss()
    gauss = poisson_gaussian(sampling_rate=ONE, noise_multiplier=Fraction(2))
    assert gauss.loss() == gaussian(rho=Fraction(1, 8)).loss()
    noise = poisson_laplace(sensitivity_l1=ONE, scale=ONE, sampling_rate=ONE)
    assert noise.loss() == laplace(sensitivity_l1=ONE, scale=ONE).loss()


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("sample", [poisson, without_replacement])
@pytest.mark.parametrize("rate", [TENTH, Fraction(999, 1000), Fraction(1, 10**30)])
def test_a_sample_never_costs_more_than_all_data(
    base: Curve, sample: Callable[..., Curve], rate: Fraction
) -> None:
    sampled = sample(base, sampling_rate=rate).loss().coordinates
    pairs = zip(sampled, base.loss().coordinates, strict=True)
    assert all(a <= b for a, b in pairs)


def test_nothing_is_made_of_what_is_unknown() -> None:
    for sample in (poisson, without_replacement):
        loss = sample(UNKNOWN, sampling_rate=TENTH).loss()
        assert set(loss.coordinates[:DELTA]) == {INFINITE}


def test_known_orders_are_amplified_when_others_are_infinite() -> None:
    """An infinite order is skipped, not multiplied and not dropped for good."""
    base = declared_renyi({Fraction(2): ONE, Fraction(3): ONE})
    sampled = poisson(base, sampling_rate=TENTH)
    assert sampled.at(Fraction(3)) < TENTH
    assert sampled.at(Fraction(5, 2)) < TENTH
    assert sampled.at(Fraction(4)) == INFINITY


@pytest.mark.parametrize("noise", [Fraction(1, 10**9), Fraction(1, 10**3), TENTH])
def test_almost_no_noise_is_no_overflow(noise: Fraction) -> None:
    curve = poisson_gaussian(sampling_rate=TENTH, noise_multiplier=noise)
    unsampled = gaussian(rho=1 / (2 * noise**2))
    for order in ORDERS:
        assert 0 < curve.at(order) <= unsampled.at(order)
    base = declared_pure(eps=1 / noise)
    assert poisson(base, sampling_rate=TENTH).at(Fraction(1024)) <= 1 / noise
    assert without_replacement(base, sampling_rate=TENTH).at(ORDERS[0]) <= 1 / noise


def test_a_cost_beyond_all_decimals_is_not_amplified() -> None:
    huge = gaussian(rho=Fraction(10**300))
    assert poisson(huge, sampling_rate=TENTH).loss() == huge.loss()
    pure = declared_pure(eps=Fraction(10**300))
    assert poisson(pure, sampling_rate=TENTH).loss() == pure.loss()
    found = poisson_substitute(
        eps_add_remove=Fraction(10**300), eps_substitute=ONE, sampling_rate=TENTH
    )
    assert found.eps == 1


# --- Gaussian steps -----------------------------------------------------------


def test_pitfall_26_mu_of_a_sampled_step_is_that_of_its_noise() -> None:
    """The limit theorem's mu, q sqrt(exp(1/s^2) - 1), is no bound: too small here."""
    curve = poisson_gaussian(sampling_rate=Fraction(1, 100), noise_multiplier=ONE)
    assert curve.mu2 == 1
    assert curve.rho == Fraction(1, 2)
    limit = TENTH**4 * Fraction(1718281828, 10**9)
    order = Fraction(32)
    assert value(curve.at(order)) > 1000 * real(order * limit / 2)


def test_pitfall_15_fractional_orders_are_no_binomials_with_signs() -> None:
    """At orders below 2, too, and above the interpolation's ends by nothing."""
    curve = poisson_gaussian(sampling_rate=Fraction(1, 100), noise_multiplier=ONE)
    at_two = value(curve.at(Fraction(2)))
    assert MP.mpf("0.7") * at_two < value(curve.at(Fraction(3, 2))) < at_two
    a, b, m = (value(curve.at(Fraction(o))) for o in (2, 3, Fraction(5, 2)))
    assert real(Fraction(3, 2)) * m <= (a + 2 * b) / 2, "(order - 1) r is convex"


def test_what_quadrature_cannot_afford_is_interpolated() -> None:
    order, noise = Fraction(401, 2), Fraction(1, 2)
    assert precise(_by_quadrature)(TENTH, noise, order) == INFINITY
    curve = poisson_gaussian(sampling_rate=TENTH, noise_multiplier=noise)
    a, b = value(curve.at(Fraction(200))), value(curve.at(Fraction(201)))
    found = value(curve.at(order))
    assert abs(found - (199 * a + 200 * b) / 399) < MP.mpf(10) ** -40
    assert found < real(order / (2 * noise**2)) - 1


def test_large_orders_are_not_amplified_and_none_is_missing() -> None:
    curve = poisson_gaussian(sampling_rate=TENTH, noise_multiplier=Fraction(5))
    assert curve.at(Fraction(10**6)) == Fraction(10**6, 50)
    assert curve.at(Fraction(4096)) < Fraction(4096, 50)
    assert curve.at(Fraction(8193, 2)) == Fraction(8193, 100)


def test_a_step_costs_less_at_every_order_with_a_smaller_sample() -> None:
    rates = [Fraction(1, 1000), Fraction(1, 100), TENTH, Fraction(1, 2), ONE]
    losses = [
        poisson_gaussian(sampling_rate=rate, noise_multiplier=ONE).loss().coordinates
        for rate in rates
    ]
    for small, large in pairwise(losses):
        assert all(a <= b for a, b in zip(small, large, strict=True))
        assert small != large


# --- pitfalls -----------------------------------------------------------------


def test_pitfall_13_answers_from_one_sample_are_composed_first() -> None:
    """To amplify each answer and add up understates what one sample reveals."""
    one = randomized_response(truth=Fraction(9, 10), values=2, answers=1)
    shared = shared_sample([(one, 4)], sampling_rate=TENTH)
    each = poisson(one, sampling_rate=TENTH)

    honest = [MP.mpf("0.9"), MP.mpf("0.1")]
    p, q = oracle.joint([honest] * 4), oracle.joint([honest[::-1]] * 4)
    order = Fraction(8)
    truth = worse_way(mixed(p, q, TENTH), q, order)

    assert truth <= value(shared.at(order))
    assert 4 * value(each.at(order)) < truth / 2, "four fresh samples cost less"
    assert oracle.largest_ratio(mixed(p, q, TENTH), q) <= value(shared.eps)
    assert shared.eps > 4 * Decimal(str(value(each.eps))) * Decimal("1.5")


def test_pitfall_14_sampled_rows_do_not_amplify_the_unit_by_a_row() -> None:
    """Ten rows of a user, each worth eps = 1: the row's loss says nothing."""
    rows, rate = 10, Fraction(1, 2)
    unit_rate = unit_level_rate(row_rate=rate, rows=rows)
    assert unit_rate == 1 - Fraction(1, 2**10)
    # An outcome that each row in the sample makes e times as likely.
    truth = rows * MP.log(1 + real(rate) * (MP.e - 1))
    assert truth > 3 * value(amplified_eps(ONE, unit_rate))
    assert truth > 3 * value(amplified_eps(ONE, rate))
    assert truth <= value(amplified_eps(Fraction(rows), unit_rate))
    assert "says nothing about the unit" in " ".join(
        (unit_level_rate.__doc__ or "").split()
    )


def test_pitfall_27_a_curve_covers_removing_as_well_as_adding() -> None:
    """For this pair removing is worse; a bound by adding alone would be too low."""
    p, q = [MP.mpf("0.01"), MP.mpf("0.99")], [MP.mpf("0.5"), MP.mpf("0.5")]
    rate, order = Fraction(1, 2), Fraction(3)
    sampled = mixed(p, q, rate)
    points = {
        Fraction(n): Fraction(str(MP.nstr(worse_way(p, q, Fraction(n)), 40)))
        for n in (2, 3)
    }
    curve = poisson(declared_renyi(points), sampling_rate=rate)
    assert worse_way(sampled, q, order) <= value(curve.at(order))


def test_nobody_can_ask_for_the_bound_of_mirrored_noise() -> None:
    """The factor 3 is dropped where a proof stands, not where a caller says so."""
    assert set(inspect.signature(poisson).parameters) == {"base", "sampling_rate"}
    base = laplace(sensitivity_l1=ONE, scale=ONE)
    exact = poisson_laplace(sensitivity_l1=ONE, scale=ONE, sampling_rate=TENTH)
    generic = poisson(base, sampling_rate=TENTH)
    assert exact.at(Fraction(8)) < generic.at(Fraction(8))


def test_substitution_alone_is_not_amplified_by_a_poisson_sample() -> None:
    """The mechanism may tell who is in the sample; then their values are lost."""
    curve = poisson_substitute(
        eps_add_remove=None, eps_substitute=ONE, sampling_rate=Fraction(1, 100)
    )
    assert curve.loss() == declared_pure(eps=ONE).loss()


def test_a_substitution_costs_at_most_a_removal_and_an_addition() -> None:
    given = {"eps_add_remove": ONE, "sampling_rate": TENTH}
    twice = poisson_substitute(eps_substitute=Fraction(2), **given)
    more = poisson_substitute(eps_substitute=Fraction(50), **given)
    assert more.eps == twice.eps
    assert value(twice.eps) <= 2 * value(amplified_eps(ONE, TENTH))


def test_delta_is_amplified_with_eps() -> None:
    base = declared_pure(eps=ONE, delta=Fraction(1, 1000))
    for sample in (poisson, without_replacement):
        curve = sample(base, sampling_rate=TENTH)
        assert curve.delta == Fraction(1, 10_000)
        assert curve.eps == amplified_eps(ONE, TENTH)


def test_a_delta_without_eps_on_a_sample_of_fixed_size_keeps_its_curve() -> None:
    noise = gaussian(rho=ONE)
    base = Curve(noise.eps, noise.rho, noise.mu2, noise.renyi, Fraction(1, 1000))
    curve = without_replacement(base, sampling_rate=TENTH)
    assert curve.delta == Fraction(1, 10_000)
    assert curve.at(Fraction(2)) == noise.at(Fraction(2))


# --- rates of units -----------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "rows", "expected"),
    [
        (Fraction(0), 0, Fraction(0)),
        (ONE, 0, Fraction(0)),
        (TENTH, 0, Fraction(0)),
        (Fraction(0), 10**30, Fraction(0)),
        (ONE, 10**30, ONE),
        (TENTH, 1, TENTH),
        (Fraction(1, 2), 10, 1 - Fraction(1, 1024)),
        (TENTH, 10**30, ONE),
    ],
)
def test_the_rate_of_a_unit(rate: Fraction, rows: int, expected: Fraction) -> None:
    assert unit_level_rate(row_rate=rate, rows=rows) == expected


def test_the_rate_of_many_rows_is_rounded_up() -> None:
    rate = Fraction(1, 10**9)
    found = unit_level_rate(row_rate=rate, rows=1000)
    assert found >= 1 - (1 - rate) ** 1000
    assert found - (1 - (1 - rate) ** 1000) <= Fraction(1, 10**40)
    assert 10**40 % found.denominator == 0


# --- mistakes -----------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda q: poisson(BASES[0], sampling_rate=q),
        lambda q: without_replacement(BASES[0], sampling_rate=q),
        lambda q: shared_sample([], sampling_rate=q),
        lambda q: amplified_eps(ONE, q),
        lambda q: poisson_gaussian(sampling_rate=q, noise_multiplier=ONE),
        lambda q: poisson_laplace(sensitivity_l1=ONE, scale=ONE, sampling_rate=q),
        lambda q: poisson_substitute(
            eps_add_remove=ONE, eps_substitute=ONE, sampling_rate=q
        ),
        lambda q: unit_level_rate(row_rate=q, rows=1),
    ],
)
@pytest.mark.parametrize("rate", [Fraction(-1, 2), Fraction(3, 2)])
def test_a_rate_that_is_no_probability_is_a_mistake(
    call: Callable[[Fraction], object], rate: Fraction
) -> None:
    with pytest.raises(InputError, match=str(rate)) as caught:
        call(rate)
    assert caught.value.code is Code.OUT_OF_RANGE


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (
            lambda: poisson_gaussian(sampling_rate=TENTH, noise_multiplier=-ONE),
            "noise multiplier is -1",
        ),
        (
            lambda: poisson_gaussian(sampling_rate=TENTH, noise_multiplier=Fraction(0)),
            "noise multiplier is 0",
        ),
        (
            lambda: poisson_substitute(
                eps_add_remove=-ONE, eps_substitute=ONE, sampling_rate=TENTH
            ),
            "eps is -1",
        ),
        (
            lambda: poisson_substitute(
                eps_add_remove=None, eps_substitute=-ONE, sampling_rate=TENTH
            ),
            "eps is -1",
        ),
        (lambda: unit_level_rate(row_rate=TENTH, rows=-1), "rows is -1"),
    ],
)
def test_what_makes_no_sense_is_a_mistake_that_names_the_value(
    call: Callable[[], object], named: str
) -> None:
    with pytest.raises(InputError, match=named):
        call()


def test_the_ledger_gets_the_curve_rounded_up() -> None:
    curve = poisson_gaussian(sampling_rate=TENTH, noise_multiplier=Fraction(2))
    loss = curve.loss().coordinates
    assert (loss[EPS], loss[RHO], loss[MU2]) == (INFINITE, 125 * 10**9, 25 * 10**10)
    for order, units in list(zip(ORDERS, loss[3:DELTA], strict=True))[:-1]:
        assert 0 <= units - value(curve.at(order)) * 10**12 <= 1
