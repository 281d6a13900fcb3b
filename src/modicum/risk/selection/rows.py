"""The rows of a choice, and the caveats of each kind of choice."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from modicum.risk.choice import Row
from modicum.risk.indicator import Form, Indicator, at_distance
from modicum.risk.noise import Noise
from modicum.risk.profile import RELATION


def public_row(
    noise: Noise, epsilon: Fraction, *, form: Form, passes: bool | None
) -> Row:
    """Return a row that holds for every table.

    Args:
        noise: The noise, of a public sensitivity and number of coordinates.
        epsilon: The candidate; > 0.
        form: `published` or `exact`.
        passes: Whether it passes; None if it was not looked at.

    Returns:
        The indicator of a person who does not move the answer, and of one who moves it
        by the maximum.

    Neighboring relation:
        That of the sensitivity.

    Source:
        `at_distance`, at 0 and at the sensitivity.

    Examples:
        >>> from modicum.risk.noise import LaplaceNoise
        >>> count = LaplaceNoise(Fraction(1))
        >>> public_row(count, Fraction(1), form="published", passes=True).ratio
        0.5
    """
    ends = np.array([0.0, float(noise.sensitivity)])
    least, greatest = at_distance(noise, epsilon, form)(ends).tolist()
    return Row(
        epsilon, noise.half_width(epsilon), least, greatest, least / greatest, passes
    )


def people_row(indicator: Indicator, epsilon: Fraction, *, passes: bool | None) -> Row:
    """Return a row of the people in a table: for its controller only.

    Args:
        indicator: The indicators of everybody.
        epsilon: The candidate; > 0.
        passes: Whether it passes; None if it was not looked at.

    Returns:
        The least and the greatest indicator; NaN without people.

    Neighboring relation:
        The tables with and without all rows of one person.

    Source:
        The RDR paper's Algorithm 1 (arXiv:2310.13104).

    Examples:
        >>> from modicum.risk.noise import LaplaceNoise
        >>> from modicum.risk.profile import Influence
        >>> two = Influence(1, np.array([1.0]), np.array([0, 0, 1]), np.array([9, 1]))
        >>> seen = Indicator(two, LaplaceNoise(Fraction(1)))
        >>> people_row(seen, Fraction(1), passes=True).greatest
        2.0
    """
    least, greatest = (indicator.quantile(share, epsilon) for share in (0.0, 1.0))
    width = indicator.noise.half_width(epsilon)
    return Row(epsilon, width, least, greatest, least / greatest, passes)


RELATIVE = (
    "The indicator compares people; a ratio near 1 does not bound what a release"
    " reveals. Epsilon is that bound. Both are of tables with and without all rows of"
    f" one person ({RELATION})."
)
FROM_ROWS = (
    "This epsilon is computed from rows without noise. A release at it is not"
    " differentially private for any finite epsilon, and a refusal reveals as much."
)
CHARGE_SELECTION = (
    "The choice itself must be charged, before it is made, whatever its result:"
    " `modicum risk choose --release ID --charge UNIT` does. A release at the chosen"
    " epsilon is charged on top, through a filter."
)
UNPROVEN = (
    "The classical standard deviation is not sufficient for some of these (epsilon,"
    " delta);"
    " such candidates do not pass."
)
CLASSICAL = (
    "The classical standard deviation is proven for epsilon up to 1 only;"
    " at some epsilons above, its delta is larger than the one that is named."
)
LESS_THAN_NOISE = (
    "The threshold is below three times the width of the noise it is compared with:"
    " the choice is mostly random."
)
NOT_OWN_ROWS = (
    "the influence of a person on this answer depends on the rows of"
    " others, so no sensitivity of the choice is proven; nothing was read"
)
UNREACHED = (
    "no candidate has noise that achieves its epsilon and delta; nothing was read"
)
