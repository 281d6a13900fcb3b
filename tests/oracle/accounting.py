"""What losses, conversions and filters would be, slowly: definitions at 50 digits.

Nothing here rounds to ledger units, is clever, or imports the code under test.
Rationals come in as `Fraction`; reals go out as mpmath numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import mpmath

Real: TypeAlias = Any  # mpmath has no types; this alias is the border.

#: A context of our own: nobody else's precision changes ours, nor ours theirs.
MP: Any = mpmath.MPContext()
MP.dps = 50


def real(value: Fraction | int) -> Real:
    """Return a rational to 50 digits."""
    return MP.mpf(value.numerator) / value.denominator


# --- divergences, by definition ----------------------------------------------


def renyi_discrete(p: Sequence[Real], q: Sequence[Real], alpha: Fraction) -> Real:
    """Return D_alpha(P || Q) = ln(sum_i p_i (p_i/q_i)^(alpha-1)) / (alpha-1)."""
    less_one = real(alpha - 1)
    pairs = zip(p, q, strict=True)
    return MP.log(MP.fsum(a * (a / b) ** less_one for a, b in pairs)) / less_one


def kl_discrete(p: Sequence[Real], q: Sequence[Real]) -> Real:
    """Return the Kullback-Leibler divergence, the Renyi divergence of order 1."""
    return MP.fsum(a * MP.log(a / b) for a, b in zip(p, q, strict=True))


def answer_pair(truth: Fraction, values: int) -> tuple[list[Real], list[Real]]:
    """Return the distributions of k-ary randomized response for two true values."""
    p, q = real(truth), real((1 - truth) / (values - 1))
    others = [q] * (values - 2)
    return [p, q, *others], [q, p, *others]


def pure_pair(eps: Fraction) -> tuple[list[Real], list[Real]]:
    """Return the worst pair of an eps-DP mechanism: binary randomized response."""
    lie = 1 / (1 + MP.exp(real(eps)))
    truth = 1 / (1 + MP.exp(-real(eps)))
    return [truth, lie], [lie, truth]


def renyi_by_integration(
    p: Callable[[Real], Real],
    q: Callable[[Real], Real],
    alpha: Fraction,
    breaks: Sequence[Real],
) -> Real:
    """Return D_alpha of two densities by numeric integration; about 20 digits."""
    a = real(alpha)
    integral = MP.quad(lambda x: p(x) ** a * q(x) ** (1 - a), list(breaks))
    return MP.log(integral) / (a - 1)


# --- curves, by formula --------------------------------------------------------


def laplace_renyi(eps: Fraction, alpha: Fraction) -> Real:
    """Mironov 2017, Prop. 6: Laplace noise with sensitivity/scale = eps."""
    e, a = real(eps), real(alpha)
    grows = a / (2 * a - 1) * MP.exp((a - 1) * e)
    falls = (a - 1) / (2 * a - 1) * MP.exp(-a * e)
    return MP.log(grows + falls) / (a - 1)


def laplace_rho(eps: Fraction) -> Real:
    """Harrison & Manurangsi 2026: the Renyi curve's limit at order 1."""
    e = real(eps)
    return e + MP.exp(-e) - 1


def pure_renyi(eps: Fraction, alpha: Fraction) -> Real:
    """Every eps-DP mechanism is a post-processing of binary randomized response."""
    return renyi_discrete(*pure_pair(eps), alpha)


def pure_rho(eps: Fraction) -> Real:
    """Bun & Steinke 2016, Prop. 3.3: the KL divergence of the worst pair."""
    return kl_discrete(*pure_pair(eps))


def normal_tail(x: Real) -> Real:
    """Return P(Z > x)."""
    return MP.erfc(x / MP.sqrt(2)) / 2


def pure_mu2(eps: Fraction) -> Real:
    """Return mu^2 for mu = 2 * PhiInv(e^eps / (1 + e^eps)), by bisection."""
    target = 1 / (1 + MP.exp(real(eps)))
    low, high = MP.mpf(0), MP.sqrt(2 * real(eps)) + 1
    for _ in range(200):
        middle = (low + high) / 2
        if normal_tail(middle) > target:
            low = middle
        else:
            high = middle
    return (2 * low) ** 2


# --- conversions ---------------------------------------------------------------


def least(function: Callable[[Real], Real], low: int, high: int) -> Real:
    """Return the smallest value on an interval: a grid, then golden section."""
    steps = 2 * (high - low)
    grid = [MP.mpf(low) + MP.mpf(i) / 2 for i in range(steps + 1)]
    best = min(range(steps + 1), key=lambda i: function(grid[i]))
    left, right = grid[max(0, best - 1)], grid[min(steps, best + 1)]
    ratio = (MP.sqrt(5) - 1) / 2
    x, y = right - ratio * (right - left), left + ratio * (right - left)
    at_x, at_y = function(x), function(y)
    for _ in range(90):
        if at_x < at_y:
            right, y, at_y = y, x, at_x
            x = right - ratio * (right - left)
            at_x = function(x)
        else:
            left, x, at_x = x, y, at_y
            y = left + ratio * (right - left)
            at_y = function(y)
    return min(at_x, at_y)


