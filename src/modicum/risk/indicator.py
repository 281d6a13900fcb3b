"""The relative disclosure risk indicator (RDR): relative, and no guarantee.

It is the expected distance of a noisy answer from the answer without one person. It
compares people; it has no meaning by itself. `modicum.risk.losses` bounds what a
release can reveal about a person.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Literal, TypeAlias

import numpy as np

from modicum.risk.noise import LaplaceNoise, Noise, expected_l1, expected_l2
from modicum.risk.profile import Counts, Influence, Norm, Numbers, Profile

#: `published` is the papers' upper bound, `exact` the expectation itself.
Form: TypeAlias = Literal["published", "exact"]


@dataclass(frozen=True, eq=False)
class Indicator:
    """The RDR of everybody in a table, for every epsilon.

    It keeps the order of distances in all cases but one (exact, Laplace noise, people
    who move several coordinates). So its least, greatest and quantiles are those of one
    profile of distances, carried along, and no candidate needs another look at people.

    Attributes:
        influence: How far each kind of person moves the answer.
        noise: The noise; its coordinates are counted, not those of the influence.
        form: `published`: distance + k b for Laplace noise of scale b,
            sqrt(distance**2 + k sigma**2) for Gaussian noise. `exact`: the expectation.
    """

    influence: Influence
    noise: Noise
    form: Form = "published"

    @cached_property
    def distances(self) -> Profile:
        """The distances that people move the answer, in the norm of the noise."""
        return self.influence.profile(self.noise.norm)

    @cached_property
    def somebody(self) -> bool:
        """Whether there are people in the table."""
        return self.distances.total > 0

    def distance(self, share: float, group: str | None = None) -> float:
        """Return a quantile of the distances.

        Args:
            share: The share of the people, 0 to 1.
            group: Only people of this group; None for all.
        """
        known = self._quantiles
        if (share, group) not in known:  # All candidates need the same few.
            known[share, group] = self._grouped(group).quantile(share)
        return known[share, group]

    def quantile(
        self, share: float, epsilon: Fraction, group: str | None = None
    ) -> float:
        """Return a quantile of the RDR: an actual person's, in units of the answer.

        Args:
            share: The share of the people, 0 to 1.
            epsilon: The candidate; > 0.
            group: Only people of this group; None for all.
        """
        if self.follows_distance:
            distance = np.array([self.distance(share, group)])
            return float(self._of(epsilon)(distance)[0])
        return self.profile(epsilon, group).quantile(share)

    def ratio(self, epsilon: Fraction) -> float:
        """Return the least RDR over the greatest; NaN without people.

        Args:
            epsilon: The candidate; > 0.
        """
        return self.quantile(0.0, epsilon) / self.quantile(1.0, epsilon)

    def variance(self, epsilon: Fraction) -> float:
        """Return the variance of the RDR over all people, in squared units.

        Args:
            epsilon: The candidate; > 0.

        Returns:
            For the published form and Laplace noise, that of the distances. Exactly 0
            if all people have the same; NaN without people.
        """
        if self.form == "published" and isinstance(self.noise, LaplaceNoise):
            return self._variance
        if self.follows_distance:
            people = self.distances.people
            return _variance(self._of(epsilon)(self.distances.values), people)
        profile = self.profile(epsilon)
        return _variance(profile.values, profile.people)

    def profile(self, epsilon: Fraction, group: str | None = None) -> Profile:
        """Return how many people have each RDR.

        Args:
            epsilon: The candidate; > 0.
            group: Only people of this group; None for all.
        """
        if not self.follows_distance:
            numbers = expected_l1(
                self.influence,
                scale=float(self.noise.width(epsilon)),
                dimensions=self.noise.dimensions,
            )
            return self.influence.profile_of(numbers, group)
        distances = self._grouped(group)
        return carried(distances, self._of(epsilon))

    @cached_property
    def follows_distance(self) -> bool:
        """Whether the RDR is a function of the distance, which keeps the order."""
        lone = bool(np.all(np.diff(self.influence.starts) <= 1))
        return self.form == "published" or self.noise.norm == "l2" or lone

    @cached_property
    def _variance(self) -> float:
        return _variance(self.distances.values, self.distances.people)

    @cached_property
    def _quantiles(self) -> dict[tuple[float, str | None], float]:
        return {}

    @cached_property
    def _profiles(self) -> dict[str | None, Profile]:
        return {}

    def _grouped(self, group: str | None) -> Profile:
        if group is None:
            return self.distances
        if group not in self._profiles:
            self._profiles[group] = self.influence.profile(self.noise.norm, group)
        return self._profiles[group]

    def _of(self, epsilon: Fraction) -> Callable[[Numbers], Numbers]:
        return at_distance(self.noise, epsilon, self.form)


def _variance(numbers: Numbers, people: Counts) -> float:
    total = people.sum()
    if not total:
        return np.nan
    if numbers.min() == numbers.max():  # Their mean in floats may differ from them.
        return 0.0
    mean = people @ numbers / total
    return float(people @ (numbers - mean) ** 2 / total)


@lru_cache(maxsize=4096)
def at_distance(
    noise: Noise, epsilon: Fraction, form: Form = "published"
) -> Callable[[Numbers], Numbers]:
    """Return the RDR of people, as a function of their distances.

    Args:
        noise: The noise.
        epsilon: The candidate; > 0.
        form: `published` or `exact`.

    Returns:
        A function from distances in the noise's norm, >= 0, to RDRs, both in units of
        the answer; it is increasing. For the exact form and Laplace noise it is that of
        a person who moves one coordinate: the greatest at this distance.

    Neighboring relation:
        The tables with and without all rows of one person.

    Source:
        The RDR paper, section 3.3 (arXiv:2310.13104), for the published form. The exact
        one for Laplace noise, d + b exp(-d/b) in each coordinate, is convex in d, so
        that of given sum all in one coordinate is the greatest.

    Examples:
        >>> count, one = LaplaceNoise(Fraction(1)), np.array([1.0])
        >>> at_distance(count, Fraction(1))(one)
        array([2.])
        >>> at_distance(count, Fraction(1), "exact")(one)
        array([1.36787944])
    """
    width, k = float(noise.width(epsilon)), noise.dimensions
    if isinstance(noise, LaplaceNoise):
        if form == "published":
            return lambda d: d + k * width
        return lambda d: k * width + (d + width * np.expm1(-d / width))
    if form == "published":
        return lambda d: np.hypot(d, np.sqrt(k) * width)
    return lambda d: np.array(
        [expected_l2(float(one), sigma=width, dimensions=k) for one in d]
    )


def carried(profile: Profile, numbers: Callable[[Numbers], Numbers]) -> Profile:
    """Return the profile of a function of the distance.

    Args:
        profile: Distances and their people.
        numbers: Gives a number for each distance.

    Returns:
        The number of people with each of these numbers. Numbers equal in floats are
        counted together.

    Neighboring relation:
        That of the distances.

    Source:
        None: it is counting.

    Examples:
        >>> people = Profile(np.array([1.0, 2.0]), np.array([5, 7]))
        >>> carried(people, lambda d: 0 * d).people.tolist()
        [12]
    """
    found = numbers(profile.values)
    if np.all(np.diff(found) > 0):
        return Profile(found, profile.people)
    values, where = np.unique(found, return_inverse=True)
    people: Counts = np.zeros(len(values), dtype=np.int64)
    np.add.at(people, where, profile.people)
    return Profile(values, people)


def output_dependent(output: Numbers, without: Numbers, *, norm: Norm) -> Numbers:
    """Return the RDR of one given output for each kind of person.

    It does not order people by what the output reveals about them: with less noise than
    she moves the answer, the person whom an output reveals has the lower RDR.

    Args:
        output: A noisy answer; shape (coordinates,), in units of the answer.
        without: The exact answers without each kind; shape (kinds, coordinates).
        norm: `l1` for Laplace noise, `l2` for Gaussian noise.

    Returns:
        The distances of the output from these answers; shape (kinds,).

    Neighboring relation:
        The tables with and without all rows of one person.

    Source:
        The RDR paper, section 3.2 (arXiv:2310.13104).

    Examples:
        >>> output_dependent(np.array([4.0]), np.array([[4.0], [5.0]]), norm="l1")
        array([0., 1.])
    """
    order = 1 if norm == "l1" else 2
    return np.asarray(np.linalg.norm(without - output, ord=order, axis=1))
