"""What an aggregate needs besides parts: relations that are joined to them."""

from __future__ import annotations

from typing import Final

from modicum.risk.influence.expressions import SPREADS, Shape, left_squares
from modicum.risk.outputs import Aggregate

#: Below this share of the sum of squares, what is left of it when a person goes is
#: computed anew from the others: the difference would have lost its digits.
_LEFT: Final = "1e-6"


def found(
    number: int, aggregate: Aggregate, shape: Shape
) -> tuple[list[tuple[str, str]], str]:
    """Return what a measure needs besides parts: relations, and how the last is joined.

    Args:
        number: The measure's number.
        aggregate: Its aggregate.
        shape: What all measures have in common.

    Returns:
        Relations in their order, each a name and a query; and the join of the last one
        to the parts `p`; empty if nothing is needed.
    """
    if aggregate in SPREADS:
        return _alone(number, shape)
    if aggregate == "median":
        of = _medians_of_units if shape.units else _medians_of_rows
        return of(number, shape)
    if aggregate == "distinct":
        of = _values_of_units if shape.units else _values_of_rows
        return of(number, shape)
    return [], ""


def _joined(relation: str, who: str, value: str, shape: Shape) -> str:
    """Return the join of a relation to the parts; only its value has a new name."""
    columns = (*shape.keys, who)
    renamed = ", ".join(f"{one} AS of_{one}" for one in columns)
    same = " AND ".join(f"p.{one} IS NOT DISTINCT FROM z.of_{one}" for one in columns)
    same = same.replace("z.", f"z_{value}.")
    return (
        f" LEFT JOIN (SELECT {renamed}, {value} FROM {relation}) AS z_{value} ON {same}"
    )


def _alone(i: int, shape: Shape) -> tuple[list[tuple[str, str]], str]:
    """Sums of squares of the others, for persons that make up nearly all of it."""
    who = "u" if shape.units else f"a{i}"
    differ = f"o.{who} IS DISTINCT FROM l.{who} AND o.c{i} > 0"
    lone = (
        f"SELECT {shape.listed(f'p.{who}', of='p')} FROM parts AS p"
        f" JOIN totals AS t ON {shape.same('p', 't')}"
        f" JOIN second_look AS n ON {shape.same('p', 'n')}"
        f" WHERE w = 1 AND c{i} > 0 AND C{i}_ > c{i}"
        f" AND {left_squares(i)} < {_LEFT} * Q{i}_"
    )
    near = (
        f"SELECT {shape.listed(f'l.{who}', of='l')},"
        f" SUM(o.w * o.c{i} * o.a{i}) / SUM(o.w * o.c{i}) AS mean"
        f" FROM lone{i} AS l JOIN parts AS o ON {shape.same('l', 'o')} AND {differ}"
        f"{shape.grouped(f'l.{who}', of='l')}"
    )
    squares = f"o.q{i} + o.c{i} * (o.a{i} - l.mean) * (o.a{i} - l.mean)"
    left = (
        f"SELECT {shape.listed(f'l.{who}', of='l')}, SUM(o.w * ({squares})) AS l{i}"
        f" FROM near{i} AS l JOIN parts AS o ON {shape.same('l', 'o')} AND {differ}"
        f"{shape.grouped(f'l.{who}', of='l')}"
    )
    relations = [(f"lone{i}", lone), (f"near{i}", near), (f"left{i}", left)]
    return relations, _joined(f"left{i}", who, f"l{i}", shape) + f" AND p.c{i} > 0"


def _medians_of_rows(i: int, shape: Shape) -> tuple[list[tuple[str, str]], str]:
    """Medians without one row of each value: one of two neighbors of the middle.

    Without a row, what stood at a place after it stands one place earlier.
    """
    over = f"PARTITION BY {shape.listed()}" if shape.keys else ""
    order = f"{over} ORDER BY x{i} ROWS UNBOUNDED PRECEDING".strip()
    sizes = (
        f"SELECT {shape.listed(f'x{i}', 'SUM(w) AS w')} FROM parts"
        f" WHERE x{i} IS NOT NULL{shape.grouped(f'x{i}')}"
    )
    upto = (
        f"SELECT {shape.listed(f'x{i}')}, SUM(w) OVER ({order}) AS r,"
        f" SUM(w) OVER ({over}) AS n FROM sizes{i}"
    )
    middle = ("n // 2", "n // 2 + 1", "(n + 1) // 2", "(n + 1) // 2 + 1")
    places = ", ".join(
        f"MIN(CASE WHEN r >= {one} THEN x{i} END) AS y{number}"
        for number, one in enumerate(middle)
    )
    beside = f"SELECT {shape.listed(places)} FROM upto{i}{shape.grouped()}"
    low = "CASE WHEN n // 2 < r THEN y0 ELSE y1 END"
    high = "CASE WHEN (n + 1) // 2 < r THEN y2 ELSE y3 END"
    after = f"CASE WHEN n = 1 THEN 0.0 ELSE ({low} + {high}) / 2 END"
    moved = (
        f"SELECT {shape.listed(f'x{i}', of='a')},"
        f" (y1 + y2) / 2 - ({after}) AS b{i}"
        f" FROM upto{i} AS a JOIN beside{i} AS b ON {shape.same('a', 'b')}"
    )
    relations = [
        (f"sizes{i}", sizes),
        (f"upto{i}", upto),
        (f"beside{i}", beside),
        (f"moved{i}", moved),
    ]
    return relations, _joined(f"moved{i}", f"x{i}", f"b{i}", shape)


