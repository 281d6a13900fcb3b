"""The coordinates of a stored loss. This page is a storage format: see ADR 0003.

A loss is a vector of integers. The coordinates are, in this order: pure epsilon,
zCDP rho, squared GDP mu, the Renyi divergence at each order of a fixed grid, and
delta. All but delta are in units of 1e-12; delta is in units of 1e-18.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from modicum.core.rationals import brief

#: Named in every event, so that no stored integer can be read under another grid.
GRID_VERSION = "grid-v1"

#: Renyi orders of `grid-v1`. It includes the 14 orders of the published prototypes.
ORDERS: tuple[Fraction, ...] = (
    *(Fraction(n, 4) for n in (5, 6, 7, 8, 10)),
    *(Fraction(n) for n in (3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192)),
    *(Fraction(n) for n in (256, 512, 1024, 10**6, 10**10)),
)

EPS = 0
RHO = 1
MU2 = 2
FIRST_ORDER = 3
DELTA = FIRST_ORDER + len(ORDERS)

#: The number of integers of a loss.
COORDINATES = DELTA + 1

#: A coordinate of this size is infinite: counted, never added.
INFINITE = 2**62


@cache
def order_index(order: Fraction) -> int:
    """Return the coordinate of a Renyi order of the grid.

    Raises:
        ValueError: If the order is not on the grid.

    Examples:
        >>> order_index(Fraction(8))
        12
    """
    return FIRST_ORDER + ORDERS.index(order)


def coordinate_name(index: int) -> str:
    """Return the name of a coordinate, such as ``eps``, ``rho`` or ``rdp(8)``.

    Examples:
        >>> [coordinate_name(index) for index in (RHO, 12, DELTA)]
        ['rho', 'rdp(8)', 'delta']
    """
    fixed = {EPS: "eps", RHO: "rho", MU2: "mu2", DELTA: "delta"}
    if index in fixed:
        return fixed[index]
    order = ORDERS[index - FIRST_ORDER]
    return f"rdp({brief(order)})"
