"""Which values an expression may have, if that follows from public facts."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from fractions import Fraction
from itertools import product
from math import prod
from typing import Final, TypeAlias

from modicum.query.expressions.analysis import facts_of
from modicum.query.expressions.facts import of_column
from modicum.query.expressions.function import Plain, value_of
from modicum.query.expressions.table import FUNCTIONS
from modicum.query.expressions.times import DAYS_DECIDE
from modicum.query.model import Call, ColumnRef, Expression, Literal
from modicum.query.tables import Column, ColumnType, Tables, Value
from modicum.release.parts import FIRST_DAY, LAST_DAY, Span

#: Larger sets are not listed.
LISTED_MAX: Final = 10_000
Values: TypeAlias = frozenset[Plain]
_TRUTHS: Final[Values] = frozenset((True, False, None))


def public_values(
    expression: Expression, tables: Tables, days: tuple[Span, ...] | None
) -> tuple[str | int | bool, ...] | None:
    """Return every value that an expression may have, in order; NULL left out.

    Args:
        expression: The expression.
        tables: The declarations of the columns.
        days: The days that are read; None for all.

    Returns:
        The values; None if they do not follow from public facts, or are too many.
    """
    found = _Lister(tables, days).values(expression)
    if found is None or len(found) > LISTED_MAX:
        return None
    known = (_told(one) for one in found if one is not None)
    return tuple(sorted(known, key=lambda one: (str(type(one)), one)))


def plain_value(value: Value | None, kind: ColumnType) -> Plain:
    """Return a value of a declaration or a query in Python."""
    if kind == "date" and isinstance(value, str):
        return date.fromisoformat(value)
    if kind == "timestamp" and isinstance(value, str):
        return datetime.fromisoformat(value)
    return value


def _told(value: Plain) -> str | int | bool:
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Fraction):
        return int(value)
    assert value is not None  # The caller looked.
    return value


class _Lister:
    """Lists the values of expressions; a set may hold values that no row has."""

    def __init__(self, tables: Tables, days: tuple[Span, ...] | None) -> None:
        self._tables = tables
        self._days: Values | None = None
        closed = days and days[0][0] != FIRST_DAY and days[-1][1] != LAST_DAY
        spans = (days or ()) if closed else ()
        if 0 < sum(last - first + 1 for first, last in spans) <= LISTED_MAX:
            self._days = frozenset(
                date.fromordinal(day)
                for first, last in spans
                for day in range(first, last + 1)
            )

    def values(self, expression: Expression) -> Values | None:
        match expression:
            case ColumnRef():
                return self._of_column(expression)
            case Literal(value=value, type=kind):
                return frozenset((plain_value(value, kind),))
            case Call(function=name, arguments=arguments):
                return self._of_call(name, arguments) or self._within(expression)
            case _:
                return _TRUTHS

    def _of_column(self, reference: ColumnRef) -> Values | None:
        column = self._tables.by_name[reference.table].columns[reference.column]
        if column.values is not None:
            return _and_null(_within_bounds(one, column) for one in column.values)
        if column.type == "boolean":
            return _TRUTHS
        if column.type == "date" and self._on_days(column):
            return self._days
        if column.low is None or column.high is None:
            return None
        facts = of_column(column)
        return _listed(facts.low, facts.high, facts.step)

    def _of_call(self, name: str, arguments: tuple[Expression, ...]) -> Values | None:
        if name in ("case", "coalesce"):
            chosen = (*arguments[1::2], arguments[-1]) if name == "case" else arguments
            sets = [self.values(one) for one in chosen]
            known = [one for one in sets if one is not None]
            return None if len(known) < len(sets) else frozenset().union(*known)
        sets = [self._argument(name, one) for one in arguments]
        known = [one for one in sets if one is not None]
        if len(known) < len(sets) or prod(map(len, known)) > LISTED_MAX:
            return None
        function = FUNCTIONS[name]
        return frozenset(value_of(function, one) for one in product(*known))

    def _argument(self, name: str, argument: Expression) -> Values | None:
        """Return the values of an argument; of a time perhaps its days, if they do."""
        if isinstance(argument, ColumnRef) and name in DAYS_DECIDE:
            declared = self._tables.by_name[argument.table].columns[argument.column]
            if self._on_days(declared):
                return self._days
        return self.values(argument)

    def _on_days(self, column: Column) -> bool:
        """Return whether a column is a time on the days that are read."""
        return column.dated or column.name in self._tables.clocks

    def _within(self, expression: Call) -> Values | None:
        """Return all integers within the limits of an expression."""
        facts = facts_of(expression, self._tables)
        if facts.type == "boolean":
            return _TRUTHS
        if facts.type != "integer" or expression.function == "year":
            return None
        return _listed(facts.low, facts.high, Fraction(1))


def _within_bounds(value: Value, column: Column) -> Plain:
    if column.low is None or column.high is None or isinstance(value, str):
        return plain_value(value, column.type)
    return min(max(Fraction(value), column.low), column.high)


def _listed(low: int, high: int, step: Fraction) -> Values | None:
    if high - low >= LISTED_MAX:
        return None
    return _and_null(number * step for number in range(low, high + 1))


def _and_null(values: Iterable[Plain]) -> Values:
    return frozenset((*values, None))
