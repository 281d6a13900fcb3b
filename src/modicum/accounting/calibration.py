"""The noise for a target: the cheapest parameter that provably meets a budget.

The search only proposes parameters. The result was itself evaluated, in the digits in
which it is returned, and met the target.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import assert_never

from msgspec import Struct

from modicum.accounting.amounts import Amount, is_infinite
from modicum.accounting.budgets import (
    ApproxBudget,
    Budget,
    GdpBudget,
    PureBudget,
    RenyiBudget,
    Unlimited,
    ZcdpBudget,
    budget_text,
)
from modicum.accounting.conversions.epsilon_delta import curve_delta
from modicum.accounting.curves import Curve, composed
from modicum.accounting.decimals import GUARD, precise, significant, to_decimal
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import brief

#: Number of significant digits of a parameter.
DIGITS = 13
#: Maximum relative distance of the result from the best one, where the loss is
#: continuous.
TOLERANCE = Fraction(1, 10**10)
# The maximum relative change by rounding to fewer digits.
_ROUNDED = Fraction(8, 10**10)

# A parameter without bounds is looked for within these.
_LEAST = Fraction(1, 10**15)
_MOST = Fraction(10**15)
_WALK_MAX = 40
_STEPS_MAX = 200
_COUNT_MAX = 10**12


class Family(Struct, frozen=True):
    """A mechanism with one free parameter.

    Attributes:
        name: The parameter, for messages.
        curve: The cost of the mechanism, for each parameter strictly between the
            bounds; its losses all increase with the parameter, or all decrease.
        rising: Whether the losses rise with the parameter, as with epsilon; those of
            noise fall.
        low: The parameter is above this.
        high: The parameter is below this; None if there is no bound.
    """

    name: str
    curve: Callable[[Fraction], Curve]
    rising: bool = False
    low: Fraction = Fraction(0)
    high: Fraction | None = None


def meets(curve: Curve, target: Budget) -> bool:
    """Return whether a curve is known to be within a budget.

    Args:
        curve: Bounds under the budget's neighboring relation, of parameters fixed in
            advance.
        target: Not unlimited; for a Renyi budget, all its orders must hold.

    Raises:
        InputError: If the target is unlimited.

    Examples:
        >>> from modicum.accounting.mechanisms import gaussian
        >>> noise = gaussian(rho=Fraction(1, 10))
        >>> meets(noise, ApproxBudget(Fraction(2), Fraction(1, 10**6)))
        True
        >>> meets(noise, PureBudget(Fraction(1000)))
        False
    """
    return all(ratio <= 1 for ratio in _ratios(curve, target))


@precise
def _ratios(curve: Curve, target: Budget) -> list[Decimal | Fraction]:
    """Return the ratio of a curve's cost to each limit, none of which may exceed 1."""
    if isinstance(target, ApproxBudget):
        return [curve_delta(curve, target.eps).value / target.delta]
    own = [Decimal("Infinity")] if curve.delta else []
    return own + [_ratio(loss, limit) for loss, limit in _losses(curve, target)]


def _losses(curve: Curve, target: Budget) -> list[tuple[Amount, Fraction]]:
    match target:
        case PureBudget(eps=limit) | ApproxBudget(eps=limit):
            return [(curve.eps, limit)]
        case ZcdpBudget(rho=limit):
            return [(curve.rho, limit)]
        case GdpBudget(mu=limit):
            return [(curve.mu2, limit**2)]
        case RenyiBudget(limits=limits):
            return [(curve.at(order), limit) for order, limit in limits]
        case Unlimited():
            raise InputError(
                Problem(
                    Code.OUT_OF_RANGE,
                    "an unlimited budget needs no noise",
                    help="give a target, such as an epsilon and a delta",
                )
            )
        case _:
            assert_never(target)


def _ratio(loss: Amount, limit: Fraction) -> Decimal | Fraction:
    if is_infinite(loss) or (limit == 0 and loss != 0):
        return Decimal("Infinity")
    if limit == 0:
        return Fraction(0)
    # A computed loss errs by less than the guard; a rational one is exact.
    exact = loss if isinstance(loss, Fraction) else Fraction(loss + GUARD)
    return exact / limit


