"""Find-epsilon-from-PRI: the first noisy output that passes a test. For study."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np

from modicum.core.rationals import brief, rational
from modicum.risk.arguments import Number, proportion
from modicum.risk.candidates import PUBLISHED
from modicum.risk.candidates import candidates as checked
from modicum.risk.choice import Choice, Row
from modicum.risk.claims import Claim
from modicum.risk.indicator import output_dependent
from modicum.risk.noise import Noise
from modicum.risk.profile import Numbers
from modicum.risk.selection.published import advice

METHOD = "find-epsilon-from-pri"
_FORCED = (
    "The output that passed is no draw of the mechanism: outputs near the exact answer"
    " are rejected, each of them was drawn from rows, and none of that is charged."
)


class Outputs(Protocol):
    """Where noisy answers come from."""

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
        outputs: The source of noisy answers; it is asked once for each candidate, from
            the greatest on, until one passes.
        without: The exact answers without each kind of person; shape (kinds,
            coordinates).
        noise: The noise that the outputs have.
        tau: The least ratio of two distances from the output; above 0, at most 1.
        candidates: Epsilons to choose from.

    Returns:
        An experiment without a price, and the output that passed; None for it and for
        epsilon if none did.

    Raises:
        InputError: If an argument is out of its range.

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
            told = f"the output at {brief(epsilon)} is the first one that passed"
            return _choice(noise, epsilon, told, rows), output
    return _choice(noise, None, "the output of no candidate passed", rows), None


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
        method=METHOD,
        why=why,
        rows=tuple(rows[::-1]),
        caveats=(_FORCED, *advice(noise)),
    )
