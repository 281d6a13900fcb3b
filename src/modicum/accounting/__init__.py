"""Losses, budgets and filters: the cost of mechanisms and the limits of budgets.

Everything is pure and free of floats: rationals and 60-digit decimals in, integer
ledger units out, losses rounded up and limits rounded down.

In order of dependency: `curves` (all proven bounds), `amplification` (on secret
samples), `mechanisms` (each with its curve, and the table of them), `group_privacy`
(several instances at once), `conversions` (between measures), `filters` and odometers,
`named_mechanisms` (by name and parameters, and the noise for a target), `neighborhoods`
(many releases, under any relation).
"""

from typing import TYPE_CHECKING

from modicum.core.facade import facade

if TYPE_CHECKING:
    from modicum.accounting.budgets import (
        ApproxBudget,
        Budget,
        GdpBudget,
        PureBudget,
        RenyiBudget,
        Unlimited,
        ZcdpBudget,
    )
    from modicum.accounting.conversions.moments import Epsilon, tightest_epsilon
    from modicum.accounting.filters.budget import (
        FILTERS,
        Filter,
        filter_for,
        refuse_unproven,
    )
    from modicum.accounting.grid import COORDINATES, GRID_VERSION, INFINITE, ORDERS
    from modicum.accounting.losses import Loss, Total

__all__ = [
    "COORDINATES",
    "FILTERS",
    "GRID_VERSION",
    "INFINITE",
    "ORDERS",
    "ApproxBudget",
    "Budget",
    "Epsilon",
    "Filter",
    "GdpBudget",
    "Loss",
    "PureBudget",
    "RenyiBudget",
    "Total",
    "Unlimited",
    "ZcdpBudget",
    "filter_for",
    "refuse_unproven",
    "tightest_epsilon",
]

__getattr__ = facade(
    __name__,
    {
        "modicum.accounting.budgets": (
            "ApproxBudget Budget GdpBudget PureBudget RenyiBudget Unlimited ZcdpBudget"
        ),
        "modicum.accounting.conversions.moments": "Epsilon tightest_epsilon",
        "modicum.accounting.filters.budget": (
            "FILTERS Filter filter_for refuse_unproven"
        ),
        "modicum.accounting.grid": "COORDINATES GRID_VERSION INFINITE ORDERS",
        "modicum.accounting.losses": "Loss Total",
    },
)