# --- the search -----------------------------------------------------------------


class _Point(Struct, frozen=True):
    """A parameter that was tried; `excess` is ln(loss/limit), None if unusable."""

    at: Fraction
    fits: bool
    excess: Decimal | None


def calibrate(family: Family, target: Budget) -> Fraction:
    """Return the cheapest parameter of a mechanism that meets a budget.

    Args:
        family: The mechanism, with one parameter open.
        target: The budget; all of it is used for this mechanism.

    Returns:
        The least parameter if losses fall with it, else the greatest: at most 13
        significant digits, within 1e-9 of the best one where the loss is
        continuous. The loss at exactly this parameter meets the target.

    Raises:
        InputError: If no parameter meets the target, or the target is unlimited.

    Neighboring relation:
        That of the family's curves.

    Source:
        For Gaussian noise and (eps, delta) this is Balle & Wang 2018, Alg. 1
        (arXiv:1805.06530), since the profile of mu is exact.

    Examples:
        >>> from modicum.accounting.mechanisms import laplace
        >>> one = Fraction(1)
        >>> noise = Family("scale", lambda b: laplace(sensitivity_l1=one, scale=b))
        >>> found = calibrate(noise, PureBudget(Fraction(1, 3)))
        >>> f"{float(found):.12g}"
        '3'
    """
    recent = _bracket(family, target)
    good, bad = recent
    for step in range(_STEPS_MAX):
        if bad is None or abs(good.at - bad.at) <= TOLERANCE * min(good.at, bad.at):
            break
        at = _middle(good, bad) if step % 4 == 3 else _guess(recent, good, bad, step)
        tried = _try(family, target, at)
        if at in {good.at, bad.at}:
            break
        recent = (recent[1] or good, tried)
        good, bad = (tried, bad) if tried.fits else (good, tried)
    return _rounder(family, target, good.at)


def _rounder(family: Family, target: Budget, found: Fraction) -> Fraction:
    """Return the shortest number next to a parameter that meets the target, too."""
    for digits in range(1, DIGITS):
        for up in (family.rising, not family.rising):
            at = significant(found, digits, up=up)
            if abs(at - found) <= _ROUNDED * found and _try(family, target, at).fits:
                return at
    return found


def _try(family: Family, target: Budget, at: Fraction) -> _Point:
    ratio = max(_ratios(family.curve(at), target))
    usable = 0 < ratio < _most_ratio(target)
    excess = _ln(Fraction(ratio)) if usable else None
    return _Point(at, fits=ratio <= 1, excess=excess)


def _most_ratio(target: Budget) -> Decimal | Fraction:
    """Return the ratio from which on a limit is void: a delta of 1, or infinity."""
    if isinstance(target, ApproxBudget):
        return 1 / target.delta
    return Decimal("Infinity")


@precise
def _ln(ratio: Fraction) -> Decimal:
    return to_decimal(ratio).ln()


def _bracket(family: Family, target: Budget) -> tuple[_Point, _Point | None]:
    """Return a parameter that meets the target, and a costlier one that does not.

    There is no such costlier one if the target is met wherever it was tried.
    """
    here = _try(family, target, _start(family))
    # Noise is cheaper upward, epsilon downward.
    up = here.fits == family.rising
    for step in range(_WALK_MAX):
        at = _next(family, here.at, step, up=up)
        if at == here.at:
            break
        there = _try(family, target, at)
        if there.fits != here.fits:
            return (here, there) if here.fits else (there, here)
        here = there
    if here.fits:
        return here, None
    raise InputError(
        Problem(
            Code.OUT_OF_RANGE,
            f"no {family.name} meets {budget_text(target)}; tried up to"
            f" {brief(here.at)}",
            notes=(
                "the mechanism has no proven loss in this measure, or its loss is too"
                " large",
            ),
            help="choose another target, such as an epsilon with a delta",
        )
    )


def _start(family: Family) -> Fraction:
    if family.high is not None:
        return (family.low + family.high) / 2
    return max(Fraction(1), 2 * family.low)


