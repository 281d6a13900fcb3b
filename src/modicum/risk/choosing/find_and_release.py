"""Find-and-release-epsilon-from-RDR, with a divisor that is public."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from modicum.core.exact import brief
from modicum.risk.choice import Charge, Choice, Selection
from modicum.risk.choosing.above_threshold import PrivateSearch, first_above
from modicum.risk.choosing.private_selection import NOT_OWN_ROWS
from modicum.risk.choosing.own_distances import own_distances
from modicum.risk.choosing.sentences import (
    CHARGE_SELECTION,
    LESS_THAN_NOISE,
    RELATIVE,
    UNPROVEN,
)
from modicum.risk.choosing.spread import STEPS, Spread, sum_of_squares
from modicum.risk.choosing.tables import public_row
from modicum.risk.claims import Claim
from modicum.risk.noise import Noise
from modicum.risk.profile import Influence

METHOD = "find-and-release-epsilon-from-rdr"


def find_and_release(
    influence: Influence,
    noise: Noise,
    spread: Spread,
    *,
    search: PrivateSearch,
    own_rows_only: bool,
) -> Choice:
    """Return the first candidate, from the greatest on, of a noisy variance so small.

    Args:
        influence: How each kind of person moves the answer.
        noise: The noise; its sensitivity and number of coordinates are public.
        spread: The greatest variance, and the public number of people.
        search: What the choice itself costs, where noise comes from, the candidates.
        own_rows_only: Whether how far a person moves the answer depends on her own rows
            alone. Where it does not, nothing is chosen.

    Returns:
        A choice that may be released once its charge is paid; so may a refusal, which
        costs the same.

    Raises:
        InputError: If an argument is out of its range.

    Neighboring relation:
        With and without all rows of one person, and with other rows of one person.

    Source:
        The RDR paper, Algorithm 3 (arXiv:2310.13104), with the divisor of
        `sum_of_squares`; Lyu, Su & Li 2017, Thm 2 (arXiv:1603.01699).

    Examples:
        >>> import numpy as np
        >>> from modicum.risk.noise import LaplaceNoise
        >>> class NoNoise:
        ...     def laplace(self, scale: Fraction) -> int:
        ...         return 0
        >>> two = Influence(1, np.array([1.0]), np.array([0, 0, 1]), np.array([50, 50]))
        >>> find_and_release(
        ...     two, LaplaceNoise(Fraction(1)), Spread.of("0.0625", 100),
        ...     search=PrivateSearch.of(NoNoise(), 1), own_rows_only=True)
        <Choice find-and-release-epsilon-from-rdr: epsilon 1>
    """
    spent, given = search.spent, search.candidates
    offered = [epsilon for epsilon in given[::-1] if noise.proven(epsilon)]
    if not own_rows_only:
        return Choice(None, Claim.DP, METHOD, NOT_OWN_ROWS, caveats=(RELATIVE,))
    distances = own_distances(influence, noise)
    # Numbers at most so many whole steps apart stay so when rounded down to steps.
    squares = (
        -math.floor(sum_of_squares(distances, noise, epsilon=epsilon) * STEPS)
        for epsilon in offered
    )
    place = first_above(squares, -spread.steps, sensitivity=STEPS, search=search)
    chosen = None if place is None else offered[place]
    passed = told(offered, place)
    return Choice(
        epsilon=chosen,
        claim=Claim.DP,
        method=METHOD,
        why=why(chosen, spread),
        rows=tuple(
            public_row(noise, one, form="published", passes=passed.get(one))
            for one in given
        ),
        charge=Charge(None if chosen is None else noise.described(chosen), spent),
        caveats=(
            RELATIVE,
            CHARGE_SELECTION,
            *((UNPROVEN,) if len(offered) < len(given) else ()),
            *chance(spread, spent),
        ),
    )


def told(offered: Sequence[Fraction], place: int | None) -> dict[Fraction, bool]:
    """Return what a choice tells about the candidates.

    Args:
        offered: In the order in which they were looked at.
        place: Where it stopped; None if nowhere.

    Returns:
        Whether each candidate that was looked at passed.

    Neighboring relation:
        None: it follows from the choice.

    Source:
        None: it is counting.

    Examples:
        >>> told([Fraction(2), Fraction(1)], 1)
        {Fraction(2, 1): False, Fraction(1, 1): True}
    """
    passed = dict.fromkeys(offered[:place], False)
    return passed if place is None else passed | {offered[place]: True}


def chance(spread: Spread, spent: Selection) -> tuple[str, ...]:
    """Return a warning where the noise is wider than what it is compared with.

    Args:
        spread: What is asked for.
        spent: What the choice costs, which says how wide the noise is.

    Returns:
        The warning; nothing where there is no need.

    Neighboring relation:
        None: nothing is read from a table.

    Source:
        The noise on the statistic has scale 2/eps_queries in units of its sensitivity.

    Examples:
        >>> spent = Selection(Fraction(1, 2), Fraction(1, 2))
        >>> len(chance(Spread.of("1e-9", 1000), spent))
        1
    """
    small = spread.tau * spread.people * spent.eps_queries < 6
    return (LESS_THAN_NOISE,) if small else ()


def why(chosen: Fraction | None, spread: Spread) -> str:
    """Return why an epsilon was chosen, in one sentence.

    Args:
        chosen: The epsilon; None if there is none.
        spread: What was asked for.

    Returns:
        The sentence.

    Neighboring relation:
        None: it follows from the choice.

    Source:
        None: these are words.

    Examples:
        >>> why(None, Spread.of("0.5", 10)).startswith("at no candidate")
        True
    """
    if chosen is None:
        return f"at no candidate it seemed, with noise, that {spread.words}"
    return (
        f"{brief(chosen)} is the first candidate, from the greatest on, at which it"
        f" seemed, with noise, that {spread.words}"
    )
