"""Privacy filters: how much may be spent adaptively under a budget.

An (eps, delta) budget becomes several *coordinates*, each with a cap and a fixed
share of delta. The filter holds while at least one coordinate's sum is within its
cap. Partition the transcripts by the first coordinate that holds at the end: the
run, stopped when that coordinate would overflow, satisfies that coordinate's bound
(Feldman & Zrnic 2021 for one Renyi order; Whitehouse et al. 2023 for zCDP; basic
composition for pure eps), and the shares of delta add up. Which coordinates and
shares a filter has is a constant of its name, so a looser budget never admits less.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import assert_never

from modicum.accounting.budgets import (
    ApproxBudget,
    Budget,
    GdpBudget,
    PureBudget,
    Unlimited,
    ZcdpBudget,
)
from modicum.accounting.conversions import (
    renyi_cap,
    renyi_epsilon,
    tightest_epsilon,
    zcdp_cap,
    zcdp_epsilon,
)
from modicum.accounting.grid import (
    DELTA,
    EPS,
    INFINITE,
    MU2,
    ORDERS,
    RHO,
    order_index,
)
from modicum.accounting.losses import Total
from modicum.core.exact import DELTA_UNIT, floor_units


@dataclass(frozen=True, slots=True)
class Shares:
    """How a named filter divides the delta of a budget; the shares sum to at most 1.

    Attributes:
        mechanisms: For the deltas that mechanisms bring along.
        rho: For the zCDP coordinate; 0 if the filter has none.
        orders: For each Renyi order it watches.
    """

    mechanisms: Fraction
    rho: Fraction
    orders: tuple[tuple[Fraction, Fraction], ...]


_WATCHED = tuple(Fraction(order) for order in (4, 8, 16, 32, 64, 128))

#: The filters a policy may name; the pure eps coordinate belongs to each (share 0).
FILTERS = MappingProxyType(
    {
        "combined-v1": Shares(
            mechanisms=Fraction(1, 4),
            rho=Fraction(1, 2),
            orders=tuple((order, Fraction(1, 24)) for order in _WATCHED),
        ),
        "zcdp-v1": Shares(mechanisms=Fraction(1, 4), rho=Fraction(3, 4), orders=()),
        "basic-v1": Shares(mechanisms=Fraction(1), rho=Fraction(0), orders=()),
    }
)


@dataclass(frozen=True, slots=True)
class Filter:
    """What a budget admits, in ledger units.

    Attributes:
        caps: Coordinates and their caps; one that is within its cap suffices.
            Empty if nothing is enforced.
        delta_cap: The most that the mechanisms' own deltas may sum to, in 1e-18.
        enforced: False for an unlimited budget.
    """

    caps: tuple[tuple[int, int], ...]
    delta_cap: int
    enforced: bool = True

    def admits(self, total: Total) -> bool:
        """Return whether a composed loss is within the budget."""
        if not self.enforced:
            return True
        return total.units(DELTA) <= self.delta_cap and any(
            total.units(index) <= min(cap, INFINITE - 1) for index, cap in self.caps
        )

    def nearest(self, total: Total) -> tuple[int, int] | None:
        """Return the coordinate and cap that `total` fills least, None if unlimited.

        It is within its cap exactly if any coordinate is.
        """
        if not self.caps:
            return None
        return min(self.caps, key=lambda cap: _filled(total.units(cap[0]), cap[1]))


def _filled(units: int, cap: int) -> Fraction:
    if units >= INFINITE:
        return Fraction(INFINITE)
    if cap <= 0:
        return Fraction(0) if units == 0 else Fraction(INFINITE)
    return Fraction(units, cap)


@lru_cache(maxsize=65536)
def filter_for(budget: Budget, name: str) -> Filter:
    """Return the filter of a budget for an adaptively chosen history.

    Args:
        budget: The limit.
        name: A key of `FILTERS`.

    Returns:
        Caps rounded down; coordinates that can admit nothing are left out.
    """
    shares = FILTERS[name]
    match budget:
        case Unlimited():
            return Filter((), 0, enforced=False)
        case PureBudget(eps=eps):
            return Filter(((EPS, _finite(floor_units(eps))),), 0)
        case ZcdpBudget(rho=rho):
            return Filter(((RHO, _finite(floor_units(rho))),), 0)
        case GdpBudget(mu=mu):
            return Filter(((MU2, _finite(floor_units(mu * mu))),), 0)
        case ApproxBudget(eps=eps, delta=delta):
            caps = [(EPS, floor_units(eps))]
            if shares.rho:
                caps.append((RHO, zcdp_cap(eps, shares.rho * delta)))
            caps += [
                (order_index(order), renyi_cap(order, eps, share * delta))
                for order, share in shares.orders
            ]
            kept = tuple((i, _finite(cap)) for i, cap in caps if cap >= 0)
            return Filter(kept, floor_units(shares.mechanisms * delta, DELTA_UNIT))
        case _:
            assert_never(budget)


def _finite(cap: int) -> int:
    """Return a cap that no infinite loss is within, however large the budget."""
    return min(cap, INFINITE - 1)


def figure(budget: Budget, name: str, total: Total) -> int:
    """Return what a total weighs on the filter's own scale, in ledger units.

    For an (eps, delta) budget this is the least eps for which the filter, with its
    fixed shares of delta, would admit the total; for the other measures it is the
    sum itself (of mu squared, for GDP). `INFINITE` if nothing finite is proven.
    """
    match budget:
        case Unlimited() | PureBudget():
            return total.units(EPS)
        case ZcdpBudget():
            return total.units(RHO)
        case GdpBudget():
            return total.units(MU2)
        case ApproxBudget(delta=delta):
            shares = FILTERS[name]
            figures = [total.units(EPS)]
            if shares.rho:
                figures.append(zcdp_epsilon(total.units(RHO), shares.rho * delta))
            figures += [
                renyi_epsilon(order, total.units(order_index(order)), share * delta)
                for order, share in shares.orders
            ]
            return min(figures)
        case _:
            assert_never(budget)


def limit(budget: Budget) -> int:
    """Return the budget on the scale of `figure`, rounded down."""
    match budget:
        case Unlimited():
            return INFINITE
        case PureBudget(eps=eps) | ApproxBudget(eps=eps):
            return _finite(floor_units(eps))
        case ZcdpBudget(rho=rho):
            return _finite(floor_units(rho))
        case GdpBudget(mu=mu):
            return _finite(floor_units(mu * mu))
        case _:
            assert_never(budget)


def fixed_figure(budget: Budget, total: Total) -> int:
    """Return what one release weighs when its parameters are fixed beforehand.

    A single release is a batch known before its first output, so each complete
    guarantee may use the whole delta and the best one counts; no shares are
    needed. `INFINITE` if nothing finite is proven, or if the mechanisms' own
    deltas exceed what the budget allows (0 for the measures without delta).
    """
    match budget:
        case ApproxBudget(delta=delta):
            return tightest_epsilon(total, delta).units
        case Unlimited():
            return total.units(EPS)
        case PureBudget() | ZcdpBudget() | GdpBudget():
            if total.units(DELTA):
                return INFINITE
            return figure(budget, "basic-v1", total)
        case _:
            assert_never(budget)


def _shares_are_sound() -> bool:
    return all(
        shares.mechanisms + shares.rho + sum(share for _, share in shares.orders) <= 1
        and all(order in ORDERS for order, _ in shares.orders)
        for shares in FILTERS.values()
    )


if not _shares_are_sound():  # pragma: no cover - a constant
    message = "FILTERS: the shares of delta exceed 1, or an order is off the grid"
    raise RuntimeError(message)
