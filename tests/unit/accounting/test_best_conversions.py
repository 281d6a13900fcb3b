"""The best of all ways: never worse than each, named, and exact where that is known."""

from __future__ import annotations

from fractions import Fraction

import pytest
from oracle import accounting as oracle
from oracle.accounting import MP, real
from samples import prices

from modicum.accounting import INFINITE, Loss, Total, tightest_epsilon
from modicum.accounting.amounts import INFINITY
from modicum.accounting.conversions.epsilon_delta import (
    NO_DELTA,
    best_delta,
    best_epsilon,
    curve_delta,
    curve_epsilon,
)
from modicum.accounting.conversions.moments import (
    pure_delta,
    pure_epsilon,
    renyi_delta,
    zcdp_delta,
)
from modicum.accounting.curves import NOTHING, UNKNOWN, composed
from modicum.accounting.grid import DELTA
from modicum.accounting.losses import total_of
from modicum.accounting.mechanisms import (
    declared_pure,
    declared_zcdp,
    gaussian,
    laplace,
)
from modicum.core.errors import InputError

MILLIONTH = Fraction(1, 10**6)
ONE = Fraction(1)
UNIT = Fraction(1, 10**12)


def test_gaussian_releases_get_their_exact_profile() -> None:
    """Rho 0.012012 twice, at delta 1e-7: 1.0966 by zCDP, and less by mu."""
    one = prices.gaussian(rho=Fraction("0.012012"))
    delta = Fraction(1, 10**7)
    found = best_epsilon(total_of([one, one]), delta)
    assert found.method == "gaussian-exact"
    assert found.units < tightest_epsilon(total_of([one, one]), delta).units
    mu = MP.sqrt(4 * real(Fraction("0.012012")))
    assert oracle.gaussian_delta(mu, real(found.units * UNIT)) <= real(delta)
    assert oracle.gaussian_delta(mu, real((found.units - 2) * UNIT)) > real(delta)


def test_a_declared_rho_does_not() -> None:
    total = total_of([prices.declared_zcdp(rho=Fraction("0.024024"))])
    found = best_epsilon(total, Fraction(1, 10**7))
    assert found.method == "zcdp"
    assert found == tightest_epsilon(total, Fraction(1, 10**7))


def test_one_entry_that_is_not_gaussian_ends_the_exact_profile() -> None:
    mixed = total_of(
        [prices.gaussian(rho=ONE), prices.declared_zcdp(rho=Fraction(1, 100))]
    )
    assert best_epsilon(mixed, MILLIONTH).method == "zcdp"


def test_between_two_orders_there_is_a_better_one() -> None:
    loss = prices.laplace(sensitivity_l1=Fraction("0.2"), scale=ONE)
    total = total_of([loss] * 60)
    found = best_epsilon(total, Fraction(1, 10**5))
    on_grid = tightest_epsilon(total, Fraction(1, 10**5))
    assert found.units <= on_grid.units
    curve = laplace(sensitivity_l1=Fraction("0.2"), scale=ONE)
    real_order = curve_epsilon(composed([(curve, 60)]), Fraction(1, 10**5))
    assert real_order.units < on_grid.units
    assert real_order.units <= found.units


def test_the_order_is_named_and_gives_what_is_said() -> None:
    curve = composed([(laplace(sensitivity_l1=Fraction("0.2"), scale=ONE), 60)])
    found = curve_epsilon(curve, Fraction(1, 10**5))
    order = Fraction(found.method.removeprefix("rdp(").removesuffix(")"))
    there = oracle.renyi_epsilon(
        order, 60 * Fraction(str(curve.at(order) / 60)), Fraction(1, 10**5)
    )
    assert abs(real(found.units * UNIT) - there) < 2e-12


def test_a_pure_guarantee_is_worth_its_whole_profile() -> None:
    assert pure_epsilon(ONE, Fraction(0)) == 10**12
    assert pure_epsilon(INFINITY, MILLIONTH) == INFINITE
    assert pure_epsilon(Fraction(0), MILLIONTH) == 0
    assert pure_epsilon(ONE, Fraction(1, 2)) == 0
    assert pure_delta(ONE, ONE) == 0
    assert pure_delta(INFINITY, ONE) == 1
    found = best_epsilon(total_of([prices.declared_pure(eps=ONE)]), MILLIONTH)
    assert found.method == "pure"
    p, q = oracle.pure_pair(ONE)
    less = real((found.units - 2) * UNIT)
    assert p[0] - MP.exp(real(found.units * UNIT)) * q[0] <= real(MILLIONTH)
    assert p[0] - MP.exp(less) * q[0] > real(MILLIONTH)


def test_own_deltas_are_taken_from_the_whole_and_put_on_top() -> None:
    spent = prices.declared_pure(eps=ONE, delta=MILLIONTH)
    noise = prices.gaussian(rho=Fraction(1, 10**4))
    total = total_of([noise, Loss((0,) * DELTA + (spent.coordinates[DELTA],))])
    assert best_epsilon(total, MILLIONTH / 2).method == NO_DELTA
    assert best_epsilon(total, MILLIONTH).units == INFINITE
    assert best_epsilon(total, 3 * MILLIONTH).method == "gaussian-exact"
    without = best_delta(total_of([noise]), Fraction(1, 10))
    assert best_delta(total, Fraction(1, 10)).value == without.value + MILLIONTH
    kept = best_epsilon(total_of([spent]), MILLIONTH)
    assert (kept.units, kept.method) == (10**12, "pure")


def test_nothing_costs_nothing_and_of_the_unknown_nothing_is_known() -> None:
    assert best_epsilon(Total(), MILLIONTH).units == 0
    assert best_delta(Total(), Fraction(0)).value == 0
    assert curve_epsilon(NOTHING, MILLIONTH).units == 0
    assert curve_epsilon(UNKNOWN, MILLIONTH).units == INFINITE
    assert curve_delta(UNKNOWN, Fraction(5)).value == 1
    assert renyi_delta(Fraction(2), INFINITY, ONE) == 1
    assert zcdp_delta(Fraction(0), Fraction(0)) == 0
    assert zcdp_delta(Fraction(10**6), Fraction(0)) == 1


@pytest.mark.parametrize("delta", [Fraction(0), ONE, Fraction(-1)])
def test_a_delta_lies_between_0_and_1(delta: Fraction) -> None:
    with pytest.raises(InputError):
        best_epsilon(Total(), delta)


def test_epsilon_is_at_least_0() -> None:
    with pytest.raises(InputError):
        best_delta(Total(), Fraction(-1))


def test_a_larger_delta_never_costs_more() -> None:
    curves = [
        declared_pure(eps=ONE),
        declared_zcdp(rho=Fraction(1, 10)),
        gaussian(rho=Fraction(1, 10)),
        composed([(laplace(sensitivity_l1=Fraction(1, 10), scale=ONE), 100)]),
    ]
    for curve in curves:
        deltas = [Fraction(1, 10**n) for n in range(17, 0, -2)]
        found = [curve_epsilon(curve, delta).units for delta in deltas]
        assert found == sorted(found, reverse=True)
