"""The default: an epsilon that does not depend on the table."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from modicum.core.errors import Code
from modicum.core.rationals import brief
from modicum.risk.arguments import Number, mistake, proportion
from modicum.risk.candidates import candidates as checked
from modicum.risk.choice import Charge, Choice, Claim
from modicum.risk.indicator import Form, at_distance
from modicum.risk.noise import Noise
from modicum.risk.ratios import largest_epsilon, ratio_reaches
from modicum.risk.selection.rows import RELATIVE, UNPROVEN, public_row

METHOD = "data-independent"


def data_independent(
    noise: Noise,
    *,
    tau: Number,
    candidates: Sequence[Number] | None = None,
    form: Form = "published",
) -> Choice:
    """Return the greatest epsilon at which no two people differ too much, in any table.

    Args:
        noise: The noise. Its sensitivity and its number of coordinates are public: a
            number of groups that are present in the table is not.
        tau: The least ratio of the indicators of two people; above 0, at most 1.
        candidates: Epsilons to choose from; None for all, which needs the published
            form.
        form: `published` or `exact`.

    Returns:
        A choice that may be released: it reads no row. Its charge is that of the
        release alone. With ratio 1, or if no candidate passes, epsilon is None.

    Raises:
        InputError: If tau or a candidate is out of range, or the exact form has no
            candidates.

    Neighboring relation:
        That of the sensitivity.

    Source:
        The RDR paper's test (arXiv:2310.13104, Algorithm 1) for the worst table: one in
        which one person does not move the answer, and another moves it by the maximum.

    Examples:
        >>> from modicum.risk.noise import LaplaceNoise
        >>> data_independent(LaplaceNoise(Fraction(1)), tau=0.25)
        <Choice data-independent: epsilon 3>
    """
    wanted = proportion("tau", tau, by="tau")
    closed = form == "published"
    uncapped = largest_epsilon(noise, noise.sensitivity, tau=wanted) if closed else None
    offered = _offered(candidates, uncapped, form)
    proven = {epsilon: noise.proven(epsilon) for epsilon in offered}
    rows = tuple(
        public_row(
            noise,
            epsilon,
            form=form,
            passes=proven[epsilon] and _passes(noise, epsilon, wanted, form),
        )
        for epsilon in offered
    )
    chosen = max((row.epsilon for row in rows if row.passes), default=None)
    return Choice(
        epsilon=chosen,
        claim=Claim.DP,
        method=METHOD,
        why=_why(chosen, wanted, len(offered)),
        rows=rows,
        charge=None if chosen is None else Charge(noise.described(chosen)),
        caveats=(RELATIVE,) if all(proven.values()) else (RELATIVE, UNPROVEN),
        uncapped=uncapped,
    )


def _offered(
    candidates: Sequence[Number] | None, uncapped: Fraction | None, form: Form
) -> tuple[Fraction, ...]:
    if candidates is not None:
        return checked(candidates)
    if form == "exact":
        raise mistake(
            "the exact indicator has no closed form",
            "give candidates to choose from",
            Code.KEYS_CONFLICT,
        )
    return () if uncapped is None else (uncapped,)


def _passes(noise: Noise, epsilon: Fraction, tau: Fraction, form: Form) -> bool:
    if form == "published":
        return ratio_reaches(noise, 0.0, noise.sensitivity, epsilon=epsilon, tau=tau)
    ends = np.array([0.0, float(noise.sensitivity)])
    least, greatest = at_distance(noise, epsilon, form)(ends).tolist()
    return bool(least >= float(tau) * greatest)


def _why(chosen: Fraction | None, tau: Fraction, offered: int) -> str:
    met = (
        "in every table, the indicator of a person without influence is at least"
        f" {brief(tau)} of that of the person with the largest influence"
    )
    if chosen is None:
        return f"at none of {offered} epsilons, {met}"
    return f"{brief(chosen)} is the largest of {offered} epsilons at which {met}"
