"""The expected distance of a noisy answer from the answer without one person."""

from __future__ import annotations

import numpy as np

from modicum.risk.profile import Influence, Numbers

# The trapezoidal rule on the whole line, in the logarithm of the variable. The
# integrand is analytic and bounded in the strip of half-width pi/2, so steps of a
# quarter err by about exp(-pi**2/h) = 7e-18. Beyond 80 it is below exp(-40).
_STEP = 0.25
_NODES = np.exp(np.arange(-80.0, 80.0 + _STEP, _STEP))
_WEIGHTS = _STEP / (2 * np.sqrt(np.pi) * np.sqrt(_NODES))


def expected_l1(influence: Influence, *, scale: float, dimensions: int) -> Numbers:
    """Return the expected L1 distance from the answer without a person.

    Args:
        influence: How each kind of person moves the answer.
        scale: Scale of the Laplace noise on each coordinate, in units of the answer;
            > 0.
        dimensions: How many coordinates the answer has; >= 1.

    Returns:
        For each kind the sum over coordinates of d + b exp(-d/b), in units of the
        answer; shape (kinds,).

    Neighboring relation:
        The tables with and without all rows of one person.

    Source:
        E abs(d + Z) = d + b exp(-d/b) for Laplace noise Z of scale b, by integration.

    Examples:
        >>> one = Influence(1, np.array([1.0]), np.array([0, 1]), np.array([1]))
        >>> float(expected_l1(one, scale=1.0, dimensions=1)[0])
        1.3678794411714423
    """
    d = np.abs(influence.moves)
    # Each coordinate has b from the noise alone: what a move adds to that is summed.
    added = influence.by_kind(d + scale * np.expm1(-d / scale))
    return dimensions * scale + added


def expected_l2(distance: float, *, sigma: float, dimensions: int) -> float:
    """Return the expected L2 distance from the answer without a person.

    Args:
        distance: How far she moves the answer in the L2 norm, in its units; >= 0.
        sigma: Standard deviation of the noise on each coordinate, in units of the
            answer; > 0.
        dimensions: How many coordinates the answer has; >= 1.

    Returns:
        The mean of the norm of a Gaussian vector whose center has the norm `distance`,
        to about 14 digits, in units of the answer.

    Neighboring relation:
        The tables with and without all rows of one person.

    Source:
        sigma sqrt(pi/2) L(-distance**2 / (2 sigma**2)), with the Laguerre function L of
        order 1/2 and parameter dimensions/2 - 1. It is computed from the transform of
        the squared norm Y: E sqrt(Y) is the integral of
        (1 - E exp(-t Y)) t**(-3/2) / (2 sqrt(pi)) over t > 0, with
        E exp(-t Y) = (1 + 2 t)**(-k/2) exp(-lambda t / (1 + 2 t)) for sigma = 1. All
        terms are positive, for every size of every argument.

    Examples:
        >>> round(expected_l2(0.0, sigma=1.0, dimensions=1), 12)  # sqrt(2/pi)
        0.797884560803
        >>> round(expected_l2(3.0, sigma=1e-9, dimensions=1), 12)
        3.0
    """
    # In units of the root of the mean square everything is between 0 and 1.
    root = float(np.hypot(distance, np.sqrt(dimensions) * sigma))
    spread = (sigma / root) ** 2
    t = _NODES * spread
    exponent = dimensions / 2 * np.log1p(2 * t)
    exponent += (distance / root) ** 2 * _NODES / (1 + 2 * t)
    return root * float(-np.expm1(-exponent) @ _WEIGHTS)
