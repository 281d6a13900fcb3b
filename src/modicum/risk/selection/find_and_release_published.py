"""Find-and-release-epsilon-from-RDR as published: for study."""

from __future__ import annotations

import math
from fractions import Fraction

from modicum.core.rationals import rational
from modicum.risk.choice import Choice
from modicum.risk.claims import Claim
from modicum.risk.indicator import Indicator
from modicum.risk.selection.find_release import METHOD, passed_at
from modicum.risk.selection.rows import people_row
from modicum.risk.selection.sentences import FROM_ROWS, LESS_THAN_NOISE, RELATIVE
from modicum.risk.selection.sparse_vector import PrivateSearch, first_above
from modicum.risk.selection.spread import STEPS, Spread


def find_and_release_published(
    indicator: Indicator,
    spread: Spread,
    *,
    search: PrivateSearch,
) -> Choice:
    """Return the first candidate, from the greatest on, of a noisy variance so small.

    Args:
        indicator: The indicators of everybody in the table.
        spread: The greatest variance, and the number of people.
        search: What the choice is published to cost, where noise comes from, and the
            candidates.

    Returns:
        An experiment without a price. The indicators are divided by the greatest one in
        the table, so one person can change their variance by far more than the 1/n that
        it is published to.

    Raises:
        InputError: If an argument is out of its range.

    Neighboring relation:
        None: the loss is not known to be bounded by what is published.

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
