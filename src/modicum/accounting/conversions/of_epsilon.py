"""Named conversions of epsilon, with or without a delta."""

from __future__ import annotations

from fractions import Fraction

from modicum.accounting.amounts import ZERO, Amount
from modicum.accounting.conversions.advanced_composition import (
    adaptive_epsilon,
    advanced_epsilon,
    mean_loss,
)
from modicum.accounting.conversions.guarantees import Conversion, Guarantee, Measure
from modicum.accounting.conversions.optimal_composition import (
    optimal_pure_delta,
    optimal_pure_epsilon,
)
from modicum.accounting.conversions.profiles import delta_above, loss_above
from modicum.accounting.decimals import GUARD, precise, to_decimal
from modicum.accounting.mechanisms.declared_guarantee import pure_curve
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import brief


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
                help=f"ask at a delta of at least {brief(g.times * g.delta)}",
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
_FIXED = "all parameters are fixed before the first output"
_KOV = "Kairouz, Oh & Viswanath 2015, Thm 3.3 (arXiv:1311.0776); Murtagh & Vadhan 2016"
_DRV = "Dwork, Rothblum & Vadhan 2010; Kairouz, Oh & Viswanath 2015 (arXiv:1311.0776)"
_BASIC = "Dwork & Roth 2014, Thm 3.16"
_BS = "Bun & Steinke 2016, {} (arXiv:1605.02065)"
_WIDE = "a looser form, for comparison with published figures"

#: Of those to the same measure, the usual one first.
OF_EPSILON: tuple[Conversion, ...] = (
    Conversion("optimal", _DP, "eps", _optimal_epsilon, _FIXED, _KOV),
    Conversion("advanced", _DP, "eps", _advanced_epsilon, _FIXED, _DRV),
    Conversion(
        "advanced-adaptive",
        _DP,
        "eps",
        _adaptive_epsilon,
        "parameters may be chosen on the way, if a filter stops at this epsilon",
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