def _medians_of_units(i: int, shape: Shape) -> tuple[list[tuple[str, str]], str]:
    """Medians without the rows of each person.

    Without rows at places r_1 < r_2 < …, the one at place j is that which stood at
    j + the number of the r_x with r_x - x < j.
    """
    group, whole = shape.listed("u"), shape.listed()
    over = f"PARTITION BY {whole} " if whole else ""
    ranked = (
        f"SELECT {shape.listed('u', f'v{i} AS x')},"
        f" ROW_NUMBER() OVER ({over}ORDER BY v{i}, u) AS r,"
        f" COUNT(*) OVER ({over.strip()}) AS n"
        f" FROM read_rows WHERE kept AND v{i} IS NOT NULL"
    )
    own = (
        f"SELECT {shape.listed('u', 'r', 'n')},"
        f" ROW_NUMBER() OVER (PARTITION BY {group} ORDER BY r) AS x,"
        f" COUNT(*) OVER (PARTITION BY {group}) AS c FROM ranked{i}"
    )
    low, high = "(n - c + 1) // 2", "((n - c) // 2 + 1)"
    places = (
        f"SELECT {shape.listed('u', 'n', 'c')},"
        f" {low} + SUM(CASE WHEN r - x < {low} THEN 1 ELSE 0 END) AS low,"
        f" {high} + SUM(CASE WHEN r - x < {high} THEN 1 ELSE 0 END) AS high,"
        f" (n + 1) // 2 AS low_now, n // 2 + 1 AS high_now"
        f" FROM own{i} WHERE u IS NOT NULL{shape.grouped('u', 'n', 'c')}"
    )
    joins = "".join(
        f" LEFT JOIN ranked{i} AS r{number} ON {shape.same('p', f'r{number}')}"
        f" AND r{number}.r = p.{place}"
        for number, place in enumerate(("low", "high", "low_now", "high_now"))
    )
    after = "CASE WHEN p.n = p.c THEN 0.0 ELSE (r0.x + r1.x) / 2 END"
    moved = (
        f"SELECT {shape.listed('p.u', of='p')}, (r2.x + r3.x) / 2 - ({after}) AS b{i}"
        f" FROM places{i} AS p{joins}"
    )
    relations = [
        (f"ranked{i}", ranked),
        (f"own{i}", own),
        (f"places{i}", places),
        (f"moved{i}", moved),
    ]
    return relations, _joined(f"moved{i}", "u", f"b{i}", shape)


def _values_of_rows(i: int, shape: Shape) -> tuple[list[tuple[str, str]], str]:
    """Values that stand in one row only."""
    once = (
        f"SELECT {shape.listed(f'x{i}', f'1 AS o{i}')} FROM parts"
        f" WHERE x{i} IS NOT NULL{shape.grouped(f'x{i}')} HAVING SUM(w) = 1"
    )
    return [(f"once{i}", once)], _joined(f"once{i}", f"x{i}", f"o{i}", shape)


def _values_of_units(i: int, shape: Shape) -> tuple[list[tuple[str, str]], str]:
    """Values that only one person has; rows of nobody stay, so theirs do, too."""
    pairs = (
        f"SELECT DISTINCT {shape.listed('u', f'v{i} AS x')} FROM read_rows"
        f" WHERE kept AND v{i} IS NOT NULL"
    )
    once = (
        f"SELECT {shape.listed('x', 'MIN(u) AS u')} FROM pairs{i}"
        f"{shape.grouped('x')} HAVING COUNT(*) = 1"
    )
    owned = f"SELECT {shape.listed('u', f'COUNT(*) AS o{i}')} FROM once{i}"
    relations = [
        (f"pairs{i}", pairs),
        (f"once{i}", once),
        (f"owned{i}", f"{owned}{shape.grouped('u')}"),
    ]
    return relations, _joined(f"owned{i}", "u", f"o{i}", shape)
