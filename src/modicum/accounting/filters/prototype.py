"""The filter of the published prototypes, and when it is proven.

The prototypes give each Renyi order the cap that Mironov's conversion leaves of eps at
the *whole* delta, and admit a release while any order is within its cap. That is not
proven as it is: choosing an order after the fact must be paid for. But Mironov's
conversion is not tight, and its slack can pay:

    eps - ln(1/delta)/(alpha-1)  =  eps - offset(alpha, delta * s(alpha)),
    s(alpha) = (alpha-1)^(alpha-1) / alpha^alpha,

where `offset` is the tighter `conversions.renyi_offset`. So the published caps are
those of a filter that gives the order alpha the share s(alpha) of delta, and it is
proven exactly like any other while these shares sum to at most 1 over the orders
that can admit anything. That depends on the budget: more orders come alive as eps
grows, and beyond some eps (about 21.5 at delta = 1e-7) the sum passes 1.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from msgspec import Struct

from modicum.accounting.decimals import (
    GUARD,
    limit_units,
    loss_units,
    precise,
    to_decimal,
)
from modicum.accounting.grid import INFINITE, order_index
from modicum.accounting.losses import Total
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import LOSS_UNIT, brief

#: The orders of the published prototypes.
PUBLISHED_ORDERS: tuple[Fraction, ...] = (
    *(Fraction(n, 4) for n in (6, 7, 8, 10)),
    *(Fraction(n) for n in (3, 4, 5, 6, 8, 16, 32, 64, 10**6, 10**10)),
)


class MironovFilter(Struct, frozen=True):
    """Any of some Renyi orders, each at the whole delta by Mironov's conversion.

    Attributes:
        orders: The orders it watches; each is on the ledger's grid.
    """

    orders: tuple[Fraction, ...] = PUBLISHED_ORDERS

    def caps(self, eps: Fraction, delta: Fraction) -> list[tuple[int, int]]:
        """Return coordinates and their caps in ledger units, rounded down.

        Args:
            eps: > 0.
            delta: Strictly between 0 and 1.

        Raises:
            InputError: If the filter is not proven for this budget, or if no order
                can admit anything.
        """
        live = live_orders(self.orders, eps, delta)
        if not live:
            raise _refused(
                eps,
                delta,
                "leaves no Renyi order a budget",
                help="raise eps or delta, or choose another filter",
            )
        if not is_proven(live):
            raise _refused(
                eps,
                delta,
                f"is not proven: its {len(live)} live orders would need"
                f" {wasted_share(live):.2f} times delta",
                help="lower eps or delta, or choose the filter combined-v2",
            )
        return [(order_index(order), mironov_cap(order, eps, delta)) for order in live]

    def figure(self, total: Total, delta: Fraction) -> int:
        """Return the least eps that admits a total, were every order proven."""
        return min(
            mironov_epsilon(order, total.units(order_index(order)), delta)
            for order in self.orders
        )

    def delta_cap(self, delta: Fraction) -> int:
        """Return 0: every bit of delta may be needed for the orders."""
        return 0


def _refused(
    eps: Fraction,
    delta: Fraction,
    reason: str,
    *,
    help: str,  # noqa: A002 - as users see it
) -> InputError:
    budget = f"{{eps: {brief(eps)}, delta: {brief(delta)}}}"
    return InputError(
        Problem(
            Code.OUT_OF_RANGE,
            f"the filter as-published {reason}, for the budget {budget}",
            notes=(
                "Mironov's conversion wastes delta; that pays for the choice among"
                " orders only while the sum of (a-1)^(a-1)/a^a over the orders that"
                " can admit anything is at most 1",
            ),
            help=help,
        )
    )


@lru_cache(maxsize=4096)
def live_orders(
    orders: tuple[Fraction, ...], eps: Fraction, delta: Fraction
) -> tuple[Fraction, ...]:
    """Return the orders at which Mironov's conversion leaves a budget at all.

    Examples:
        >>> orders = Fraction(8), Fraction(16), Fraction(32)
        >>> live_orders(orders, Fraction(1), Fraction(1, 10**6))
        (Fraction(16, 1), Fraction(32, 1))
    """
    return tuple(order for order in orders if mironov_cap(order, eps, delta) >= 0)


@lru_cache(maxsize=4096)
@precise
def mironov_cap(order: Fraction, eps: Fraction, delta: Fraction) -> int:
    """Return the divergence that implies (`eps`, `delta`)-DP by Mironov's conversion.

    Args:
        order: The order alpha, > 1.
        eps: > 0.
        delta: Strictly between 0 and 1.

    Returns:
        eps - ln(1/delta)/(alpha-1) in units of 1e-12, rounded down; negative if the
        order can admit nothing.

    Neighboring relation:
        That of the divergence.

    Source:
        Mironov 2017, Prop. 3 (arXiv:1702.07476).

    Examples:
        >>> mironov_cap(Fraction(8), Fraction(3), Fraction(1, 10**7))
        697414907005
    """
    return limit_units(to_decimal(eps) + _ln_over(order, delta))


@lru_cache(maxsize=65536)
@precise
def mironov_epsilon(order: Fraction, units: int, delta: Fraction) -> int:
    """Return epsilon at `delta` of a divergence, by Mironov's conversion, rounded up.

    Args:
        order: The order alpha, > 1.
        units: The divergence in units of 1e-12.
        delta: Strictly between 0 and 1.

    Returns:
        The divergence plus ln(1/delta)/(alpha-1), in units of 1e-12; undoes
        `mironov_cap`. `INFINITE` if the divergence is.

    Neighboring relation:
        That of the divergence.

    Source:
        Mironov 2017, Prop. 3 (arXiv:1702.07476).

    Examples:
        >>> mironov_epsilon(Fraction(8), 500_000_000_000, Fraction(1, 10**5))
        2144703637853
    """
    if units >= INFINITE:
        return INFINITE
    return loss_units(Decimal(units) / LOSS_UNIT - _ln_over(order, delta))


def _ln_over(order: Fraction, delta: Fraction) -> Decimal:
    return to_decimal(delta).ln() / to_decimal(order - 1)


@precise
def wasted_share(orders: tuple[Fraction, ...]) -> Decimal:
    """Return the share of delta that Mironov's conversion wastes at some orders.

    Args:
        orders: Each > 1.

    Returns:
        The sum of (alpha-1)^(alpha-1) / alpha^alpha, rounded up.

    Source:
        Mironov 2017, Prop. 3 (arXiv:1702.07476) set equal to Canonne, Kamath &
        Steinke 2020, Prop. 12 (arXiv:2004.00010), solved for delta.

    Examples:
        >>> f"{wasted_share((Fraction(2), Fraction(3))):.6f}"
        '0.398148'
    """

    def share(order: Fraction) -> Decimal:
        a, less_one = to_decimal(order), to_decimal(order - 1)
        return (less_one * less_one.ln() - a * a.ln()).exp()

    return sum(map(share, orders), Decimal(0)) + GUARD


def is_proven(orders: tuple[Fraction, ...]) -> bool:
    """Return whether the choice among these orders after the fact is paid for.

    Examples:
        >>> low = Fraction(5, 4), Fraction(3, 2), Fraction(7, 4)
        >>> is_proven(low[:2]), is_proven(low)
        (True, False)
    """
    return wasted_share(orders) <= 1
