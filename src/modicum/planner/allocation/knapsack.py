"""The best filling of one knapsack: plain loops, which numba can compile."""

from __future__ import annotations

from modicum.planner.allocation.problem import Booleans, Integers

#: Maximum number of item visits in a search for the best filling of one knapsack.
EFFORT = 2_000
#: Bounds are enlarged by this, for float errors.
ROUNDED = 1 + 1e-12


def fill_until_full(
    cost: Integers, weight: Integers, count: int, room: int
) -> tuple[int, float]:
    """Return a lower and an upper bound of the best filling of a knapsack, fast.

    Items that do not fit alone are left out. The bounds are equal if all the rest fits.

    Args:
        cost: Of the items, those of most weight per cost first.
        weight: Of the items.
        count: The number of items.
        room: The capacity.
    """
    rest, value = room, 0
    for item in range(count):
        if cost[item] <= rest:
            rest -= cost[item]
            value += weight[item]
        elif cost[item] <= room:
            upper = (value + rest * (weight[item] / cost[item])) * ROUNDED
            return max(value, weight[item]), upper
    return value, float(value)


def fill_greedily(cost: Integers, weight: Integers, count: int, room: int) -> int:
    """Return the value of a knapsack filled in order with what still fits.

    Args:
        cost: Of the items, those of most weight per cost first.
        weight: Of the items.
        count: The number of items.
        room: The capacity.
    """
    value = 0
    for item in range(count):
        if cost[item] <= room:
            room -= cost[item]
            value += weight[item]
    return value


def fill_best(
    cost: Integers,
    weight: Integers,
    count: int,
    room: int,
    least: int,
    effort: int,
    taken: Booleans,
) -> int:
    """Return the best value of a knapsack, or the best found with an effort.

    It descends the tree of choices, the item of highest weight per cost first, and
    backtracks where the rest cannot beat the best.

    Args:
        cost: Of the items, each of which fits alone; most weight per cost first.
        weight: Of the items.
        count: The number of items.
        room: The capacity.
        least: A value that is known to be reached.
        effort: How often it may look at an item.
        taken: Work space for the choices.
    """
    best, value, item = least, 0, 0
    while effort > 0:
        # The maximum that the items from here on can add.
        bound, rest, at = float(value), room, item
        while at < count and cost[at] <= rest:
            rest -= cost[at]
            bound += weight[at]
            at += 1
        effort -= at - item + 1
        if at < count:
            bound += rest * (weight[at] / cost[at])
        if bound * ROUNDED >= best + 1:
            effort -= count - item
            while item < count:
                taken[item] = cost[item] <= room
                if taken[item]:
                    room -= cost[item]
                    value += weight[item]
                item += 1
            best = max(best, value)
        # Back to the last chosen item, and on without it.
        item -= 1
        while item >= 0 and not taken[item]:
            item -= 1
        if item < 0:
            return best
        taken[item] = False
        room += cost[item]
        value -= weight[item]
        item += 1
    return best
