"""Which coordinates of a filter can ever decide."""

from __future__ import annotations

import numpy as np

from modicum.planner.allocation.problem import Integers


def deciding(costs: Integers, caps: Integers) -> Integers:
    """Return the coordinates without which a filter admits just the same.

    A coordinate that admits nothing is dropped, and one at which every cost takes at
    least as large a share of the cap as at another. That is lossless as long as every
    balance is unlocked by the same share in every coordinate, and is charged nothing
    but these costs.

    Args:
        costs: (kinds, a) every cost that was or may be charged, each >= 0.
        caps: (a,) the cap of each coordinate; negative if it admits nothing.

    Returns:
        The kept coordinates, ascending; at least one if there is any.

    Source:
        The implementation of Küchler et al. 2024 (S&P) drops orders like this.

    Examples:
        >>> deciding(np.array([[2, 3, 9], [4, 5, 6]]), np.array([10, 10, 30])).tolist()
        [0, 2]
    """
    exact_costs = [[int(cost) for cost in row] for row in costs]
    exact_caps = [int(cap) for cap in caps]
    kept = [a for a, cap in enumerate(exact_caps) if cap > 0]
    for a in list(kept):
        others = [b for b in kept if b != a]
        if any(
            all(row[a] * exact_caps[b] >= row[b] * exact_caps[a] for row in exact_costs)
            for b in others
        ):
            kept.remove(a)
    return np.array(kept or list(range(min(1, len(caps)))), np.int64)
