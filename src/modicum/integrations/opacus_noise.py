"""The noise of a training: by our own accounting, and by the library's.

The library's sampler uses coins of 24 bits. A coin of rate q comes up slightly more
often than q; the price uses the actual rate.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from modicum.accounting.amplification import poisson_gaussian
from modicum.accounting.budgets import ApproxBudget, RenyiBudget
from modicum.accounting.calibration import Family, calibrate, meets
from modicum.accounting.conversions.epsilon_delta import curve_epsilon
from modicum.accounting.curves import Curve, composed
from modicum.core.diagnostics import fail
from modicum.core.errors import Code
from modicum.core.rationals import LOSS_UNIT, brief
from modicum.integrations.library_errors import loaded

_COIN = 2**24
#: Noise is proposed in steps of this, upwards.
_STEP = Fraction(1, 10**6)
_MOST = Fraction(10**6)
#: By how much more noise is tried where an accountant is not content.
_MORE = Fraction(101, 100)

Budget = ApproxBudget | RenyiBudget


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps of DP-SGD.

    Attributes:
        batches: The number of batches per epoch; each example is in a batch with the
            inverse probability.
        count: How many steps.
    """

    batches: int
    count: int

    @property
    def rate(self) -> Fraction:
        """The maximum rate of an example per batch."""
        tossed = -(-_COIN // self.batches) + 1
        return min(Fraction(1), Fraction(tossed, _COIN))


def curve_of(steps: Steps, noise: Fraction) -> Curve:
    """Return the cost of steps by our own accounting."""
    one = poisson_gaussian(sampling_rate=steps.rate, noise_multiplier=noise)
    return composed([(one, steps.count)])


@lru_cache(maxsize=64)
def noise_for(steps: Steps, budget: Budget) -> float:
    """Return the least noise with which steps are within a budget, rounded up.

    Our own accounting must find them within it, and so must both of Opacus's.
    """
    by_library = _least(lambda noise: _library_meets(steps, noise, budget))
    if not meets(curve_of(steps, by_library), budget):
        family = Family("noise multiplier", lambda noise: curve_of(steps, noise))
        own = calibrate(family, budget)
        by_library = _least(
            lambda noise: _library_meets(steps, noise, budget), max(own, by_library)
        )
    if isinstance(budget, ApproxBudget):
        while not _default_meets(steps, by_library, budget):
            by_library *= _MORE
    found = _float_above(by_library)
    if by_library > _MOST or not meets(curve_of(steps, Fraction(found)), budget):
        raise _never()
    return found


def _default_meets(steps: Steps, noise: Fraction, budget: ApproxBudget) -> bool:
    """Return whether Opacus's default accountant agrees, where it has an answer."""
    found = _reported_or_none("PRVAccountant", steps, _float_above(noise), budget.delta)
    return found is None or found <= budget.eps or noise > _MOST


@dataclass(frozen=True, slots=True)
class Figures:
    """The cost of steps, by several accountants.

    Attributes:
        own: By our own accounting.
        opacus_rdp: By Opacus's accountant `rdp`.
        opacus_prv: By Opacus's accountant `prv`; None if it has no answer.
    """

    own: Fraction
    opacus_rdp: Fraction
    opacus_prv: Fraction | None


def epsilons(steps: Steps, noise: float, delta: Fraction) -> Figures:
    """Return the epsilon of steps at a delta."""
    if steps.count == 0:
        return Figures(Fraction(0), Fraction(0), Fraction(0))
    own = curve_epsilon(curve_of(steps, Fraction(noise)), delta)
    return Figures(
        Fraction(own.units, LOSS_UNIT),
        _reported("RDPAccountant", steps, noise, delta),
        _reported_or_none("PRVAccountant", steps, noise, delta),
    )


def divergences(
    steps: Steps, noise: float, orders: tuple[Fraction, ...]
) -> dict[Fraction, Fraction]:
    """Return the Renyi divergences of steps, as Opacus has them."""
    analysis = loaded("opacus.accountants.analysis.rdp", "Opacus", "opacus")
    found = analysis.compute_rdp(
        q=1 / steps.batches,
        noise_multiplier=noise,
        steps=steps.count,
        orders=[float(order) for order in orders],
    )
    return {
        order: Fraction(float(one)) if math.isfinite(one) else _MOST
        for order, one in zip(orders, found, strict=True)
    }


def _reported(name: str, steps: Steps, noise: float, delta: Fraction) -> Fraction:
    accountant = getattr(loaded("opacus.accountants", "Opacus", "opacus"), name)()
    accountant.history = [(noise, 1 / steps.batches, steps.count)]
    with warnings.catch_warnings():
        # That an order at the end of its list is best costs tightness, not truth.
        warnings.simplefilter("ignore")
        # The float may exceed the exact delta by a last digit: one step down.
        found = accountant.get_epsilon(math.nextafter(float(delta), 0))
    return Fraction(float(found)) if math.isfinite(found) else _MOST


def _reported_or_none(
    name: str, steps: Steps, noise: float, delta: Fraction
) -> Fraction | None:
    try:
        return _reported(name, steps, noise, delta)
    except (ArithmeticError, MemoryError, RuntimeError, ValueError):
        return None  # Its grid has no room for such a loss.


def _library_meets(steps: Steps, noise: Fraction, budget: Budget) -> bool:
    multiplier = _float_above(noise)
    match budget:
        case ApproxBudget(eps=eps, delta=delta):
            return _reported("RDPAccountant", steps, multiplier, delta) <= eps
        case RenyiBudget(limits=limits):
            orders = tuple(order for order, _ in limits)
            found = divergences(steps, multiplier, orders)
            return all(found[order] <= most for order, most in limits)


def _least(
    fits: Callable[[Fraction], bool], low: Fraction = Fraction(1, 10)
) -> Fraction:
    """Return the least noise from `low` on that fits, in whole steps, rounded up."""
    high = low
    while not fits(high):
        low, high = high, 2 * high
        if high > _MOST:
            raise _never()
    while high - low > _STEP:
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return -(-high // _STEP) * _STEP


def _never() -> Exception:
    return fail(
        Code.NOTHING_FITS,
        f"no noise up to {brief(_MOST)} is enough for this number of steps",
        help="take fewer steps, or smaller batches; or reserve more",
    )


def _float_above(exact: Fraction) -> float:
    near = float(exact)
    return math.nextafter(near, math.inf) if Fraction(near) < exact else near
