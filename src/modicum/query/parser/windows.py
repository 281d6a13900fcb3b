"""Windows over the groups of an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from modicum.core.errors import InputError
from modicum.query.answer_expressions import parts_of
from modicum.query.model import Expression, Order, Window, WindowFunction
from modicum.query.parser.arguments import is_aggregate, is_of_pairs
from modicum.query.parser.sql_text import SqlText, only
from modicum.query.refusals import WORDS, Reason

if TYPE_CHECKING:
    from sqlglot import exp

_WINDOWED: Final[Mapping[str, tuple[WindowFunction, tuple[str, ...]]]] = {
    "Sum": ("sum", ("SUM",)),
    "Rank": ("rank", ("RANK",)),
    "RowNumber": ("row_number", ("ROW_NUMBER",)),
    "Lag": ("lag", ("LAG",)),
    "Lead": ("lead", ("LEAD",)),
}
_WINDOWS: Final = Reason(
    "windows look at the groups of the answer: SUM, RANK, ROW_NUMBER, LAG and LEAD of"
    " aggregates and keys, without a frame",
    "write SUM(COUNT(*)) OVER (), or SUM(COUNT(*)) OVER (ORDER BY key); compute others"
    " from the answer, at no cost",
)


def is_computed(node: exp.Expr) -> bool:
    """Return whether a node is computed of answers: it has an aggregate or a window."""
    return any(
        is_aggregate(one)
        or is_of_pairs(one)
        or type(one).__name__ in ("Window", "Grouping")
        for one in node.walk()
    )


def read_window(
    node: exp.Expr,
    sql: SqlText,
    read: Callable[[exp.Expr], Expression],
    read_orders: Callable[[exp.Expr], tuple[Order, ...]],
) -> Window:
    """Return a window.

    Args:
        node: The window.
        sql: The text.
        read: Reads a value of groups.
        read_orders: Reads the items of its ORDER BY.

    Raises:
        InputError: If it is none that is read, or looks at rows.
    """
    called = node.this
    only(sql, node, ("this", "partition_by", "order", "over", "spec"))
    place = sql.keyword("OVER", after=sql.last(called) or 0)
    if type(called).__name__ not in _WINDOWED:
        if not any(map(is_aggregate, called.iter_expressions())):
            raise sql.unread_at(place, WORDS["OVER"])
        raise sql.unread(called, _WINDOWS)
    if node.args.get("spec") is not None or sql.word(place + 1) != "(":
        raise sql.unread_at(place, _WINDOWS)
    function, words = _WINDOWED[type(called).__name__]
    only(sql, called, ("this",))
    value, inner = called.args.get("this"), None
    try:
        inner = None if value is None else read(value)
    except InputError:
        if is_computed(value):
            raise
        raise sql.unread_at(place, WORDS["OVER"]) from None
    sql.spend_call(called, words)
    sql.spend(place)
    partition = tuple(map(read, node.args.get("partition_by") or ()))
    if partition:
        sql.spend(sql.keyword("PARTITION BY", after=place))
    order = node.args.get("order")
    orders = () if order is None else read_orders(order)
    if order is not None:
        sql.spend(sql.keyword("ORDER BY", after=place))
    if function in ("sum", "lag", "lead") and inner is None:
        raise sql.unread(called, _WINDOWS)
    parts = [one for each in (inner, *partition) if each for one in parts_of(each)]
    if any(isinstance(one, Window) for one in parts):
        raise sql.unread_at(place, _WINDOWS)
    return Window(function, inner, partition, orders)
