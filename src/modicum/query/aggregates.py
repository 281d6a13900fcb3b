"""Which exact statistics an aggregate is made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Final

from msgspec.structs import replace

from modicum.query.expressions.analysis import facts_of
from modicum.query.expressions.facts import Facts
from modicum.query.model import Aggregate, ColumnRef, Function
from modicum.query.statistics import Exact, KeyValue, Statistic
from modicum.query.tables import Column, Tables

#: Names of mechanisms are hardly longer; a few characters are left.
NAME_MAX: Final = 120
#: The statistics needed besides the number of rows.
_SUMMED: dict[Function, tuple[str, ...]] = {
    "avg": ("rows", "total"),
    "variance": ("rows", "total", "squares"),
    "stddev": ("rows", "total", "squares"),
}


def column_of(reference: ColumnRef, tables: Tables) -> Column:
    """Return the declaration of a column."""
    return tables.by_name[reference.table].columns[reference.column]


def center_of(facts: Facts) -> int:
    """Return the center of the limits of numbers: sums are taken around it."""
    return (facts.low + facts.high) // 2


def statistics_of(
    aggregates: Sequence[Aggregate], tables: Tables, bins: int
) -> dict[Statistic, tuple[str, ...]]:
    """Return the statistics of some aggregates, and which of these need each.

    Aggregates of one column share common statistics, which are released, and charged,
    once.
    """
    named: dict[Statistic, Statistic] = {}
    needed: dict[Statistic, tuple[str, ...]] = {}
    taken = {aggregate.name for aggregate in aggregates}
    for aggregate in aggregates:
        for one in _statistics(aggregate, tables, bins):
            nameless = replace(one, name="")
            if nameless not in named:
                if one.name != aggregate.name:
                    one = replace(one, name=free_name(one.name, taken))  # noqa: PLW2901
                    taken.add(one.name)
                named[nameless] = one
            statistic = named[nameless]
            needed[statistic] = (*needed.get(statistic, ()), aggregate.name)
    return needed


def free_name(wanted: str, taken: Collection[str]) -> str:
    """Return a name that a mechanism may have, and that no other one has."""
    if len(wanted) > NAME_MAX:
        wanted = wanted[-NAME_MAX:].lstrip(".+-")
    while wanted in taken:
        wanted += "+"
    return wanted


def _statistics(aggregate: Aggregate, tables: Tables, bins: int) -> list[Statistic]:
    value, name = aggregate.value, aggregate.name
    if aggregate.function == "count" or value is None:
        return [Statistic(name, "rows", value)]
    if aggregate.function == "count-distinct":
        return [Statistic(name, "distinct", value)]
    facts = facts_of(value, tables)
    low, high = facts.low, facts.high
    if aggregate.function == "sum":
        return [Statistic(name, "total", value, low, high)]
    if aggregate.function == "quantile":
        width = -(-(high - low + 1) // bins)
        return [Statistic(name, "histogram", value, low, high, 0, width)]
    center = center_of(facts)
    found = {
        "rows": Statistic(f"{name}.rows", "rows", value),
        "total": Statistic(f"{name}.total", "total", value, low, high, center),
        "squares": Statistic(f"{name}.squares", "squares", value, low, high, center),
    }
    return [found[kind] for kind in _SUMMED[aggregate.function]]


def added_up(found: Exact, keys: Sequence[int], width: int) -> Exact:
    """Return additive numbers by some of the keys, from those by all keys.

    Args:
        found: The numbers by all keys, and maybe by more.
        keys: The positions of the keys.
        width: The number of all keys.
    """
    sums: defaultdict[tuple[KeyValue, ...], int] = defaultdict(int)
    for group, number in found.items():
        sums[(*(group[one] for one in keys), *group[width:])] += number
    return dict(sums)


def nodes_of(statistic: Statistic, bins: Exact) -> Exact:
    """Return the number of values below each node of a tree, from those in its bins.

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
