"""The maximum influence of one person in any table: from public bounds alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from modicum.accounting.decimals import significant
from modicum.core.diagnostics import nearest
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import brief
from modicum.query.parser.lexer import quiet
from modicum.risk.arguments import argument, exact, mistake
from modicum.risk.outputs import Aggregate, Measure
from modicum.risk.profile import Norm
from modicum.risk.question import Question

#: The least and the greatest value; values outside are clamped.
Bounds: TypeAlias = tuple[Fraction, Fraction]

#: Number of digits of a root.
_DIGITS: Final = 20
#: Aggregates that each row of a person moves by so much; the others, whole groups.
_PER_ROW: Final = frozenset({"rows", "count", "sum", "distinct"})


@dataclass(frozen=True, slots=True)
class PublicBounds:
    """The declared bounds of a table, independent of its rows.

    Attributes:
        values: By the argument of an aggregate, as `plain_texts` writes it, its bounds;
            the name `""` is the default.
        rows_max: The maximum number of counted rows per person; None if undeclared.
    """

    values: Mapping[str, Bounds]
    rows_max: int | None = None

    def of(self, measure: Measure) -> Bounds | None:
        """Return the bounds of an aggregate's argument; None if undeclared.

        Args:
            measure: The aggregate.
        """
        if measure.value is None:
            return None
        for text in plain_texts(measure.value):
            if text in self.values:
                return self.values[text]
        return self.values.get("")


def plain_texts(value: exp.Expr) -> list[str]:
    """Return the equivalent texts of a value, in lower case and without tables.

    Args:
        value: The argument of an aggregate, for a row.

    Returns:
        Its own text first. A value of filtered rows also has the text of the unfiltered
        value: it has the same bounds.

    Neighboring relation:
        None: nothing is read from a table.

    Source:
        Names of columns in DuckDB, which are not case-sensitive.

    Examples:
        >>> from sqlglot import parse_one
        >>> plain_texts(parse_one('T."Cost" + (1)', read="duckdb"))
        ['cost + (1)']
    """
    found = [_plain(value)]
    if isinstance(value, exp.Case) and not (value.this or value.args.get("default")):
        branches = value.args["ifs"]
        found += [_plain(branches[0].args["true"])] if len(branches) == 1 else []
    return found


def _plain(value: exp.Expr) -> str:
    def renamed(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            return node
        return exp.column(exp.to_identifier(node.name.lower()))

    return value.unnest().copy().transform(renamed).sql("duckdb")


def read_bounds(low: object, high: object) -> Bounds:
    """Return bounds.

    Args:
        low: The least value; a number or its text.
        high: The greatest one, not below it.

    Returns:
        Both, exact.

    Raises:
        InputError: If one is no finite number, or they are reversed.

    Neighboring relation:
        None: bounds are public.

    Source:
        The house's rule for numbers in files.

    Examples:
        >>> read_bounds("0.5", 3)
        (Fraction(1, 2), Fraction(3, 1))
    """
    try:
        found = exact("a bound", low), exact("a bound", high)  # type: ignore[arg-type]
    except (TypeError, InputError):
        found = Fraction(1), Fraction(0)
    if found[0] > found[1]:
        raise mistake(
            f"bounds {str(low)[:40]} and {str(high)[:40]} are not a lower and"
            " an upper number, up to 1e60 in size",
            f"give {argument('bounds')} such as 0 and 100",
        )
    return found


def public_sensitivity(
    question: Question, bounds: PublicBounds, norm: Norm
) -> Fraction:
    """Return the maximum change of the answer when a person's rows come or go.

    Args:
        question: The query. Values outside of the bounds count as the nearer bound.
        bounds: The declared bounds.
        norm: `l1` or `l2`.

    Returns:
        The sensitivity, in units of the answer, rounded up. An aggregate of no rows
        counts as 0.

    Raises:
        InputError: If a needed bound is undeclared; the message names it.

    Neighboring relation:
        The tables with and without all rows of one person.

    Source:
        A person's rows affect at most as many groups. A variance of values within a
        range r is at most r**2/4 (Popoviciu 1935).

    Examples:
        >>> from modicum.risk.question import read_question
        >>> sums = read_question("SELECT SUM(cost) FROM t", {"t": ("cost",)})
        >>> public_sensitivity(sums, PublicBounds({"": read_bounds(-2, 5)}), "l1")
        Fraction(5, 1)
    """
    if question.obstacle:
        raise _needed(f"{question.obstacle}: no rule bounds its sensitivity")
    if question.unit is None and bounds.rows_max is not None:
        raise _needed(
            "each row is a person, so a person has one row",
            f"name the column that identifies a person ({argument('unit')})",
        )
    rows = 1 if question.unit is None else bounds.rows_max
    moved = [_moved(one, bounds) for one in question.measures]
    per_row = [question.keys or one.aggregate in _PER_ROW for one in question.measures]
    if rows is None and any(per_row):
        raise _needed(
            "a person may have any number of rows",
            f"declare the maximum number of rows per person ({argument('rows_max')})",
        )
    times = [Fraction(rows or 1) if each else Fraction(1) for each in per_row]
    if norm == "l1":
        return sum((t * m for t, m in zip(times, moved, strict=True)), Fraction(0))
    # All rows of a person may fall into one group, where they move it together.
    squares = Fraction(0)
    for measure, many, each in zip(question.measures, times, moved, strict=True):
        together = measure.aggregate in _PER_ROW
        squares += (many * each) ** 2 if together else many * each**2
    return _root(squares)


def _moved(measure: Measure, bounds: PublicBounds) -> Fraction:
    """Return how far one row, or one person, moves an aggregate of one group."""
    if measure.aggregate in ("rows", "count", "distinct"):
        return Fraction(1)
    declared = bounds.of(measure)
    if declared is None:
        raise _needed(
            f"the values of {measure.called[:60]} have no bound",
            f"declare the minimum and the maximum ({argument('bounds')}) from"
            " public knowledge, not from the rows",
        )
    low, high = declared
    return _of_bounded(measure.aggregate, low, high)


def _of_bounded(aggregate: Aggregate, low: Fraction, high: Fraction) -> Fraction:
    greatest, width = max(abs(low), abs(high)), high - low
    if aggregate == "sum":
        return greatest
    if aggregate == "var_pop":
        return width**2 / 4
    if aggregate == "var_samp":  # Of two values at the ends.
        return width**2 / 2
    if aggregate == "stddev_pop":
        return width / 2
    if aggregate == "stddev_samp":
        return _root(width**2 / 2)
    # From one value within the bounds to another, or to 0, which stands for none.
    return max(greatest, width)


def _root(square: Fraction) -> Fraction:
    """Return the square root, rounded up to `_DIGITS` digits unless it is exact."""
    top, bottom = math.isqrt(square.numerator), math.isqrt(square.denominator)
    if top * top == square.numerator and bottom * bottom == square.denominator:
        return Fraction(top, bottom)
    scale = 2**80
    scaled = -(-square.numerator * scale * scale // square.denominator)
    above = Fraction(math.isqrt(scaled) + 1, scale)
    return significant(above, _DIGITS, up=True)  # So a release file can express it.


def _needed(reason: str, remedy: str = "") -> InputError:
    return InputError(
        Problem(
            Code.NOT_BOUNDED,
            f"the sensitivity is not public: {reason}",
            help=remedy or f"give a proven one ({argument('sensitivity')})",
        )
    )


# --- as published ---------------------------------------------------------------------

_PUBLISHED: Final = frozenset({"rows", "count", "sum", "avg"})


def published_sensitivity(
    question: Question, least: float, greatest: float, rows: int
) -> Fraction:
    """Return the sensitivity of the papers' code: from the rows themselves.

    It bounds nothing: an average of a few selected rows moves farther, and one person
    can change the range.

    Args:
        question: The query; one COUNT, SUM or AVG, of one row a person.
        least: The least value in the whole table; NaN if there is none.
        greatest: The greatest one.
        rows: How many rows the table has.

    Returns:
        1 for a count; the range in whole numbers for a sum; the range by all rows for
        an average.

    Raises:
        InputError: If it is another query, or the range is 0.

    Neighboring relation:
        The tables with and without one row; not a bound under it.

    Source:
        The RDR paper's artifact, as described in its section 6 (arXiv:2310.13104).

    Examples:
        >>> from modicum.risk.question import read_question
        >>> mean = read_question("SELECT AVG(cost) FROM t", {"t": ("cost",)})
        >>> published_sensitivity(mean, 0.0, 50.0, 100)
        Fraction(1, 2)
    """
    kinds = {one.aggregate for one in question.measures}
    if len(question.measures) != 1 or not kinds <= _PUBLISHED or question.unit:
        raise _needed(
            "the published rule covers one COUNT, SUM or AVG, each row a person",
            f"give {argument('sensitivity')}",
        )
    (aggregate,) = kinds
    if aggregate in ("rows", "count"):
        return Fraction(1)
    if not (math.isfinite(least) and math.isfinite(greatest)) or least >= greatest:
        raise _needed("all values are the same, or there are none")
    if aggregate == "sum":
        width = Fraction(int(greatest) - int(least))
        if width <= 0:
            raise _needed("the range of its values contains no integer")
        return width
    return (Fraction(greatest) - Fraction(least)) / rows


def bounds_by_value(
    given: Mapping[str, Bounds], question: Question
) -> dict[str, Bounds]:
    """Return bounds by the values of a query.

    Args:
        given: Bounds by the argument of an aggregate, as SQL; case, quotes and the
            names of tables are ignored. The name `""` is the default.
        question: The query.

    Returns:
        The same, by texts that `PublicBounds` knows.

    Raises:
        GivenError: If the query aggregates no such value, or one has bounds twice.

    Neighboring relation:
        None: nothing is read from a table.

    Source:
        The house's rule for names.

    Examples:
        >>> from modicum.risk.question import read_question
        >>> from modicum.risk.sensitivity import read_bounds
        >>> sums = read_question("SELECT SUM(cost) FROM t", {"t": ("cost",)})
        >>> list(bounds_by_value({"T.COST": read_bounds(0, 5)}, sums))
        ['cost']
    """
    known = _aggregated(question.measures)
    found: dict[str, Bounds] = {}
    for name, each in given.items():
        text = name and _plain_name(name)
        if (text or question.obstacle) and text not in known:
            raise _unknown(name, known, question.obstacle)
        if found.setdefault(text, each) != each:
            raise mistake(
                f"`{name[:60]}` has the bounds {_text(found[text])} and {_text(each)}",
                f"give {argument('bounds')} once for each value",
                Code.DUPLICATE_NAME,
            )
    return found


def _aggregated(measures: Sequence[Measure]) -> list[str]:
    values = (one.value for one in measures if one.value is not None)
    return list(dict.fromkeys(text for one in values for text in plain_texts(one)))


def _plain_name(name: str) -> str:
    try:
        with quiet():
            return plain_texts(parse_one(name, read="duckdb"))[0]
    except (SqlglotError, RecursionError):
        return name


def _unknown(name: str, known: Sequence[str], obstacle: str) -> Exception:
    if obstacle:
        return mistake(
            f"no value of the query can be clamped: {obstacle}",
            f"leave {argument('bounds')} out, and give {argument('sensitivity')}",
            Code.KEYS_CONFLICT,
        )
    values = ", ".join(f"`{one[:60]}`" for one in known[:20])
    return mistake(
        f"the query aggregates no `{name[:60]}`",
        f"give {argument('bounds')} of {values}"
        if values
        else f"leave {argument('bounds')} out: it counts rows",
        Code.UNKNOWN_NAME,
        near=nearest(name.lower(), known),
    )


def _text(bounds: Bounds) -> str:
    return " to ".join(map(brief, bounds))
