"""The sparse vector technique on whole numbers: what first reaches a threshold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from modicum.risk.arguments import Number, above_zero
from modicum.risk.candidates import PUBLISHED
from modicum.risk.candidates import candidates as checked
from modicum.risk.choice import Selection

# Of the whole epsilon, so much goes to the threshold: 1 to 2**(2/3), the proportion at
# which what is compared has the least variance (Lyu, Su & Li 2017, section 4.2).
_THRESHOLD_SHARE = Fraction("0.386488")


class Draws(Protocol):
    """Where noise comes from: a secure sampler, which the shell brings."""

    def laplace(self, scale: Fraction) -> int:
        """Return a fresh draw k with a probability proportional to exp(-abs(k)/scale).

        Args:
            scale: Above 0.
        """


def selection(eps: Number) -> Selection:
    """Return the two parts of what a private choice may cost.

    Args:
        eps: Both together; > 0.

    Returns:
        The parts, which add up exactly.

    Raises:
        InputError: If eps is not above 0.

    Neighboring relation:
        The one that the statistics' sensitivity holds under.

    Source:
        Lyu, Su & Li 2017, section 4.2 (arXiv:1603.01699).

    Examples:
        >>> selection(1).eps
        Fraction(1, 1)
    """
    whole = above_zero("the epsilon of the selection", eps, by="eps_select")
    return Selection(_THRESHOLD_SHARE * whole, whole - _THRESHOLD_SHARE * whole)


@dataclass(frozen=True, slots=True)
class PrivateSearch:
    """How a private choice is made, all of it fixed before a look at rows.

    Attributes:
        draws: Where noise comes from.
        spent: What the choice itself costs.
        candidates: Epsilons to choose from, rising.
    """

    draws: Draws
    spent: Selection
    candidates: tuple[Fraction, ...]

    @classmethod
    def of(
        cls, draws: Draws, eps: Number, candidates: Iterable[Number] = PUBLISHED
    ) -> PrivateSearch:
        """Return a search for numbers that are given.

        Args:
            draws: Where noise comes from.
            eps: What the choice itself may cost; > 0.
            candidates: Epsilons to choose from.
        """
        return cls(draws, selection(eps), checked(candidates))


def first_above(
    statistics: Iterable[int],
    threshold: int,
    *,
    sensitivity: int,
    search: PrivateSearch,
) -> int | None:
    """Return the place of the first statistic that is, with noise, at a threshold.

    Args:
        statistics: Whole numbers, computed from rows one after the other; no more are
            asked for than are needed.
        threshold: What a statistic must reach; public.
        sensitivity: How much each statistic changes between neighbors, at most; >= 1.
        search: What this costs, and where noise comes from.

    Returns:
        The place, from 0; None if no statistic reached it.

    Neighboring relation:
        The one that the sensitivity holds under. Nothing is assumed of the direction in
        which statistics change.

    Source:
        Lyu, Su & Li 2017, Alg. 1 and Thm 2 with c = 1 (arXiv:1603.01699). The proof
        moves the threshold's noise by the sensitivity and the noise of the statistic
        that reached it by twice that. Both are whole numbers here, so it holds for
        discrete noise.

    Examples:
        >>> class NoNoise:
        ...     def laplace(self, scale: Fraction) -> int:
        ...         return 0
        >>> search = PrivateSearch.of(NoNoise(), 1)
        >>> first_above([3, 5, 9], 5, sensitivity=1, search=search)
        1
    """
    draws, spent = search.draws, search.spent
    noisy = threshold + draws.laplace(sensitivity / spent.eps_threshold)
    scale = 2 * sensitivity / spent.eps_queries
    for place, statistic in enumerate(statistics):
        if statistic + draws.laplace(scale) >= noisy:
            return place
    return None
