"""Parts of the SQL statement that measures moves, for each aggregate.

A person's part in an aggregate is a few numbers of her own rows (`parts`). With those
of all people, and the results of a second pass over the parts, they determine how far
the aggregate moves without her rows. Where rows are persons, equal rows are one part,
and `w` is their number.

Each name ends in the number of a measure: `c0` is the number of her rows that measure 0
counts, `s0` their sum, `a0` their mean, `q0` the sum of the squared distances from it,
`m0` the greatest or least. Capitals denote the same over all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from sqlglot import exp

from modicum.risk.outputs import Aggregate, Measure, measure_of
from modicum.risk.question import Question
from modicum.risk.sensitivity import PublicBounds

SPREADS: Final = frozenset({"var_pop", "var_samp", "stddev_pop", "stddev_samp"})
ENDS: Final = frozenset({"min", "max"})


@dataclass(frozen=True, slots=True)
class Shape:
    """The common parts of all measures.

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
    """Return the SQL of the row value that a measure reads; empty if none."""
    if measure.value is None:
        return ""
    text = f"({measure.value.sql('duckdb')})"
    if measure.aggregate == "count":
        return f"({text} IS NOT NULL)"
    # The least of texts is not that of the numbers that they may represent.
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
    """Return the parts of all, as SQL over those of each."""
    i = number
    if aggregate == "avg":
        return [f"SUM(w * c{i}) AS C{i}_", f"SUM(w * s{i}) AS S{i}_"]
    if aggregate in SPREADS:
        mean = f"SUM(w * c{i} * a{i}) / NULLIF(SUM(w * c{i}), 0)"
        return [f"SUM(w * c{i}) AS C{i}_", f"{mean} AS A{i}_"]
    if aggregate in ENDS:
        return [f"{aggregate.upper()}(m{i}) AS M{i}_"]
    return []


def second_pass(number: int, aggregate: Aggregate) -> list[str]:
    """Return the results of the second pass, once the totals are known."""
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
    """Return how far a measure moves: with a person's rows, less without them."""
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
    """Return the pieces of all measures, one after the other."""
    return [one for pieces in made for one in pieces]


#: Below this fraction of the sum of squares, the remainder without a person is
#: recomputed from the others: the difference would have lost its digits.
_LEFT: Final = "1e-6"


def joined_relations(
    number: int, aggregate: Aggregate, shape: Shape
) -> tuple[list[tuple[str, str]], str]:
    """Return the relations that a measure needs besides parts, and the last one's join.

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

    Without a row, each later value moves one place forward.
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

    Without rows at places r_1 < r_2 < …, the one at place j is that formerly at j + the
    number of the r_x with r_x - x < j.
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
    """Values that occur in one row only."""
    once = (
        f"SELECT {shape.listed(f'x{i}', f'1 AS o{i}')} FROM parts"
        f" WHERE x{i} IS NOT NULL{shape.grouped(f'x{i}')} HAVING SUM(w) = 1"
    )
    return [(f"once{i}", once)], _joined(f"once{i}", f"x{i}", f"o{i}", shape)


def _values_of_units(i: int, shape: Shape) -> tuple[list[tuple[str, str]], str]:
    """Values that only one person has; rows without a person stay, and theirs, too."""
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


_COUNTED = frozenset({"rows", "count", "distinct"})


def clamped(question: Question, bounds: PublicBounds) -> Question:
    """Return a query whose values are clamped to their bounds.

    Args:
        question: The query.
        bounds: The declared bounds; values without bounds stay unchanged.
    """
    measures = tuple(_clamped(one, bounds) for one in question.measures)
    return replace(question, measures=measures)


def _clamped(measure: Measure, bounds: PublicBounds) -> Measure:
    declared = bounds.of(measure)
    if declared is None or measure.value is None or measure.aggregate in _COUNTED:
        return measure
    value = exp.cast(exp.paren(measure.value.copy()), "double")
    low, high = (_double(one) for one in declared)
    inside = (
        exp.Case()
        .when(exp.LT(this=value, expression=low), low.copy())
        .when(exp.GT(this=value.copy(), expression=high), high.copy())
        .else_(value.copy())
    )
    return replace(measure, value=inside)


def _double(value: Fraction) -> exp.Expr:
    return exp.cast(exp.Literal.string(repr(float(value))), "double")


def asked_within(question: Question) -> Question:
    """Return a query whose text, too, has the values of its measures.

    Args:
        question: The query, as `clamped` returns it; it has a closed form.
    """
    select = question.select.copy()
    measured = iter(question.measures)
    for output in select.selects:
        plain = output.unalias()
        own = measure_of(plain)
        if own is None:
            continue
        measure = next(measured)
        if measure.value is None or measure.value == own.value:
            continue
        aggregate = plain.this if isinstance(plain, exp.Filter) else plain
        aggregate.set("this", measure.value.copy())  # It has the condition of FILTER.
        if aggregate is not plain:
            plain.replace(aggregate.copy())
    return replace(question, select=select)
