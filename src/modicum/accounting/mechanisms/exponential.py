"""The exponential mechanism: a candidate, the likelier the higher its score.

In a release, a candidate of score q has a probability proportional to exp(eps * q / 2),
and s is the largest change of any candidate's score between neighbors, the L-infinity
sensitivity. That is the mechanism of `eps * s` for scores q / s, whose sensitivity is
1; so its loss is the curve of `eps * s`, under the relation of s. Scores may rise and
fall. The candidates, and their order, must not depend on the data: one that only some
data offer would reveal these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from modicum.accounting.amounts import least
from modicum.accounting.argument_ranges import require_at_least_zero
from modicum.accounting.curves import (
    EPS_LARGE,
    NOTHING,
    Curve,
    pure_curve,
    pure_mu2,
    pure_rho,
)
from modicum.accounting.decimals import precise, to_decimal
from modicum.accounting.mechanisms.kind import Kind, Parameter, change, description
from modicum.core.rationals import Number

# Below this eps, alpha * eps**2 / 8 is the same number as the exact curve to more
# digits than are stored, and the exact one would lose too many.
_EPS_SMALL = Fraction(1, 10**12)


@lru_cache(maxsize=4096)
@precise
def exponential(*, eps: Fraction) -> Curve:
    """Return the curve of the exponential mechanism.

    Args:
        eps: The parameter: a candidate of score q has a probability proportional to
            exp(eps * q / (2 * sensitivity of the score)); >= 0.

    Returns:
        Every measure; delta is 0. The Renyi curve is the largest that any mechanism
        of bounded range `eps` has; rho is the lesser of eps**2/8 and that of any
        pure mechanism.

    Raises:
        InputError: If eps is negative.

    Neighboring relation:
        That of the score's sensitivity.

    Source:
        McSherry & Talwar 2007 for eps. The mechanism has bounded range: Durfee &
        Rogers 2019 (arXiv:1905.04273); Dong, Durfee & Rogers 2020
        (arXiv:1909.13830). rho: Cesar & Rogers 2021 (arXiv:2004.07223). The Renyi
        curve is derived beside the code.

    Examples:
        >>> exponential(eps=Fraction(1)).loss().coordinates[:2]
        (1000000000000, 125000000000)
    """
    require_at_least_zero("eps", eps)
    if eps == 0:
        return NOTHING
    if eps > EPS_LARGE:
        return pure_curve(eps)
    e = to_decimal(eps)
    square = eps * eps / 8
    renyi = (
        (lambda order: order * square)
        if eps < _EPS_SMALL
        else (lambda order: _bounded_range_rdp(e, order))
    )
    return Curve(eps, least(square, pure_rho(e)), pure_mu2(e), renyi)


def _bounded_range_rdp(e: Decimal, order: Fraction) -> Decimal:
    # All ratios P/Q lie in [h/E, h] for some h, where E = exp(eps), and average to
    # 1 under Q. x^a is convex, so E_Q[(P/Q)^a] is largest if only both ends occur:
    #     h^(a-1) (A - B h) / C,  A = 1 - E^-a,  B = 1/E - E^-a,  C = 1 - 1/E.
    # Over all h, that is largest at h = (a-1) A / (a B), where A - B h = A/a.
    # Both ends occur in an actual pair, so the curve is tight for the class.
    a = to_decimal(order)
    near = 1 - (-a * e).exp()
    shrink = 1 - (-(a - 1) * e).exp()
    ends = 1 - (-e).exp()
    ln_h = e + ((a - 1) * near / (a * shrink)).ln()
    return ln_h + (near / (a * ends)).ln() / (a - 1)


def describe_exponential(
    *,
    attributes: Sequence[str],
    sensitivity: Mapping[str, object] | None = None,
    eps: Number | None = None,
    **more: object,
) -> dict[str, object]:
    """Describe the exponential mechanism.

    Args:
        attributes: Attributes of the data it reads.
        sensitivity: By unit, `linf(…)`: the largest change of any candidate's score
            between neighbors. The candidates do not depend on the data.
        eps: A candidate of score q is as likely as exp(eps * q / 2) says.
        more: `name`, `cost`, `where`, `periods`, `groups`, labels and the other
            keys of the release format.

    Examples:
        >>> describe_exponential(attributes=["age"], eps=1)["mechanism"]
        'exponential'
    """
    return description(
        "exponential", attributes, more, sensitivity=sensitivity, eps=eps
    )


#: The parameters of a choice by scores.
BY_SCORE = (
    Parameter("eps", "the parameter, for scores of sensitivity 1"),
    change("L-infinity", "the scores"),
)

#: Common mistakes for its parameter.
SLIPS = dict.fromkeys(
    ("epsilon", "scale"), "its parameter is `eps`; the loss is `eps` times the linf"
)

KINDS = (
    Kind(
        "exponential",
        BY_SCORE,
        lambda v: exponential(eps=v["eps"] * v["sensitivity"]),
        norm="linf",
        measure="eps",
        slips=SLIPS,
    ),
)
