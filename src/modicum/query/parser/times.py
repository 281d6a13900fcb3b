"""Times: their parts, what lies between them, intervals, and formats."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Final

from modicum.core.errors import Code
from modicum.query.expressions.facts import TIMES, A
from modicum.query.expressions.function import value_of
from modicum.query.expressions.public_values import plain_value
from modicum.query.expressions.table import FUNCTIONS
from modicum.query.expressions.times import EXTRACTED, of_days, period_name
from modicum.query.model import Call, Expression, Literal
from modicum.query.parser.arguments import fitted
from modicum.query.parser.literals import time_value
from modicum.query.parser.scope import Scope
from modicum.query.parser.sql_text import SqlText
from modicum.query.refusals import WORDS, Reason, refused

if TYPE_CHECKING:
    from sqlglot import exp

#: By unit of DATE_DIFF, how many are in a year.
_COUNTED: Final[Mapping[str, int]] = {"day": 0, "month": 12, "quarter": 4, "year": 1}
#: By the class that sqlglot makes of it: a word, a part, and its names from 1 on.
_NAMES: Final[Mapping[str, tuple[str, str, str]]] = {
    "Monthname": (
        "MONTHNAME",
        "month",
        "January February March April May June July August September October November"
        " December",
    ),
    "Dayname": (
        "DAYNAME",
        "isodow",
        "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    ),
}
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


def added(
    one: Expression, other: Expression, node: exp.Expr, scope: Scope
) -> Expression:
    """Return a sum or difference of numbers, or of dates and days.

    Raises:
        InputError: If it is one of other values.
    """
    plus = type(node).__name__ == "Add"
    one, other = _as_date(one, other, node, scope), _as_date(other, one, node, scope)
    kinds = [scope.facts(side).type for side in (one, other)]
    if plus and kinds == ["integer", "date"]:
        one, other, kinds = other, one, kinds[::-1]
    if kinds == ["date", "integer"] and isinstance(other, Literal):
        count = int(other.value or 0)
        return moved("days_later", one, count if plus else -count, node, scope)
    if not plus and kinds == ["date", "date"]:
        return fitted("days_between", [other, one], node, scope)
    if not set(kinds).isdisjoint(TIMES):
        raise refused(
            Code.DOES_NOT_FIT,
            f"this is {A[kinds[0]]} {'+' if plus else '-'} {A[kinds[1]]}",
            scope.sql.mark_of(node),
            reason=Reason(
                "numbers are added, dates subtracted, and constant intervals added to"
                " times",
                "write DATE_DIFF('day', begin, end), or column + INTERVAL 7 DAY",
            ),
        )
    return fitted("plus" if plus else "minus", [one, other], node, scope)


def _as_date(
    one: Expression, other: Expression, node: exp.Expr, scope: Scope
) -> Expression:
    """Return a text that is written beside a time as the date that it means."""
    if not (isinstance(one, Literal) and one.type == "text" and one.value is not None):
        return one
    if scope.facts(other).type not in TIMES:
        return one
    return time_value(str(one.value), "date", node, scope.sql)


def between_times(
    both: Sequence[Expression], node: exp.Expr, scope: Scope
) -> Expression:
    """Return DATE_DIFF('day', begin, end): how often a day, month or year begins.

    Args:
        both: The first and the second time.
        node: The call.
        scope: The tables that are read.

    Raises:
        InputError: If it counts something else, or of other values.
    """
    sql = scope.sql
    place = sql.spend_call(node, ("DATE_DIFF", "DATEDIFF")) + 2
    unit = sql.tokens[place].text.lower()
    if sql.kind(place) != "STRING" or unit not in _COUNTED:
        reason = Reason(
            "days, months, quarters and years are counted; engines count weeks"
            " differently",
            "write DATE_DIFF('day', begin, end), and // 7 behind it for weeks",
        )
        raise sql.unread_at(place, reason)
    sql.spend(place)
    begin, end = (
        time_value(str(one.value), "date", node, sql)
        if isinstance(one, Literal) and one.type == "text"
        else one
        for one in both
    )
    if unit == "day":
        return fitted("days_between", [begin, end], node, scope)

    def between(part: str) -> Expression:
        sides = [fitted(part, [one], node, scope) for one in (end, begin)]
        return Call("minus", tuple(sides))

    years = between("year")
    if unit == "year":
        return years
    in_parts = Call("times", (years, Literal(_COUNTED[unit], "integer")))
    return Call("plus", (in_parts, between(unit)))


def formatted(time: Expression, node: exp.Expr, scope: Scope) -> Expression:
    """Return STRFTIME(time, format); of the day, if that is all that it shows.

    Raises:
        InputError: If the format is not written, or has other parts.
    """
    sql = scope.sql
    sql.spend_call(node, ("STRFTIME",))
    # sqlglot makes another format of it, without a place.
    place = sql.last(node.this) or 0
    while sql.kind(place) not in ("COMMA", ""):
        place += 1
    if sql.kind(place + 1) != "STRING" or sql.word(place + 2) != ")":
        raise sql.unread(node, Reason("", "write STRFTIME(column, '%Y-%m')"))
    sql.spend(place + 1)
    form = sql.tokens[place + 1].text
    if scope.facts(time).type == "timestamp" and of_days(form):
        time = Call(period_name("day"), (time,))
    return fitted("strftime", [time, Literal(form, "text")], node, scope)


def name_of_part(time: Expression, node: exp.Expr, scope: Scope) -> Expression:
    """Return MONTHNAME(time) or DAYNAME(time), in English: a CASE of its number.

    Raises:
        InputError: If it has no such part.
    """
    word, part, names = _NAMES[type(node).__name__]
    scope.sql.spend_call(node, (word,))
    number = fitted(part, [time], node, scope)
    pairs: list[Expression] = []
    for place, name in enumerate(names.split(), 1):
        pairs.append(Call("=", (number, Literal(place, "integer"))))
        pairs.append(Literal(name, "text"))
    return fitted("case", (*pairs, Literal(None, "text")), node, scope)


def part_of(part: str, time: Expression, node: exp.Expr, scope: Scope) -> Expression:
    """Return a part of a time, such as its year.

    Raises:
        InputError: If it has no such part.
    """
    if part not in EXTRACTED:
        raise refused(
            Code.NOT_IN_SUBSET,
            "this part of a time is not read",
            scope.sql.mark_of(node),
            reason=Reason("", "write one of " + ", ".join(EXTRACTED)),
        )
    return fitted(EXTRACTED[part], [time], node, scope)
