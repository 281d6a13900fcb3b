"""Find-epsilon-from-RDR, as published: advice for the controller of the data."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from modicum.core.rationals import brief
from modicum.risk.arguments import Number, count
from modicum.risk.candidates import PUBLISHED
from modicum.risk.candidates import candidates as checked
from modicum.risk.choice import Choice
from modicum.risk.claims import Claim
from modicum.risk.indicator import Indicator
from modicum.risk.noise import GaussianNoise, Noise
from modicum.risk.selection.rows import people_row
from modicum.risk.selection.sentences import CLASSICAL, FROM_ROWS, RELATIVE
from modicum.risk.selection.thresholds import Threshold

METHOD = "find-epsilon-from-rdr"


def find_from_rdr(
    indicator: Indicator,
    thresholds: Sequence[Threshold],
    *,
    candidates: Sequence[Number] = PUBLISHED,
) -> Choice:
    """Return the greatest candidate at which the people of a table are alike enough.

    Args:
        indicator: The indicators of everybody in the table.
        thresholds: Conditions that must all hold; one or more.
        candidates: Epsilons to choose from.

    Returns:
        Advice for the controller. Epsilon is None if no candidate passes, or if there
        is nobody in the table: then no row says that it passes. It has no price: none
        would be enough.

    Raises:
        InputError: If there is no condition, or a candidate or group will not do.

    Neighboring relation:
        The tables with and without all rows of one person, for the indicator. The
        choice is not differentially private under any relation: one person can turn
        the least candidate into the greatest, for certain.

    Source:
        The RDR paper, Algorithm 1 (arXiv:2310.13104).

    Examples:
        >>> import numpy as np
        >>> from modicum.risk.selection.thresholds import RatioAtLeast
        >>> from modicum.risk.noise import LaplaceNoise
        >>> from modicum.risk.profile import Influence
        >>> two = Influence(1, np.array([1.0]), np.array([0, 0, 1]), np.array([9, 1]))
        >>> seen = Indicator(two, LaplaceNoise(Fraction(1)))
        >>> found = find_from_rdr(seen, [RatioAtLeast.of("0.75")])
        >>> found
        <Choice find-epsilon-from-rdr: controller only: not for release>
        >>> found.epsilon
        Fraction(3, 10)
    """
    count("the number of thresholds", len(thresholds), least=1)
    offered = checked(candidates)
    somebody = indicator.somebody
    # What holds for nobody holds, and says nothing.
    passing = {
        epsilon: all(one.holds(indicator, epsilon) for one in thresholds)
        for epsilon in offered
        if somebody
    }
    rows = tuple(
        people_row(indicator, epsilon, passes=passing.get(epsilon))
        for epsilon in offered
    )
    found = [epsilon for epsilon, passed in passing.items() if passed]
    chosen = max(found, default=None)
    words = " and ".join(one.words for one in thresholds)
    return Choice(
        epsilon=chosen,
        claim=Claim.ADVICE,
        method=METHOD,
        why=_why(chosen, words, len(offered), somebody=somebody),
        rows=rows,
        caveats=advice(indicator.noise),
    )


def _why(chosen: Fraction | None, words: str, offered: int, *, somebody: bool) -> str:
    if not somebody:
        return "there is nobody in the table whose risk could be compared"
    if chosen is None:
        return f"at none of {offered} candidates it holds that {words}"
    return f"{brief(chosen)} is the greatest of {offered} candidates at which {words}"


def advice(noise: Noise) -> tuple[str, ...]:
    """Return what an epsilon that is computed from rows is told with.

    Args:
        noise: The noise.

    Returns:
        Sentences.

    Neighboring relation:
        None: nothing is read from a table.

    Source:
        The counterexamples in the tests of this package.

    Examples:
        >>> from modicum.risk.noise import LaplaceNoise
        >>> len(advice(LaplaceNoise(Fraction(1))))
        2
    """
    classical = isinstance(noise, GaussianNoise) and noise.calibration == "published"
    return (FROM_ROWS, RELATIVE, CLASSICAL) if classical else (FROM_ROWS, RELATIVE)
