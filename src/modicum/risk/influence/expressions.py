"""Pieces of the statement that measures moves: for each aggregate, what it takes.

A person's part in an aggregate is a few numbers of her own rows (`parts`). With those
of all, and what a second look at the parts of all finds, they tell how far the
aggregate moves when her rows are gone. Where rows are persons, equal rows are one
part, and `w` is how many.

The number of a measure stands behind each name: `c0` is the number of her rows that
measure 0 counts, `s0` their sum, `a0` their mean, `q0` the sum of the squared
distances from it, `m0` the greatest or least. In capitals, the same of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from modicum.risk.outputs import Aggregate, Measure

SPREADS: Final = frozenset({"var_pop", "var_samp", "stddev_pop", "stddev_samp"})
ENDS: Final = frozenset({"min", "max"})


@dataclass(frozen=True, slots=True)
class Shape:
    """What the pieces of all measures have in common.

    Attributes:
        keys: The names of the group's columns: `k0`, `k1`, …
        units: Whether persons have a column; else each row is one.
    """

    keys: tuple[str, ...]
    units: bool

    def same(self, left: str, right: str, *columns: str) -> str:
        """Return the condition that two relations agree in the group and more.

        Args:
            left: A relation.
            right: Another.
            columns: In which columns besides.
        """
        both = (*self.keys, *columns)
        return (
            " AND ".join(
                f"{left}.{one} IS NOT DISTINCT FROM {right}.{one}" for one in both
            )
            or "TRUE"
        )

    def listed(self, *columns: str, of: str = "") -> str:
        """Return the group's columns and more, with commas.

        Args:
            columns: Further columns or expressions.
            of: The relation that the group's columns are of.
        """
        keys = [f"{of}.{one}" if of else one for one in self.keys]
        return ", ".join([*keys, *columns])

    def grouped(self, *columns: str, of: str = "") -> str:
        """Return the clause that groups by the group's columns and more.

        Args:
            columns: Further columns.
            of: The relation that the group's columns are of.
        """
        names = self.listed(*columns, of=of)
        return f" GROUP BY {names}" if names else ""


def value_of(measure: Measure) -> str:
    """Return what a measure reads of a row, as SQL; empty if it reads nothing.

    Args:
        measure: The measure.
    """
    if measure.value is None:
        return ""
    text = f"({measure.value.sql('duckdb')})"
    if measure.aggregate == "count":
        return f"({text} IS NOT NULL)"
    # The least of texts is not that of the numbers that they may be.
    raw = measure.aggregate in ("distinct", "min", "max")
    return text if raw else f"CAST({text} AS DOUBLE)"


def parts(number: int, aggregate: Aggregate, *, units: bool) -> list[str]:
    """Return the parts of a person in a measure, as SQL with names.

    Args:
        number: The measure's number.
        aggregate: Its aggregate.
        units: Whether a person may have several rows; else a row is one.
    """
    v, i = f"v{number}", number
    if aggregate == "rows":
        rows = "COUNT(CASE WHEN kept THEN 1 END)"
        return [f"{rows} AS c{i}" if units else f"1 AS c{i}"]
    if aggregate == "count":
        one = f"CASE WHEN {v} THEN 1 ELSE 0 END"
        return [f"SUM({one}) AS c{i}" if units else f"{one} AS c{i}"]
    counted = f"CASE WHEN {v} IS NULL THEN 0 ELSE 1 END"
    count = f"COUNT({v}) AS c{i}" if units else f"{counted} AS c{i}"
    if aggregate == "sum":
        whole = f"SUM({v})" if units else v
        return [f"COALESCE({whole}, 0.0) AS s{i}"]
    if aggregate == "avg":
        whole = f"SUM({v})" if units else v
        return [count, f"COALESCE({whole}, 0.0) AS s{i}"]
    if aggregate in SPREADS:
        mean = f"AVG({v})" if units else v
        squares = f"VAR_POP({v}) * COUNT({v})" if units else "0.0"
        return [
            count,
            f"COALESCE({mean}, 0.0) AS a{i}",
            f"COALESCE({squares}, 0.0) AS q{i}",
        ]
    if aggregate in ENDS:
        return [f"{aggregate.upper()}({v}) AS m{i}" if units else f"{v} AS m{i}"]
    return [] if units else [f"{v} AS x{i}"]  # A median, or a number of values.


def totals(number: int, aggregate: Aggregate) -> list[str]:
    """Return the parts of all, as SQL over those of each.

    Args:
        number: The measure's number.
        aggregate: Its aggregate.
    """
    i = number
    if aggregate == "avg":
        return [f"SUM(w * c{i}) AS C{i}_", f"SUM(w * s{i}) AS S{i}_"]
    if aggregate in SPREADS:
        mean = f"SUM(w * c{i} * a{i}) / NULLIF(SUM(w * c{i}), 0)"
        return [f"SUM(w * c{i}) AS C{i}_", f"{mean} AS A{i}_"]
    if aggregate in ENDS:
        return [f"{aggregate.upper()}(m{i}) AS M{i}_"]
    return []


def second_look(number: int, aggregate: Aggregate) -> list[str]:
    """Return what the parts of all tell, once their totals are known.

    Args:
        number: The measure's number.
        aggregate: Its aggregate.
    """
    i = number
    if aggregate in SPREADS:
        return [f"SUM(w * (q{i} + c{i} * (a{i} - A{i}_) * (a{i} - A{i}_))) AS Q{i}_"]
    if aggregate in ENDS:
        inner = f"m{i} < M{i}_" if aggregate == "max" else f"m{i} > M{i}_"
        end = aggregate.upper()
        return [
            f"{end}(CASE WHEN {inner} THEN m{i} END) AS N{i}_",
            f"SUM(CASE WHEN m{i} = M{i}_ THEN w ELSE 0 END) AS H{i}_",
        ]
    return []


def move(number: int, aggregate: Aggregate, *, units: bool) -> str:
    """Return how far a measure moves: with a person's rows, less without them.

    Args:
        number: The measure's number.
        aggregate: Its aggregate.
        units: Whether persons have a column.
    """
    i = number
    if aggregate in ("rows", "count"):
        return f"CAST(c{i} AS DOUBLE)"
    if aggregate == "sum":
        return f"s{i}"
    if aggregate == "avg":
        return (
            f"CASE WHEN c{i} = 0 THEN 0.0 WHEN c{i} = C{i}_ THEN S{i}_ / C{i}_"
            f" ELSE (s{i} - c{i} * (S{i}_ / C{i}_)) / (C{i}_ - c{i}) END"
        )
    if aggregate in SPREADS:
        return _spread_move(i, aggregate)
    if aggregate in ENDS:
        return (
            f"CASE WHEN m{i} = M{i}_ AND H{i}_ = 1"
            f" THEN CAST(M{i}_ AS DOUBLE) - COALESCE(CAST(N{i}_ AS DOUBLE), 0.0)"
            " ELSE 0.0 END"
        )
    if aggregate == "median":
        return f"COALESCE(b{i}, 0.0)"
    return f"COALESCE(CAST(o{i} AS DOUBLE), 0.0)"


def left_squares(i: int) -> str:
    """Return the sum of squares of the others, around their own mean."""
    mean = f"(a{i} - A{i}_)"
    moved = f"c{i} * (C{i}_ / CAST(C{i}_ - c{i} AS DOUBLE)) * {mean} * {mean}"
    return f"(Q{i}_ - q{i} - {moved})"


def _spread_move(i: int, aggregate: Aggregate) -> str:
    less = 1 if aggregate.endswith("samp") else 0
    left = f"GREATEST(COALESCE(l{i}, {left_squares(i)}), 0.0)"
    now = f"CASE WHEN C{i}_ > {less} THEN Q{i}_ / (C{i}_ - {less}) ELSE 0.0 END"
    rows = f"(C{i}_ - c{i})"
    after = f"CASE WHEN {rows} > {less} THEN {left} / ({rows} - {less}) ELSE 0.0 END"
    if aggregate.startswith("stddev"):
        now, after = f"SQRT({now})", f"SQRT({after})"
    return f"CASE WHEN c{i} = 0 THEN 0.0 ELSE ({now}) - ({after}) END"


def all_of(
    made: Sequence[list[str]],
) -> list[str]:
    """Return the pieces of all measures, one after the other.

    Args:
        made: The pieces of each.
    """
    return [one for pieces in made for one in pieces]
