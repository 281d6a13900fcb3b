"""What is computed of aggregates: it is done with the answer, and told so."""

from __future__ import annotations

from typing import Final

from modicum.query.parser.sql_text import SqlText
from modicum.query.refusals import Reason

#: What somebody is told who computes with aggregates.
COMPUTED: Final = Reason(
    "each aggregate gets noise of its own",
    "ask for the aggregates by themselves, and compute with the answers: that costs"
    " nothing more",
)
_AVERAGE: Final = Reason("a sum by a count is an average", "write AVG(column)")
_SIGNS: Final = frozenset({"+", "-", "*", "/", "//", "%", "^", "**"})
_AGGREGATES: Final = frozenset({"COUNT", "SUM", "AVG", "MEDIAN", "QUANTILE", "STDDEV"})


def of_aggregates(sql: SqlText, place: int) -> Reason | None:
    """Return what is told of a sign of arithmetic beside aggregates.

    Args:
        sql: The text.
        place: The number of a token.

    Returns:
        The remedy; None if it is no such sign, or stands beside no aggregate.
    """
    if sql.word(place) not in _SIGNS:
        return None
    before, behind = _called_before(sql, place), sql.word(place + 1)
    if before == "SUM" and sql.word(place) == "/" and behind == "COUNT":
        return _AVERAGE
    called = sql.word(place + 2) == "("
    beside = before in _AGGREGATES or (called and behind in _AGGREGATES)
    return COMPUTED if beside else None


def _called_before(sql: SqlText, place: int) -> str:
    """Return the function whose closing bracket stands before a token."""
    depth = 0
    for one in range(place - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(sql.word(one), 0)
        if depth <= 0:
            return sql.word(one - 1) if sql.word(one) == "(" else ""
    return ""
