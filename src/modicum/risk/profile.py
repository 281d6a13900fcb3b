"""The influence of each person of a table on an answer, counted by distance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from modicum.core.errors import check

#: The neighboring relation of all that is measured: with and without all rows of a
#: person. Other rows in her place may move the answer twice as far.
RELATION: Final = "add-remove"

Norm: TypeAlias = Literal["l1", "l2"]
Numbers: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """Distances, and the number of people with each.

    A distance is that between the answer with and without all rows of the person: the
    neighboring relation is `add-remove`.

    Attributes:
        values: Distinct distances, ascending; finite and at least 0. Shape (m,).
        people: The number of people with each distance; shape (m,). For a subset of the
            people some may be 0.
    """

    values: Numbers
    people: Counts

    def __post_init__(self) -> None:
        check(self.values.shape == self.people.shape, "each distance has a count")
        check(bool(np.all(np.isfinite(self.values))), "distances are numbers")
        check(bool(np.all(np.diff(self.values) > 0)), "distances rise")

    @property
    def total(self) -> int:
        """The number of people."""
        return int(self.people.sum())

    @property
    def least(self) -> float:
        """The least distance; NaN without people."""
        return self.quantile(0.0)

    @property
    def greatest(self) -> float:
        """The greatest distance; NaN without people."""
        return self.quantile(1.0)

    @property
    def mean(self) -> float:
        """The mean distance; NaN without people."""
        return float(self.people @ self.values / self.total) if self.total else np.nan

    @property
    def variance(self) -> float:
        """The variance of the distances over all people; NaN without people."""
        if not self.total:
            return np.nan
        return float(self.people @ (self.values - self.mean) ** 2 / self.total)

    def quantile(self, share: float) -> float:
        """Return the least distance that this share of people does not exceed.

        It is an actual distance, not interpolated: so monotone functions preserve it.

        Args:
            share: The share of the people, 0 to 1.

        Returns:
            The distance; NaN without people.
        """
        if not self.total:
            return np.nan
        # The first person counts for every share up to 1 / total.
        rank = max(1, int(np.ceil(share * self.total - 1e-9)))
        return float(self.values[np.searchsorted(self.people.cumsum(), rank)])

    def above(self, distance: float) -> int:
        """Return how many people have a greater distance.

        Args:
            distance: The distance.
        """
        return int(self.people[self.values > distance].sum())


@dataclass(frozen=True, slots=True, eq=False)
class Influence:
    """The influence of each person on an answer; people with equal moves are combined.

    An answer is a vector: one coordinate for each aggregate in each group. A person
    moves a coordinate by the difference of its values with and without her rows: the
    neighboring relation is `add-remove`.

    Attributes:
        dimensions: How many coordinates the answer has; >= 0.
        moves: Moves of coordinates, one kind of person after the other, without those
            that are 0; shape (sum of lengths,).
        starts: The start of each kind's moves, and the end of the last; shape (kinds +
            1,).
        people: How many people are of each kind; shape (kinds,).
        members: By the name of a group of people, how many of each kind belong to it.
    """

    dimensions: int
    moves: Numbers
    starts: Counts
    people: Counts
    members: Mapping[str, Counts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kinds = len(self.people)
        check(self.starts.shape == (kinds + 1,), "each kind begins somewhere")
        check(bool(np.all(np.isfinite(self.moves))), "moves are numbers")

    def by_kind(self, each: Numbers) -> Numbers:
        """Return the sum over the moves of each kind.

        Args:
            each: A number for each move, of the shape of `moves`.

        Returns:
            A number for each kind; 0 for those without moves. Shape (kinds,).
        """
        found = np.zeros(len(self.people))
        moved = np.diff(self.starts) > 0
        if moved.any():
            found[moved] = np.add.reduceat(each, self.starts[:-1][moved])
        return found

    def distances(self, norm: Norm) -> Numbers:
        """Return how far each kind moves the answer.

        Args:
            norm: `l1` (for Laplace noise) or `l2` (for Gaussian noise).

        Returns:
            Distances; shape (kinds,).
        """
        if norm == "l1":
            return self.by_kind(np.abs(self.moves))
        greatest = float(np.abs(self.moves).max(initial=0.0)) or 1.0
        # Squares of numbers up to 1 stay finite.
        return np.sqrt(self.by_kind((self.moves / greatest) ** 2)) * greatest

    def profile(self, norm: Norm, group: str | None = None) -> Profile:
        """Return how many people move the answer how far.

        Args:
            norm: `l1` or `l2`.
            group: Only people of this group; None for all.
        """
        return self.profile_of(self.distances(norm), group)

    def profile_of(self, numbers: Numbers, group: str | None = None) -> Profile:
        """Return how many people have each of some numbers.

        Args:
            numbers: A number for each kind; shape (kinds,).
            group: Only people of this group; None for all.
        """
        people = self.people if group is None else self.members[group]
        values, where = np.unique(numbers, return_inverse=True)
        counts = np.bincount(where, weights=people, minlength=len(values))
        return Profile(values, counts.astype(np.int64))
