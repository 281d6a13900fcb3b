"""The binary tree above the bins of a histogram: counts of halves and quarters."""

from __future__ import annotations

from collections import defaultdict

from modicum.query.statistics import Exact, KeyValue, Statistic


def nodes_of(statistic: Statistic, bins: Exact) -> Exact:
    """Return how many values lie below each node of a tree, from those in its bins.

    Level 1 has two nodes, and each level twice as many as the one before; those of the
    last level are the bins.

    Args:
        statistic: The histogram.
        bins: By group and number of the bin, how many values are in it.

    Returns:
        By group, level and number of the node, how many values lie below it.
    """
    levels = statistic.levels
    found: defaultdict[tuple[KeyValue, ...], int] = defaultdict(int)
    for key, number in bins.items():
        *group, place = key
        assert isinstance(place, int)  # The number of a bin.
        for level in range(1, levels + 1):
            found[(*group, level, place >> (levels - level))] += number
    return dict(found)
