"""Decimal arithmetic: as precise as claimed, and the caller's context is nobody's."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from budget import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle import accounting as oracle
from oracle.accounting import MP

from modicum.accounting import INFINITE, mechanisms
from modicum.accounting.conversions.moments import (
    renyi_cap,
    renyi_epsilon,
    renyi_offset,
    zcdp_cap,
    zcdp_epsilon,
)
from modicum.accounting.decimals import (
    exp_bounds,
    limit_units,
    loss_units,
    lowest,
    normal_tail,
    pi,
    precise,
    to_decimal,
)
from modicum.core.rationals import parse_number

HALF = Fraction(1, 2)
DELTA = Fraction(1, 10**7)


@settings(max_examples=examples(60), deadline=None)
@given(st.decimals(0, 40, places=12))
def test_the_normal_tail_is_right_to_forty_digits(x: Decimal) -> None:
    truth = oracle.normal_tail(MP.mpf(str(x)))
    found = MP.mpf(str(normal_tail(x)))
    assert abs(found - truth) <= truth * MP.mpf(10) ** -40


@pytest.mark.parametrize("x", ["0", "1e-30", "1e-9", "1", "39.999999", "40"])
def test_the_normal_tail_at_its_ends(x: str) -> None:
    truth = oracle.normal_tail(MP.mpf(x))
    found = MP.mpf(str(normal_tail(Decimal(x))))
    assert abs(found - truth) <= truth * MP.mpf(10) ** -40


@pytest.mark.parametrize("digits", [10, 45])
def test_pi(digits: int) -> None:
    assert abs(MP.mpf(str(pi(digits))) - MP.pi) < MP.mpf(10) ** (1 - digits)


#: As every formula calls them.
up, down = precise(loss_units), precise(limit_units)


@pytest.mark.spec("ACC-2")
def test_losses_round_up_and_limits_round_down() -> None:
    assert up(Decimal("0.5")) == 500_000_000_001, "the guard counts"
    assert down(Decimal("0.5")) == 499_999_999_999
    assert up(Decimal("0.4999999999995")) == 500_000_000_000
    assert down(Decimal("0.5000000000005")) == 500_000_000_000
    assert up(Decimal("1e-40")) == 1
    assert up(Decimal(0)) == 1, "it may be a tiny loss that cancelled"
    assert up(Decimal(-3)) == 0
    assert down(Decimal("-0.5")) == -500_000_000_001


def test_what_is_too_large_is_infinite_as_a_loss_and_finite_as_a_limit() -> None:
    assert up(Decimal("1e30")) == INFINITE
    assert down(Decimal("1e30")) == INFINITE - 1


@settings(max_examples=examples(300), deadline=None)
@example(Fraction(0), 8)
@example(Fraction(32), 32)
@example(Fraction(10) ** 400, 32)
@given(
    st.one_of(st.fractions(0, 400), st.fractions(0, Fraction(1, 10**20))),
    st.integers(1, 300),
)
def test_exponentials_are_between_their_bounds(exponent: Fraction, bits: int) -> None:
    least, most = exp_bounds(exponent, bits)
    precise_enough = mpmath.MPContext()
    precise_enough.prec = bits + 700
    exact = precise_enough.mpf(exponent.numerator) / exponent.denominator
    truth = precise_enough.exp(-exact) * 2**bits
    assert 0 <= least <= truth < most <= least + 3


@pytest.mark.parametrize("least", ["-0.999", "0", "0.25", "7.5"])
def test_lowest_finds_the_bottom_of_a_valley(least: str) -> None:
    bottom = Decimal(least)
    found = lowest(lambda x: (x - bottom) ** 2, Decimal(-1), Decimal(8))
    assert abs(found - bottom) < Decimal("1e-8")
    steep = lowest(lambda x: abs(x - bottom), Decimal(-1), Decimal(8))
    assert abs(steep - bottom) < Decimal("1e-8")


@pytest.mark.parametrize("rho", ["1e-9", "0.001", "0.5", "40", "1e5"])
def test_lowest_needs_few_evaluations_of_a_smooth_bound(rho: str) -> None:
    """Golden section takes 55 of the bound by which zCDP becomes epsilon."""
    points: list[Decimal] = []

    def bound(u: Decimal) -> Decimal:
        points.append(u)
        less_one = u.exp()
        ln_alpha = (less_one + 1).ln()
        return Decimal(rho) * less_one + u - ln_alpha - (ln_alpha - 14) / less_one

    found = lowest(bound, Decimal(-40), Decimal(45))
    assert len(points) <= 28
    nearby = (found - Decimal("1e-7"), found + Decimal("1e-7"))
    assert bound(found) < min(map(bound, nearby))


# --- the caller's context ----------------------------------------------------------

THIRD = Fraction(1, 3)

COMPUTATIONS: dict[str, Callable[[], Any]] = {
    "laplace": lambda: mechanisms.laplace.__wrapped__(
        sensitivity_l1=HALF, scale=3 * HALF
    ).loss(),
    "gaussian": lambda: mechanisms.gaussian.__wrapped__(rho=Fraction(1, 3)).loss(),
    "survey": lambda: mechanisms.randomized_response.__wrapped__(
        truth=Fraction(2, 3), values=3, answers=7
    ).loss(),
    "declared_pure": lambda: mechanisms.declared_pure.__wrapped__(
        eps=Fraction(1, 3)
    ).loss(),
    "declared_gdp": lambda: mechanisms.declared_gdp.__wrapped__(
        mu=Fraction(1, 3)
    ).loss(),
    "large": lambda: mechanisms.declared_pure.__wrapped__(eps=Fraction(10**6)).loss(),
    "offset": lambda: renyi_offset(Fraction(8), DELTA),
    "zcdp_epsilon": lambda: zcdp_epsilon.__wrapped__(12_012_000_000, DELTA),
    "zcdp_cap": lambda: zcdp_cap.__wrapped__(Fraction(1), DELTA),
    "renyi_cap": lambda: renyi_cap.__wrapped__(Fraction(64), Fraction(1), DELTA),
    "renyi_epsilon": lambda: renyi_epsilon.__wrapped__(Fraction(64), 10**11, DELTA),
    "normal_tail": lambda: normal_tail(Decimal("1.5")),
    "parse_number": lambda: parse_number("0.12345678901234567890"),
}

HOSTILE = decimal.Context(
    prec=5,
    rounding=decimal.ROUND_UP,
    Emin=-9,
    Emax=9,
    traps=[decimal.Inexact, decimal.Rounded, decimal.Underflow, decimal.FloatOperation],
)


@pytest.mark.parametrize("name", sorted(COMPUTATIONS))
def test_results_do_not_depend_on_the_callers_context(name: str) -> None:
    compute = COMPUTATIONS[name]
    expected = compute()
    with decimal.localcontext(decimal.Context(prec=5, rounding=decimal.ROUND_DOWN)):
        assert compute() == expected
    with decimal.localcontext(HOSTILE):
        assert compute() == expected
        assert decimal.getcontext().prec == 5, "and the caller gets its own back"
        assert not any(decimal.getcontext().flags.values())


def test_precise_gives_sixty_digits_to_whatever_it_wraps() -> None:
    third = precise(lambda: to_decimal(Fraction(1, 3)))
    with decimal.localcontext(decimal.Context(prec=5)):
        assert third() == Decimal("0." + "3" * 60)
