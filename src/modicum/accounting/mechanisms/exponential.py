"""The exponential mechanism: a candidate, the likelier the higher its score."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from modicum.accounting.amounts import least
from modicum.accounting.argument_ranges import require_at_least_zero
from modicum.accounting.curves import (
    EPS_LARGE,
    NOTHING,
    Curve,
    pure_curve,
    pure_mu2,
    pure_rho,
)
from modicum.accounting.decimals import precise, to_decimal
from modicum.accounting.mechanisms.kind import Kind, Parameter

# Below this eps, alpha * eps**2 / 8 is the same number as the exact curve to more
# digits than are stored, and the exact one would lose too many.
_EPS_SMALL = Fraction(1, 10**12)


@lru_cache(maxsize=4096)
@precise
def exponential(*, eps: Fraction) -> Curve:
    """Return the curve of the exponential mechanism.

    Args:
        eps: The parameter: a candidate of score q has a probability proportional to
            exp(eps * q / (2 * sensitivity of the score)); >= 0.

    Returns:
        Every measure; delta is 0. The Renyi curve is the largest that any mechanism
        of bounded range `eps` has; rho is the lesser of eps**2/8 and that of any
        pure mechanism.

    Raises:
        InputError: If eps is negative.

    Neighboring relation:
        That of the score's sensitivity.

    Source:
        McSherry & Talwar 2007 for eps. The mechanism has bounded range: Durfee &
        Rogers 2019 (arXiv:1905.04273); Dong, Durfee & Rogers 2020
        (arXiv:1909.13830). rho: Cesar & Rogers 2021 (arXiv:2004.07223). The Renyi
        curve is derived beside the code.

    Examples:
        >>> exponential(eps=Fraction(1)).loss().coordinates[:2]
        (1000000000000, 125000000000)
    """
    require_at_least_zero("eps", eps)
    if eps == 0:
        return NOTHING
    if eps > EPS_LARGE:
        return pure_curve(eps)
    e = to_decimal(eps)
    square = eps * eps / 8
    renyi = (
        (lambda order: order * square)
        if eps < _EPS_SMALL
        else (lambda order: _bounded_range_rdp(e, order))
    )
    return Curve(eps, least(square, pure_rho(e)), pure_mu2(e), renyi)


def _bounded_range_rdp(e: Decimal, order: Fraction) -> Decimal:
    # All ratios P/Q lie in [h/E, h] for some h, where E = exp(eps), and average to
    # 1 under Q. x^a is convex, so E_Q[(P/Q)^a] is largest if only both ends occur:
    #     h^(a-1) (A - B h) / C,  A = 1 - E^-a,  B = 1/E - E^-a,  C = 1 - 1/E.
    # Over all h, that is largest at h = (a-1) A / (a B), where A - B h = A/a.
    # Both ends occur in an actual pair, so the curve is tight for the class.
    a = to_decimal(order)
    near = 1 - (-a * e).exp()
    shrink = 1 - (-(a - 1) * e).exp()
    ends = 1 - (-e).exp()
    ln_h = e + ((a - 1) * near / (a * shrink)).ln()
    return ln_h + (near / (a * ends)).ln() / (a - 1)


KINDS = (
    Kind(
        "exponential",
        (Parameter("eps", "the parameter, for scores of sensitivity 1"),),
        lambda v: exponential(eps=v["eps"]),
    ),
)
