"""Which attributes of the data a query reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import compress

from modicum.query.aggregates import column_of
from modicum.query.model import (
    AllOf,
    AnyOf,
    Call,
    ColumnRef,
    Compare,
    Expression,
    IsIn,
    IsNull,
    Literal,
    Not,
    Query,
    Released,
    Window,
)
from modicum.query.request import QueryRequest
from modicum.release.vocabulary import Vocabulary


def attributes_read(request: QueryRequest, vocabulary: Vocabulary) -> tuple[str, ...]:
    """Return the attributes that an answer depends on, by name.

    Args:
        request: The query.
        vocabulary: The attributes of the policy; a part of the data may name some.
    """
    read = {column_of(one, request.tables).attribute for one in references(request)}
    boxes = request.part.where or ()
    read |= {name for box in boxes for name, _ in box if name in vocabulary.attributes}
    return tuple(sorted(name for name in read if name is not None))


def references(request: QueryRequest) -> list[ColumnRef]:
    """Return the columns that a query names, in any order, maybe several times."""
    return list(_references(request.query))


def _references(
    query: Query, also: Iterable[Expression | None] = ()
) -> Iterator[ColumnRef]:
    """Yield the columns that a query names, and what else is computed of its rows."""
    own = [
        column
        for one in (
            *also,
            *(key.value for key in query.keys),
            *(one.value for one in query.aggregates),
            *(one.on for one in query.lookups),
            query.where,
        )
        if one is not None
        for column in columns_in(one)
    ]
    yield from own
    for derived in query.derived:
        yield from _references(derived.rows, derived.values)
    for union in query.unions:
        # Columns that are not named outside may be those of units.
        named = [
            ColumnRef(union.table.name, name) in own for name in union.table.columns
        ]
        for rows, values in zip(union.parts, union.values, strict=True):
            yield from _references(rows, compress(values, named))


def all_queries(query: Query) -> Iterator[Query]:
    """Yield a query, and all that its tables are computed from."""
    yield query
    for _, rows in query.inner:
        yield from all_queries(rows)


def columns_in(expression: Expression) -> Iterator[ColumnRef]:
    """Yield the columns that an expression looks at."""
    match expression:
        case ColumnRef():
            yield expression
        case Compare(column=column) | IsIn(column=column):
            yield column
        case IsNull(value=inner) | Not(inner=inner):
            yield from columns_in(inner)
        case AllOf(parts=parts) | AnyOf(parts=parts) | Call(arguments=parts):
            for part in parts:
                yield from columns_in(part)
        case Literal() | Released() | Window():  # The last two are never of rows.
            return
