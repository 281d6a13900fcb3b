"""Budget fits: the smallest budget for a total, and the largest loss for a budget."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import isqrt

from msgspec.structs import replace

from modicum.accounting import (
    INFINITE,
    ApproxBudget,
    Budget,
    Filter,
    GdpBudget,
    Total,
    Unlimited,
    filter_for,
)
from modicum.accounting.budgets import RenyiBudget, parameter, with_parameter
from modicum.accounting.filters.budget import figure
from modicum.accounting.grid import DELTA, order_index
from modicum.accounting.mechanisms import gaussian
from modicum.core.errors import InputError
from modicum.core.rationals import DELTA_UNIT, LOSS_UNIT, ceil_units, floor_units


def smallest_budget(budget: Budget, filter_name: str, total: Total) -> Budget | None:
    """Return the smallest budget of a measure that a total fits in."""
    if isinstance(budget, Unlimited):
        return budget
    found: Budget | None = budget
    if total.units(DELTA):
        if not isinstance(budget, ApproxBudget):
            return None
        found = _with_room_for_deltas(budget, filter_name, total.units(DELTA))
    if found is None:
        return None
    if isinstance(found, RenyiBudget):
        return _raised(found, total)
    return _with_least_parameter(found, filter_name, total)


def readable(budget: Budget, name: str, total: Total) -> Budget:
    """Return a budget with at most four digits in its numbers, and no smaller one."""
    value = parameter(budget)
    if value is None:
        return budget
    rounded = with_parameter(budget, _four_digits(value))
    if isinstance(rounded, ApproxBudget):
        rounded = replace(rounded, delta=_four_digits(rounded.delta))
    try:
        fits = filter_for(rounded, name).admits(total)
    except InputError:
        return budget
    return rounded if fits else budget


def _four_digits(value: Fraction) -> Fraction:
    """Return the least number of four digits that is not below a positive one."""
    power = Fraction(1)
    while value / power >= 10_000:
        power *= 10
    while value / power < 1_000:
        power /= 10
    return ceil_units(value / power, 1) * power


def largest_rho(own_filter: Filter, total: Total) -> int | None:
    """Return how much rho Gaussian noise may still cost under a filter."""
    if not own_filter.enforced:
        return None

    def too_much(units: int) -> bool:
        loss = gaussian(rho=Fraction(units, LOSS_UNIT)).loss()
        return not own_filter.admits(total.plus(loss))

    # Whatever is composed, a Gaussian mechanism costs at least its rho.
    most = max((cap for _, cap in own_filter.caps), default=0) + 1
    found = least(too_much, start=1, most=max(most, 1))
    return 0 if found is None else found - 1


def _with_least_parameter(
    budget: Budget, filter_name: str, total: Total
) -> Budget | None:
    start = figure(budget, filter_name, total)
    if start >= INFINITE:
        return None
    if isinstance(budget, GdpBudget):
        start = isqrt(start * LOSS_UNIT)
    found = least(
        lambda units: _admits(
            with_parameter(budget, Fraction(units, LOSS_UNIT)), filter_name, total
        ),
        start=start,
        most=INFINITE - 1,
    )
    return None if found is None else with_parameter(budget, Fraction(found, LOSS_UNIT))


def _with_room_for_deltas(
    budget: ApproxBudget, filter_name: str, deltas: int
) -> ApproxBudget | None:
    def enough(units: int) -> bool:
        wider = replace(budget, delta=Fraction(units, DELTA_UNIT))
        return _delta_cap(wider, filter_name) >= deltas

    own = floor_units(budget.delta, DELTA_UNIT)
    if enough(own):
        return budget
    found = least(enough, start=own, most=DELTA_UNIT - 1)
    if found is None:
        return None
    return replace(budget, delta=Fraction(found, DELTA_UNIT))


def _raised(budget: RenyiBudget, total: Total) -> RenyiBudget | None:
    limits = []
    for order, most in budget.limits:
        units = total.units(order_index(order))
        if units >= INFINITE:
            return None
        limits.append((order, max(most, Fraction(units, LOSS_UNIT))))
    return RenyiBudget(tuple(limits))


def _admits(budget: Budget, filter_name: str, total: Total) -> bool:
    try:
        return filter_for(budget, filter_name).admits(total)
    except InputError:  # The filter is not proven for it, or has no live order.
        return False


def _delta_cap(budget: Budget, filter_name: str) -> int:
    try:
        return filter_for(budget, filter_name).delta_cap
    except InputError:
        return -1


def least(holds: Callable[[int], bool], *, start: int, most: int) -> int | None:
    """Return the least number from 1 to `most` that satisfies a monotone condition.

    Examples:
        >>> least(lambda number: number * number >= 50, start=3, most=100)
        8
    """
    step = 1
    if holds(max(start, 1)):
        high = max(start, 1)
        while high - step >= 1 and holds(high - step):
            high, step = high - step, 2 * step
        low = max(high - step, 0)
    else:
        low = max(start, 1)
        while not holds(min(low + step, most)):
            if low + step >= most:
                return None
            low, step = low + step, 2 * step
        high = min(low + step, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
