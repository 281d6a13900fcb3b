"""Published rules for choosing an epsilon from a table: for study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

import numpy as np

from modicum.core.rationals import brief, rational
from modicum.risk.arguments import Number, count, proportion
from modicum.risk.candidates import PUBLISHED
from modicum.risk.candidates import candidates as checked
from modicum.risk.choice import Choice, Claim, Row
from modicum.risk.indicator import Indicator, output_dependent
from modicum.risk.noise import GaussianNoise, Noise
from modicum.risk.profile import Numbers
from modicum.risk.selection.rows import CLASSICAL, FROM_ROWS, RELATIVE, people_row
from modicum.risk.selection.thresholds import Threshold

RDR_METHOD = "find-epsilon-from-rdr"


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
        Advice for the controller. Epsilon is None if no candidate passes, or if the
        table has no people: then no row shows that it passes. It has no price: none
        would suffice.

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
    # A vacuous condition holds, and means nothing.
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
    condition = " and ".join(one.condition for one in thresholds)
    return Choice(
        epsilon=chosen,
        claim=Claim.ADVICE,
        method=RDR_METHOD,
        why=_why(chosen, condition, len(offered), somebody=somebody),
        rows=rows,
        caveats=advice(indicator.noise),
    )


def _why(
    chosen: Fraction | None, condition: str, offered: int, *, somebody: bool
) -> str:
    if not somebody:
        return "the table has no people whose risk could be compared"
    if chosen is None:
        return f"at none of {offered} candidates, {condition}"
    return (
        f"{brief(chosen)} is the largest of {offered} candidates at which {condition}"
    )


def advice(noise: Noise) -> tuple[str, ...]:
    """Return the caveats of an epsilon computed from rows.

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


ODOMETER_METHOD = "only-above-what-was-spent"
_NO_BOUND = (
    "The sum of these epsilons bounds no loss: each is computed from rows, and"
    " free refusals reveal facts about them. A limit fixed in advance does"
    " bound it."
)


@dataclass(frozen=True, slots=True)
class PublishedOdometer:
    """The published rule's loss of all questions so far.

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
    """Return the result of Find-epsilon-from-RDR above the sum of all earlier epsilons.

    Args:
        odometer: The sum so far.
        indicator: The indicators of everybody in the table.
        thresholds: Conditions that must all hold; one or more.
        candidates: Epsilons to choose from.

    Returns:
        An experiment without a price. Epsilon is None if no candidate is above the sum
        and passes.

    Raises:
        InputError: If an argument is out of range.

    Neighboring relation:
        None: refusals alone reveal whether a person is in the table.

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
        return Choice(None, Claim.EXPERIMENTAL, ODOMETER_METHOD, why, caveats=caveats)
    found = find_from_rdr(indicator, thresholds, candidates=left)
    return replace(
        found, claim=Claim.EXPERIMENTAL, method=ODOMETER_METHOD, caveats=caveats
    )


PRI_METHOD = "find-epsilon-from-pri"
_FORCED = (
    "The accepted output is not a draw of the mechanism: outputs near the exact answer"
    " are rejected, each was drawn from rows, and none of that is charged."
)


class Outputs(Protocol):
    """A source of noisy answers."""

    def at(self, epsilon: Fraction) -> Numbers:
        """Return a fresh noisy answer at an epsilon; shape (coordinates,).

        Args:
            epsilon: Above 0.
        """


def find_from_pri(
    outputs: Outputs,
    without: Numbers,
    noise: Noise,
    *,
    tau: Number,
    candidates: Sequence[Number] = PUBLISHED,
) -> tuple[Choice, Numbers | None]:
    """Return the first candidate whose output is about equally far from everybody.

    Args:
        outputs: The source of noisy answers; called once per candidate, in descending
            order, until one passes.
        without: The exact answers without each kind of person; shape (kinds,
            coordinates).
        noise: The noise that the outputs have.
        tau: The least ratio of two distances from the output; above 0, at most 1.
        candidates: Epsilons to choose from.

    Returns:
        An experiment without a price, and the output that passed; None for it and for
        epsilon if none did.

    Raises:
        InputError: If an argument is out of range.

    Neighboring relation:
        None: there are outputs that only one of two neighbors can have, at every
        epsilon.

    Source:
        The PRI paper, Algorithm 1 ("Find-epsilon-from-PRI").

    Examples:
        >>> class Sure:
        ...     def at(self, epsilon: Fraction) -> Numbers:
        ...         return np.array([200.0])
        >>> from modicum.risk.noise import LaplaceNoise
        >>> without, noise = np.array([[99.0], [100.0]]), LaplaceNoise(Fraction(1))
        >>> choice, output = find_from_pri(Sure(), without, noise, tau=0.95)
        >>> choice.epsilon, output
        (Fraction(10, 1), array([200.]))
    """
    wanted = proportion("tau", tau, by="tau")
    rows: list[Row] = []
    for epsilon in checked(candidates)[::-1]:
        output = outputs.at(epsilon)
        found = output_dependent(output, without, norm=noise.norm)
        row = _row(noise, epsilon, found, wanted)
        rows.append(row)
        if row.passes:
            reason = f"the output at {brief(epsilon)} is the first accepted one"
            return _choice(noise, epsilon, reason, rows), output
    return _choice(noise, None, "no output was accepted", rows), None


def _row(noise: Noise, epsilon: Fraction, found: Numbers, tau: Fraction) -> Row:
    if not len(found):
        width = noise.half_width(epsilon)
        return Row(epsilon, width, np.nan, np.nan, np.nan, passes=False)
    least, greatest = float(found.min()), float(found.max())
    passes = rational(least) >= tau * rational(greatest)
    ratio = least / greatest if greatest else 1.0
    return Row(epsilon, noise.half_width(epsilon), least, greatest, ratio, passes)


def _choice(
    noise: Noise, epsilon: Fraction | None, why: str, rows: Sequence[Row]
) -> Choice:
    return Choice(
        epsilon=epsilon,
        claim=Claim.EXPERIMENTAL,
        method=PRI_METHOD,
        why=why,
        rows=tuple(rows[::-1]),
        caveats=(_FORCED, *advice(noise)),
    )
