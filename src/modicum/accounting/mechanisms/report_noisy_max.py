"""The candidate with the largest noisy score."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from modicum.accounting.argument_ranges import require_at_least_zero
from modicum.accounting.curves import Curve, pure_curve
from modicum.accounting.decimals import precise
from modicum.accounting.mechanisms.exponential import exponential
from modicum.accounting.mechanisms.kind import Kind, Parameter
from modicum.core.errors import Code, InputError, Problem


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


KINDS = (
    Kind(
        "permute-and-flip",
        (Parameter("eps", "the parameter, for scores of sensitivity 1"),),
        lambda v: report_noisy_max(eps=v["eps"], noise="exponential"),
    ),
    Kind(
        "report-noisy-max",
        (Parameter("eps", "the noise is Laplace of scale 2/eps"),),
        lambda v: report_noisy_max(eps=v["eps"], noise="laplace"),
    ),
)
