"""Groups: the cost of changing several instances, given that of one."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from modicum.accounting.amounts import (
    INFINITY,
    ZERO,
    Amount,
    decimal_of,
    is_infinite,
    least,
    plus,
    times,
)
from modicum.accounting.curves import NOTHING, UNKNOWN, Curve, pure_curve
from modicum.accounting.decimals import GUARD, precise
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import brief

#: Up to this size Hoelder's inequality is tried; beyond it, only the closed forms.
SIZE_SEARCHED_MAX = 16
# Below this, e^eps - 1 loses too many digits to be divided by.
_EPS_TINY = Decimal("1e-12")
# Uneven divisions of the order between two steps.
_SPLITS = (Fraction(1), Fraction(1, 2), Fraction(2))
# e^x above this is not computed: the delta it would multiply is 1 long before.
_EXPONENT_MAX = 10**6


@lru_cache(maxsize=8192)
@precise
def group(curve: Curve, size: int) -> Curve:
    """Return the curve of changing several instances, from that of changing one.

    Args:
        curve: The cost of changing one instance.
        size: How many instances change, >= 0.

    Returns:
        size*eps; size**2 * rho; (size*mu)**2; the Renyi divergence by Hoelder's
        inequality at the curve's higher orders, or from one of these if that is
        less. With a delta: that of the (size*eps)-DP mechanism, and delta *
        (e^(size*eps) - 1)/(e^eps - 1).

    Neighboring relation:
        Paths of `size` steps of the curve's own relation.

    Source:
        Dwork & Roth 2014, Thm 2.2; Vadhan 2017, Lemma 2.2 (delta); Bun & Steinke
        2016, Prop. 1.9 (arXiv:1605.02065); Dong, Roth & Su 2022, Thm 2.14
        (arXiv:1905.02383); Mironov 2017, Prop. 9 (arXiv:1702.07476).

    Examples:
        >>> from modicum.accounting.mechanisms import gaussian
        >>> group(gaussian(rho=Fraction(1, 10)), 3).rho
        Fraction(9, 10)
    """
    if size == 0:
        return NOTHING
    if size == 1:
        return curve
    if curve.delta:
        return _approximate(curve, size)
    pure = pure_curve(times(size, curve.eps)) if _finite(curve.eps) else UNKNOWN
    return Curve(
        eps=times(size, curve.eps),
        rho=least(times(size * size, curve.rho), pure.rho),
        mu2=least(times(size * size, curve.mu2), pure.mu2),
        renyi=lambda order: least(
            _by_hoelder(curve, size, order),
            plus(curve.at(order), times(size - 1, curve.eps)),
            pure.at(order),
        ),
    )


def _approximate(curve: Curve, size: int) -> Curve:
    """Only eps and delta of a group are proven when one instance has a delta."""
    if not _finite(curve.eps):
        return UNKNOWN
    eps = decimal_of(curve.eps)
    if size * eps > _EXPONENT_MAX:
        return UNKNOWN
    delta = curve.delta * (Fraction(_growth(eps, size)) + Fraction(GUARD))
    return pure_curve(times(size, curve.eps), min(Fraction(1), delta))


def _growth(eps: Decimal, size: int) -> Decimal:
    """Return 1 + e^eps + ... + e^((size-1) eps), rounded up."""
    if eps < _EPS_TINY:
        return size * (size * eps).exp()  # Each summand is at most the last.
    return ((size * eps).exp() - 1) / (eps.exp() - 1) * (1 + GUARD)


def _finite(amount: Amount) -> bool:
    return not is_infinite(amount)


def _by_hoelder(curve: Curve, size: int, order: Fraction) -> Amount:
    """Bound a path by halving it: a shorter one costs no more than a power of two.

    Splitting evenly keeps whole orders whole, for which many curves are cheap; where
    the best split is even, as for zCDP, this is k**2 rho.
    """
    if size > SIZE_SEARCHED_MAX:
        return INFINITY
    if size == 2:
        return least(*(_two_paths(curve, 1, split, order) for split in _SPLITS))
    return _halved(curve, 1 << (size - 1).bit_length(), order)


def _halved(curve: Curve, size: int, order: Fraction) -> Amount:
    if size == 1:
        return curve.at(order)
    return _two_paths(curve, size // 2, Fraction(1), order)


def _two_paths(curve: Curve, half: int, split: Fraction, order: Fraction) -> Amount:
    """Bound a path by its halves; every split > 0 is valid.

    For rho-zCDP the split sqrt(rho_1/rho_2) gives (sqrt(rho_1) + sqrt(rho_2))**2.
    """
    raised = (1 + split) * order
    first = times(raised / (raised - 1), _halved(curve, half, (raised - 1) / split))
    return plus(first, _halved(curve, half, raised))


@precise
def chained(rhos: Sequence[Fraction]) -> Amount:
    """Return rho between the ends of a path whose steps cost different rhos.

    Args:
        rhos: rho of each step, >= 0.

    Returns:
        (sum of the square roots)**2; a decimal good to 50 digits.

    Neighboring relation:
        Paths of one step of each.

    Source:
        The weak triangle inequality of Bun & Steinke 2016, Lemma 5.2
        (arXiv:1605.02065), with the best split at each step.

    Examples:
        >>> f"{chained([Fraction('0.1'), Fraction('0.4')]):.6f}"
        '0.900000'
    """
    roots = sum((decimal_of(rho).sqrt() for rho in rhos), Decimal(0))
    return roots * roots if rhos else ZERO


def doubled(
    order: Fraction, divergence: Fraction, doublings: int
) -> tuple[Fraction, Fraction]:
    """Return what one Renyi divergence alone implies for a group of 2**doublings.

    Args:
        order: An order of at least 2**(doublings + 1).
        divergence: The divergence at that order, >= 0.
        doublings: How often the group is doubled, >= 0.

    Returns:
        The order of the group's divergence, and that divergence. `group` is tighter
        where more of the curve is known.

    Raises:
        InputError: If the order is too low: nothing follows then.

    Neighboring relation:
        Paths of 2**doublings steps of the divergence's own relation.

    Source:
        Mironov 2017, Prop. 11 (arXiv:1702.07476).

    Examples:
        >>> doubled(Fraction(8), Fraction("0.5"), 1)
        (Fraction(4, 1), Fraction(3, 2))
    """
    if doublings < 0 or order < 2 ** (doublings + 1):
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"the order must be at least {2 ** (doublings + 1)} to double a group"
                f" {doublings} times, got {brief(order)}",
                help="start from a higher order, or use `group` on the whole curve",
            )
        )
    return order / 2**doublings, 3**doublings * divergence
