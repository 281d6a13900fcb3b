"""Budgets: what a rule allows, in the measure that its key names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias, assert_never

from modicum.core.exact import number_text


@dataclass(frozen=True, slots=True)
class PureBudget:
    """At most `eps`-differential privacy."""

    eps: Fraction


@dataclass(frozen=True, slots=True)
class ApproxBudget:
    """At most (`eps`, `delta`)-differential privacy."""

    eps: Fraction
    delta: Fraction


@dataclass(frozen=True, slots=True)
class ZcdpBudget:
    """At most `rho`-zero-concentrated differential privacy."""

    rho: Fraction


@dataclass(frozen=True, slots=True)
class GdpBudget:
    """At most `mu`-Gaussian differential privacy."""

    mu: Fraction


@dataclass(frozen=True, slots=True)
class Unlimited:
    """Tracked, not enforced."""


Budget: TypeAlias = PureBudget | ApproxBudget | ZcdpBudget | GdpBudget | Unlimited


def parameter(budget: Budget) -> Fraction | None:
    """Return the number that budget maps act on: eps, rho or mu; None if unlimited."""
    match budget:
        case PureBudget(eps=value) | ApproxBudget(eps=value):
            return value
        case ZcdpBudget(rho=value):
            return value
        case GdpBudget(mu=value):
            return value
        case Unlimited():
            return None
        case _:
            assert_never(budget)


def with_parameter(budget: Budget, value: Fraction) -> Budget:
    """Return the budget with another parameter; delta stays."""
    match budget:
        case PureBudget() | ApproxBudget():
            return replace(budget, eps=value)
        case ZcdpBudget():
            return ZcdpBudget(value)
        case GdpBudget():
            return GdpBudget(value)
        case Unlimited():
            return budget
        case _:
            assert_never(budget)


def measure(budget: Budget) -> str:
    """Return the name of the budget's measure, as the format spells it."""
    match budget:
        case PureBudget():
            return "eps"
        case ApproxBudget():
            return "eps, delta"
        case ZcdpBudget():
            return "rho"
        case GdpBudget():
            return "mu"
        case Unlimited():
            return "unlimited"
        case _:
            assert_never(budget)


def budget_text(budget: Budget) -> str:
    """Return the budget as the format writes it, such as ``{eps: 1, delta: 1e-07}``."""
    match budget:
        case PureBudget(eps=eps):
            return f"{{eps: {number_text(eps)}}}"
        case ApproxBudget(eps=eps, delta=delta):
            return f"{{eps: {number_text(eps)}, delta: {float(delta):g}}}"
        case ZcdpBudget(rho=rho):
            return f"{{rho: {number_text(rho)}}}"
        case GdpBudget(mu=mu):
            return f"{{mu: {number_text(mu)}}}"
        case Unlimited():
            return "unlimited"
        case _:
            assert_never(budget)
