"""Which of two budgets is at least as tight, by nothing but their parameters."""

from __future__ import annotations

from functools import lru_cache

from modicum.accounting import Budget, Unlimited
from modicum.accounting.budgets import measure, parameter


@lru_cache(maxsize=65536)
def no_looser(first: Budget, second: Budget) -> bool:
    """Return whether a budget is at least as tight as another of its measure.

    Args:
        first: A budget.
        second: A budget.

    Returns:
        True only if it is so under every filter; between measures always False.
    """
    if isinstance(second, Unlimited) or first == second:
        return True
    mine, other = parameter(first), parameter(second)
    if measure(first) != measure(second) or mine is None or other is None:
        return False
    no_larger: bool = getattr(first, "delta", 0) <= getattr(second, "delta", 0)
    return mine <= other and no_larger
