"""A rule's verdict in numbers, on scales that people can compare."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from msgspec import Struct

from modicum.accounting import (
    ApproxBudget,
    Budget,
    Epsilon,
    GdpBudget,
    ZcdpBudget,
    tightest_epsilon,
)
from modicum.accounting.budgets import RenyiBudget
from modicum.accounting.filters.budget import figure, filter_for, fixed_figure, limit
from modicum.accounting.grid import DELTA, INFINITE, coordinate_name
from modicum.core.rationals import DELTA_UNIT, LOSS_UNIT
from modicum.ledger.decision.single_release import RuleLoss
from modicum.policy.rules import Stage

#: From this share of its limit on, a rule is near it.
NEAR: Final = Fraction(4, 5)
#: From this share on, next to nothing is left.
FULL: Final = Fraction(99, 100)


class Amounts(Struct, frozen=True):
    """The amounts of a rule: spent, of this release, and in total.

    Attributes:
        measure: The scale: `eps`, `rho`, `mu2` (mu squared), `delta`, or a
            coordinate such as `rdp(8)`.
        scale: How many units make 1 on it.
        before: From everything released so far.
        alone: From this release.
        together: From both. On the scale of eps, losses do not simply add.
        limit: The maximum of `together`; it is exceeded exactly if the rule denies.
    """

    measure: str
    scale: int
    before: int
    alone: int
    together: int
    limit: int


class Approximation(Struct, frozen=True):
    """The same amounts as the tightest known epsilon at a delta: information."""

    delta: Fraction
    before: Epsilon
    alone: Epsilon
    together: Epsilon


def amounts(loss: RuleLoss) -> Amounts:
    """Return a verdict on the filter's own scale, which is the budget's measure.

    If the mechanisms' own deltas cause the denial, the scale is delta. For a budget by
    Renyi orders it is the fullest order, on its own scale; and where only a part of a
    budget is unlocked, the coordinate that is nearest to holding.
    """
    together = loss.together
    own_filter = loss.own_filter
    if own_filter.enforced and together.units(DELTA) > own_filter.delta_cap:
        return Amounts(
            "delta",
            DELTA_UNIT,
            loss.before.units(DELTA),
            loss.alone.units(DELTA),
            together.units(DELTA),
            own_filter.delta_cap,
        )
    budget = loss.rule.budget
    if isinstance(budget, RenyiBudget):
        limits = filter_for(budget, loss.filter_name).unlocked(loss.share)
        decides = limits.nearest(together)
        assert decides is not None
        return _on_coordinate(loss, *decides)
    if loss.share < 1 and own_filter.caps:
        summed = sums(loss)
        assert summed is not None
        return summed
    top = limit(budget)
    if loss.rule.stage is Stage.RELEASE:
        weight = fixed_figure(budget, loss.alone)
        if loss.composed is not None:
            weight = min(weight, loss.composed)
        return Amounts(_measure(budget), LOSS_UNIT, 0, weight, weight, top)
    name = loss.filter_name
    weight = figure(budget, name, together)
    # The figure and the caps are inverse to each other up to one unit of rounding;
    # the caps have decided.
    if loss.allowed and own_filter.enforced:
        weight = min(weight, top)
    elif not loss.allowed:
        weight = max(weight, top + 1)
    return Amounts(
        _measure(budget),
        LOSS_UNIT,
        figure(budget, name, loss.before),
        figure(budget, name, loss.alone),
        weight,
        top,
    )


def sums(loss: RuleLoss) -> Amounts | None:
    """Return a verdict on the coordinate that is nearest to holding, where sums add.

    None if the rule enforces nothing or looks at one release alone.
    """
    nearest = loss.own_filter.nearest(loss.together)
    return None if nearest is None else _on_coordinate(loss, *nearest)


def _on_coordinate(loss: RuleLoss, index: int, cap: int) -> Amounts:
    return Amounts(
        coordinate_name(index),
        LOSS_UNIT,
        loss.before.units(index),
        loss.alone.units(index),
        loss.together.units(index),
        cap,
    )


def approximation(loss: RuleLoss) -> Approximation | None:
    """Return the tightest known epsilons, if the policy names a delta."""
    delta = loss.report_delta
    if delta is None:
        return None
    before, alone, together = (
        tightest_epsilon(total, delta)
        for total in (loss.before, loss.alone, loss.together)
    )
    budget = loss.rule.budget
    at_delta = isinstance(budget, ApproxBudget) and budget.delta == delta
    if at_delta and loss.composed is not None and loss.composed < alone.units:
        alone = together = Epsilon(loss.composed, "pld")
    return Approximation(delta, before, alone, together)


def filled(loss: RuleLoss) -> Fraction:
    """Return how full a rule is: 0 to 1, or 2 if it is over.

    That is the greater of its own scale and the delta of its filter, either of which
    may be what denies the next release.
    """
    if not loss.allowed:
        return Fraction(2)
    found, limits = amounts(loss), loss.own_filter
    share = Fraction(0)
    if limits.enforced and limits.delta_cap:
        share = Fraction(loss.together.units(DELTA), limits.delta_cap)
    if found.limit in (0, INFINITE):
        return share
    return max(share, Fraction(found.together, found.limit))


def _measure(budget: Budget) -> str:
    match budget:
        case ZcdpBudget():
            return "rho"
        case GdpBudget():
            return "mu2"
        case _:
            return "eps"
