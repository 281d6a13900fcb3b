"""Named conversions: of epsilon, of zCDP, of Gaussian DP and of Renyi divergences."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from modicum.accounting.amounts import ZERO, Amount
from modicum.accounting.conversions.advanced_composition import (
    adaptive_epsilon,
    advanced_epsilon,
    mean_loss,
)
from modicum.accounting.conversions.epsilon_delta import (
    renyi_best_delta,
    renyi_best_epsilon,
)
from modicum.accounting.conversions.guarantees import Conversion, Guarantee, Measure
from modicum.accounting.conversions.moments import (
    renyi_delta,
    renyi_offset,
    zcdp_delta,
    zcdp_rational,
)
from modicum.accounting.conversions.optimal_composition import (
    optimal_pure_delta,
    optimal_pure_epsilon,
)
from modicum.accounting.conversions.profiles import (
    delta_above,
    gaussian_delta,
    gaussian_epsilon,
    loss_above,
)
from modicum.accounting.curves import interpolated, pure_curve
from modicum.accounting.decimals import GUARD, pi, precise, to_decimal
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import brief

# --- from zCDP -------------------------------------------------------------------


def _rho(g: Guarantee) -> Fraction:
    return g.times * (g.value**2 / 2 if g.measure == "mu" else g.value)


def _total_rho(g: Guarantee, _: Fraction) -> Amount:
    return _rho(g)


def _rho_renyi(g: Guarantee, order: Fraction) -> Amount:
    return order * _rho(g)


@precise
def _real_order_epsilon(g: Guarantee, delta: Fraction) -> Amount:
    rho = _rho(g)
    return loss_above(zcdp_rational(rho, delta)) if rho else ZERO


def _real_order_delta(g: Guarantee, eps: Fraction) -> Fraction:
    return zcdp_delta(_rho(g), eps)


@precise
def _simple_epsilon(g: Guarantee, delta: Fraction) -> Fraction:
    rho = to_decimal(_rho(g))
    return loss_above(rho + 2 * (-rho * to_decimal(delta).ln()).sqrt()) if rho else ZERO


@precise
def _simple_delta(g: Guarantee, eps: Fraction) -> Fraction:
    rho, over = to_decimal(_rho(g)), to_decimal(eps - _rho(g))
    if over < 0 or not rho:
        return Fraction(1) if rho else ZERO
    return delta_above((-(over * over) / (4 * rho)).exp() * (1 + GUARD))


def _lemma(rho: Decimal, eps: Decimal) -> Decimal:
    """Return the last, and least, of the four bounds of the lemma, for eps >= rho."""
    over = eps - rho
    shift = 1 + over / (2 * rho)
    factor = 2 / (shift + (shift * shift + 4 / (pi(60) * rho)).sqrt())
    return (-(over * over) / (4 * rho)).exp() * factor * (1 + GUARD)


@precise
def _lemma_delta(g: Guarantee, eps: Fraction) -> Fraction:
    rho = _rho(g)
    if not rho:
        return ZERO
    if eps < rho:
        return Fraction(1)
    return delta_above(_lemma(to_decimal(rho), to_decimal(eps)))


@precise
def _lemma_epsilon(g: Guarantee, delta: Fraction) -> Fraction:
    if not _rho(g):
        return ZERO
    rho, goal = to_decimal(_rho(g)), to_decimal(delta) * (1 - GUARD)
    low, high = rho, rho + 2 * (-rho * goal.ln()).sqrt()
    if _lemma(rho, low) <= goal:
        return loss_above(low)
    # The bound falls with epsilon; it holds at the upper end throughout, since there
    # the exponential alone is delta and the factor is below 1.
    while high - low > high * Decimal("1e-20"):
        middle = (low + high) / 2
        low, high = (low, middle) if _lemma(rho, middle) <= goal else (middle, high)
    return loss_above(high)


# --- from Gaussian DP ------------------------------------------------------------


def _gaussian_epsilon(g: Guarantee, delta: Fraction) -> Fraction:
    return gaussian_epsilon(g.times * g.value**2, delta)


def _gaussian_delta(g: Guarantee, eps: Fraction) -> Fraction:
    return gaussian_delta(g.times * g.value**2, eps)


@precise
def _composed_mu(g: Guarantee, _: Fraction) -> Amount:
    if g.times == 1:
        return g.value
    return loss_above(to_decimal(g.times * g.value**2).sqrt()) if g.value else ZERO


# --- from Renyi divergences ------------------------------------------------------


def _points(g: Guarantee) -> dict[Fraction, Amount]:
    return {order: g.times * divergence for order, divergence in g.points}


@precise
def _mironov_epsilon(g: Guarantee, delta: Fraction) -> Amount:
    log = -to_decimal(delta).ln()
    return min(
        loss_above(to_decimal(g.times * divergence) + log / to_decimal(order - 1))
        for order, divergence in g.points
    )


@precise
def _mironov_delta(g: Guarantee, eps: Fraction) -> Fraction:
    return min(
        delta_above(
            (
                min(to_decimal((order - 1) * (g.times * divergence - eps)), -GUARD)
                + GUARD
            ).exp()
        )
        for order, divergence in g.points
    )


@precise
def _cks_epsilon(g: Guarantee, delta: Fraction) -> Amount:
    return min(
        loss_above(to_decimal(g.times * divergence) + renyi_offset(order, delta))
        for order, divergence in g.points
    )


def _cks_delta(g: Guarantee, eps: Fraction) -> Fraction:
    return min(renyi_delta(order, r, eps) for order, r in _points(g).items())


def _between_epsilon(g: Guarantee, delta: Fraction) -> Amount:
    return renyi_best_epsilon(interpolated(_points(g)), delta)


def _between_delta(g: Guarantee, eps: Fraction) -> Fraction:
    return renyi_best_delta(interpolated(_points(g)), eps)


def _renyi_between(g: Guarantee, order: Fraction) -> Amount:
    return interpolated(_points(g)).at(order)


_FIXED = "all parameters are fixed before the first output"
_COR_13 = "Canonne, Kamath & Steinke 2020, Cor. 13 (arXiv:2004.00010)"
_PROP_12 = "Canonne, Kamath & Steinke 2020, Prop. 12 (arXiv:2004.00010)"
_BS = "Bun & Steinke 2016, {} (arXiv:1605.02065)"
_GDP = "Dong, Roth & Su 2022, {} (arXiv:1905.02383)"
_MIRONOV = "Mironov 2017, {} (arXiv:1702.07476)"
_CONVEX = "van Erven & Harremoes 2014, Thm 3 and Cor. 2 (arXiv:1206.2459)"
_WIDE = "a looser form, for comparison with published figures"

#: Of those between the same measures, the usual one first.
OF_MOMENTS: tuple[Conversion, ...] = (
    Conversion("real-order", ("rho",), "eps", _real_order_epsilon, _FIXED, _COR_13),
    Conversion(
        "bun-steinke-lemma-3.6",
        ("rho",),
        "eps",
        _lemma_epsilon,
        _WIDE,
        _BS.format("Lemma 3.6"),
    ),
    Conversion(
        "bun-steinke", ("rho",), "eps", _simple_epsilon, _WIDE, _BS.format("Prop. 1.3")
    ),
    Conversion("real-order", ("rho",), "delta", _real_order_delta, _FIXED, _COR_13),
    Conversion(
        "bun-steinke-lemma-3.6",
        ("rho",),
        "delta",
        _lemma_delta,
        _WIDE,
        _BS.format("Lemma 3.6"),
    ),
    Conversion(
        "bun-steinke", ("rho",), "delta", _simple_delta, _WIDE, _BS.format("Prop. 1.3")
    ),
    Conversion(
        "composition", ("rho",), "rho", _total_rho, "always", _BS.format("Lemma 1.7")
    ),
    Conversion(
        "definition", ("rho",), "rdp", _rho_renyi, "always", _BS.format("Def. 1.1")
    ),
    Conversion(
        "gaussian-exact",
        ("mu",),
        "eps",
        _gaussian_epsilon,
        "mu is proven of the mechanism, or its noise is Gaussian; a rho is not enough",
        _GDP.format("Cor. 2.13") + "; Balle & Wang 2018, Thm 8 (arXiv:1805.06530)",
    ),
    Conversion("real-order", ("mu",), "eps", _real_order_epsilon, _FIXED, _COR_13),
    Conversion(
        "gaussian-exact",
        ("mu",),
        "delta",
        _gaussian_delta,
        "mu is proven of the mechanism, or its noise is Gaussian; a rho is not enough",
        _GDP.format("Cor. 2.13") + "; Balle & Wang 2018, Thm 8 (arXiv:1805.06530)",
    ),
    Conversion("real-order", ("mu",), "delta", _real_order_delta, _FIXED, _COR_13),
    Conversion(
        "gaussian", ("mu",), "rho", _total_rho, "always", _GDP.format("Cor. B.6")
    ),
    Conversion(
        "composition", ("mu",), "mu", _composed_mu, "always", _GDP.format("Cor. 3.3")
    ),
    Conversion(
        "gaussian", ("mu",), "rdp", _rho_renyi, "always", _GDP.format("Cor. B.6")
    ),
    Conversion("cks", ("rdp",), "eps", _cks_epsilon, _FIXED, _PROP_12),
    Conversion(
        "cks-interpolated",
        ("rdp",),
        "eps",
        _between_epsilon,
        _FIXED,
        f"{_PROP_12}; {_CONVEX}",
    ),
    Conversion(
        "mironov", ("rdp",), "eps", _mironov_epsilon, _WIDE, _MIRONOV.format("Prop. 3")
    ),
    Conversion("cks", ("rdp",), "delta", _cks_delta, _FIXED, _PROP_12),
    Conversion(
        "cks-interpolated",
        ("rdp",),
        "delta",
        _between_delta,
        _FIXED,
        f"{_PROP_12}; {_CONVEX}",
    ),
    Conversion(
        "mironov", ("rdp",), "delta", _mironov_delta, _WIDE, _MIRONOV.format("Prop. 3")
    ),
    Conversion(
        "interpolation",
        ("rdp",),
        "rdp",
        _renyi_between,
        "the order is at most the highest one known",
        _CONVEX,
    ),
)


def _optimal_epsilon(g: Guarantee, delta: Fraction) -> Fraction:
    deltas = {g.delta: g.times}
    return optimal_pure_epsilon({g.value: g.times}, delta, deltas=deltas)


def _optimal_delta(g: Guarantee, eps: Fraction) -> Fraction:
    return optimal_pure_delta({g.value: g.times}, eps, deltas={g.delta: g.times})


def _delta_left(g: Guarantee, delta: Fraction) -> Fraction:
    left = delta - g.times * g.delta
    if left < 0:
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"the guarantee's own delta is larger than {brief(delta)}",
                help=f"use a delta of at least {brief(g.times * g.delta)}",
            )
        )
    return left


def _basic_epsilon(g: Guarantee, delta: Fraction) -> Fraction:
    _delta_left(g, delta)
    return g.times * g.value


def _basic_delta(g: Guarantee, eps: Fraction) -> Fraction:
    if eps < g.times * g.value:
        return Fraction(1)
    return min(Fraction(1), g.times * g.delta)


def _advanced_epsilon(g: Guarantee, delta: Fraction) -> Amount:
    left = _delta_left(g, delta)
    if left == 0:
        return g.times * g.value
    return advanced_epsilon({g.value: g.times}, left)


def _adaptive_epsilon(g: Guarantee, delta: Fraction) -> Amount:
    left = _delta_left(g, delta)
    if left == 0:
        return g.times * g.value
    return adaptive_epsilon({g.value: g.times}, left)


@precise
def _advanced_delta(g: Guarantee, eps: Fraction) -> Fraction:
    mean, squares = mean_loss({g.value: g.times}), g.times * g.value**2
    over = to_decimal(eps) - mean - GUARD
    if over <= 0 or squares == 0:
        return _basic_delta(g, eps)
    left = (-(over * over) / (2 * to_decimal(squares))).exp()
    return delta_above(left * (1 + GUARD) + to_decimal(g.times * g.delta))


@precise
def _pure_rho(g: Guarantee, _: Fraction) -> Amount:
    return _rounded(pure_curve(g.value).rho, g.times)


@precise
def _pure_mu(g: Guarantee, _: Fraction) -> Amount:
    mu2 = pure_curve(g.value).mu2
    exact = to_decimal(mu2) if isinstance(mu2, Fraction) else mu2
    return loss_above((g.times * exact + GUARD).sqrt()) if exact else ZERO


@precise
def _pure_renyi(g: Guarantee, order: Fraction) -> Amount:
    return _rounded(pure_curve(g.value).at(order), g.times)


def _basic_pure(g: Guarantee, _: Fraction) -> Amount:
    return g.times * g.value


def _wide_rho(g: Guarantee, _: Fraction) -> Fraction:
    return g.times * g.value**2 / 2


def _wide_renyi(g: Guarantee, order: Fraction) -> Amount:
    return order * _wide_rho(g, order)


def _rounded(amount: Amount, times: int) -> Amount:
    return (
        times * amount if isinstance(amount, Fraction) else loss_above(times * amount)
    )


_DP: tuple[Measure, ...] = ("eps", "eps-delta")
_KOV = "Kairouz, Oh & Viswanath 2015, Thm 3.3 (arXiv:1311.0776); Murtagh & Vadhan 2016"
_DRV = "Dwork, Rothblum & Vadhan 2010; Kairouz, Oh & Viswanath 2015 (arXiv:1311.0776)"
_BASIC = "Dwork & Roth 2014, Thm 3.16"

#: Of those to the same measure, the usual one first.
OF_EPSILON: tuple[Conversion, ...] = (
    Conversion("optimal", _DP, "eps", _optimal_epsilon, _FIXED, _KOV),
    Conversion("advanced", _DP, "eps", _advanced_epsilon, _FIXED, _DRV),
    Conversion(
        "advanced-adaptive",
        _DP,
        "eps",
        _adaptive_epsilon,
        "parameters may be chosen adaptively, if a filter enforces this epsilon",
        "Whitehouse, Ramdas, Rogers & Wu 2023, Thm 1 (arXiv:2203.05481)",
    ),
    Conversion("basic", _DP, "eps", _basic_epsilon, "always", _BASIC),
    Conversion("optimal", _DP, "delta", _optimal_delta, _FIXED, _KOV),
    Conversion("advanced", _DP, "delta", _advanced_delta, _FIXED, _DRV),
    Conversion("basic", _DP, "delta", _basic_delta, "always", _BASIC),
    Conversion("basic", ("eps",), "pure", _basic_pure, "always", _BASIC),
    Conversion("tight", ("eps",), "rho", _pure_rho, "always", _BS.format("Prop. 3.3")),
    Conversion(
        "bun-steinke", ("eps",), "rho", _wide_rho, _WIDE, _BS.format("Prop. 1.4")
    ),
    Conversion(
        "tight",
        ("eps",),
        "mu",
        _pure_mu,
        "always",
        "Dong, Roth & Su 2022 (arXiv:1905.02383): two trade-off functions that meet",
    ),
    Conversion(
        "tight", ("eps",), "rdp", _pure_renyi, "always", _BS.format("Prop. 3.3")
    ),
    Conversion(
        "bun-steinke", ("eps",), "rdp", _wide_renyi, _WIDE, _BS.format("Prop. 1.4")
    ),
)
