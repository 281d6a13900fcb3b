"""Analysts' priorities: a public cap, split by weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from modicum.core.rationals import LOSS_UNIT, brief, floor_units
from modicum.risk.arguments import Number, above_zero, count, mistake
from modicum.risk.choice import Charge, Choice, Claim
from modicum.risk.noise import Noise
from modicum.risk.selection.rows import RELATIVE, UNPROVEN, public_row

METHOD = "priorities"


@dataclass(frozen=True, slots=True)
class Priority:
    """One question and its priority.

    Attributes:
        weight: Above 0; only proportions count.
        noise: The noise of its answer.
    """

    weight: Fraction
    noise: Noise

    @classmethod
    def of(cls, weight: Number, noise: Noise) -> Priority:
        """Return the priority of a given weight."""
        return cls(above_zero("the weight", weight), noise)


def by_priority(cap: Number, priorities: Mapping[str, Priority]) -> dict[str, Choice]:
    """Return epsilons in proportion to weights, within a total cap.

    Args:
        cap: The epsilon of all questions together; public; > 0.
        priorities: The questions by name; one or more.

    Returns:
        For each question a choice that may be released: it reads no row. Its epsilon is
        rounded down to 1e-12, so that the sum is at most the cap. It is None if the
        noise does not reach it.

    Raises:
        InputError: If an argument is out of range, or the cap is too small for the
            number of questions.

    Neighboring relation:
        The one that the sensitivities hold under.

    Source:
        The RDR paper leaves open how to heed priorities (arXiv:2310.13104, section
        5.2). Basic composition bounds the sum.

    Examples:
        >>> from modicum.risk.noise import LaplaceNoise
        >>> count = LaplaceNoise(Fraction(1))
        >>> age, sex = Priority.of(3, count), Priority.of(1, count)
        >>> split = by_priority(1, {"age": age, "sex": sex})
        >>> split["age"], split["sex"]
        (<Choice priorities: epsilon 0.75>, <Choice priorities: epsilon 0.25>)
    """
    whole = above_zero("the cap", cap)
    count("the number of questions", len(priorities), least=1)
    weights = sum(priority.weight for priority in priorities.values())
    return {
        name: _choice(_share(whole, priority.weight / weights), priority.noise, whole)
        for name, priority in priorities.items()
    }


def _share(cap: Fraction, part: Fraction) -> Fraction:
    units = floor_units(cap * part)
    if not units:
        raise mistake(
            f"the cap {brief(cap)} leaves less than 1e-12 for a question",
            "give a larger cap or fewer questions",
        )
    return Fraction(units, LOSS_UNIT)


def _choice(epsilon: Fraction, noise: Noise, cap: Fraction) -> Choice:
    reached = noise.proven(epsilon)
    row = public_row(noise, epsilon, form="published", passes=reached)
    share = f"{brief(epsilon)} is this question's share of {brief(cap)}"
    return Choice(
        epsilon=epsilon if reached else None,
        claim=Claim.DP,
        method=METHOD,
        why=share if reached else f"{share}, which its noise does not achieve",
        rows=(row,),
        charge=Charge(noise.described(epsilon)) if reached else None,
        caveats=(RELATIVE,) if reached else (RELATIVE, UNPROVEN),
    )
