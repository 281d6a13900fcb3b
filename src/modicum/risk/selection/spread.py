"""The spread of people's indicators, as a whole number of proven sensitivity."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from modicum.core.rationals import brief
from modicum.risk.arguments import Number, at_least_zero, count
from modicum.risk.indicator import at_distance
from modicum.risk.noise import Noise
from modicum.risk.profile import Influence, Profile

#: The sensitivity of the sum of squares to one person, in steps.
STEPS = 2**20

_UNIT = 2**20  # Resolution of indicators, relative to the greatest possible one.
_HALF = 2**10


@dataclass(frozen=True, slots=True)
class Spread:
    """The condition, and the number of people.

    Attributes:
        tau: The greatest variance of the indicators, each over the greatest; >= 0.
        people: The stated public number of people in the table; >= 1. The loss does not
            depend on its correctness.
    """

    tau: Fraction
    people: int

    @classmethod
    def of(cls, tau: Number, people: int) -> Spread:
        """Return the condition for given numbers."""
        known = count("the public number of people", people, least=1, by="people")
        return cls(at_least_zero("the largest variance", tau, by="max_variance"), known)

    @property
    def steps(self) -> int:
        """The greatest sum of squares, in steps, rounded down."""
        return math.floor(self.tau * self.people * STEPS)

    @property
    def condition(self) -> str:
        """Return the condition as text."""
        return (
            f"the sum of squares that {self.people} people have at variance"
            f" {brief(self.tau)} is not exceeded"
        )


def sum_of_squares(distances: Profile, noise: Noise, *, epsilon: Fraction) -> Fraction:
    """Return the sum of squared deviations of everybody's indicator.

    Args:
        distances: How far people move the answer, in the noise's norm, capped at the
            sensitivity.
        noise: The noise; its sensitivity and number of coordinates are public.
        epsilon: The candidate; > 0.

    Returns:
        The sum of (z - mean of z)**2 over all people, where z is the indicator over the
        greatest possible one, less that of an unaffected person, in whole parts of
        2**-20; exact, >= 0.

    Neighboring relation:
        At most 1 apart with and without all rows of one person, and with other rows of
        one person, if z depends on her own rows alone. For: beside n other people of
        mean m, a person with z adds n/(n+1) (z - m)**2, which is in [0, 1] since all
        are in [0, 1]. So, whatever her rows are and whether or not she is present, the
        sum is that of the others plus a number in [0, 1]. The number of people makes no
        difference.

    Source:
        The update of a variance by one value; the RDR paper's statistic
        (arXiv:2310.13104, Algorithm 3) with another divisor.

    Examples:
        >>> from modicum.risk.noise import LaplaceNoise
        >>> people = Profile(np.array([0.0, 1.0]), np.array([1, 1]))
        >>> sum_of_squares(people, LaplaceNoise(Fraction(1)), epsilon=Fraction(1))
        Fraction(1, 8)
    """
    total = distances.total
    if not total:
        return Fraction(0)
    numbers = at_distance(noise, epsilon)
    floor, top = numbers(np.array([0.0, float(noise.sensitivity)]))
    shown = numbers(np.minimum(distances.values, float(noise.sensitivity)))
    # Each is a function of one distance alone, so it is one of own rows.
    z = np.clip((shown - floor) / top * _UNIT, 0, _UNIT).astype(np.int64)
    weighted = distances.people * z
    first = int(weighted.sum())
    # In two halves, so that 64 bits are enough for ten billion people.
    second = int(weighted @ (z // _HALF)) * _HALF + int(weighted @ (z % _HALF))
    return Fraction(second * total - first * first, total * _UNIT**2)


def own_distances(influence: Influence, noise: Noise) -> Profile:
    """Return the number of people by distance, at most the sensitivity.

    If the rounding of a distance depended on other people, one person could move many
    people across a bound at once. So moves are scaled by public numbers, and summed in
    a separate order.

    Args:
        influence: How each kind of person moves the answer.
        noise: The noise; its sensitivity is public.

    Returns:
        Distances in the noise's norm, in units of the answer.

    Neighboring relation:
        With and without all rows of one person, and with other rows of one person:
        where moves depend on own rows alone, one person's distance is all that changes.

    Source:
        `Influence.distances`, with moves and sums cut at the sensitivity.

    Examples:
        >>> from fractions import Fraction
        >>> from modicum.risk.noise import LaplaceNoise
        >>> two = Influence(1, np.array([9.0]), np.array([0, 0, 1]), np.array([5, 1]))
        >>> own_distances(two, LaplaceNoise(Fraction(1))).values.tolist()
        [0.0, 1.0]
    """
    kinds = np.repeat(np.arange(len(influence.people)), np.diff(influence.starts))
    sizes = np.abs(influence.moves)
    moves = sizes[np.lexsort((sizes, kinds))]
    most = float(noise.sensitivity)
    unit = np.ldexp(1.0, int(np.frexp(most)[1]))  # A power of two divides exactly.
    cut = replace(influence, moves=np.minimum(moves, most) / unit)
    if noise.norm == "l1":
        found = cut.by_kind(cut.moves)
    else:
        found = np.sqrt(cut.by_kind(cut.moves**2))
    return influence.profile_of(np.minimum(found * unit, most))
