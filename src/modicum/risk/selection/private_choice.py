"""The result of a private choice: its place, its consequences, and public facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from modicum.risk.choice import Charge, Choice, Claim
from modicum.risk.noise import Noise
from modicum.risk.selection.rows import (
    CHARGE_SELECTION,
    LESS_THAN_NOISE,
    NOT_OWN_ROWS,
    RELATIVE,
    UNPROVEN,
    UNREACHED,
    public_row,
)
from modicum.risk.selection.sparse_vector import PrivateSearch


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The complete disclosed result of a private search.

    Attributes:
        epsilon: The candidate; None if there is none.
        why: The reason, from public facts.
        passed: Whether each candidate that was looked at passed.
        by_chance: Whether the noise exceeds what it is compared with.
    """

    epsilon: Fraction | None
    why: str
    passed: Mapping[Fraction, bool]
    by_chance: bool


def reached(noise: Noise, search: PrivateSearch) -> list[Fraction]:
    """Return the candidates that their noise reaches, ascending.

    Args:
        noise: The noise.
        search: The candidates.

    Returns:
        Those at which the noise has the epsilon, at its delta, that it is named by.

    Neighboring relation:
        That of the sensitivity.

    Source:
        Balle & Wang 2018, Thm 8 (arXiv:1805.06530), for Gaussian noise.

    Examples:
        >>> from modicum.risk.noise import GaussianNoise
        >>> noise = GaussianNoise(Fraction(1), Fraction(1, 10**9), 1, "published")
        >>> class NoNoise:
        ...     def laplace(self, scale: Fraction) -> int:
        ...         return 0
        >>> reached(noise, PrivateSearch.of(NoNoise(), 1, [1, 10]))
        [Fraction(1, 1)]
    """
    return [epsilon for epsilon in search.candidates if noise.proven(epsilon)]


def nothing_read(
    method: str, offered: Sequence[Fraction], *, own_rows_only: bool
) -> Choice | None:
    """Return a refusal that follows from public facts, and costs nothing.

    Args:
        method: The name of the algorithm.
        offered: The candidates that are left.
        own_rows_only: Whether how far a person moves the answer depends on her own rows
            alone.

    Returns:
        The refusal; None if there is no reason for one.

    Neighboring relation:
        None: nothing is read from a table.

    Source:
        None: it is a refusal.

    Examples:
        >>> nothing_read("private-selection", [], own_rows_only=True)
        <Choice private-selection: epsilon none>
    """
    if own_rows_only and offered:
        return None
    why = UNREACHED if own_rows_only else NOT_OWN_ROWS
    return Choice(None, Claim.DP, method, why, caveats=(RELATIVE,))


def choice_of(
    method: str, noise: Noise, search: PrivateSearch, found: SearchResult
) -> Choice:
    """Return the choice for a search result.

    Args:
        method: The name of the algorithm.
        noise: The noise; its sensitivity and number of coordinates are public.
        search: Its cost, and the candidates.
        found: The result.

    Returns:
        The choice, with its price. Its rows hold for every table.

    Neighboring relation:
        That of the statistics' sensitivity.

    Source:
        Post-processing of a private mechanism costs nothing (Dwork & Roth 2014, Prop.
        2.1).

    Examples:
        >>> from modicum.risk.noise import LaplaceNoise
        >>> class NoNoise:
        ...     def laplace(self, scale: Fraction) -> int:
        ...         return 0
        >>> search = PrivateSearch.of(NoNoise(), 1, [1])
        >>> found = SearchResult(None, "none passed", {}, by_chance=False)
        >>> noise = LaplaceNoise(Fraction(1))
        >>> choice = choice_of("private-selection", noise, search, found)
        >>> choice.charge.selection.eps
        Fraction(1, 1)
    """
    unproven = len(reached(noise, search)) < len(search.candidates)
    release = None if found.epsilon is None else noise.described(found.epsilon)
    caveats = [RELATIVE, CHARGE_SELECTION]
    caveats += [UNPROVEN] * unproven + [LESS_THAN_NOISE] * found.by_chance
    return Choice(
        epsilon=found.epsilon,
        claim=Claim.DP,
        method=method,
        why=found.why,
        rows=tuple(
            public_row(noise, one, form="published", passes=_passed(noise, found, one))
            for one in search.candidates
        ),
        charge=Charge(release, search.spent),
        caveats=tuple(caveats),
    )


def _passed(noise: Noise, found: SearchResult, epsilon: Fraction) -> bool | None:
    return found.passed.get(epsilon) if noise.proven(epsilon) else False
