"""Which of two filters is tighter, for every possible history.

A filter is compared by what it admits: it is no looser than another one if the other
admits every total that it admits. Coordinates are assumed to be independent. A proof of
pure eps also proves a rho; but a stored loss may state less of eps than of rho, where
both are upper bounds, so no total is ruled out here.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from modicum.accounting.budgets import ApproxBudget, Budget
from modicum.accounting.filters.budget import Filter, filter_for, limit
from modicum.accounting.grid import COORDINATES, EPS, INFINITE

#: A coordinate that no loss has: the tightest eps of one release at some delta.
ALONE = COORDINATES

#: The filter that admits nothing, not even a release that costs nothing.
NOTHING = Filter((), -1)
#: The filter that admits everything.
ANYTHING = Filter((), 0, enforced=False)


def no_looser(first: Filter, second: Filter) -> bool:
    """Return whether `second` admits every total that `first` admits.

    Examples:
        >>> from fractions import Fraction
        >>> from modicum.accounting import ApproxBudget, PureBudget
        >>> pure = filter_for(PureBudget(Fraction(1)), "combined-v2")
        >>> wide = ApproxBudget(Fraction(2), Fraction(1, 10**6))
        >>> loose = filter_for(wide, "combined-v2")
        >>> no_looser(pure, loose), no_looser(loose, pure)
        (True, False)
    """
    tight, loose = reduced(first), reduced(second)
    if tight == NOTHING or not loose.enforced:
        return True
    if not tight.enforced or tight.delta_cap > loose.delta_cap:
        return False
    allowed = dict(loose.caps)
    within = [
        index for index, cap in tight.caps if index in allowed and cap <= allowed[index]
    ]
    if tight.every:
        # All caps hold at once, and a coordinate without a cap may be infinite.
        return len(within) == len(allowed) if loose.every else bool(within)
    # Within one cap, all other coordinates may be infinite; several caps that must
    # all hold are then not met.
    return not allowed if loose.every else len(within) == len(tight.caps)


def reduced(admits: Filter) -> Filter:
    """Return the one form of all filters that admit the same totals.

    Coordinates rise, each with one cap, which is finite and not negative; `every`
    is set only where there are at least two of them, or none.

    Examples:
        >>> reduced(Filter(((8, 5), (3, 7), (3, 9), (4, -1)), 0)).caps
        ((3, 9), (8, 5))
        >>> reduced(Filter(((8, 5),), 0, every=True)).every
        False
    """
    if not admits.enforced:
        return ANYTHING
    caps: dict[int, int] = {}
    narrower = min if admits.every else max
    for index, cap in admits.caps:
        finite = min(cap, INFINITE - 1)
        caps[index] = narrower(caps.get(index, finite), finite)
    if admits.every and min(caps.values(), default=0) < 0:
        return NOTHING
    kept = tuple(sorted((index, cap) for index, cap in caps.items() if cap >= 0))
    if admits.delta_cap < 0 or not (kept or admits.every):
        return NOTHING
    delta_cap = min(admits.delta_cap, INFINITE)
    if not kept and delta_cap == INFINITE:
        return ANYTHING
    return Filter(kept, delta_cap, every=admits.every and len(kept) != 1)


def no_looser_alone(first: Budget, second: Budget) -> bool:
    """Return whether every single release within `first` is within `second`.

    For budgets that one release is held against by itself, with its parameters
    fixed beforehand: see `modicum.accounting.filters.budget.fixed_figure`.

    Returns:
        True within one measure if each parameter, delta too, is at most the other's;
        and for pure eps within an (eps, delta) of at least that eps. Nothing else is
        assumed.

    Examples:
        >>> from fractions import Fraction
        >>> from modicum.accounting import PureBudget, ZcdpBudget
        >>> pure, rho = PureBudget(Fraction(1)), ZcdpBudget(Fraction(1))
        >>> no_looser_alone(pure, ApproxBudget(Fraction(1), Fraction(1, 10**9)))
        True
        >>> no_looser_alone(pure, rho), no_looser_alone(rho, pure)
        (False, False)
    """
    return no_looser(*filters_alone((first, second)))


def filters_alone(budgets: Iterable[Budget]) -> tuple[Filter, ...]:
    """Return filters for which `no_looser` compares budgets for one release.

    They are for comparing only. An (eps, delta) budget is met by pure eps, or by the
    tightest eps at its own delta; that is a separate coordinate, `ALONE`, and the rank
    of its delta among all of them represents the delta.

    Args:
        budgets: All budgets that are to be compared with each other.

    Examples:
        >>> from fractions import Fraction
        >>> deltas = Fraction(1, 10**9), Fraction(1, 10**6)
        >>> both = filters_alone(ApproxBudget(Fraction(1), one) for one in deltas)
        >>> [one.delta_cap for one in both], no_looser(*both)
        ([1, 2], True)
    """
    listed = list(budgets)
    deltas = sorted({one.delta for one in listed if isinstance(one, ApproxBudget)})
    places = {delta: place for place, delta in enumerate(deltas, 1)}

    def alone(budget: Budget) -> Filter:
        if not isinstance(budget, ApproxBudget):
            return replace(filter_for(budget, "basic-v1"), delta_cap=0)
        cap = limit(budget)
        return Filter(((EPS, cap), (ALONE, cap)), places[budget.delta])

    return tuple(map(alone, listed))
