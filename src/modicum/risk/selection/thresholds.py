"""The conditions of a controller: ratios, similar groups, a variance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol

import numpy as np

from modicum.core.errors import Code
from modicum.core.rationals import brief, rational
from modicum.risk.arguments import (
    Number,
    argument,
    at_least_zero,
    count,
    mistake,
    proportion,
)
from modicum.risk.indicator import Indicator
from modicum.risk.ratios import ratio_reaches

Statistic = Literal["max", "p99", "median"]
_SHARES: dict[Statistic, float] = {"max": 1.0, "p99": 0.99, "median": 0.5}


class Threshold(Protocol):
    """A condition on the indicators of everybody at one epsilon."""

    @property
    def condition(self) -> str:
        """Return the condition as text."""

    def holds(self, indicator: Indicator, epsilon: Fraction) -> bool:
        """Return whether it holds; True without people."""


@dataclass(frozen=True, slots=True)
class RatioAtLeast:
    """The least indicator is at least so large a part of the greatest.

    Attributes:
        tau: Above 0, at most 1.
    """

    tau: Fraction

    @classmethod
    def of(cls, tau: Number) -> RatioAtLeast:
        """Return the condition for a given number."""
        return cls(proportion("tau", tau, by="tau"))

    @property
    def condition(self) -> str:
        """Return the condition as text."""
        return f"the smallest indicator is at least {brief(self.tau)} of the largest"

    def holds(self, indicator: Indicator, epsilon: Fraction) -> bool:
        """Return whether it holds; exactly, for the published form."""
        if not indicator.somebody:
            return True
        if indicator.form == "published":
            return ratio_reaches(
                indicator.noise,
                indicator.distance(0.0),
                indicator.distance(1.0),
                epsilon=epsilon,
                tau=self.tau,
            )
        least, greatest = (indicator.quantile(share, epsilon) for share in (0.0, 1.0))
        return least >= float(self.tau) * greatest


@dataclass(frozen=True, slots=True)
class GroupsAlike:
    """A statistic of the indicators is similar in groups of people.

    For every two groups, the lesser statistic is at least `tau` of the greater one;
    equivalently, for the least and the greatest of all. Groups without people are left
    out. In a group of which hardly anybody moves the answer, the median is that of an
    unaffected person: `max` and `p99` are more informative.

    Attributes:
        tau: Above 0, at most 1.
        groups: The names of two groups or more, as in the influence.
        statistic: `max`, `p99` or `median` of each group.
    """

    tau: Fraction
    groups: tuple[str, ...]
    statistic: Statistic = "p99"

    @classmethod
    def of(
        cls, tau: Number, groups: Sequence[str], statistic: Statistic = "p99"
    ) -> GroupsAlike:
        """Return the condition for given arguments.

        Args:
            tau: The least ratio; above 0, at most 1.
            groups: The names of two groups or more.
            statistic: `max`, `p99` or `median`.

        Raises:
            InputError: If one of them will not do.
        """
        count("the number of groups", len(set(groups)), least=2, by="groups")
        if statistic not in _SHARES:
            raise mistake(
                f"the statistic is {statistic!r}",
                f"give max, p99 or median as {argument('statistic')}",
                Code.UNKNOWN_CHOICE,
            )
        return cls(proportion("tau", tau, by="tau"), tuple(groups), statistic)

    @property
    def condition(self) -> str:
        """Return the condition as text."""
        names = ", ".join(f"`{name}`" for name in self.groups)
        return (
            f"the {self.statistic} of the indicators of each of {names}"
            f" is at least {brief(self.tau)} of that of each other"
        )

    def holds(self, indicator: Indicator, epsilon: Fraction) -> bool:
        """Return whether it holds; exactly, for the published form."""
        groups = [name for name in self.groups if _somebody(indicator, name)]
        if not groups:
            return True
        share = _SHARES[self.statistic]
        if indicator.form == "published":
            distances = [indicator.distance(share, name) for name in groups]
            return ratio_reaches(
                indicator.noise,
                min(distances),
                max(distances),
                epsilon=epsilon,
                tau=self.tau,
            )
        found = [indicator.quantile(share, epsilon, name) for name in groups]
        return min(found) >= float(self.tau) * max(found)


def _somebody(indicator: Indicator, group: str) -> bool:
    members = indicator.influence.members
    if group not in members:
        raise mistake(
            f"unknown group `{group}`",
            "use groups of people that the influence was computed for"
            f" ({argument('groups')})",
            Code.UNKNOWN_CHOICE,
        )
    return not np.isnan(indicator.distance(1.0, group))


@dataclass(frozen=True, slots=True)
class VarianceAtMost:
    """The variance of the indicators, over the square of the greatest, is so small.

    Attributes:
        tau: At least 0.
    """

    tau: Fraction

    @classmethod
    def of(cls, tau: Number) -> VarianceAtMost:
        """Return the condition for a given number."""
        return cls(at_least_zero("the largest variance", tau, by="max_variance"))

    @property
    def condition(self) -> str:
        """Return the condition as text."""
        return (
            "the variance of the indicators, each divided by the largest,"
            f" is at most {brief(self.tau)}"
        )

    def holds(self, indicator: Indicator, epsilon: Fraction) -> bool:
        """Return whether it holds; in floats, except for people who are all alike."""
        if not indicator.somebody:
            return True
        greatest = rational(indicator.quantile(1.0, epsilon))
        return rational(indicator.variance(epsilon)) <= self.tau * greatest**2
