"""Bounds that every kind of sample shares."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from modicum.accounting.amounts import Amount, decimal_of, least
from modicum.accounting.curves import NOTHING, Curve
from modicum.accounting.decimals import precise, to_decimal
from modicum.accounting.mechanisms.argument_ranges import require_probability
from modicum.accounting.mechanisms.declared_guarantee import EPS_LARGE, pure_curve


@precise
def amplified_eps(eps: Amount, sampling_rate: Fraction) -> Amount:
    """Return the pure eps of an eps-DP mechanism on a secret sample.

    Args:
        eps: >= 0 or infinite.
        sampling_rate: From 0 to 1.

    Returns:
        ln(1 + q (exp(eps) - 1)); with a delta, it holds with q times that delta.

    Raises:
        InputError: If the rate is not a probability.

    Neighboring relation:
        Add/remove under Poisson sampling; substitution of one under sampling
        without replacement; the same before and after.

    Source:
        Balle, Barthe & Gaboardi 2018, Thms 8 and 9 (arXiv:1807.01647).

    Examples:
        >>> f"{amplified_eps(Fraction(1), Fraction(1, 100)):.9g}"
        '0.0170368632'
    """
    require_probability("the sampling rate", sampling_rate)
    if sampling_rate == 0:
        return Fraction(0)
    if sampling_rate == 1 or eps == 0 or eps > EPS_LARGE:
        return eps
    e, q = decimal_of(eps), to_decimal(sampling_rate)
    return e + (q + (1 - q) * (-e).exp()).ln()


def amplified(
    base: Curve, rate: Fraction, renyi: Callable[[Fraction], Amount]
) -> Curve:
    """Return a sampled curve: a Renyi bound, the pure bound, and that of no sample.

    Examples:
        >>> whole = pure_curve(Fraction(1))
        >>> part = amplified(whole, Fraction(1, 100), whole.at)
        >>> f"{part.eps:.6f}"  # ln(1 + (e - 1) / 100)
        '0.017037'
        >>> part.rho < whole.rho / 100
        True
    """
    if rate == 0:
        return NOTHING
    if rate == 1:
        return base
    pure = pure_curve(amplified_eps(base.eps, rate))
    return Curve(
        eps=pure.eps,
        rho=least(base.rho, pure.rho),
        mu2=least(base.mu2, pure.mu2),
        renyi=lambda order: least(base.at(order), pure.at(order), renyi(order)),
        delta=rate * base.delta,
    )
