"""Budgets: the limit of a rule, in the measure of its key."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import replace

from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import brief, number_spelled


class PureBudget(Struct, frozen=True):
    """At most `eps`-differential privacy."""

    eps: Fraction


class ApproxBudget(Struct, frozen=True):
    """At most (`eps`, `delta`)-differential privacy."""

    eps: Fraction
    delta: Fraction


class ZcdpBudget(Struct, frozen=True):
    """At most `rho`-zero-concentrated differential privacy."""

    rho: Fraction


class GdpBudget(Struct, frozen=True):
    """At most `mu`-Gaussian differential privacy."""

    mu: Fraction


class RenyiBudget(Struct, frozen=True):
    """A limit on the Renyi divergence at each listed order; all must hold.

    Attributes:
        limits: Orders, ascending, each on the ledger's grid, with the maximum
            divergence of that order, > 0; at least one.
    """

    limits: tuple[tuple[Fraction, Fraction], ...]


class Unlimited(Struct, frozen=True):
    """Tracked, not enforced."""


Budget: TypeAlias = (
    PureBudget | ApproxBudget | ZcdpBudget | GdpBudget | RenyiBudget | Unlimited
)


def parameter(budget: Budget) -> Fraction | None:
    """Return the number that budget maps act on: eps, rho or mu.

    None if there is no such number: the budget is unlimited, or a Renyi budget,
    which has one for each order.

    Examples:
        >>> parameter(ApproxBudget(Fraction(2), Fraction(1, 10**6)))
        Fraction(2, 1)
        >>> parameter(RenyiBudget(((Fraction(8), Fraction(1)),))) is None
        True
    """
    match budget:
        case PureBudget(eps=value) | ApproxBudget(eps=value):
            return value
        case ZcdpBudget(rho=value):
            return value
        case GdpBudget(mu=value):
            return value
        case RenyiBudget() | Unlimited():
            return None
        case _:
            assert_never(budget)


def with_parameter(budget: Budget, value: Fraction) -> Budget:
    """Return the budget with another parameter; delta stays.

    Raises:
        InputError: If it is a Renyi budget, which has no single parameter.

    Examples:
        >>> budget = ApproxBudget(Fraction(2), Fraction(1, 10**6))
        >>> budget_text(with_parameter(budget, Fraction(1, 2)))
        '{eps: 0.5, delta: 1e-6}'
        >>> with_parameter(RenyiBudget(((Fraction(8), Fraction(1)),)), Fraction(2))
        Traceback (most recent call last):
            ...
        modicum.core.errors.InputError: the budget {rdp: {8: 1}} has no single parameter
    """
    match budget:
        case PureBudget() | ApproxBudget():
            return replace(budget, eps=value)
        case ZcdpBudget():
            return ZcdpBudget(value)
        case GdpBudget():
            return GdpBudget(value)
        case RenyiBudget():
            raise InputError(
                Problem(
                    Code.MAP_MEASURE,
                    f"the budget {budget_text(budget)} has no single parameter",
                    help="give the changed budget itself",
                )
            )
        case Unlimited():
            return budget
        case _:
            assert_never(budget)


def measure(budget: Budget) -> str:
    """Return the name of the budget's measure, as the format spells it.

    Examples:
        >>> measure(ApproxBudget(Fraction(1), Fraction(1, 10**6)))
        'eps, delta'
    """
    match budget:
        case PureBudget():
            return "eps"
        case ApproxBudget():
            return "eps, delta"
        case ZcdpBudget():
            return "rho"
        case GdpBudget():
            return "mu"
        case RenyiBudget():
            return "rdp"
        case Unlimited():
            return "unlimited"
        case _:
            assert_never(budget)


def budget_text(budget: Budget) -> str:
    """Return the budget as the format writes it, such as ``{eps: 1, delta: 1e-7}``.

    Examples:
        >>> budget_text(RenyiBudget(((Fraction(3, 2), Fraction(1, 4)),)))
        '{rdp: {1.5: 0.25}}'
    """
    match budget:
        case PureBudget(eps=eps):
            return f"{{eps: {number_spelled(eps)}}}"
        case ApproxBudget(eps=eps, delta=delta):
            return f"{{eps: {number_spelled(eps)}, delta: {_delta_text(delta)}}}"
        case ZcdpBudget(rho=rho):
            return f"{{rho: {number_spelled(rho)}}}"
        case GdpBudget(mu=mu):
            return f"{{mu: {number_spelled(mu)}}}"
        case RenyiBudget(limits=limits):
            inside = ", ".join(
                f"{number_spelled(order)}: {number_spelled(most)}"
                for order, most in limits
            )
            return f"{{rdp: {{{inside}}}}}"
        case Unlimited():
            return "unlimited"
        case _:
            assert_never(budget)


def _delta_text(delta: Fraction) -> str:
    exact = number_spelled(delta)
    return exact if len(exact) <= _DELTA_CHARACTERS_MAX else brief(delta)


#: A delta with more characters is shown to six digits.
_DELTA_CHARACTERS_MAX = 12
