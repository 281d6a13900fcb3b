"""The filter of one order of the caller's choice."""

from __future__ import annotations

from fractions import Fraction

import pytest

from modicum.accounting.conversions.moments import renyi_epsilon
from modicum.accounting.curves import UNKNOWN, Curve
from modicum.accounting.filters.coordinates import OrderFilter, order_filter
from modicum.accounting.grid import INFINITE
from modicum.accounting.mechanisms import declared_pure, gaussian, laplace

NINE = Fraction(9)
EPS, DELTA = Fraction(2), Fraction(1, 10**6)


def test_it_holds_to_the_last_unit() -> None:
    cap = order_filter(order=NINE, eps=EPS, delta=DELTA).cap
    assert renyi_epsilon(NINE, cap, DELTA) <= EPS * 10**12
    assert renyi_epsilon(NINE, cap + 2, DELTA) > EPS * 10**12
    assert OrderFilter(NINE, cap, cap).holds()
    assert not OrderFilter(NINE, cap, cap + 1).holds()


def test_every_run_is_charged_rounded_up() -> None:
    step = gaussian(rho=Fraction(1, 3 * 10**6))
    one = OrderFilter(NINE, 10**12).after(step)
    assert one.spent == 3_000_000
    assert OrderFilter(NINE, 10**12).after(step, 1000).spent == 1000 * one.spent
    mixed = one.after(laplace(sensitivity_l1=Fraction(1), scale=Fraction(10)))
    assert mixed.spent > one.spent
    assert one.after(step, 0) == one


@pytest.mark.parametrize(
    "curve", [UNKNOWN, declared_pure(eps=Fraction(1, 10**6), delta=Fraction(1, 10**9))]
)
def test_what_no_divergence_bounds_is_never_admitted(curve: Curve) -> None:
    wide = OrderFilter(NINE, INFINITE)
    assert not wide.admits(curve)
    assert not wide.after(curve).holds()
    assert not wide.after(curve).admits(gaussian(rho=Fraction(0)))
