"""The published rule for many questions: only above what was spent. For study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from modicum.core.rationals import brief
from modicum.risk.arguments import Number
from modicum.risk.candidates import PUBLISHED
from modicum.risk.candidates import candidates as checked
from modicum.risk.choice import Choice
from modicum.risk.claims import Claim
from modicum.risk.indicator import Indicator
from modicum.risk.selection.published import advice, find_from_rdr
from modicum.risk.selection.thresholds import Threshold

METHOD = "only-above-what-was-spent"
_NO_BOUND = (
    "The sum of these epsilons bounds no loss: each is computed from rows, and"
    " refusals, which cost nothing, tell about them. A limit that is fixed in advance"
    " does bound it."
)


@dataclass(frozen=True, slots=True)
class PublishedOdometer:
    """What the published rule takes for the loss of all questions so far.

    Attributes:
        spent: The sum of the epsilons that were chosen; >= 0. It bounds nothing.
    """

    spent: Fraction = Fraction(0)

    def after(self, choice: Choice) -> PublishedOdometer:
        """Return the odometer after a choice; a refusal leaves it where it is."""
        return PublishedOdometer(self.spent + (choice.epsilon or 0))


def find_above_spent(
    odometer: PublishedOdometer,
    indicator: Indicator,
    thresholds: Sequence[Threshold],
    *,
    candidates: Sequence[Number] = PUBLISHED,
) -> Choice:
    """Return what Find-epsilon-from-RDR finds above the sum of all epsilons before.

    Args:
        odometer: The sum so far.
        indicator: The indicators of everybody in the table.
        thresholds: Conditions that must all hold; one or more.
        candidates: Epsilons to choose from.

    Returns:
        An experiment without a price. Epsilon is None if no candidate is above the sum
        and passes.

    Raises:
        InputError: If an argument is out of its range.

    Neighboring relation:
        None: refusals alone tell whether somebody is in the table.

    Source:
        The RDR paper, sections 5.2 and 5.3 (arXiv:2310.13104).

    Examples:
        >>> import numpy as np
        >>> from modicum.risk.selection.thresholds import RatioAtLeast
        >>> from modicum.risk.noise import LaplaceNoise
        >>> from modicum.risk.profile import Influence
        >>> two = Influence(1, np.array([1.0]), np.array([0, 0, 1]), np.array([9, 1]))
        >>> seen = Indicator(two, LaplaceNoise(Fraction(1)))
        >>> asked, odometer = [RatioAtLeast.of("0.75")], PublishedOdometer()
        >>> first = find_above_spent(odometer, seen, asked)
        >>> again = find_above_spent(odometer.after(first), seen, asked)
        >>> first.epsilon, again.epsilon
        (Fraction(3, 10), None)
    """
    offered = checked(candidates)
    left = [epsilon for epsilon in offered if epsilon > odometer.spent]
    caveats = (_NO_BOUND, *advice(indicator.noise))
    if not left:
        why = f"no candidate is above {brief(odometer.spent)}, which was spent"
        return Choice(None, Claim.EXPERIMENTAL, METHOD, why, caveats=caveats)
    found = find_from_rdr(indicator, thresholds, candidates=left)
    return replace(found, claim=Claim.EXPERIMENTAL, method=METHOD, caveats=caveats)
