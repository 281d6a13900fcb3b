"""Laplace noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from modicum.accounting.curves import EPS_LARGE, NOTHING, Curve, pure_curve, pure_mu2
from modicum.accounting.decimals import precise, to_decimal
from modicum.accounting.mechanisms.kind import Kind, change, description, noise_size
from modicum.accounting.privacy_loss.pairs import laplace_pair
from modicum.core.rationals import Number


@lru_cache(maxsize=4096)
@precise
def laplace(*, sensitivity_l1: Fraction, scale: Fraction) -> Curve:
    """Return the curve of adding Laplace noise.

    Args:
        sensitivity_l1: Largest L1 change of the answer between neighbors, in units
            of the answer, >= 0.
        scale: Scale b of the noise, in units of the answer, > 0.

    Returns:
        Every measure; delta is 0.

    Neighboring relation:
        That of `sensitivity_l1`.

    Source:
        Mironov 2017, Prop. 6 (arXiv:1702.07476) for the Renyi curve; its limit at
        order 1, eps + exp(-eps) - 1, is the tight rho by Harrison & Manurangsi 2026
        (arXiv:2510.25746). For several coordinates with L1 change eps in all, both
        are convex in eps and 0 at 0, so one coordinate is the worst case. mu as for
        any pure mechanism.

    Examples:
        >>> curve = laplace(sensitivity_l1=Fraction(1), scale=Fraction(2))
        >>> curve.loss().coordinates[:2]
        (500000000000, 106530659713)
    """
    eps = sensitivity_l1 / scale
    if eps == 0:
        return NOTHING
    if eps > EPS_LARGE:
        return pure_curve(eps)
    e = to_decimal(eps)
    return Curve(
        eps, e + (-e).exp() - 1, pure_mu2(e), lambda order: _laplace_rdp(e, order)
    )


def _laplace_rdp(e: Decimal, order: Fraction) -> Decimal:
    a = to_decimal(order)
    inner = (a + (a - 1) * (-(2 * a - 1) * e).exp()) / (2 * a - 1)
    return e + inner.ln() / (a - 1)


@lru_cache(maxsize=256)
@precise
def poisson_laplace(
    *, sensitivity_l1: Fraction, scale: Fraction, sampling_rate: Fraction
) -> Curve:
    """Return the curve of Laplace noise on a Poisson sample.

    Args:
        sensitivity_l1: As for `laplace`.
        scale: As for `laplace`.
        sampling_rate: Probability that an instance of the unit is in the sample,
            the same for all, each independently; from 0 to 1.

    Returns:
        As for `amplification.poisson`, but for a factor that mirrored pairs, such as
        this noise and its shift, do not need.

    Raises:
        InputError: If the rate is not a probability.

    Neighboring relation:
        Add/remove, before and after.

    Source:
        Zhu & Wang 2019, Thm 6 (ICML, PMLR 97); mirrored pairs have a separate proof, at
        the top of `amplification.poisson_sampling`.

    Examples:
        >>> curve = poisson_laplace(
        ...     sensitivity_l1=Fraction(1), scale=Fraction(1),
        ...     sampling_rate=Fraction(1, 100),
        ... )
        >>> f"{curve.at(Fraction(8)):.9g}"
        '0.000349726910'
    """
    from modicum.accounting.amplification.poisson_sampling import _on_poisson_sample

    base = laplace(sensitivity_l1=sensitivity_l1, scale=scale)
    return _on_poisson_sample(base, sampling_rate, removal=1)


def describe_laplace(
    *,
    attributes: Sequence[str],
    sensitivity: Mapping[str, object] | None = None,
    scale: Number | None = None,
    discrete: bool = False,
    **more: object,
) -> dict[str, object]:
    """Describe Laplace noise.

    Args:
        attributes: Attributes of the data it reads.
        sensitivity: By unit, `l1(…)`: the largest L1 change of the answer between
            neighbors, in units of the answer.
        scale: Scale b of the noise, in units of the answer.
        discrete: Whether the noise is on whole numbers (two-sided geometric).
        more: `name`, `cost`, `where`, `periods`, `groups`, labels and the other
            keys of the release format.

    Examples:
        >>> described = describe_laplace(attributes=["age"], scale=2, discrete=True)
        >>> described["mechanism"], described["scale"]
        ('discrete-laplace', 2)
    """
    kind = "discrete-laplace" if discrete else "laplace"
    return description(kind, attributes, more, sensitivity=sensitivity, scale=scale)


#: Common mistakes for the scale of Laplace noise.
SLIPS = dict.fromkeys(
    ("eps", "epsilon", "sigma", "b"),
    "its noise is `scale`: the l1 sensitivity divided by epsilon",
)

KINDS = (
    Kind(
        "laplace",
        (noise_size("scale", "scale of the noise"), change("L1")),
        lambda v: laplace(sensitivity_l1=v["sensitivity"], scale=v["scale"]),
        norm="l1",
        measure="eps",
        slips=SLIPS,
        on_sample=lambda v, rate: poisson_laplace(
            sensitivity_l1=v["sensitivity"], scale=v["scale"], sampling_rate=rate
        ),
        pairs=lambda v: laplace_pair(v["sensitivity"] / v["scale"]),
    ),
)
