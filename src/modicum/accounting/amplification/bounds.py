"""Bounds of amplification that every kind of sample shares.

With P where an instance is in the sample and Q where it is not, sampling makes
(1-q) Q + q P of P. The mean under Q of (1 - q + q P/Q)^n is a sum of positive
terms, one for each power of P/Q.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction

from modicum.accounting.amounts import INFINITY, Amount, decimal_of, is_infinite, least
from modicum.accounting.argument_ranges import require_probability
from modicum.accounting.curves import (
    EPS_LARGE,
    NOTHING,
    Curve,
    interpolated,
    pure_curve,
)
from modicum.accounting.decimals import precise, to_decimal


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


#: Sums over a mechanism's orders end here; beyond, the caller's other bounds hold.
ORDER_MAX = 1024

# exp of more than this would leave the range of decimals.
_EXPONENT_MAX = Decimal(10**11)


def growth(exponent: Amount) -> Decimal:
    """Return exp(exponent), or infinity where that is too large to compute with.

    Examples:
        >>> from modicum.accounting.decimals import precise
        >>> f"{precise(growth)(Fraction(1)):.12f}"
        '2.718281828459'
        >>> growth(Decimal("1e30"))
        Decimal('Infinity')
    """
    power = decimal_of(exponent)
    return INFINITY if power > _EXPONENT_MAX else power.exp()


def log_mean_power(rate: Fraction, order: int, growths: Iterable[Decimal]) -> Amount:
    """Return ln(sum of C(n,k) (1-q)^(n-k) q^k G(k)) / (n-1), with G(0) = G(1) = 1.

    Args:
        rate: q, strictly between 0 and 1.
        order: n, an integer >= 2.
        growths: G(2), G(3), ..., G(n) or more of them.

    Examples:
        >>> from modicum.accounting.decimals import precise
        >>> mean = precise(log_mean_power)(Fraction(1, 2), 2, [Decimal(1).exp()])
        >>> f"{mean:.6f}"  # ln(3/4 + e/4)
        '0.357374'
    """
    kept = to_decimal(1 - rate)
    odds = to_decimal(rate / (1 - rate))
    binomial = kept**order
    total = binomial + binomial * odds * order
    binomial *= odds * order
    for k, grown in zip(range(2, order + 1), growths, strict=False):
        if grown == INFINITY:
            return INFINITY
        binomial = binomial * odds * (order - k + 1) / k
        total += binomial * grown
    return total.ln() / (order - 1)


def between_integers(
    at_integer: Callable[[int], Amount], order: Fraction, largest: int = ORDER_MAX
) -> Amount:
    """Return a bound at a real order from bounds at integer orders of at least 2.

    Convexity interpolates between two integers; below 2 the value at 2 is a bound.
    Infinite above `largest`.

    Examples:
        >>> orders = Fraction(3, 2), Fraction(5, 2)
        >>> [between_integers(Fraction, order) for order in orders]
        [Fraction(2, 1), Fraction(8, 3)]
    """
    if order > largest:
        return INFINITY
    low = max(2, order.numerator // order.denominator)
    if order <= low:
        return at_integer(low)
    ends = {Fraction(low): at_integer(low), Fraction(low + 1): at_integer(low + 1)}
    if any(is_infinite(value) for value in ends.values()):
        return INFINITY
    return interpolated(ends).renyi(order)
