"""Epsilon at a delta: the acceptance numbers, the ends, and who wins."""

from __future__ import annotations

from fractions import Fraction

import pytest
from oracle import accounting as oracle
from oracle.accounting import MP, real
from samples import prices

from modicum.accounting import INFINITE, Loss, Total, tightest_epsilon
from modicum.accounting.conversions.moments import (
    Epsilon,
    renyi_cap,
    renyi_epsilon,
    renyi_offset,
    zcdp_cap,
    zcdp_epsilon,
)
from modicum.accounting.grid import DELTA
from modicum.accounting.losses import total_of

MILLIONTH = Fraction(1, 10**6)
DELTA_1E7 = Fraction(1, 10**7)


@pytest.mark.spec("ACC-7")
def test_two_gaussian_releases_together_cost_less_than_twice_one() -> None:
    """Rho = 0.012012 each, at delta = 1e-7: 0.7600 alone, 1.0966 together."""
    rho = Fraction("0.012012")
    one = prices.gaussian(rho=rho)

    alone = tightest_epsilon(total_of([one]), DELTA_1E7)
    together = tightest_epsilon(total_of([one, one]), DELTA_1E7)

    for found, exact_rho in ((alone, rho), (together, 2 * rho)):
        truth = oracle.zcdp_epsilon(exact_rho, DELTA_1E7)
        assert truth * 10**12 <= found.units <= (truth + 1e-6) * 10**12
        assert found.method == "zcdp"
    assert round(alone.units / 10**12, 4) == 0.7600
    assert round(together.units / 10**12, 4) == 1.0966
    assert together.units < 2 * alone.units - 4 * 10**11


def test_nothing_costs_nothing_and_the_infinite_is_infinite() -> None:
    assert zcdp_epsilon(0, MILLIONTH) == 0
    assert zcdp_epsilon(INFINITE, MILLIONTH) == INFINITE
    assert renyi_epsilon(Fraction(2), INFINITE, MILLIONTH) == INFINITE
    assert tightest_epsilon(Total(), MILLIONTH) == Epsilon(0, "pure")


def test_the_smallest_loss_is_still_a_loss_at_a_small_delta() -> None:
    assert zcdp_epsilon(1, Fraction(1, 10**18)) > 0


def test_epsilon_is_clipped_at_zero_and_never_negative() -> None:
    assert renyi_offset(Fraction(10**6), Fraction(1, 2)) < 0
    assert renyi_epsilon(Fraction(10**6), 0, Fraction(1, 2)) == 0
    assert zcdp_epsilon(1, Fraction(1, 2)) == 0


def test_a_cap_is_negative_where_an_order_cannot_serve() -> None:
    assert renyi_cap(Fraction(2), Fraction(1), DELTA_1E7) < 0
    assert zcdp_cap(Fraction(1, 10**9), Fraction(1, 10**18)) == 0


@pytest.mark.parametrize("order", [Fraction(5, 4), Fraction(2), Fraction(64)])
@pytest.mark.parametrize("delta", [Fraction(1, 10**18), DELTA_1E7, Fraction(1, 2)])
def test_the_offset_is_the_formula_to_forty_digits(
    order: Fraction, delta: Fraction
) -> None:
    found = MP.mpf(str(renyi_offset(order, delta)))
    assert abs(found - oracle.renyi_offset(real(order), delta)) < MP.mpf(10) ** -40


def test_mechanisms_own_delta_is_taken_from_the_whole() -> None:
    spent = prices.declared_pure(eps=Fraction(1), delta=DELTA_1E7)
    noise = prices.gaussian(rho=Fraction("0.0001"))
    total = total_of([noise, Loss((0,) * DELTA + (spent.coordinates[DELTA],))])

    assert tightest_epsilon(total, DELTA_1E7 / 2) == Epsilon(
        INFINITE, "none: the mechanisms' own delta is larger"
    )
    exhausted = tightest_epsilon(total, DELTA_1E7)
    assert exhausted.units == INFINITE, "no delta is left to convert with"
    more = tightest_epsilon(total, 3 * DELTA_1E7)
    truth = oracle.zcdp_epsilon(Fraction("0.0001"), 2 * DELTA_1E7)
    assert truth * 10**12 <= more.units <= (truth + 1e-6) * 10**12


def test_pure_epsilon_stands_when_all_delta_is_spent() -> None:
    total = total_of([prices.declared_pure(eps=Fraction(1), delta=DELTA_1E7)])
    assert tightest_epsilon(total, DELTA_1E7) == Epsilon(10**12, "pure")


def laplace(eps: str) -> Loss:
    return prices.laplace(sensitivity_l1=Fraction(eps), scale=Fraction(1))


@pytest.mark.parametrize(
    ("loss", "times", "delta", "method"),
    [
        (laplace("0.1"), 1, Fraction(1, 10**18), "pure"),
        (prices.gaussian(rho=Fraction("0.1")), 1, MILLIONTH, "zcdp"),
        (laplace("0.3"), 50, MILLIONTH, "rdp(4)"),
        (prices.gaussian(rho=Fraction(5 * 10**6)), 1, MILLIONTH, "pure"),  # infinite
    ],
)
def test_the_least_way_is_named(
    loss: Loss, times: int, delta: Fraction, method: str
) -> None:
    assert tightest_epsilon(total_of([loss] * times), delta).method == method


def test_a_larger_delta_never_costs_more() -> None:
    total = total_of([prices.gaussian(rho=Fraction("0.3"))] * 3)
    found = [
        tightest_epsilon(total, Fraction(1, 10**n)).units for n in range(17, 0, -1)
    ]
    assert found == sorted(found, reverse=True)
