"""The sparse vector technique on integers: the first to reach a threshold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from modicum.risk.arguments import Number, above_zero
from modicum.risk.candidates import PUBLISHED
from modicum.risk.candidates import candidates as checked
from modicum.risk.choice import Selection

# The part of epsilon for the threshold: 1 to 2**(2/3), the proportion at which the
# comparison has the least variance (Lyu, Su & Li 2017, section 4.2).
_THRESHOLD_SHARE = Fraction("0.386488")


class Draws(Protocol):
    """A source of noise: a secure sampler, provided by the caller."""

    def laplace(self, scale: Fraction) -> int:
        """Return a fresh draw k with a probability proportional to exp(-abs(k)/scale).

        Args:
            scale: Above 0.
        """


def selection(eps: Number) -> Selection:
    """Return the two parts of a private choice's cost.

    Args:
        eps: Both together; > 0.

    Returns:
        The parts, which add up exactly.

    Raises:
        InputError: If eps is not above 0.

    Neighboring relation:
        That of the statistics' sensitivity.

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
    """The parameters of a private choice, all fixed before rows are read.

    Attributes:
        draws: The source of noise.
        spent: The cost of the choice itself.
        candidates: Epsilons to choose from, rising.
    """

    draws: Draws
    spent: Selection
    candidates: tuple[Fraction, ...]

    @classmethod
    def of(
        cls, draws: Draws, eps: Number, candidates: Iterable[Number] = PUBLISHED
    ) -> PrivateSearch:
        """Return a search with given parameters.

        Args:
            draws: The source of noise.
            eps: The cost of the choice itself; > 0.
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
    """Return the place of the first statistic that reaches a threshold, with noise.

    Args:
        statistics: Integers, computed from rows lazily; only as many as needed.
        threshold: The threshold; public.
        sensitivity: How much each statistic changes between neighbors, at most; >= 1.
        search: The cost, and the source of noise.

    Returns:
        The place, from 0; None if no statistic reached it.

    Neighboring relation:
        That of the sensitivity. Nothing is assumed about the direction in which
        statistics change.

    Source:
        Lyu, Su & Li 2017, Alg. 1 and Thm 2 with c = 1 (arXiv:1603.01699). The proof
        moves the threshold's noise by the sensitivity and the noise of the statistic
        that reached it by twice that. Both are integers here, so it holds for discrete
        noise.

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
