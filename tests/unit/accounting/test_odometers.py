"""Odometers: their values by definition, and that they hold at every time at once."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from oracle.accounting import MP, real
from samples import prices

from modicum.accounting import INFINITE, Loss, Total, tightest_epsilon
from modicum.accounting.filters.odometers import (
    pure_odometer,
    renyi_odometer,
    zcdp_odometer,
)
from modicum.accounting.grid import DELTA
from modicum.core.errors import Code, InputError

DELTA_1E6 = Fraction(1, 10**6)
START = Fraction(1, 100)


def spent(rho: str) -> Total:
    return Total().plus(prices.gaussian(rho=Fraction(rho)))


def zcdp_by_definition(rho: Fraction, start: Fraction, delta: Fraction) -> Any:
    """The least over k of a line that is best at start * 2^(k-1)."""
    lines = []
    for k in range(1, 61):
        ln_inverse = -MP.log(6 * real(delta) / (MP.pi * k) ** 2)
        less_one = MP.sqrt(ln_inverse / (real(start) * 2 ** (k - 1)))
        lines.append((1 + less_one) * real(rho) + ln_inverse / less_one)
    return min(lines)


@pytest.mark.parametrize("rho", ["0.000001", "0.01", "0.5", "30", "4000"])
def test_the_zcdp_odometer_is_its_definition_rounded_up(rho: str) -> None:
    found = zcdp_odometer(spent(rho), start=START, delta=DELTA_1E6)
    truth = zcdp_by_definition(Fraction(rho), START, DELTA_1E6) * 10**12
    assert truth <= found.units <= truth * (1 + MP.mpf("1e-6")) + 1
    assert found.method == "zcdp"


def test_the_renyi_odometer_is_its_definition_rounded_up() -> None:
    found = renyi_odometer(spent("0.01"), order=Fraction(32), delta=DELTA_1E6)
    truth = (MP.mpf("0.32") + MP.log(10**6) / 31) * 10**12
    assert truth <= found.units < truth + 1 + MP.mpf("1e-12")
    assert found.method == "rdp(32)"


def test_a_doubling_of_rho_costs_an_odometer_little() -> None:
    """Within a tenth of the best single order, at what it was built for and beyond."""
    for doublings in range(12):
        rho = START * 2**doublings
        ln_inverse = MP.log(10**6)
        known = real(rho) + 2 * MP.sqrt(real(rho) * ln_inverse)
        total = Total().plus(prices.gaussian(rho=rho))
        found = zcdp_odometer(total, start=START, delta=DELTA_1E6).units
        assert known * 10**12 < found < known * MP.mpf("1.2") * 10**12


def test_a_conversion_of_what_happened_is_less_than_any_odometer_says() -> None:
    total = spent("0.05")
    converted = tightest_epsilon(total, DELTA_1E6).units
    assert converted < zcdp_odometer(total, start=START, delta=DELTA_1E6).units
    for order in (8, 16, 32):
        odometer = renyi_odometer(total, order=Fraction(order), delta=DELTA_1E6)
        assert converted < odometer.units


def test_the_pure_odometer_is_the_sum_and_needs_no_delta() -> None:
    loss = prices.declared_pure(eps=Fraction("0.3"))
    assert pure_odometer(Total().plus(loss).plus(loss)).units == 6 * 10**11
    assert pure_odometer(spent("1")).units == INFINITE


def test_nothing_is_said_about_mechanisms_with_a_delta_of_their_own() -> None:
    total = Total().plus(Loss((0,) * DELTA + (1,)))
    order = Fraction(8)
    assert pure_odometer(total).units == INFINITE
    assert renyi_odometer(total, order=order, delta=DELTA_1E6).units == INFINITE
    assert zcdp_odometer(total, start=START, delta=DELTA_1E6).units == INFINITE
    unknown = Total().plus(Loss((INFINITE,) * DELTA + (0,)))
    assert renyi_odometer(unknown, order=order, delta=DELTA_1E6).units == INFINITE
    assert zcdp_odometer(unknown, start=START, delta=DELTA_1E6).units == INFINITE


def test_nothing_spent_is_nothing_lost() -> None:
    assert zcdp_odometer(Total(), start=START, delta=DELTA_1E6).units == 0


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1), Fraction(-1)])
def test_a_delta_out_of_range_is_refused(delta: Fraction) -> None:
    with pytest.raises(InputError, match="strictly between 0 and 1") as caught:
        renyi_odometer(Total(), order=Fraction(8), delta=delta)
    assert caught.value.code is Code.OUT_OF_RANGE
    with pytest.raises(InputError, match="strictly between 0 and 1"):
        zcdp_odometer(Total(), start=START, delta=delta)


def test_an_order_off_the_grid_or_a_start_of_zero_is_refused() -> None:
    with pytest.raises(InputError, match="does not store the Renyi order 7"):
        renyi_odometer(Total(), order=Fraction(7), delta=DELTA_1E6)
    with pytest.raises(InputError, match="a start above 0"):
        zcdp_odometer(Total(), start=Fraction(0), delta=DELTA_1E6)


@pytest.mark.spec("ACC-16")
@pytest.mark.parametrize("delta", [Fraction(1, 5), Fraction(1, 50)])
def test_an_odometer_holds_at_every_time_at_once(delta: Fraction) -> None:
    """Enumerated: ten answers; whoever stops at the worst moment, seldom gains.

    The truth of each answer depends on the one before, so the history is adaptive.
    """
    truths = [Fraction(3, 5), Fraction(4, 5)]
    losses = {
        truth: prices.randomized_response(truth=truth, values=2, answers=1)
        for truth in truths
    }
    start = Fraction(1, 10)
    failed = {"zcdp": MP.mpf(0), "rdp": MP.mpf(0), "tight": MP.mpf(0)}
    for answers in product((0, 1), repeat=10):
        chance, lost, total, late = MP.mpf(1), MP.mpf(0), Total(), set()
        truth = truths[0]
        for answer in answers:
            p, q = (truth, 1 - truth) if answer else (1 - truth, truth)
            chance, lost = chance * real(p), lost + MP.log(real(p / q))
            total = total.plus(losses[truth])
            bounds = {
                "zcdp": zcdp_odometer(total, start=start, delta=delta).units,
                "rdp": renyi_odometer(total, order=Fraction(4), delta=delta).units,
                "tight": tightest_epsilon(total, delta).units,
            }
            late |= {name for name, most in bounds.items() if lost * 10**12 > most}
            truth = truths[answer]
        for name in late:
            failed[name] += chance
    assert failed["zcdp"] <= real(delta)
    assert failed["rdp"] <= real(delta)
    if delta == Fraction(1, 5):
        assert failed["tight"] > real(delta), "a conversion is not an odometer"
