"""What single mechanisms cost: every coordinate that a proof exists for.

Each function takes exact rationals and returns a `Loss` whose coordinates are
rounded up. A coordinate without a proof is infinite. The result holds under the
neighboring relation for which the sensitivity (or the declared guarantee) holds.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from modicum.accounting.decimals import (
    loss_units,
    normal_tail,
    pi,
    precise,
    saturate,
    to_decimal,
)
from modicum.accounting.grid import COORDINATES, INFINITE, ORDERS
from modicum.accounting.losses import Loss
from modicum.core.exact import DELTA_UNIT, ceil_units

# Beyond this, every smooth formula equals eps to more digits than are stored.
_EPS_LARGE = Fraction(10**7)
# Up to this eps the normal quantile is computed; beyond it, bounded.
_EPS_QUANTILE_MAX = Fraction(200)

#: What a mechanism costs whose output does not depend on the data.
_NOTHING = Loss((0,) * COORDINATES)


@lru_cache(maxsize=4096)
def laplace(*, sensitivity_l1: Fraction, scale: Fraction) -> Loss:
    """Return the loss of adding Laplace noise.

    Args:
        sensitivity_l1: Largest L1 change of the answer between neighbors, in units
            of the answer, >= 0.
        scale: Scale b of the noise, in units of the answer, > 0.

    Returns:
        Every coordinate but delta, which is 0.

    Neighboring relation:
        The one `sensitivity_l1` holds under.

    Source:
        Mironov 2017, Prop. 6 (arXiv:1702.07476) for the Renyi curve; its limit at
        order 1, eps + exp(-eps) - 1, is the tight rho by Harrison & Manurangsi 2026
        (arXiv:2510.25746). For several coordinates with L1 change eps in all, both
        are convex in eps and 0 at 0, so one coordinate is the worst case. mu as for
        any pure mechanism.

    Examples:
        >>> loss = laplace(sensitivity_l1=Fraction(1), scale=Fraction(2))
        >>> loss.coordinates[:2]
        (500000000000, 106530659713)
    """
    eps = sensitivity_l1 / scale
    return _from_pure(
        eps, _laplace_rho(eps), tuple(_laplace_rdp(eps, a) for a in ORDERS)
    )


@lru_cache(maxsize=4096)
def gaussian(*, rho: Fraction) -> Loss:
    """Return the loss of adding Gaussian noise.

    Args:
        rho: sensitivity_l2**2 / (2 sigma**2), >= 0.

    Returns:
        rho, mu**2 = 2 rho and alpha*rho at each order; pure eps is infinite.

    Neighboring relation:
        The one the L2 sensitivity holds under.

    Source:
        Bun & Steinke 2016, Prop. 1.6 (arXiv:1605.02065); Mironov 2017, Prop. 7
        (arXiv:1702.07476); Dong, Roth & Su 2022, Thm 2.7 (arXiv:1905.02383).

    Examples:
        >>> gaussian(rho=Fraction("0.5")).coordinates[1:3]
        (500000000000, 1000000000000)
    """
    return _concentrated(rho, mu2=2 * rho)


def gaussian_rho(*, sensitivity_l2: Fraction, sigma: Fraction) -> Fraction:
    """Return the exact rho of Gaussian noise.

    Args:
        sensitivity_l2: Largest L2 change of the answer between neighbors, in units
            of the answer, >= 0.
        sigma: Standard deviation of the noise, in units of the answer, > 0.

    Examples:
        >>> gaussian_rho(sensitivity_l2=Fraction(1), sigma=Fraction(10))
        Fraction(1, 200)
    """
    return sensitivity_l2**2 / (2 * sigma**2)


@lru_cache(maxsize=4096)
@precise
def randomized_response(*, truth: Fraction, values: int, answers: int) -> Loss:
    """Return the loss of k-ary randomized response.

    Args:
        truth: Probability of the true value, at least 1/values and below 1; each
            other value has (1 - truth)/(values - 1).
        values: Number of possible values k, >= 2.
        answers: How many independent answers one instance of the unit gives, >= 1.

    Returns:
        Every coordinate but delta, which is 0: `answers` times the loss of one.

    Neighboring relation:
        A change of the unit's own values. That is also add/remove when everybody
        on a public list answers, in the data or not; it is not when the number of
        answers shows who is in the data.

    Source:
        Direct computation: ln(truth/other) for eps; the Renyi divergence between
        the answer's distributions for two values. rho and mu as for any pure
        mechanism; rho is tight for k = 2 (Bun & Steinke 2016, Prop. 3.3).

    Examples:
        >>> one = randomized_response(truth=Fraction(3, 4), values=2, answers=1)
        >>> one.coordinates[0]
        1098612288669
    """
    if truth * values == 1:
        return _NOTHING  # Every answer is as likely as any other.
    p = to_decimal(truth)
    q = to_decimal((1 - truth) / (values - 1))
    eps = p.ln() - q.ln()
    rest = (values - 2) * q

    def rdp(alpha: Fraction) -> Decimal:
        # ln(p^a q^(1-a) + q^a p^(1-a) + (k-2) q), with e^((a-1) eps) taken out so
        # that nothing overflows; p = q e^eps.
        less_one = to_decimal(alpha - 1)
        shrink = (-less_one * eps).exp()
        return eps + (p + rest * shrink + q * shrink * shrink).ln() / less_one

    def repeated(value: Decimal) -> int:
        return saturate(loss_units(answers * value))

    return Loss(
        (
            repeated(eps),
            repeated(_pure_rho_decimal(eps)),
            repeated(_pure_mu2_decimal(eps)),
            *(repeated(min(rdp(alpha), eps)) for alpha in ORDERS),
            0,
        )
    )


@lru_cache(maxsize=4096)
def declared_pure(*, eps: Fraction, delta: Fraction = Fraction(0)) -> Loss:
    """Return the loss of any mechanism known to be (eps, delta)-DP.

    Args:
        eps: > 0.
        delta: At least 0 and below 1; kept as a coordinate of its own.

    Returns:
        The curve of binary randomized response, which every eps-DP mechanism is a
        post-processing of; with delta > 0, that holds but for an event of
        probability delta, which is why delta adds up separately.

    Neighboring relation:
        The one the guarantee holds under.

    Source:
        Kairouz, Oh & Viswanath 2015 (arXiv:1311.0776) and Murtagh & Vadhan 2016
        (arXiv:1507.03113); Bun & Steinke 2016, Prop. 3.3 (arXiv:1605.02065).

    Examples:
        >>> declared_pure(eps=Fraction(1)).coordinates[:2]
        (1000000000000, 462117157261)
    """
    loss = _from_pure(eps, _pure_rho(eps), tuple(_pure_rdp(eps, a) for a in ORDERS))
    return Loss((*loss.coordinates[:-1], ceil_units(delta, DELTA_UNIT)))


@lru_cache(maxsize=4096)
def declared_zcdp(*, rho: Fraction) -> Loss:
    """Return the loss of any mechanism known to be rho-zCDP.

    Args:
        rho: > 0.

    Returns:
        rho and alpha*rho; eps and mu are infinite, since zCDP implies neither.

    Neighboring relation:
        The one the guarantee holds under.

    Source:
        Bun & Steinke 2016, Def. 1.1 (arXiv:1605.02065).
    """
    return _concentrated(rho, mu2=None)


@lru_cache(maxsize=4096)
def declared_gdp(*, mu: Fraction) -> Loss:
    """Return the loss of any mechanism known to be mu-GDP.

    Args:
        mu: > 0.

    Returns:
        mu**2, rho = mu**2/2 and alpha*rho; pure eps is infinite.

    Neighboring relation:
        The one the guarantee holds under.

    Source:
        Dong, Roth & Su 2022, Cor. B.6 (arXiv:1905.02383).
    """
    return _concentrated(mu * mu / 2, mu2=mu * mu)


def _concentrated(rho: Fraction, *, mu2: Fraction | None) -> Loss:
    return Loss(
        (
            0 if rho == 0 else INFINITE,
            saturate(ceil_units(rho)),
            INFINITE if mu2 is None else saturate(ceil_units(mu2)),
            *(saturate(ceil_units(rho * alpha)) for alpha in ORDERS),
            0,
        )
    )


def _from_pure(eps: Fraction, rho: int, rdp: tuple[int, ...]) -> Loss:
    if eps == 0:
        return _NOTHING
    pure = saturate(ceil_units(eps))
    return Loss((pure, min(rho, pure), _pure_mu2(eps), *(min(r, pure) for r in rdp), 0))


@precise
def _laplace_rho(eps: Fraction) -> int:
    if eps > _EPS_LARGE:
        return saturate(ceil_units(eps))
    e = to_decimal(eps)
    return loss_units(e + (-e).exp() - 1)


@precise
def _laplace_rdp(eps: Fraction, alpha: Fraction) -> int:
    if eps > _EPS_LARGE:
        return saturate(ceil_units(eps))
    e, a = to_decimal(eps), to_decimal(alpha)
    inner = (a + (a - 1) * (-(2 * a - 1) * e).exp()) / (2 * a - 1)
    return loss_units(e + inner.ln() / (a - 1))


@precise
def _pure_rho(eps: Fraction) -> int:
    if eps > _EPS_LARGE:
        return saturate(ceil_units(eps))
    return loss_units(_pure_rho_decimal(to_decimal(eps)))


def _pure_rho_decimal(eps: Decimal) -> Decimal:
    """Eps * tanh(eps/2), written so that nothing overflows."""
    shrink = (-eps).exp()
    return eps * (1 - shrink) / (1 + shrink)


@precise
def _pure_rdp(eps: Fraction, alpha: Fraction) -> int:
    if eps > _EPS_LARGE:
        return saturate(ceil_units(eps))
    e, a = to_decimal(eps), to_decimal(alpha)
    upper = (1 + (-(2 * a - 1) * e).exp()).ln()
    lower = (1 + (-e).exp()).ln()
    return loss_units(e + (upper - lower) / (a - 1))


@precise
def _pure_mu2(eps: Fraction) -> int:
    if eps > _EPS_LARGE:
        return saturate(8 * ceil_units(eps))
    return loss_units(_pure_mu2_decimal(to_decimal(eps)))


def _pure_mu2_decimal(eps: Decimal) -> Decimal:
    """Return an upper bound of mu**2 for mu = 2 * quantile(e^eps / (1 + e^eps)).

    Newton's method on ln P(Z > x) starts right of the root; the function is
    concave and falling, so every iterate stays right of it: an upper bound.

    Source:
        mu is tight for pure DP: the trade-off function of an eps-DP mechanism lies
        above the chord of the Gaussian one through its fixed point.
    """
    if eps == 0:
        return eps
    ln_tail = -eps - (1 + (-eps).exp()).ln()  # ln of 1 / (1 + e^eps)
    # P(Z > x) <= exp(-x^2/2)/2 gives a first x, and a sound one.
    start_squared = 2 * (-ln_tail - Decimal(2).ln())
    if eps > to_decimal(_EPS_QUANTILE_MAX) or start_squared <= Decimal("1e-40"):
        return 4 * max(start_squared, Decimal(0))
    x = start_squared.sqrt()
    root_two_pi = (2 * pi(60)).sqrt()
    for _ in range(60):
        tail = normal_tail(x)
        density = (-x * x / 2).exp() / root_two_pi
        step = (tail.ln() - ln_tail) * tail / density
        x += step
        if abs(step) < Decimal("1e-32"):
            break
    return 4 * x * x
