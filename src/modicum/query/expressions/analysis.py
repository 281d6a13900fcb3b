"""The facts of whole expressions."""

from __future__ import annotations

from modicum.query.expressions.facts import Facts, of_column, of_constant
from modicum.query.expressions.table import FUNCTIONS
from modicum.query.model import (
    AllOf,
    AnyOf,
    Call,
    ColumnRef,
    Expression,
    IsNull,
    Literal,
    Not,
)
from modicum.query.tables import Tables


def facts_of(expression: Expression, tables: Tables) -> Facts:
    """Return what is known of an expression's values.

    Args:
        expression: The expression.
        tables: The declarations of the columns.

    Raises:
        Misfit: If its parts do not fit each other.
    """
    match expression:
        case ColumnRef(table=table, column=column):
            return of_column(tables.by_name[table].columns[column])
        case Literal(value=value, type=kind):
            return of_constant(value, kind)
        case Call(function=name, arguments=arguments):
            parts = (facts_of(one, tables) for one in arguments)
            return FUNCTIONS[name].typed(*parts)
        case _:
            return Facts("boolean")


def size_of(expression: Expression) -> int:
    """Return how many parts of functions there are when it is written out in SQL."""
    match expression:
        case Call(function=name, arguments=arguments):
            copies = FUNCTIONS[name].copies
            return 1 + sum(
                max(size_of(one), 1) * copies[min(place, len(copies) - 1)]
                for place, one in enumerate(arguments)
            )
        case IsNull(value=inner) | Not(inner=inner):
            return size_of(inner)
        case AllOf(parts=parts) | AnyOf(parts=parts):
            return sum(map(size_of, parts))
        case _:
            return 0


def only_column(expression: Expression) -> ColumnRef | None:
    """Return the column of which an expression has the value, unless it is NULL.

    Returns:
        The column; None if there are several, or if it has other values.
    """
    match expression:
        case ColumnRef():
            return expression
        case Call(function="case", arguments=arguments):
            values = (*arguments[1::2], arguments[-1])
        case Call(function="nullif", arguments=(value, _)):
            values = (value,)
        case _:
            return None
    found = {
        only_column(one)
        for one in values
        if not (isinstance(one, Literal) and one.value is None)
    }
    return found.pop() if len(found) == 1 else None
