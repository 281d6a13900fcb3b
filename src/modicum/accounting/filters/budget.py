"""Privacy filters: how much may be spent adaptively under a budget.

An (eps, delta) budget becomes several *coordinates*, each with a cap and a fixed share
of delta. The filter holds while at least one coordinate's sum is within its cap.
Partition the transcripts by the first coordinate that holds at the end: the run,
stopped when that coordinate would overflow, satisfies that coordinate's bound (Feldman
& Zrnic 2021 for one Renyi order; Whitehouse et al. 2023 for zCDP; Smith & Thakurta 2022
and Koskela, Tobaben & Honkela 2023 for Gaussian DP; basic composition for pure eps),
and the shares of delta add up. The coordinates and shares of a filter are constants of
its name, so a looser budget never admits less. The filter `as-published` pays
differently: see `modicum.accounting.filters.prototype`.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from modicum.accounting.budgets import (
    ApproxBudget,
    Budget,
    GdpBudget,
    PureBudget,
    RenyiBudget,
    Unlimited,
    ZcdpBudget,
)
from modicum.accounting.conversions.moments import (
    renyi_cap,
    renyi_epsilon,
    tightest_epsilon,
    zcdp_cap,
    zcdp_epsilon,
)
from modicum.accounting.conversions.profiles import (
    gaussian_epsilon_units,
    gaussian_mu2_cap,
)
from modicum.accounting.filters.prototype import MironovFilter
from modicum.accounting.grid import DELTA, EPS, INFINITE, MU2, ORDERS, RHO, order_index
from modicum.accounting.losses import Total
from modicum.core.errors import Code, InputError, Problem, check
from modicum.core.rationals import DELTA_UNIT, floor_units, number_text


class Shares(Struct, frozen=True):
    """The division of a budget's delta in a named filter; the shares sum to at most 1.

    Attributes:
        mechanisms: For the mechanisms' own deltas.
        rho: For the zCDP coordinate; 0 if the filter has none.
        orders: For each Renyi order it watches.
        mu2: For the Gaussian coordinate; 0 if the filter has none.
    """

    mechanisms: Fraction
    rho: Fraction
    orders: tuple[tuple[Fraction, Fraction], ...]
    mu2: Fraction = Fraction(0)

    def caps(self, eps: Fraction, delta: Fraction) -> list[tuple[int, int]]:
        """Return coordinates and their caps, rounded down; negative admits nothing."""
        caps = [(EPS, floor_units(eps))]
        if self.rho:
            caps.append((RHO, zcdp_cap(eps, self.rho * delta)))
        if self.mu2:
            caps.append((MU2, gaussian_mu2_cap(eps, self.mu2 * delta)))
        return caps + [
            (order_index(order), renyi_cap(order, eps, share * delta))
            for order, share in self.orders
        ]

    def figure(self, total: Total, delta: Fraction) -> int:
        """Return the least eps for which the caps would admit a total."""
        figures = [total.units(EPS)]
        if self.rho:
            figures.append(zcdp_epsilon(total.units(RHO), self.rho * delta))
        if self.mu2:
            figures.append(gaussian_epsilon_units(total.units(MU2), self.mu2 * delta))
        figures += [
            renyi_epsilon(order, total.units(order_index(order)), share * delta)
            for order, share in self.orders
        ]
        return min(figures)

    def delta_cap(self, delta: Fraction) -> int:
        """Return the most that the mechanisms' own deltas may sum to, in 1e-18."""
        return floor_units(self.mechanisms * delta, DELTA_UNIT)

    def is_sound(self) -> bool:
        """Return whether the shares sum to at most 1, over orders of the grid."""
        each = [self.mechanisms, self.rho, self.mu2]
        each += [share for _, share in self.orders]
        known = all(order in ORDERS for order, _ in self.orders)
        return known and min(each) >= 0 and sum(each) <= 1


def _of(whole: int, parts: Mapping[int, int]) -> tuple[tuple[Fraction, Fraction], ...]:
    return tuple((Fraction(order), Fraction(n, whole)) for order, n in parts.items())


#: The filters a policy may name; the pure eps coordinate belongs to each that has
#: shares (share 0).
FILTERS: Mapping[str, Shares | MironovFilter] = MappingProxyType(
    {
        "combined-v1": Shares(
            mechanisms=Fraction(1, 4),
            rho=Fraction(1, 2),
            orders=_of(24, {4: 1, 8: 1, 16: 1, 32: 1, 64: 1, 128: 1}),
        ),
        "combined-v2": Shares(
            mechanisms=Fraction(16, 64),
            rho=Fraction(11, 64),
            mu2=Fraction(8, 64),
            # Found by bench/filter_shares.py: see ADR 0007.
            orders=_of(64, {3: 3, 5: 4, 8: 16, 16: 1, 24: 3, 64: 1, 96: 1}),
        ),
        "renyi-v1": Shares(
            mechanisms=Fraction(0),
            rho=Fraction(0),
            # For planners; found by bench/tune_planner.py: see ADR 0023.
            orders=_of(64, {3: 1, 6: 2, 12: 56, 24: 4, 96: 1}),
        ),
        "zcdp-v1": Shares(mechanisms=Fraction(1, 4), rho=Fraction(3, 4), orders=()),
        "basic-v1": Shares(mechanisms=Fraction(1), rho=Fraction(0), orders=()),
        "as-published": MironovFilter(),
    }
)


