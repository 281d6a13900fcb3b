"""Risk indicators and choices by definition: person by person, and by integration.

Nothing here uses the closed forms of the code under test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import mpmath
import numpy as np

MP = mpmath.MPContext()
MP.dps = 30


def norm(moves: Sequence[float], order: int) -> float:
    """Return the L1 or L2 norm of one person's moves."""
    total = MP.fsum(MP.mpf(move) ** order for move in moves)
    return float(MP.root(total, order))


def published(distance: float, width: float, k: int, order: int) -> float:
    """Return the published indicator of one person."""
    if order == 1:
        return distance + k * width
    return float(MP.sqrt(MP.mpf(distance) ** 2 + k * MP.mpf(width) ** 2))


def mean_l1(moves: Sequence[float], scale: float, k: int) -> float:
    """Return the mean L1 norm of Laplace noise around moves, by quadrature."""
    all_moves = [*moves, *[0.0] * (k - len(moves))]
    b = MP.mpf(scale)

    def one(move: float) -> object:
        d = MP.mpf(move)
        ends = [-MP.inf, -d, 0, MP.inf] if d else [-MP.inf, 0, MP.inf]
        return MP.quad(
            lambda z: abs(d + z) * MP.exp(-abs(z) / b) / (2 * b),
            sorted(ends),
        )

    return float(MP.fsum(one(move) for move in all_moves))


def mean_l2(distance: float, sigma: float, k: int) -> float:
    """Return the mean norm of a Gaussian vector: a mixture over a Poisson count.

    The squared norm over sigma**2 is chi-squared with k + 2 J degrees of freedom, where
    J is Poisson of mean (distance/sigma)**2 / 2.
    """
    mean = (MP.mpf(distance) / MP.mpf(sigma)) ** 2 / 2
    top = int(mean + 40 * MP.sqrt(mean) + 60)
    total = MP.mpf(0)
    for j in range(top):
        weight = MP.exp(-mean + (j * MP.log(mean) if j else 0) - MP.loggamma(j + 1))
        if not mean:
            weight = MP.mpf(1 if j == 0 else 0)
        half = MP.mpf(k) / 2 + j
        gammas = MP.exp(MP.loggamma(half + MP.mpf("0.5")) - MP.loggamma(half))
        total += weight * MP.sqrt(2) * gammas
        if not mean:
            break
    return float(total * MP.mpf(sigma))


def passes(
    distances: Sequence[Fraction],
    *,
    mass: Fraction,
    power: int,
    tau: Fraction,
) -> bool:
    """Return whether every two people have a ratio of tau, pair by pair, exactly.

    Args:
        distances: Of everybody.
        mass: k b, or k sigma**2.
        power: 1 for Laplace noise, 2 for Gaussian noise.
        tau: The ratio.
    """
    shown = [distance**power + mass for distance in distances]
    return all(one >= tau**power * other for one in shown for other in shown)


def squares(values: Sequence[float]) -> float:
    """Return the sum of squared deviations from the mean."""
    middle = np.mean(values) if len(values) else 0.0
    return float(sum((value - middle) ** 2 for value in values))


# --- laws of discrete noise -----------------------------------------------------------


def discrete_tail(at_least: int, scale: Fraction) -> float:
    """Return P(k >= at_least) of discrete Laplace noise, from its definition."""
    t = float(np.exp(-1 / float(scale)))
    if at_least <= 0:
        return 1 - t ** (1 - at_least) / (1 + t)
    return t**at_least / (1 + t)


def discrete_mass(k: int, scale: Fraction) -> float:
    """Return P(k) of discrete Laplace noise."""
    t = float(np.exp(-1 / float(scale)))
    return (1 - t) / (1 + t) * t ** abs(k)


def stops(
    statistics: Sequence[int],
    threshold: int,
    *,
    scale_threshold: Fraction,
    scale_queries: Fraction,
) -> list[float]:
    """Return how likely the first statistic above a threshold is each, or none.

    By summing over the threshold's noise; given that, statistics are independent. What
    is left out has a probability below 1e-16.
    """
    reach = int(40 * scale_threshold) + 1
    law = [0.0] * (len(statistics) + 1)
    for noise in range(-reach, reach + 1):
        left = discrete_mass(noise, scale_threshold)
        for place, statistic in enumerate(statistics):
            above = discrete_tail(threshold + noise - statistic, scale_queries)
            law[place] += left * above
            left *= 1 - above
        law[-1] += left
    return law


def least_delta(
    p: Callable[[float], float],
    q: Callable[[float], float],
    eps: float,
    breaks: Sequence[float],
) -> float:
    """Return the integral of max(0, p - e^eps q), by quadrature between the breaks."""
    factor = MP.exp(eps)

    def above(x: float) -> object:
        return max(MP.mpf(0), p(x) - factor * q(x))

    return float(MP.quad(above, [-MP.inf, *breaks, MP.inf]))
