"""Intervals that are added to times: INTERVAL 7 DAY."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Final

from modicum.core.errors import Code
from modicum.query.expressions.function import value_of
from modicum.query.expressions.public_values import plain_value
from modicum.query.expressions.table import FUNCTIONS
from modicum.query.model import Call, Expression, Literal
from modicum.query.parser.arguments import fitted
from modicum.query.parser.scope import Scope
from modicum.query.parser.sql_text import SqlText
from modicum.query.refusals import WORDS, Reason, refused

if TYPE_CHECKING:
    from sqlglot import exp

#: By unit, the function that adds it, and how often.
_UNITS: Final[Mapping[str, tuple[str, int]]] = {
    "DAY": ("days_later", 1),
    "WEEK": ("days_later", 7),
    "MONTH": ("months_later", 1),
    "QUARTER": ("months_later", 3),
    "YEAR": ("months_later", 12),
    "HOUR": ("seconds_later", 3600),
    "MINUTE": ("seconds_later", 60),
    "SECOND": ("seconds_later", 1),
}
_TEXT: Final = re.compile(r"([+-]?[0-9]{1,12}) *([A-Z]*)")


def read_interval(node: exp.Expr, sql: SqlText) -> tuple[str, int]:
    """Return the function that adds an interval to a time, and how often.

    Args:
        node: The sum or difference whose right side it is.
        sql: The text.

    Raises:
        InputError: If it is not written as INTERVAL 7 DAY or INTERVAL '7 days'.
    """
    from sqlglot import exp

    # sqlglot does not record where one is; those on the left come before it.
    before = sum(1 for _ in node.this.find_all(exp.Interval))
    places = range(sql.first(node) or 0, len(sql.tokens))
    place = [one for one in places if sql.word(one) == "INTERVAL"][before]
    found = _TEXT.fullmatch(sql.tokens[place + 1].text.upper())
    read = [place, place + 1]
    unit = "" if found is None else found[2]
    if not unit:
        unit = sql.word(place + 2)
        read.append(place + 2)
    known = _UNITS.get(unit.removesuffix("S"))
    if found is None or known is None:
        raise sql.unread_at(place, WORDS["INTERVAL"])
    sql.spend(*read)
    function, times = known
    return function, times * int(found[1])


def moved(
    name: str, time: Expression, count: int, node: exp.Expr, scope: Scope
) -> Expression:
    """Return a time some units later; one that is written is computed at once.

    Args:
        name: The function that adds one.
        time: The time.
        count: How many.
        node: The sum.
        scope: The tables that are read.

    Raises:
        InputError: If it is no time, or none of our years.
    """
    if name == "seconds_later" and scope.facts(time).type == "date":
        time = Call("timestamp", (time,))
    found = fitted(name, [time, Literal(count, "integer")], node, scope)
    if not isinstance(time, Literal):
        return found
    value = value_of(FUNCTIONS[name], (plain_value(time.value, time.type), count))
    if isinstance(value, date):
        return Literal(value.isoformat(), time.type)
    raise refused(
        Code.DOES_NOT_FIT,
        "the time is not in the years 1 to 9999",
        scope.sql.mark_of(node),
        reason=Reason(),
    )
