"""Common parts of risk charts: the epsilon axis, the marks of people, the notice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from modicum.core.diagnostics import cut
from modicum.core.rationals import brief
from modicum.reports.charts import svg
from modicum.reports.charts.chart import Chart, chart
from modicum.reports.markup import Markup, joined
from modicum.risk.study.study import Candidate, Spread, Study
from modicum.risk.study.tables import Table

#: Fewer candidates than that would have bars as wide as the picture.
_SLOTS_MIN = 4
_NAME_MAX = 34
#: The place of a bar, its span, and whose maximum it is relative to.
Bar: TypeAlias = tuple[float, Spread, Spread]
#: A mark of the same size in every bar: a dot fits into a circle.
_LOOKS = (("median", "median", 1.0), ("p99", "99th percentile", 0.45))


def chart_of(
    name: str, study: Study, text: str, numbers: Table, height: float, *parts: Markup
) -> Chart:
    """Return the chart of a study, with its notice in the picture and in words."""
    notice = study.notice
    sentence = f"{notice}. {text}" if notice else text
    look = {"font_weight": "bold", "text_anchor": "middle"}
    head = [svg.words(svg.WIDTH / 2, 18, notice, "over", **look)] if notice else []
    table = numbers.titles, numbers.rows
    return chart(name, numbers.caption, sentence, table, height, *head, *parts)


def top_of(study: Study) -> float:
    """Return the upper end of the first panel: the notice is above it."""
    return 2 * svg.TOP if study.notice else svg.TOP


def epsilon_panel(
    sides: tuple[float, float, float],
    candidates: Sequence[Candidate],
    up: tuple[float, float],
    *,
    log: bool = False,
) -> tuple[svg.Panel, svg.Ticks]:
    """Return a panel with candidates in even steps, every one or every n-th labeled.

    Args:
        sides: The left and upper end of the panel, and its height, in pixels.
        candidates: The candidates.
        up: The numbers at its lower and upper ends.
        log: Whether the vertical scale is logarithmic.
    """
    left, top, height = sides
    names = [brief(one.epsilon) for one in candidates]
    every = svg.thinned(names, svg.WIDTH - svg.RIGHT - left)
    ticks = [(at, names[at]) for at in range(0, len(names), every)]
    aside = 0.6 + max(0, _SLOTS_MIN - len(names)) / 2
    across = (-aside, len(names) - 1 + aside)
    return svg.panel(top, height, across, up, left=left, log=log), ticks


def chosen_band(
    place: svg.Panel, study: Study, candidates: Sequence[Candidate]
) -> Iterator[Markup]:
    """Yield a band over the whole panel behind the chosen candidate."""
    for at, one in enumerate(candidates):
        if one is study.chosen:
            left, right = place.x(at - 0.5), place.x(at + 0.5)
            top, bottom = place.y.end, place.y.start
            sides = (left, top, right - left, bottom - top)
            yield svg.rectangle(sides, "rail chosen", fill_opacity="0.5")


def chosen_text(study: Study) -> str:
    """Return the choice, as text."""
    epsilon = study.choice.epsilon
    if epsilon is None:
        return "no epsilon was chosen"
    elsewhere = "" if study.chosen else ", which is not shown"
    return f"chosen epsilon: {brief(epsilon)}{elsewhere}"


def people_marks(
    place: svg.Panel, bars: Sequence[Bar], radius: float
) -> Iterator[Markup]:
    """Yield the median by a circle, and 99 % by a dot."""
    for which, _, size in _LOOKS:
        known = [(x, getattr(own, which), every) for x, own, every in bars]
        parts = [(x, every.part(at)) for x, at, every in known if at is not None]
        yield from svg.dots(place.at(parts), radius * size, hollow=which == "median")


def people_samples() -> list[tuple[Markup, str]]:
    """Return the entries of a legend for these marks."""
    return [
        (joined(svg.dots([(12, 6)], 3.5 * size, hollow=which == "median")), name)
        for which, name, size in _LOOKS
    ]


def short(name: str, most: int = _NAME_MAX) -> str:
    """Return a name in one short line; the table has all of it."""
    return cut(name, most)
