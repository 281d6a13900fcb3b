"""How far answers will stray, told before anything is read or spent."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from modicum.core.rationals import brief
from modicum.core.record import dataclass
from modicum.query.aggregates import center_of
from modicum.query.compiler import Lowered
from modicum.query.estimates import declared, lines_of, quantile_of, step_of
from modicum.query.intervals import width
from modicum.query.model import Aggregate


@dataclass(frozen=True, slots=True)
class Expected:
    """How far an answer will stray, as far as that is known before rows are read.

    Attributes:
        aggregate: Its name.
        half_width: Half the width of its interval, or what that follows from.
        per: What `half_width` is: of the `answer` itself; that of an average, or of a
            variance, is at most about this over the number of `rows`; for a standard
            deviation it is that of its `variance` instead; that of a quantile is
            given in `ranks`, as a number of rows, on the widest side.
    """

    aggregate: str
    half_width: Fraction
    per: Literal["answer", "rows", "variance", "ranks"]

    def in_words(self) -> str:
        """Return it in words, for the plan of a query."""
        shown = brief(self.half_width)
        if self.per == "rows":
            return f"± {shown} / rows of the group"
        if self.per == "variance":
            return f"± {shown} / rows of the group, for its square"
        if self.per == "ranks":
            return f"± {shown} ranks, and one bin"
        return f"± {shown}"


def errors_of(lowered: Lowered, confidence: Fraction) -> tuple[Expected, ...]:
    """Return how far the answers will stray. It reads no row.

    Args:
        lowered: The query.
        confidence: How sure each interval is, above 0 and below 1.

    Returns:
        For each aggregate, in their order, its half-width.
    """
    error = 1 - confidence
    return tuple(
        _expected(one, lowered, error) for one in lowered.asked.query.aggregates
    )


def _expected(aggregate: Aggregate, lowered: Lowered, error: Fraction) -> Expected:
    if aggregate.function == "quantile":
        widest = max(quantile_of(aggregate, lowered, error).strays)
        return Expected(aggregate.name, widest, "ranks")
    lines = lines_of(aggregate, lowered)
    strays = {
        kind: width(lowered.asked.noise, line.scale, error / len(lines))
        for kind, line in lines.items()
    }
    step = step_of(aggregate, lowered)
    if len(lines) == 1:
        (only,) = strays.values()
        return Expected(aggregate.name, only * step, "answer")
    column = declared(aggregate, lowered)
    statistic, center = lines["total"].statistic, center_of(column)
    farthest = max(abs(statistic.low - center), abs(statistic.high - center))
    if aggregate.function == "avg":
        moved = strays["total"] + farthest * strays["rows"]
        return Expected(aggregate.name, moved * step, "rows")
    moved = (
        strays["squares"]
        + 2 * farthest * strays["total"]
        + 3 * farthest**2 * strays["rows"]
    )
    return Expected(
        aggregate.name,
        moved * step**2,
        "variance" if aggregate.function == "stddev" else "rows",
    )
