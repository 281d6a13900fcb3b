"""From noisy statistics to one aggregate of one group, with the range it lies in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TypeAlias

from modicum.query.aggregates import column_of
from modicum.query.averages import Range, average, deviation, noisy, variance
from modicum.query.compiler import Line, Lowered
from modicum.query.intervals import width
from modicum.query.model import Aggregate
from modicum.query.quantiles import Quantile, tree_of
from modicum.query.statistics import KeyValue
from modicum.query.tables import Column

Group: TypeAlias = tuple[KeyValue, ...]
#: By the name of a statistic, its noisy numbers by group; of a histogram, by group,
#: level and number of the node.
Noisy: TypeAlias = Mapping[str, Mapping[Group, int]]
Reader: TypeAlias = Callable[[Noisy, Group], Range | None]


def lines_of(aggregate: Aggregate, lowered: Lowered) -> dict[str, Line]:
    """Return the mechanisms that an aggregate is made of, by kind of statistic.

    Args:
        aggregate: The aggregate.
        lowered: The query that it is of.
    """
    return {
        line.statistic.kind: line
        for line in lowered.lines
        if aggregate.name in line.serves
    }


def reader_of(aggregate: Aggregate, lowered: Lowered, error: Fraction) -> Reader:
    """Return what reads an aggregate of any group from noisy statistics.

    Args:
        aggregate: The aggregate.
        lowered: The query that it is of.
        error: How rarely what it returns may lie outside its range.
    """
    lines = lines_of(aggregate, lowered)
    if aggregate.function == "quantile":
        return _quantile_reader(aggregate, lowered, error)
    if aggregate.function in ("avg", "variance", "stddev"):
        return _average_reader(aggregate, lowered, error)
    (line,) = lines.values()
    name, step = line.statistic.name, step_of(aggregate, lowered)
    strays = width(lowered.asked.noise, line.scale, error)
    return lambda found, group: noisy(found[name][group], strays).times(step)


def _average_reader(aggregate: Aggregate, lowered: Lowered, error: Fraction) -> Reader:
    lines = lines_of(aggregate, lowered)
    strays = {
        kind: width(lowered.asked.noise, line.scale, error / len(lines))
        for kind, line in lines.items()
    }
    column = declared(aggregate, lowered)
    total = lines["total"].statistic

    def read(found: Noisy, group: Group) -> Range | None:
        parts = {
            kind: noisy(found[line.statistic.name][group], strays[kind])
            for kind, line in lines.items()
        }
        if aggregate.function == "avg":
            low, high = total.low - total.center, total.high - total.center
            return _shifted(
                average(parts["rows"], parts["total"], low, high), total.center, column
            )
        spread = variance(
            parts["rows"],
            parts["total"],
            parts["squares"],
            total.high - total.low,
            population=aggregate.population,
        )
        if spread is None:
            return None
        if aggregate.function == "stddev":
            return deviation(spread).times(column.step).rounded()
        return spread.times(column.step**2).rounded()

    return read


def _shifted(found: Range | None, center: int, column: Column) -> Range | None:
    """Return an average around a center in the units of its column."""
    if found is None:
        return None
    whole = Range(found.value + center, found.low + center, found.high + center)
    return whole.times(column.step).rounded()


def _quantile_reader(aggregate: Aggregate, lowered: Lowered, error: Fraction) -> Reader:
    quantile = quantile_of(aggregate, lowered, error)
    (line,) = lines_of(aggregate, lowered).values()
    step = step_of(aggregate, lowered)

    def read(found: Noisy, group: Group) -> Range | None:
        tree = tree_of(line.statistic, found[line.statistic.name], group)
        inside = quantile.of(tree)
        return None if inside is None else inside.times(step)

    return read


def quantile_of(aggregate: Aggregate, lowered: Lowered, error: Fraction) -> Quantile:
    """Return what reads a quantile of any group from its tree.

    Args:
        aggregate: The aggregate.
        lowered: The query that it is of.
        error: How rarely it may lie outside its range.
    """
    (line,) = lines_of(aggregate, lowered).values()
    assert aggregate.share is not None  # It is a quantile.
    return Quantile(
        line.statistic, aggregate.share, lowered.asked.noise, line.scale, error
    )


def declared(aggregate: Aggregate, lowered: Lowered) -> Column:
    """Return what is declared about the column of an aggregate.

    Args:
        aggregate: The aggregate.
        lowered: The query that it is of.
    """
    assert aggregate.column is not None  # Only counts may be of no column.
    return column_of(aggregate.column, lowered.asked.tables)


def step_of(aggregate: Aggregate, lowered: Lowered) -> Fraction:
    """Return what one step of an aggregate's answer is worth.

    Args:
        aggregate: The aggregate.
        lowered: The query that it is of.
    """
    if aggregate.function in ("count", "count-distinct"):
        return Fraction(1)
    return declared(aggregate, lowered).step
