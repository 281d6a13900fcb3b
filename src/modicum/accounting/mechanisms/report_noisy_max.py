"""The candidate with the largest noisy score.

In a release the noise has scale 2 / eps, whatever the sensitivity: it is Laplace noise
for `report-noisy-max`, and one-sided exponential noise for `permute-and-flip`. With s
the largest change of any score between neighbors, the scale is 2 * s / (eps * s), and
dividing all scores and noises by s changes no maximum; so the loss is that of `eps * s`
for scores of sensitivity 1. Scores may rise and fall: that they only rise, as counts
do, is not assumed. The candidates must not depend on the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Literal

from modicum.accounting.argument_ranges import require_at_least_zero
from modicum.accounting.curves import Curve, pure_curve
from modicum.accounting.decimals import precise
from modicum.accounting.mechanisms.exponential import BY_SCORE, SLIPS, exponential
from modicum.accounting.mechanisms.kind import Kind, Parameter, description
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import Number


@precise
def report_noisy_max(
    *, eps: Fraction, noise: Literal["gumbel", "exponential", "laplace"]
) -> Curve:
    """Return the curve of releasing the candidate with the largest noisy score.

    Args:
        eps: The noise has scale 2 * (sensitivity of one score) / eps; >= 0.
        noise: ``gumbel`` is the exponential mechanism. ``exponential`` (which is
            permute-and-flip) and ``laplace`` have no bounded range: pure DP only.

    Returns:
        Every measure; delta is 0. Only the name is published, never the score.

    Raises:
        InputError: If eps is negative or the noise is none of these.

    Neighboring relation:
        That of the scores' sensitivity.

    Source:
        Durfee & Rogers 2019 (arXiv:1905.04273) for Gumbel noise; McKenna & Sheldon
        2020 (arXiv:2010.12603) and Ding et al. 2021 (arXiv:2105.07260) for
        exponential noise; Dwork & Roth 2014, Claim 3.9, for Laplace noise, at twice
        the scale that counts need.

    Examples:
        >>> report_noisy_max(eps=Fraction(1), noise="gumbel").rho
        Fraction(1, 8)
        >>> report_noisy_max(eps=Fraction(1), noise="laplace").rho > Fraction(2, 5)
        True
    """
    require_at_least_zero("eps", eps)
    if noise == "gumbel":
        return exponential(eps=eps)
    if noise in ("exponential", "laplace"):
        return pure_curve(eps)
    raise InputError(
        Problem(
            Code.UNKNOWN_CHOICE,
            f"the noise is {noise!r}",
            help="the noise is gumbel, exponential or laplace",
        )
    )


def describe_report_noisy_max(
    *,
    attributes: Sequence[str],
    sensitivity: Mapping[str, object] | None = None,
    eps: Number | None = None,
    permute_and_flip: bool = False,
    **more: object,
) -> dict[str, object]:
    """Describe the choice of the largest noisy score.

    Args:
        attributes: Attributes of the data it reads.
        sensitivity: By unit, `linf(…)`: the largest change of any candidate's score
            between neighbors. The candidates do not depend on the data.
        eps: The noise of each score has scale 2 / eps.
        permute_and_flip: Whether it is exponential noise, on one side, and not
            Laplace noise.
        more: `name`, `cost`, `where`, `periods`, `groups`, labels and the other
            keys of the release format.

    Examples:
        >>> describe_report_noisy_max(attributes=["age"], eps=1)["mechanism"]
        'report-noisy-max'
    """
    kind = "permute-and-flip" if permute_and_flip else "report-noisy-max"
    return description(kind, attributes, more, sensitivity=sensitivity, eps=eps)


KINDS = (
    Kind(
        "permute-and-flip",
        BY_SCORE,
        lambda v: report_noisy_max(
            eps=v["eps"] * v["sensitivity"], noise="exponential"
        ),
        norm="linf",
        measure="eps",
        slips=SLIPS,
    ),
    Kind(
        "report-noisy-max",
        (Parameter("eps", "the noise is Laplace of scale 2/eps"), *BY_SCORE[1:]),
        lambda v: report_noisy_max(eps=v["eps"] * v["sensitivity"], noise="laplace"),
        norm="linf",
        measure="eps",
        slips=SLIPS,
    ),
)
