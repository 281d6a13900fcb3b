"""Find-and-release-epsilon-from-RDR, with a public divisor, and as published."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from modicum.core.rationals import brief, rational
from modicum.risk.choice import Choice, Claim, Selection
from modicum.risk.indicator import Indicator
from modicum.risk.noise import Noise
from modicum.risk.profile import Influence
from modicum.risk.selection.private_choice import (
    SearchResult,
    choice_of,
    nothing_read,
    reached,
)
from modicum.risk.selection.rows import FROM_ROWS, LESS_THAN_NOISE, RELATIVE, people_row
from modicum.risk.selection.sparse_vector import PrivateSearch, first_above
from modicum.risk.selection.spread import STEPS, Spread, own_distances, sum_of_squares

METHOD = "find-and-release-epsilon-from-rdr"


def find_and_release(
    influence: Influence,
    noise: Noise,
    spread: Spread,
    *,
    search: PrivateSearch,
    own_rows_only: bool,
) -> Choice:
    """Return the first candidate, in descending order, with small noisy variance.

    Args:
        influence: How each kind of person moves the answer.
        noise: The noise; its sensitivity and number of coordinates are public.
        spread: The greatest variance, and the public number of people.
        search: The cost of the choice itself, the source of noise, the candidates.
        own_rows_only: Whether how far a person moves the answer depends on her own rows
            alone. Where it does not, nothing is chosen.

    Returns:
        A choice that may be released once its charge is paid; so may a refusal, which
        costs the same.

    Raises:
        InputError: If an argument is out of range.

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
    offered = reached(noise, search)[::-1]
    if refusal := nothing_read(METHOD, offered, own_rows_only=own_rows_only):
        return refusal
    distances = own_distances(influence, noise)
    # Numbers at most this many whole steps apart stay so when rounded down to steps.
    squares = (
        -math.floor(sum_of_squares(distances, noise, epsilon=epsilon) * STEPS)
        for epsilon in offered
    )
    place = first_above(squares, -spread.steps, sensitivity=STEPS, search=search)
    return choice_of(
        METHOD, noise, search, passed_at(offered, place, spread, search.spent)
    )


def passed_at(
    offered: Sequence[Fraction], place: int | None, spread: Spread, spent: Selection
) -> SearchResult:
    """Return the result of a search by variance.

    Args:
        offered: The candidates, in the order in which they were looked at.
        place: The place where it stopped; None if it did not.
        spread: The condition.
        spent: The cost of the search, which determines the width of its noise.

    Returns:
        The first candidate that passed, with its consequences.

    Neighboring relation:
        None: it follows from the place.

    Source:
        None: it is counting.

    Examples:
        >>> spent, asked = Selection(Fraction(1, 2), Fraction(1, 2)), Spread.of(1, 50)
        >>> found = passed_at([Fraction(2), Fraction(1)], 1, asked, spent)
        >>> found.epsilon, found.passed[Fraction(2)], found.by_chance
        (Fraction(1, 1), False, False)
    """
    passed = dict.fromkeys(offered[:place], False)
    # Three times the scale of the noise, 2/eps_queries in units of the sensitivity.
    by_chance = spread.tau * spread.people * spent.eps_queries < 6
    if place is None:
        why = f"at no candidate did the noisy test show that {spread.condition}"
        return SearchResult(None, why, passed, by_chance)
    chosen = offered[place]
    why = (
        f"{brief(chosen)} is the first candidate, from the largest on, at which the"
        f" noisy test showed that {spread.condition}"
    )
    return SearchResult(chosen, why, passed | {chosen: True}, by_chance)


def find_and_release_published(
    indicator: Indicator,
    spread: Spread,
    *,
    search: PrivateSearch,
) -> Choice:
    """Return the first candidate, in descending order, with small noisy variance.

    Args:
        indicator: The indicators of everybody in the table.
        spread: The greatest variance, and the number of people.
        search: The published cost of the choice, the source of noise, and the
            candidates.

    Returns:
        An experiment without a price. The indicators are divided by the greatest one in
        the table, so one person can change their variance by far more than the 1/n that
        it is published to.

    Raises:
        InputError: If an argument is out of range.

    Neighboring relation:
        None: the published amount is not known to bound the loss.

    Source:
        The RDR paper, Algorithm 3 (arXiv:2310.13104). Variances are counted in parts of
        1/(n STEPS), so that discrete noise has the published scale.

    Examples:
        >>> import numpy as np
        >>> from modicum.risk.noise import LaplaceNoise
        >>> from modicum.risk.profile import Influence
        >>> class NoNoise:
        ...     def laplace(self, scale: Fraction) -> int:
        ...         return 0
        >>> two = Influence(1, np.array([1.0]), np.array([0, 0, 1]), np.array([50, 50]))
        >>> seen = Indicator(two, LaplaceNoise(Fraction(1)))
        >>> find_and_release_published(
        ...     seen, Spread.of("0.0625", 100), search=PrivateSearch.of(NoNoise(), 1)
        ... ).epsilon
        Fraction(1, 1)
    """
    falling = search.candidates[::-1]
    variances = (-_steps(indicator, epsilon, spread.people) for epsilon in falling)
    place = first_above(variances, -spread.steps, sensitivity=STEPS, search=search)
    found = passed_at(falling, place, spread, search.spent)
    return Choice(
        epsilon=found.epsilon,
        claim=Claim.EXPERIMENTAL,
        method=f"{METHOD}-as-published",
        why=found.why,
        rows=tuple(
            people_row(indicator, one, passes=found.passed.get(one))
            for one in search.candidates
        ),
        caveats=(FROM_ROWS, RELATIVE, *[LESS_THAN_NOISE] * found.by_chance),
    )


def _steps(indicator: Indicator, epsilon: Fraction, people: int) -> int:
    """Return the variance over the square of the greatest indicator, in steps."""
    if not indicator.somebody:
        return 0
    greatest = rational(indicator.quantile(1.0, epsilon))
    share = rational(indicator.variance(epsilon)) / greatest**2
    return math.floor(share * people * STEPS)
