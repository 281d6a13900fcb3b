"""The names of columns of an answer that are not given in the text."""

from __future__ import annotations

from modicum.query.attributes import columns_in
from modicum.query.model import Call, ColumnRef, Expression

#: The longest name that is made up.
_NAME_MAX = 60


def label_of(expression: Expression) -> str:
    """Return the name of an expression: a column's, or its function's and theirs."""
    if isinstance(expression, ColumnRef):
        return expression.column
    word = expression.function if isinstance(expression, Call) else "condition"
    columns = dict.fromkeys(one.column for one in columns_in(expression))
    label = "_".join((word if word.isidentifier() else "condition", *columns))
    return label if len(label) <= _NAME_MAX else label[:_NAME_MAX].rstrip("_")
