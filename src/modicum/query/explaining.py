"""A query in words: its mechanisms, how far its answers stray, and why it costs so."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from modicum.core.rationals import brief
from modicum.query.aggregates import column_of
from modicum.query.compiler import Line, Lowered
from modicum.query.contribution_bounds import UNBOUNDED
from modicum.query.expected import errors_of
from modicum.query.explanation import computed, derivation


def headline(release: str, lowered: Lowered) -> str:
    """Return what a query is, in one line without a value of it.

    Args:
        release: The id of the release that it is.
        lowered: The query as mechanisms.
    """
    number = len(lowered.lines) + (lowered.selection is not None)
    mechanisms = "one mechanism" if number == 1 else f"{number} mechanisms"
    return f"query {release}: {mechanisms} with {lowered.asked.noise} noise"


def explanation(release: str, lowered: Lowered, confidence: Fraction) -> str:
    """Return what a query costs each unit, and what its answers are worth.

    Args:
        release: The id of the release that it is.
        lowered: The query as mechanisms.
        confidence: How sure its intervals are.

    Returns:
        Lines of text; they follow from what is declared, and from no row.
    """
    mechanisms = (f"  {one}" for one in _mechanisms(lowered))
    lines = (headline(release, lowered), *mechanisms, *outlook(lowered, confidence))
    return "\n".join(lines)


def outlook(lowered: Lowered, confidence: Fraction) -> list[str]:
    """Return how many groups are answered, how far answers stray, and why.

    Args:
        lowered: The query as mechanisms.
        confidence: How sure its intervals are.
    """
    groups = "found by noise" if lowered.groups == UNBOUNDED else str(lowered.groups)
    sure = brief(100 * confidence)
    return [
        f"groups of the answer: {groups}",
        *(
            f"{one.aggregate}: {one.in_words()} with {sure} % confidence"
            for one in errors_of(lowered, confidence)
        ),
        "",
        "why:",
        *(f"  {words}" for words in derivation(lowered)),
    ]


def _mechanisms(lowered: Lowered) -> Iterator[str]:
    measure = "eps" if lowered.asked.noise == "laplace" else "rho"
    for line in lowered.lines:
        losses = ", ".join(
            f"{measure} {brief(loss)} per {unit}"
            for unit, loss in computed(lowered, line).items()
        )
        scale = brief(scale_in_answers(lowered, line))
        yield f"{line.statistic.name}: noise of scale {scale}; {losses}"
    selection = lowered.selection
    if selection is not None:
        losses = ", ".join(
            f"eps {brief(eps)}, delta {brief(selection.delta[unit])} per {unit}"
            for unit, eps in selection.eps.items()
        )
        yield f"{selection.name}: noise of scale {brief(selection.scale)}; {losses}"


def scale_in_answers(lowered: Lowered, line: Line) -> Fraction:
    """Return the scale of a mechanism's noise, in the units of the answer.

    Args:
        lowered: The query.
        line: The mechanism.
    """
    statistic, factor = line.statistic, Fraction(1)
    if statistic.column is not None and statistic.kind in ("total", "squares"):
        step = column_of(statistic.column, lowered.asked.tables).step
        factor = step if statistic.kind == "total" else step * step
    return line.scale * factor
