"""Exact profiles and optimal composition: ends, refusals and inverses."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from oracle import accounting as oracle
from oracle import profiles as by_definition
from oracle.accounting import MP, real

from modicum.accounting import INFINITE
from modicum.accounting.conversions.optimal_composition import (
    WORK_MAX,
    optimal_pure_delta,
    optimal_pure_epsilon,
)
from modicum.accounting.conversions.profiles import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_epsilon_units,
    gaussian_mu2_cap,
    gaussian_sigma_for,
    laplace_delta,
    laplace_epsilon,
)
from modicum.accounting.decimals import mills_ratio, normal_tail, precise, significant
from modicum.core.errors import Code, InputError

MILLIONTH = Fraction(1, 10**6)
ONE = Fraction(1)
ZERO = Fraction(0)


# --- the normal tail beyond 40 and below 0 ---------------------------------------


@pytest.mark.parametrize("x", ["40.000001", "41", "100", "1000", "10000"])
def test_the_far_tail_is_right_to_forty_digits(x: str) -> None:
    z = MP.mpf(x)
    found = MP.mpf(str(precise(normal_tail)(Decimal(x))))
    truth = oracle.normal_tail(z)
    assert abs(found - truth) <= truth * MP.mpf(10) ** -40
    ratio = MP.mpf(str(precise(mills_ratio)(Decimal(x))))
    density = MP.exp(-z * z / 2) / MP.sqrt(2 * MP.pi)
    assert abs(ratio - truth / density) <= ratio * MP.mpf(10) ** -40


@pytest.mark.parametrize("x", ["-1e-9", "-1", "-8", "-40", "-41"])
def test_the_tail_below_zero_is_one_less_the_other(x: str) -> None:
    found = MP.mpf(str(precise(normal_tail)(Decimal(x))))
    assert abs(found - oracle.normal_tail(MP.mpf(x))) <= MP.mpf(10) ** -40


def test_the_tail_falls_across_the_change_of_method() -> None:
    grid = [Decimal(f"{39 + n / 100}") for n in range(0, 201, 20)]
    tails = [precise(normal_tail)(x) for x in grid]
    assert tails == sorted(tails, reverse=True)


@pytest.mark.parametrize(
    "value", [Fraction(1, 3), Fraction(2, 3) * 10**30, Fraction(7)]
)
def test_significant_digits_are_rounded_as_told(value: Fraction) -> None:
    up = precise(significant)(value, 5, up=True)
    down = precise(significant)(value, 5, up=False)
    assert down <= value <= up
    assert up - down in {0, Fraction(1, 10**5), 10**25}


# --- Gaussian -------------------------------------------------------------------


def test_no_change_costs_nothing() -> None:
    assert gaussian_delta(ZERO, ZERO) == 0
    assert gaussian_epsilon(ZERO, MILLIONTH) == 0
    assert gaussian_epsilon_units(0, MILLIONTH) == 0
    assert gaussian_epsilon_units(INFINITE, MILLIONTH) == INFINITE


def test_a_huge_loss_is_infinite_units_and_no_overflow() -> None:
    assert gaussian_epsilon_units(INFINITE - 1, MILLIONTH) > 10**18
    assert gaussian_delta(Fraction(10**14), ZERO) == 1
    assert gaussian_delta(Fraction(1, 10**12), Fraction(10**6)) <= Fraction(1, 10**90)


def test_a_delta_is_never_zero_where_it_is_not() -> None:
    assert gaussian_delta(Fraction(1, 100), Fraction(50)) > 0


@pytest.mark.parametrize("eps", [ZERO, Fraction(1, 10), ONE, Fraction(30)])
@pytest.mark.parametrize("delta", [Fraction(1, 10**15), MILLIONTH, Fraction(9, 10)])
def test_cap_sigma_and_epsilon_undo_delta(eps: Fraction, delta: Fraction) -> None:
    cap = Fraction(gaussian_mu2_cap(eps, delta), 10**12)
    assert gaussian_delta(cap, eps) <= delta
    more = cap * (1 + Fraction(1, 10**9)) + Fraction(2, 10**12)
    assert gaussian_delta(more, eps) > delta

    sigma = gaussian_sigma_for(eps, delta, Fraction(3))
    assert gaussian_delta((3 / sigma) ** 2, eps) <= delta
    assert gaussian_delta((3 / (sigma * (1 - Fraction(1, 10**11)))) ** 2, eps) > delta
    digits = str(sigma.numerator * 10**30 // sigma.denominator).rstrip("0")
    assert len(digits) <= 13

    assert gaussian_epsilon(cap, delta) <= eps + Fraction(1, 10**12)


def test_gaussian_epsilon_is_zero_where_delta_is_large() -> None:
    mu2 = Fraction(1, 100)
    enough = gaussian_delta(mu2, ZERO)
    assert gaussian_epsilon(mu2, enough) == 0
    assert gaussian_epsilon(mu2, enough * Fraction(99, 100)) > 0


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: gaussian_delta(ONE, Fraction(-1)),
        lambda: gaussian_epsilon(ONE, ZERO),
        lambda: gaussian_epsilon(ONE, ONE),
        lambda: gaussian_mu2_cap(Fraction(-1), MILLIONTH),
        lambda: gaussian_mu2_cap(ONE, ZERO),
        lambda: gaussian_sigma_for(ONE, MILLIONTH, ZERO),
        lambda: laplace_delta(ONE, Fraction(-1)),
        lambda: laplace_epsilon(ONE, ONE),
        lambda: optimal_pure_delta({ONE: -1}, ONE),
        lambda: optimal_pure_delta({Fraction(-1): 1}, ONE),
        lambda: optimal_pure_delta({Fraction(10**7): 1}, ONE),
        lambda: optimal_pure_delta({ONE: 1}, ONE, deltas={ONE: 1}),
        lambda: optimal_pure_delta({ONE: 1}, ONE, deltas={MILLIONTH: -1}),
        lambda: optimal_pure_delta({ONE: WORK_MAX}, ONE),
        lambda: optimal_pure_epsilon({ONE: 1}, ZERO),
        lambda: optimal_pure_epsilon({ONE: 1}, MILLIONTH, deltas={MILLIONTH: 2}),
    ],
)
def test_arguments_out_of_range_are_refused(wrong: Any) -> None:
    with pytest.raises(InputError) as caught:
        wrong()
    assert caught.value.code is Code.OUT_OF_RANGE
    assert caught.value.problems[0].help


# --- Laplace --------------------------------------------------------------------


def test_losses_beyond_the_ledger_are_not_cut_off() -> None:
    huge = Fraction(10**7)
    assert laplace_epsilon(huge, MILLIONTH) > huge - 1
    assert optimal_pure_epsilon({Fraction(10**6): 10}, MILLIONTH) > huge - 1
    assert gaussian_epsilon(huge, MILLIONTH) > huge / 2


def test_laplace_is_exact_and_undone() -> None:
    assert laplace_delta(ONE, ONE) == laplace_delta(ONE, Fraction(2)) == 0
    assert laplace_epsilon(ONE, ZERO) == 1
    assert laplace_epsilon(ONE, Fraction(9, 10)) == 0
    for delta in (MILLIONTH, Fraction(1, 5)):
        eps = laplace_epsilon(ONE, delta)
        assert laplace_delta(ONE, eps) <= delta
        assert laplace_delta(ONE, eps - Fraction(2, 10**12)) > delta


# --- optimal composition --------------------------------------------------------


def test_losses_that_meet_are_merged() -> None:
    """A thousand of one and a thousand of twice as much: few different sums."""
    many = {Fraction(1, 100): 300, Fraction(2, 100): 300}
    eps = optimal_pure_epsilon(many, MILLIONTH)
    assert optimal_pure_delta(many, eps) <= MILLIONTH
    assert eps < Fraction(9) * Fraction(4, 10)


def test_own_deltas_join_as_if_one_failure_told_all() -> None:
    found = optimal_pure_delta({ONE: 2}, ONE, deltas={Fraction(1, 10): 2})
    alone = optimal_pure_delta({ONE: 2}, ONE)
    truth = 1 - (1 - alone) * Fraction(9, 10) ** 2
    assert 0 <= found - truth < Fraction(1, 10**18)


def test_many_own_deltas_are_bounded_without_huge_fractions() -> None:
    few = optimal_pure_delta({ONE: 1}, ONE, deltas={MILLIONTH: 1000})
    many = optimal_pure_delta({ONE: 1}, ONE, deltas={MILLIONTH: 10**9})
    assert abs(float(few) - 0.0009995) < 1e-7
    assert few < many <= 1


def test_all_of_delta_may_be_the_mechanisms_own() -> None:
    found = optimal_pure_epsilon({ONE: 3}, MILLIONTH, deltas={MILLIONTH: 1})
    assert found == 3


def test_of_nothing_there_is_nothing() -> None:
    assert optimal_pure_delta({}, ZERO) == 0
    assert optimal_pure_epsilon({}, MILLIONTH) == 0
    assert optimal_pure_epsilon({ZERO: 7, ONE: 0}, MILLIONTH) == 0
    assert optimal_pure_epsilon({ONE: 1}, Fraction(1, 2)) == 0


def test_a_laplace_answer_is_no_worse_than_any_pure_one() -> None:
    for tenths in range(10):
        eps = Fraction(tenths, 10)
        assert laplace_delta(ONE, eps) <= optimal_pure_delta({ONE: 1}, eps)
        truth = by_definition.laplace_delta(MP.mpf(1), real(eps))
        assert abs(real(laplace_delta(ONE, eps)) - truth) < MP.mpf(10) ** -15
