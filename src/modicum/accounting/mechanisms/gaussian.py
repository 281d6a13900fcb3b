"""Gaussian noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

from modicum.accounting.curves import Curve, concentrated
from modicum.accounting.mechanisms.kind import (
    Kind,
    Values,
    change,
    description,
    noise_size,
)
from modicum.accounting.privacy_loss.pairs import (
    gaussian_pair,
    sampled_gaussian_pair,
)
from modicum.core.rationals import Number


@lru_cache(maxsize=4096)
def gaussian(*, rho: Fraction) -> Curve:
    """Return the curve of adding Gaussian noise.

    Args:
        rho: sensitivity_l2**2 / (2 sigma**2), >= 0.

    Returns:
        rho, mu**2 = 2 rho and alpha*rho at each order; pure eps is infinite.

    Neighboring relation:
        That of the L2 sensitivity.

    Source:
        Bun & Steinke 2016, Prop. 1.6 (arXiv:1605.02065); Mironov 2017, Prop. 7
        (arXiv:1702.07476); Dong, Roth & Su 2022, Thm 2.7 (arXiv:1905.02383).

    Examples:
        >>> gaussian(rho=Fraction("0.5")).loss().coordinates[1:3]
        (500000000000, 1000000000000)
    """
    return concentrated(rho, mu2=2 * rho)


def gaussian_rho(*, sensitivity_l2: Fraction, sigma: Fraction) -> Fraction:
    """Return the exact rho of Gaussian noise.

    Args:
        sensitivity_l2: Largest L2 change of the answer between neighbors, in units
            of the answer, >= 0.
        sigma: Standard deviation of the noise, in units of the answer, > 0.

    Examples:
        >>> gaussian_rho(sensitivity_l2=Fraction(1), sigma=Fraction(10))
        Fraction(1, 200)
    """
    return sensitivity_l2**2 / (2 * sigma**2)


def describe_gaussian(
    *,
    attributes: Sequence[str],
    sensitivity: Mapping[str, object] | None = None,
    sigma: Number | None = None,
    discrete: bool = False,
    **more: object,
) -> dict[str, object]:
    """Describe Gaussian noise.

    Args:
        attributes: Attributes of the data it reads.
        sensitivity: By unit, `l2(…)`: the largest L2 change of the answer between
            neighbors, in units of the answer.
        sigma: Standard deviation of the noise, in units of the answer.
        discrete: Whether the noise is on whole numbers.
        more: `name`, `cost`, `where`, `periods`, `groups`, labels and the other
            keys of the release format.

    Examples:
        >>> described = describe_gaussian(attributes=["age"], sigma=2)
        >>> described["mechanism"], described["sigma"]
        ('gaussian', 2)
    """
    kind = "discrete-gaussian" if discrete else "gaussian"
    return description(kind, attributes, more, sensitivity=sensitivity, sigma=sigma)


def _build(values: Values) -> Curve:
    moved, sigma = values["sensitivity"], values["sigma"]
    return gaussian(rho=gaussian_rho(sensitivity_l2=moved, sigma=sigma))


def _on_sample(values: Values, rate: Fraction) -> Curve:
    from modicum.accounting.amplification import poisson_gaussian

    noise = values["sigma"] / values["sensitivity"]
    return poisson_gaussian(sampling_rate=rate, noise_multiplier=noise)


#: Common mistakes for the sigma of Gaussian noise.
SLIPS = dict.fromkeys(
    ("epsilon", "scale", "std", "stddev"),
    "its noise is `sigma`; or write `eps` and `delta`, and `sigma` follows",
)

KINDS = (
    Kind(
        "gaussian",
        (noise_size("sigma", "standard deviation of the noise"), change("L2")),
        _build,
        norm="l2",
        measure="rho",
        target="sigma",
        slips=SLIPS,
        of_rho=lambda rho: gaussian(rho=rho),
        on_sample=_on_sample,
        pairs=lambda v: gaussian_pair((v["sensitivity"] / v["sigma"]) ** 2),
        pairs_on_sample=lambda v, rate: sampled_gaussian_pair(
            rate, v["sigma"] / v["sensitivity"]
        ),
    ),
)
