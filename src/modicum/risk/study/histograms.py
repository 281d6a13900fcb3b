"""The number of people by value, in few bins."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np

from modicum.risk.profile import Profile

#: The counted quantity: the indicator, or a person's own loss.
Quantity: TypeAlias = Literal["rdr", "own-loss"]

#: Maximum number of distinct numbers with separate bars; more are binned.
_BARS_MAX = 12
_BINS = 24


@dataclass(frozen=True, slots=True)
class Bin:
    """People whose numbers are close.

    Attributes:
        low: No number is below.
        high: No number is above; the same as `low` if all have the same.
        people: How many there are; > 0.
    """

    low: float
    high: float
    people: int


@dataclass(frozen=True, slots=True)
class Histogram:
    """The number of people by value at one epsilon.

    Attributes:
        epsilon: The candidate.
        quantity: The counted quantity.
        bins: Ascending, without empty ones; none without people.
    """

    epsilon: Fraction
    quantity: Quantity
    bins: tuple[Bin, ...]


def histogram(profile: Profile, *, epsilon: Fraction, quantity: Quantity) -> Histogram:
    """Return the number of people by value.

    Args:
        profile: The numbers of everybody at this epsilon.
        epsilon: The candidate.
        quantity: The quantity.

    Returns:
        A bin for each of up to 12 different numbers; 24 bins of equal width for more,
        from the least to the greatest. A number on the border of two bins belongs to
        the upper one.

    Neighboring relation:
        None: it is counting, without noise.

    Source:
        None: it is counting.

    Examples:
        >>> people = Profile(np.array([1.0, 2.0]), np.array([9, 1]))
        >>> found = histogram(people, epsilon=Fraction(1), quantity="rdr")
        >>> [(bin.low, bin.high, bin.people) for bin in found.bins]
        [(1.0, 1.0, 9), (2.0, 2.0, 1)]
    """
    there = profile.people > 0
    values, people = profile.values[there], profile.people[there]
    bins = _each(values, people) if len(values) <= _BARS_MAX else _wide(values, people)
    kept = tuple(Bin(float(low), float(high), int(n)) for low, high, n in bins if n)
    return Histogram(epsilon, quantity, kept)


_Bins: TypeAlias = list[tuple[float, float, int]]


def _each(values: np.ndarray, people: np.ndarray) -> _Bins:
    return list(zip(values, values, people, strict=True))


def _wide(values: np.ndarray, people: np.ndarray) -> _Bins:
    # Numbers that are hardly apart may have fewer borders between them.
    edges = np.unique(np.linspace(values[0], values[-1], _BINS + 1))
    places = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, None)
    places = np.minimum(places, len(edges) - 2)
    counts = np.zeros(len(edges) - 1, dtype=np.int64)
    np.add.at(counts, places, people)
    return list(zip(edges[:-1], edges[1:], counts, strict=True))