class Filter(Struct, frozen=True):
    """The limits of a budget, in ledger units.

    Attributes:
        caps: Coordinates and their caps. Empty if nothing is enforced.
        delta_cap: The most that the mechanisms' own deltas may sum to, in 1e-18.
        enforced: False for an unlimited budget.
        every: Whether every coordinate must be within its cap; else one suffices.
    """

    caps: tuple[tuple[int, int], ...]
    delta_cap: int
    enforced: bool = True
    every: bool = False

    def admits(self, total: Total) -> bool:
        """Return whether a composed loss is within the budget."""
        if not self.enforced:
            return True
        enough = all if self.every else any
        return total.units(DELTA) <= self.delta_cap and enough(
            total.units(index) <= min(cap, INFINITE - 1) for index, cap in self.caps
        )

    def unlocked(self, share: Fraction) -> Filter:
        """Return the limits while only a fraction of the budget is unlocked.

        Args:
            share: The part, from 0 to 1. Caps are rounded down.

        Examples:
            >>> Filter(((0, 7),), 5).unlocked(Fraction(1, 2))
            Filter(caps=((0, 3),), delta_cap=2, enforced=True, every=False)
        """
        check(0 <= share <= 1, "a share is from 0 to 1")
        if share == 1:
            return self
        return replace(
            self,
            caps=tuple((index, _part(cap, share)) for index, cap in self.caps),
            delta_cap=_part(self.delta_cap, share),
        )

    def fullness(self, total: Total) -> Fraction:
        """Return how full a composed loss makes the budget; above 1 if over it."""
        if total.units(DELTA) > self.delta_cap:
            return Fraction(INFINITE)
        nearest = self.nearest(total)
        if nearest is None:
            return Fraction(0)
        index, cap = nearest
        return _filled(total.units(index), cap)

    def nearest(self, total: Total) -> tuple[int, int] | None:
        """Return the coordinate and cap that decide, None if unlimited.

        That is the one which `total` fills least if one coordinate suffices, and the
        one which it fills most if every one must hold. It is within its cap exactly
        if the coordinates admit the total.
        """
        if not self.caps:
            return None
        decides = max if self.every else min
        return decides(self.caps, key=lambda cap: _filled(total.units(cap[0]), cap[1]))


