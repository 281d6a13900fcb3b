"""How far an answer moves without each person, from plain lists, row by row."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]
Read: TypeAlias = Callable[[Row], Any]


def _spread(values: list[Fraction], less: int) -> float:
    if len(values) <= less:
        return 0.0
    mean = sum(values) / len(values)
    squares = sum(((one - mean) ** 2 for one in values), Fraction(0))
    return float(squares / (len(values) - less))


def aggregate(name: str, values: list[Any]) -> float:
    """Return an aggregate of values, some of them None; of nothing it is 0."""
    if name == "rows":
        return len(values)
    there = [one for one in values if one is not None]
    if name == "count":
        return len(there)
    if name == "distinct":
        return len(set(there))
    numbers = [Fraction(one) for one in there]
    if not numbers:
        return 0.0
    if name == "sum":
        return float(sum(numbers))
    if name == "avg":
        return float(sum(numbers) / len(numbers))
    if name.startswith("var"):
        return _spread(numbers, int(name.endswith("samp")))
    if name.startswith("stddev"):
        return math.sqrt(_spread(numbers, int(name.endswith("samp"))))
    if name == "median":
        return float(statistics.median(numbers))
    return float({"min": min, "max": max}[name](numbers))


def answer(
    rows: Sequence[Row],
    kept: Callable[[Row], bool],
    keys: Sequence[str],
    measures: Sequence[tuple[str, Read]],
) -> dict[tuple[Any, ...], list[float]]:
    """Return the answer of a query over some rows, by group."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    if not keys:
        groups[()] = []
    for row in rows:
        if kept(row):
            groups[tuple(row[key] for key in keys)].append(row)
    return {
        key: [
            aggregate(name, [read(row) for row in members]) for name, read in measures
        ]
        for key, members in groups.items()
    }


def moves(
    whole: dict[tuple[Any, ...], list[float]],
    without: dict[tuple[Any, ...], list[float]],
) -> list[float]:
    """Return the moves of all coordinates, those that do not move among them."""
    width = max((len(one) for one in (*whole.values(), *without.values())), default=0)
    nothing = [0.0] * width
    return [
        now - then
        for key in whole
        for now, then in zip(whole[key], without.get(key, nothing), strict=True)
    ]
