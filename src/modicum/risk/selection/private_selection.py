"""An epsilon that is chosen by the people in a table, privately."""

from __future__ import annotations

from fractions import Fraction

from modicum.core.rationals import brief
from modicum.risk.arguments import Number, count, proportion
from modicum.risk.choice import Choice
from modicum.risk.noise import Noise
from modicum.risk.profile import Influence, Profile
from modicum.risk.ratios import ratio_reaches
from modicum.risk.selection.private_choice import (
    SearchResult,
    choice_of,
    nothing_read,
    reached,
)
from modicum.risk.selection.sparse_vector import PrivateSearch, first_above
from modicum.risk.selection.spread import own_distances

METHOD = "private-selection"


def people_exposed(
    distances: Profile, noise: Noise, *, epsilon: Fraction, tau: Fraction
) -> int:
    """Return the number of people who would differ too much from an unaffected person.

    Args:
        distances: How far people move the answer, in the noise's norm.
        noise: The noise.
        epsilon: The candidate; > 0.
        tau: The least ratio of two indicators; above 0, at most 1.

    Returns:
        The number of people with a distance whose indicator, against that of distance
        0, has a ratio below tau. It does not fall as epsilon rises.

    Neighboring relation:
        Sensitivity 1 with and without all rows of one person, and with other rows of
        one person, if how far she moves the answer depends on her own rows alone: she
        is then counted or not, and nobody else is counted differently.

    Source:
        The test of the RDR paper (arXiv:2310.13104, Algorithm 1), as a count.

    Examples:
        >>> import numpy as np
        >>> from modicum.risk.noise import LaplaceNoise
        >>> people = Profile(np.array([0.0, 0.5, 1.0]), np.array([90, 8, 2]))
        >>> count, one = LaplaceNoise(Fraction(1)), Fraction(1)
        >>> people_exposed(people, count, epsilon=one, tau=Fraction(3, 5))
        2
    """
    values = distances.values
    near, far = 0, len(values)  # Below `near` all reach tau, from `far` on none do.
    while near < far:
        middle = (near + far) // 2
        high = float(values[middle])
        if ratio_reaches(noise, 0.0, high, epsilon=epsilon, tau=tau):
            near = middle + 1
        else:
            far = middle
    return int(distances.people[near:].sum())


def private_selection(
    influence: Influence,
    noise: Noise,
    *,
    tau: Number,
    allowance: int,
    search: PrivateSearch,
    own_rows_only: bool,
) -> Choice:
    """Return an epsilon at which at most about `allowance` people differ too much.

    In ascending order of candidates, the number of people who would differ too much
    from an unaffected person is compared, with noise, to an allowance. The last
    candidate before it is exceeded is chosen.

    Args:
        influence: How each kind of person moves the answer.
        noise: The noise; its sensitivity and number of coordinates are public.
        tau: The least ratio of two indicators; above 0, at most 1.
        allowance: How many people may differ by more; >= 0, fixed before a look at
            rows.
        search: The cost of the choice itself, the source of noise, the candidates.
        own_rows_only: Whether how far a person moves the answer depends on her own rows
            alone, as with counts and with sums between bounds. Where it does not,
            nothing is chosen.

    Returns:
        A choice that may be released once its charge is paid; so may a refusal, which
        costs the same.

    Raises:
        InputError: If an argument is out of range.

    Neighboring relation:
        With and without all rows of one person, and with other rows of one person.

    Source:
        Sparse vector technique: Lyu, Su & Li 2017, Thm 2 (arXiv:1603.01699), on
        `people_exposed`. The release follows by a filter for adaptive choices.

    Examples:
        >>> import numpy as np
        >>> from modicum.risk.noise import LaplaceNoise
        >>> class NoNoise:
        ...     def laplace(self, scale: Fraction) -> int:
        ...         return 0
        >>> all_ones = Influence(1, np.array([1.0]), np.array([0, 1]), np.array([500]))
        >>> private_selection(
        ...     all_ones, LaplaceNoise(Fraction(1)), tau=0.5, allowance=100,
        ...     search=PrivateSearch.of(NoNoise(), 0.5), own_rows_only=True)
        <Choice private-selection: epsilon 1>
    """
    wanted = proportion("tau", tau, by="tau")
    allowed = count("the allowance", allowance, least=0, by="allowance")
    offered = reached(noise, search)
    if refusal := nothing_read(METHOD, offered, own_rows_only=own_rows_only):
        return refusal
    own = own_distances(influence, noise)
    counts = (people_exposed(own, noise, epsilon=e, tau=wanted) for e in offered)
    stop = first_above(counts, allowed + 1, sensitivity=1, search=search)
    kept = offered[:stop]
    passed = dict.fromkeys(kept, True)
    if stop is not None:
        passed[offered[stop]] = False
    chosen = kept[-1] if kept else None
    # Three times the scale of the counts' noise, which is 2/eps_queries.
    by_chance = allowed * search.spent.eps_queries < 6
    found = SearchResult(chosen, _why(chosen, allowed, wanted), passed, by_chance)
    return choice_of(METHOD, noise, search, found)


def _why(chosen: Fraction | None, allowed: int, tau: Fraction) -> str:
    people = (
        f"more than about {allowed} people would have an indicator so large that"
        f" the ratio of an unaffected person to them is below {brief(tau)}"
    )
    if chosen is None:
        return f"at the smallest candidate, the noisy test shows that {people}"
    return f"up to {brief(chosen)} the noisy test did not show that {people}"