def renyi_offset(alpha: Real, delta: Fraction) -> Real:
    """Canonne, Kamath & Steinke 2020, Prop. 12: epsilon less the divergence."""
    a = MP.mpf(alpha)
    return MP.log((a - 1) / a) - (MP.log(real(delta)) + MP.log(a)) / (a - 1)


def renyi_epsilon(alpha: Fraction, divergence: Fraction, delta: Fraction) -> Real:
    """Return epsilon at `delta` of one Renyi divergence, at least 0."""
    return max(MP.mpf(0), real(divergence) + renyi_offset(real(alpha), delta))


def zcdp_epsilon(rho: Fraction, delta: Fraction) -> Real:
    """Return epsilon at `delta` of rho-zCDP by the best real order, at least 0."""
    if rho == 0:
        return MP.mpf(0)

    def epsilon(u: Real) -> Real:
        alpha = 1 + MP.exp(u)
        return real(rho) * alpha + renyi_offset(alpha, delta)

    return max(MP.mpf(0), least(epsilon, -40, 60))


def zcdp_cap(eps: Fraction, delta: Fraction) -> Real:
    """Return the largest rho that implies (eps, delta)-DP by some real order."""

    def negated(u: Real) -> Real:
        alpha = 1 + MP.exp(u)
        return (renyi_offset(alpha, delta) - real(eps)) / alpha

    return max(MP.mpf(0), -least(negated, -40, 60))


def renyi_cap(alpha: Fraction, eps: Fraction, delta: Fraction) -> Real:
    """Return the largest divergence that implies (eps, delta)-DP; may be negative."""
    return real(eps) - renyi_offset(real(alpha), delta)


def gaussian_delta(mu: Real, eps: Real) -> Real:
    """Dong, Roth & Su 2022, Cor. 2.13: the exact delta of a Gaussian mechanism."""
    return normal_tail(eps / mu - mu / 2) - MP.exp(eps) * normal_tail(eps / mu + mu / 2)


# --- filters -------------------------------------------------------------------

_ORDERS = (4, 8, 16, 32, 64, 128)

#: name -> (share of the mechanisms' deltas, share of rho, share of each order).
SHARES: Mapping[str, tuple[Fraction, Fraction, Mapping[int, Fraction]]] = {
    "combined-v1": (
        Fraction(1, 4),
        Fraction(1, 2),
        {order: Fraction(1, 24) for order in _ORDERS},
    ),
    "renyi-v1": (
        Fraction(0),
        Fraction(0),
        {3: Fraction(1, 64), 6: Fraction(2, 64), 12: Fraction(56, 64)}
        | {24: Fraction(4, 64), 96: Fraction(1, 64)},
    ),
    "zcdp-v1": (Fraction(1, 4), Fraction(3, 4), {}),
    "basic-v1": (Fraction(1), Fraction(0), {}),
}


@dataclass(frozen=True)
class Sums:
    """A composed loss as exact rationals; None is infinite."""

    eps: Fraction | None
    rho: Fraction | None
    mu2: Fraction | None
    orders: Mapping[Fraction, Fraction | None]
    delta: Fraction

    def moved(self, by: Fraction) -> Sums:
        """Return the sums with `by` more of each finite loss; delta stays."""

        def more(value: Fraction | None) -> Fraction | None:
            return None if value is None else max(Fraction(0), value + by)

        orders = {order: more(value) for order, value in self.orders.items()}
        return Sums(more(self.eps), more(self.rho), more(self.mu2), orders, self.delta)


def filter_figure(name: str, delta: Fraction, sums: Sums) -> Real:
    """Return the least eps at which the filter's losses, at their shares, fit."""
    _, rho_share, order_shares = SHARES[name]
    figures = [MP.inf if sums.eps is None else real(sums.eps)]
    if rho_share and sums.rho is not None:
        figures.append(zcdp_epsilon(sums.rho, rho_share * delta))
    for order, share in order_shares.items():
        loss = sums.orders[Fraction(order)]
        if loss is not None:
            figures.append(renyi_epsilon(Fraction(order), loss, share * delta))
    return min(figures)


def filter_holds(name: str, eps: Fraction, delta: Fraction, sums: Sums) -> bool:
    """Return whether an (eps, delta) budget's filter holds, by its definition."""
    fits = bool(filter_figure(name, delta, sums) <= real(eps))
    return fits and sums.delta <= SHARES[name][0] * delta


def tightest_epsilon(sums: Sums, delta: Fraction) -> Real:
    """Return the least epsilon at the whole delta, by pure, zCDP and each order."""
    left = delta - sums.delta
    if left < 0:
        return MP.inf
    figures = [MP.inf if sums.eps is None else real(sums.eps)]
    if left > 0:
        if sums.rho is not None:
            figures.append(zcdp_epsilon(sums.rho, left))
        figures += [
            renyi_epsilon(order, loss, left)
            for order, loss in sums.orders.items()
            if loss is not None
        ]
    return min(figures)