def _next(family: Family, at: Fraction, step: int, *, up: bool) -> Fraction:
    """Return the next parameter of a walk, with strides that grow."""
    if up and family.high is not None:
        return _shortened(family.high - (family.high - at) / 10)
    if not up and (family.high is not None or family.low > 0):
        return _shortened(family.low + (at - family.low) / 10)
    stride = Fraction(2**2 ** min(step, 3))
    return min(at * stride, _MOST) if up else max(at / stride, _LEAST)


def _shortened(at: Fraction) -> Fraction:
    return significant(at, DIGITS, up=False)


@precise
def _middle(good: _Point, bad: _Point) -> Fraction:
    low, high = min(good.at, bad.at), max(good.at, bad.at)
    if high > 4 * low:
        return significant(to_decimal(low * high).sqrt(), DIGITS, up=good.at > bad.at)
    return significant((low + high) / 2, DIGITS, up=good.at > bad.at)


@precise
def _guess(
    recent: tuple[_Point, _Point | None], good: _Point, bad: _Point, step: int
) -> Fraction:
    """Return where a line through the last two points meets the limit.

    It aims slightly to the good side and to the bad side in turn, so that, once it is
    right, both ends of the bracket close in.
    """
    last, before = recent[1], recent[0]
    if last is None or last.excess is None or before.excess is None:
        return _middle(good, bad)
    run = to_decimal(last.at / before.at).ln()
    rise = last.excess - before.excess
    if rise == 0 or abs(last.excess * run) > abs(rise) * 30:
        return _middle(good, bad)
    estimate = to_decimal(last.at) * (-last.excess * run / rise).exp()
    toward_good = (good.at > bad.at) == (step % 2 == 0)
    aside = to_decimal(TOLERANCE) / 4
    estimate *= 1 + aside if toward_good else 1 - aside
    found = significant(estimate, DIGITS, up=good.at > bad.at)
    inside = min(good.at, bad.at) < found < max(good.at, bad.at)
    return found if inside else _middle(good, bad)


# --- how often ------------------------------------------------------------------


def most_runs(curve: Curve, target: Budget) -> int:
    """Return how often a mechanism may run within a budget.

    Args:
        curve: The cost of one run.
        target: The budget of all runs together, their number being fixed in advance.

    Returns:
        The largest number of runs that meets the target, at least 1 and at most
        1e12.

    Raises:
        InputError: If a single run does not meet the target, or it is unlimited.

    Neighboring relation:
        That of the curve.

    Source:
        As for `modicum.accounting.curves.composed`.

    Examples:
        >>> from modicum.accounting.mechanisms import gaussian
        >>> most_runs(gaussian(rho=Fraction(1, 10)), ZcdpBudget(Fraction(1)))
        10
    """
    return most(lambda count: composed([(curve, count)]), target)


def most(curve: Callable[[int], Curve], target: Budget) -> int:
    """Return the largest count for which a curve meets a budget.

    Args:
        curve: The cost of a count of at least 1; increases with the count.
        target: The budget.

    Raises:
        InputError: If a count of 1 does not meet the target, or it is unlimited.

    Examples:
        >>> from modicum.accounting.mechanisms import gaussian
        >>> one = gaussian(rho=Fraction(1, 10))
        >>> most(lambda n: composed([(one, n)]), ZcdpBudget(Fraction(1)))
        10
        >>> most(lambda n: composed([(one, n)]), PureBudget(Fraction(1)))
        Traceback (most recent call last):
            ...
        modicum.core.errors.InputError: even one run does not meet {eps: 1}
    """
    if not meets(curve(1), target):
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"even one run does not meet {budget_text(target)}",
                help="add noise, or choose a larger target",
            )
        )
    fits, fails = 1, 2
    while fails <= _COUNT_MAX and meets(curve(fails), target):
        fits, fails = fails, 2 * fails
    if fails > _COUNT_MAX:
        return fits
    while fails - fits > 1:
        middle = (fits + fails) // 2
        if meets(curve(middle), target):
            fits = middle
        else:
            fails = middle
    return fits
