"""Guarantees without a mechanism: the implications of a declared number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import assert_never

from modicum.accounting.amounts import INFINITY, least
from modicum.accounting.argument_ranges import (
    require_at_least_zero,
    require_order,
    require_some,
)
from modicum.accounting.budgets import (
    ApproxBudget,
    Budget,
    GdpBudget,
    PureBudget,
    RenyiBudget,
    Unlimited,
    ZcdpBudget,
)
from modicum.accounting.curves import (
    UNKNOWN,
    Curve,
    concentrated,
    interpolated,
    pure_curve,
)
from modicum.accounting.decimals import precise
from modicum.accounting.mechanisms.kind import (
    OF_GUARANTEE,
    Kind,
    Parameter,
    description,
)
from modicum.core.errors import Code, InputError, Problem


@lru_cache(maxsize=4096)
def declared_pure(*, eps: Fraction, delta: Fraction = Fraction(0)) -> Curve:
    """Return the curve of any mechanism known to be (eps, delta)-DP.

    Args:
        eps: >= 0.
        delta: At least 0 and below 1; kept as a separate coordinate.

    Returns:
        The curve of binary randomized response, which every eps-DP mechanism is a
        post-processing of; with delta > 0, that holds except for an event of
        probability delta, which is why delta adds up separately.

    Neighboring relation:
        That of the guarantee.

    Source:
        Kairouz, Oh & Viswanath 2015 (arXiv:1311.0776) and Murtagh & Vadhan 2016
        (arXiv:1507.03113); Bun & Steinke 2016, Prop. 3.3 (arXiv:1605.02065).

    Examples:
        >>> declared_pure(eps=Fraction(1)).loss().coordinates[:2]
        (1000000000000, 462117157261)
    """
    return pure_curve(eps, delta)


@lru_cache(maxsize=4096)
def declared_zcdp(*, rho: Fraction) -> Curve:
    """Return the curve of any mechanism known to be rho-zCDP.

    Args:
        rho: >= 0.

    Returns:
        rho and alpha*rho; eps and mu are infinite, since zCDP implies neither.

    Neighboring relation:
        That of the guarantee.

    Source:
        Bun & Steinke 2016, Def. 1.1 (arXiv:1605.02065).

    Examples:
        >>> declared_zcdp(rho=Fraction(1, 2)).at(Fraction(3))
        Fraction(3, 2)
    """
    return concentrated(rho, mu2=INFINITY)


@lru_cache(maxsize=4096)
def declared_gdp(*, mu: Fraction) -> Curve:
    """Return the curve of any mechanism known to be mu-GDP.

    Args:
        mu: >= 0.

    Returns:
        mu**2, rho = mu**2/2 and alpha*rho; pure eps is infinite.

    Neighboring relation:
        That of the guarantee.

    Source:
        Dong, Roth & Su 2022, Cor. B.6 (arXiv:1905.02383).

    Examples:
        >>> declared_gdp(mu=Fraction(1)).rho
        Fraction(1, 2)
    """
    return concentrated(mu * mu / 2, mu2=mu * mu)


@precise
def declared_renyi(
    points: Mapping[Fraction, Fraction], *, eps: Fraction | None = None
) -> Curve:
    """Return the curve of any mechanism with known Renyi divergences.

    Args:
        points: Order, above 1, to an upper bound of the divergence, >= 0; at least
            one.
        eps: A pure epsilon, if one is proven, >= 0.

    Returns:
        Each order's divergence, and between two orders what convexity proves.
        Without eps: infinite above the last order, and rho and mu infinite, since
        divergences at some orders imply neither.

    Raises:
        InputError: If there are no points, or one is out of range.

    Neighboring relation:
        The one the divergences hold under.

    Source:
        van Erven & Harremoes 2014, Thm 3 and Cor. 2 (arXiv:1206.2459).

    Examples:
        >>> declared_renyi({Fraction(2): Fraction(1, 2)}).at(Fraction(3, 2))
        Fraction(1, 2)
    """
    require_some("divergences", points)
    for order, divergence in points.items():
        require_order(order)
        require_at_least_zero("a divergence", divergence)
    require_at_least_zero("eps", eps or 0)
    # A divergence bounds those at all lower orders, too: the curve does not fall.
    lowest = {o: min(points[b] for b in points if b >= o) for o in points}
    pure = None if eps is None else pure_curve(eps)
    known = interpolated(lowest, eps=INFINITY if eps is None else eps)
    if pure is None:
        return known
    return Curve(
        pure.eps, pure.rho, pure.mu2, lambda a: least(known.renyi(a), pure.renyi(a))
    )


def curve_of_guarantee(budget: Budget) -> Curve:
    """Return the curve of any mechanism with a guarantee.

    Args:
        budget: The guarantee.

    Returns:
        The curve by the function above that is for its measure.

    Raises:
        InputError: If it is unlimited.

    Neighboring relation:
        That of the guarantee.

    Source:
        As for the function of its measure.

    Examples:
        >>> curve = curve_of_guarantee(GdpBudget(Fraction(2)))
        >>> curve.mu2, curve.rho
        (Fraction(4, 1), Fraction(2, 1))
        >>> curve_of_guarantee(Unlimited())
        Traceback (most recent call last):
            ...
        modicum.core.errors.InputError: a cost must be a number
    """
    match budget:
        case PureBudget(eps=eps):
            return declared_pure(eps=eps)
        case ApproxBudget(eps=eps, delta=delta):
            return declared_pure(eps=eps, delta=delta)
        case ZcdpBudget(rho=rho):
            return declared_zcdp(rho=rho)
        case GdpBudget(mu=mu):
            return declared_gdp(mu=mu)
        case RenyiBudget(limits=limits):
            return declared_renyi(dict(limits))
        case Unlimited():
            raise InputError(Problem(Code.NO_MEASURE, "a cost must be a number"))
        case _:
            assert_never(budget)


def describe_declared(
    *, attributes: Sequence[str], cost: Mapping[str, object], **more: object
) -> dict[str, object]:
    """Describe any mechanism by the guarantee it is known to have.

    Args:
        attributes: Attributes of the data it reads.
        cost: By unit, `pure_dp(…)`, `approx_dp(…)`, `zcdp(…)` or `gdp(…)`.
        more: `name`, `where`, `periods`, `groups`, labels and the other keys of the
            release format.

    Examples:
        >>> describe_declared(attributes=["age"], cost={"user": {"eps": 1}})["cost"]
        {'user': {'eps': 1}}
    """
    return description("declared", attributes, more, cost=cost)


KINDS = (
    Kind("declared", (), lambda _: UNKNOWN, relation=OF_GUARANTEE),
    Kind(
        "pure",
        (Parameter("eps", "a proven pure epsilon"),),
        lambda v: declared_pure(eps=v["eps"]),
        relation=OF_GUARANTEE,
    ),
    Kind(
        "zcdp",
        (Parameter("rho", "a proven rho"),),
        lambda v: declared_zcdp(rho=v["rho"]),
        relation=OF_GUARANTEE,
    ),
    Kind(
        "gdp",
        (Parameter("mu", "a proven mu"),),
        lambda v: declared_gdp(mu=v["mu"]),
        relation=OF_GUARANTEE,
    ),
)
