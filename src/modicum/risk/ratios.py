"""Whether two people's indicators are near enough, decided without rounding.

Published results lie on the very boundary: for a count, ratio 1/2 is reached at epsilon
1 exactly. In floats such a candidate would pass or fail by chance.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from modicum.accounting.conversions.profiles import gaussian_epsilon
from modicum.accounting.decimals import precise, significant, to_decimal
from modicum.core.rationals import LOSS_UNIT, rational
from modicum.risk.noise import GaussianNoise, LaplaceNoise, Noise

_DIGITS = 12


def ratio_reaches(
    noise: Noise,
    low: float | Fraction,
    high: float | Fraction,
    *,
    epsilon: Fraction,
    tau: Fraction,
) -> bool:
    """Return whether the published indicators of two people have a ratio of tau.

    Args:
        noise: The noise.
        low: The lesser distance, in the noise's norm, in units of the answer; >= 0.
        high: The greater one.
        epsilon: The candidate; > 0.
        tau: Above 0, at most 1.

    Returns:
        Whether (low + k b)/(high + k b) >= tau for Laplace noise of scale b; whether
        (low**2 + k sigma**2)/(high**2 + k sigma**2) >= tau**2 for Gaussian noise. A
        distance means its shortest decimal; the rest is exact.

    Neighboring relation:
        The tables with and without all rows of one person.

    Source:
        The RDR paper's Lemmas for its indicator (arXiv:2310.13104, section 3.3).

    Examples:
        >>> count = LaplaceNoise(Fraction(1))
        >>> half = Fraction(1, 2)
        >>> ratio_reaches(count, 0.0, 1.0, epsilon=Fraction(1), tau=half)
        True
        >>> ratio_reaches(count, 0.0, 1.0, epsilon=Fraction("1.0001"), tau=half)
        False
    """
    power = 1 if isinstance(noise, LaplaceNoise) else 2
    mass = noise.dimensions * noise.width(epsilon) ** power
    lesser, greater = _meant(low) ** power, _meant(high) ** power
    return lesser + mass >= tau**power * (greater + mass)


def _meant(distance: float | Fraction) -> Fraction:
    exact = isinstance(distance, Fraction)
    return rational(distance if exact else float(distance))  # NumPy's print otherwise.


@precise
def largest_epsilon(
    noise: Noise, greatest: Fraction, *, tau: Fraction
) -> Fraction | None:
    """Return the greatest epsilon at which nobody is too far from an outsider.

    Args:
        noise: The noise.
        greatest: The greatest distance of any person, in the noise's norm, in units of
            the answer; > 0. An outsider has distance 0.
        tau: Above 0, at most 1.

    Returns:
        k Delta (1 - tau)/(tau greatest) for Laplace noise, exactly. For Gaussian noise
        in 12 digits, rounded down: with the published calibration,
        sqrt(2 k ln(1.25/delta) (1 - tau**2))/tau Delta/greatest; with the exact one,
        the epsilon at which sigma is tau greatest/sqrt(k (1 - tau**2)). None if no
        epsilon passes.

    Neighboring relation:
        The tables with and without all rows of one person.

    Source:
        `ratio_reaches`, solved for epsilon.

    Examples:
        >>> largest_epsilon(LaplaceNoise(Fraction(1)), Fraction(1), tau=Fraction(1, 4))
        Fraction(3, 1)
    """
    if tau == 1:
        return None
    if isinstance(noise, LaplaceNoise):
        unit = noise.sensitivity / greatest
        return noise.dimensions * unit * (1 - tau) / tau
    need = (tau * greatest) ** 2 / (noise.dimensions * (1 - tau**2))
    if noise.calibration == "published":
        at_one = to_decimal(noise.width(Fraction(1)))
        return _down(at_one / to_decimal(need).sqrt())
    return _calibrated(noise, need)


def _calibrated(noise: GaussianNoise, need: Fraction) -> Fraction | None:
    """Return the greatest epsilon of noise with at least this variance, or just less.

    The loss of this noise is rounded up: slightly below it, the noise is wide enough.
    """
    least = gaussian_epsilon(noise.sensitivity**2 / need, noise.delta)
    found, less = least, Fraction(1, LOSS_UNIT)
    while found > 0 and noise.width(found) ** 2 < need:
        found, less = least - less, 2 * less
    return significant(found, _DIGITS, up=False) if found > 0 else None


def _down(value: Decimal) -> Fraction:
    return significant(value, _DIGITS, up=False)