def _part(cap: int, share: Fraction) -> int:
    return cap * share.numerator // share.denominator


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
        name: A key of `FILTERS`; it matters for (eps, delta) budgets only.

    Returns:
        Caps rounded down; coordinates that can admit nothing are left out.

    Raises:
        InputError: If the filter is not proven for this budget, or a Renyi budget
            lists no order, or one that the ledger does not keep.

    Examples:
        >>> filter_for(PureBudget(Fraction(1, 3)), "combined-v2").caps
        ((0, 333333333333),)
        >>> found = filter_for(ApproxBudget(Fraction(1), Fraction(1, 10**6)), "zcdp-v1")
        >>> found.caps, found.delta_cap
        (((0, 1000000000000), (1, 23747322206)), 250000000000)
    """
    named = FILTERS[name]
    match budget:
        case Unlimited():
            return Filter((), 0, enforced=False)
        case PureBudget(eps=eps):
            return Filter(((EPS, _finite(floor_units(eps))),), 0)
        case ZcdpBudget(rho=rho):
            return Filter(((RHO, _finite(floor_units(rho))),), 0)
        case GdpBudget(mu=mu):
            return Filter(((MU2, _finite(floor_units(mu * mu))),), 0)
        case RenyiBudget():
            return Filter(_renyi_caps(budget), 0, every=True)
        case ApproxBudget(eps=eps, delta=delta):
            caps = named.caps(eps, delta)
            kept = tuple((i, _finite(cap)) for i, cap in caps if cap >= 0)
            return Filter(kept, named.delta_cap(delta))
        case _:
            assert_never(budget)


def refuse_unproven(budget: Budget, name: str) -> None:
    """Refuse what `filter_for` refuses; caps that cannot fail are not computed.

    Raises:
        InputError: As `filter_for` does.

    Examples:
        >>> refuse_unproven(RenyiBudget(()), "combined-v2")
        Traceback (most recent call last):
        ...
        modicum.core.errors.InputError: a Renyi budget needs orders ... got none
    """
    if not (isinstance(budget, ApproxBudget) and isinstance(FILTERS[name], Shares)):
        filter_for(budget, name)


def _finite(cap: int) -> int:
    """Return a cap that no infinite loss is within, however large the budget."""
    return min(cap, INFINITE - 1)


def _renyi_caps(budget: RenyiBudget) -> tuple[tuple[int, int], ...]:
    unknown = [order for order, _ in budget.limits if order not in ORDERS]
    if unknown or not budget.limits:
        listed = ", ".join(map(number_text, unknown)) or "none"
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"a Renyi budget needs orders that the ledger stores, got {listed}",
                help="it keeps " + ", ".join(map(number_text, ORDERS)),
            )
        )
    return tuple(
        (order_index(order), _finite(floor_units(most)))
        for order, most in budget.limits
    )


# The status of a rule needs this for its charge, twice, and for zero.
@lru_cache(maxsize=4096)
def figure(budget: Budget, name: str, total: Total) -> int:
    """Return the size of a total on the filter's own scale, in ledger units.

    For an (eps, delta) budget this is the least eps for which the filter, with its
    fixed shares of delta, would admit the total. For a Renyi budget it is the order
    that is filled most, stretched to the scale of the largest of its limits. For the
    other measures it is the sum itself (of mu squared, for GDP). `INFINITE` if
    nothing finite is proven.

    Examples:
        >>> from modicum.accounting.mechanisms import gaussian
        >>> loss = gaussian(rho=Fraction(1, 100)).loss()
        >>> budget = ApproxBudget(Fraction(1), Fraction(1, 10**6))
        >>> weighed = figure(budget, "combined-v2", Total().plus(loss))
        >>> weighed, weighed <= limit(budget)
        (638572355793, True)
    """
    match budget:
        case Unlimited() | PureBudget():
            return total.units(EPS)
        case ZcdpBudget():
            return total.units(RHO)
        case GdpBudget():
            return total.units(MU2)
        case RenyiBudget():
            return max(
                _stretched(total.units(index), cap, limit(budget))
                for index, cap in _renyi_caps(budget)
            )
        case ApproxBudget(delta=delta):
            return FILTERS[name].figure(total, delta)
        case _:
            assert_never(budget)


def _stretched(units: int, cap: int, top: int) -> int:
    """Return units / cap * top, rounded up: more than `top` exactly if over the cap."""
    if units >= INFINITE or cap == 0:
        return INFINITE if units else 0
    return min(INFINITE, -(-units * top // cap))


def limit(budget: Budget) -> int:
    """Return the budget on the scale of `figure`, rounded down.

    Examples:
        >>> limit(GdpBudget(Fraction(1, 3)))
        111111111111
    """
    match budget:
        case Unlimited():
            return INFINITE
        case PureBudget(eps=eps) | ApproxBudget(eps=eps):
            return _finite(floor_units(eps))
        case ZcdpBudget(rho=rho):
            return _finite(floor_units(rho))
        case GdpBudget(mu=mu):
            return _finite(floor_units(mu * mu))
        case RenyiBudget():
            return max(cap for _, cap in _renyi_caps(budget))
        case _:
            assert_never(budget)


def fixed_figure(budget: Budget, total: Total) -> int:
    """Return the size of one release whose parameters are fixed beforehand.

    A single release is a batch known before its first output, so each complete
    guarantee may use the whole delta and the best one counts; no shares are
    needed. `INFINITE` if nothing finite is proven, or if the mechanisms' own
    deltas exceed what the budget allows (0 for the measures without delta).

    Examples:
        >>> from modicum.accounting.mechanisms import gaussian
        >>> total = Total().plus(gaussian(rho=Fraction(1, 100)).loss())
        >>> budget = ApproxBudget(Fraction(1), Fraction(1, 10**6))
        >>> fixed_figure(budget, total), figure(budget, "combined-v2", total)
        (621692654560, 638572355793)
        >>> fixed_figure(PureBudget(Fraction(1)), total) == INFINITE
        True
    """
    match budget:
        case ApproxBudget(delta=delta):
            return tightest_epsilon(total, delta).units
        case Unlimited():
            return total.units(EPS)
        case PureBudget() | ZcdpBudget() | GdpBudget() | RenyiBudget():
            if total.units(DELTA):
                return INFINITE
            return figure(budget, "basic-v1", total)
        case _:
            assert_never(budget)


if not all(
    named.is_sound() for named in FILTERS.values() if isinstance(named, Shares)
):  # pragma: no cover - a constant
    message = "FILTERS: the shares of delta exceed 1, or an order is off the grid"
    raise RuntimeError(message)
