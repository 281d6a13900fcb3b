"""The most that a release can reveal about each person of a table.

These numbers have units that add up and compare across questions; the RDR has none.
They are computed from rows without noise: for the controller of the data only.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from modicum.accounting.conversions.profiles import gaussian_delta
from modicum.risk.indicator import carried
from modicum.risk.noise import GaussianNoise, Noise
from modicum.risk.profile import Numbers, Profile


def person_losses(distances: Profile, noise: Noise, *, epsilon: Fraction) -> Profile:
    """Return the number of people by worst-case loss.

    Args:
        distances: How far people move the answer, in the noise's norm, in its units.
        noise: The noise.
        epsilon: The epsilon of the noise; > 0.

    Returns:
        For Laplace noise eps_i = epsilon distance/sensitivity, the greatest loss of any
        output. For Gaussian noise mu_i = distance/sigma: the release is mu_i-GDP with
        regard to this person. Rounded up, eps_i to no more than the least float that is
        not below epsilon, unless she moves the answer by more than the sensitivity:
        only then it is above epsilon.

    Neighboring relation:
        The tables with and without all rows of one person; the other rows are held.

    Source:
        Wang 2019, per-instance differential privacy (arXiv:1707.07708); Dong, Roth & Su
        2022 (arXiv:1905.02383) for mu.

    Examples:
        >>> from modicum.risk.noise import LaplaceNoise
        >>> people = Profile(np.array([0.0, 0.5]), np.array([9, 1]))
        >>> noise = LaplaceNoise(Fraction(1))
        >>> bool(person_losses(people, noise, epsilon=Fraction(2)).greatest >= 1.0)
        True
    """
    width = float(noise.width(epsilon))

    def losses(distance: Numbers) -> Numbers:
        # The width and the quotient are each rounded to nearest: two units cover both.
        up = np.where(distance > 0, _up(_up(distance / width)), 0.0)
        if isinstance(noise, GaussianNoise):
            return up
        # A person who moves no farther than the sensitivity loses no more than epsilon.
        within = distance <= _rounded(noise.sensitivity, -np.inf)
        return np.where(within, np.minimum(up, _rounded(epsilon, np.inf)), up)

    return carried(distances, losses)


def person_deltas(mus: Profile, *, epsilon: Fraction) -> Profile:
    """Return the number of people by exact delta under Gaussian noise.

    Args:
        mus: `person_losses` for Gaussian noise.
        epsilon: The epsilon of the deltas; >= 0.

    Returns:
        For each person the least delta at which the release is (epsilon, delta)-DP with
        regard to her; rounded up. Takes about a millisecond for each distinct mu.

    Raises:
        InputError: If epsilon is negative.

    Neighboring relation:
        The tables with and without all rows of one person; the other rows are held.

    Source:
        Balle & Wang 2018, Thm 8 (arXiv:1805.06530).

    Examples:
        >>> mus = Profile(np.array([0.0, 1.0]), np.array([9, 1]))
        >>> round(person_deltas(mus, epsilon=Fraction(1)).greatest, 6)
        0.126937
    """
    found = [float(gaussian_delta(Fraction(mu) ** 2, epsilon)) for mu in mus.values]
    deltas = np.array(found, dtype=np.float64)
    up = np.where(deltas > 0, np.minimum(_up(deltas), 1.0), 0.0)
    return carried(mus, lambda _: up)


def _rounded(number: Fraction, toward: float) -> float:
    """Return the nearest float on one side of a number."""
    nearest = float(number)
    beyond = nearest < number if toward > 0 else nearest > number
    return float(np.nextafter(nearest, toward)) if beyond else nearest


def _up(numbers: Numbers) -> Numbers:
    return np.nextafter(numbers, np.inf)
