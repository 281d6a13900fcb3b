"""The number of people by indicator, or by individual loss."""

from __future__ import annotations

from modicum.core.rationals import brief
from modicum.reports.charts import svg
from modicum.reports.charts.chart import Chart
from modicum.risk.charts.axes import chart_of, short, top_of
from modicum.risk.study.histograms import Histogram
from modicum.risk.study.rounding import at_most, near
from modicum.risk.study.study import Study
from modicum.risk.study.tables import histogram_table, quantity_text

#: Below one, so that one person is a bar, too.
_LOW = 0.7


def risk_histogram(study: Study, shown: Histogram, *, name: str = "people") -> Chart:
    """Return a chart of how many people have which number, counts by factors."""
    most = max((one.people for one in shown.bins), default=1)
    left = svg.margin(f"{most:,}")
    each = all(one.low == one.high for one in shown.bins)
    ends = (
        (-0.8, len(shown.bins) - 0.2)
        if each
        else (shown.bins[0].low, shown.bins[-1].high)
    )
    place = svg.panel(top_of(study), 220, ends, (_LOW, 2.5 * most), left=left, log=True)
    bars, ticks = (_each if each else _wide)(shown)
    title = f"People at epsilon {brief(shown.epsilon)}"
    what = short(quantity_text(study, shown))
    y_ticks = svg.labeled(place.y, whole=True) if bars else []
    parts = [
        svg.axes(place, title, what, "people", (ticks, y_ticks)),
        *svg.boxes(place, bars, "series-5"),
    ]
    if not bars:
        parts.append(svg.note(place, "the table has no people"))
    for (x, _, end, people), one in zip(bars, shown.bins, strict=True):
        if each:
            top = place.y(people) - 4
            look = {"text_anchor": "middle", "font_size": "11"}
            parts.append(
                svg.words(place.x((x + end) / 2), top, f"{one.people:,}", **look)
            )
    text, numbers = histogram_text(study, shown), histogram_table(study, shown)
    return chart_of(name, study, text, numbers, place.y.start + svg.BELOW, *parts)


def histogram_text(study: Study, shown: Histogram) -> str:
    """Return the text alternative of the chart."""
    what = quantity_text(study, shown)
    description = f"Histogram of people's {what} at epsilon {brief(shown.epsilon)}"
    if not shown.bins:
        return f"{description}: the table has no people."
    text = near if shown.quantity == "rdr" else at_most
    low, high = text(shown.bins[0].low), text(shown.bins[-1].high)
    return f"{description}, from {low} to {high}. See the table for all numbers."


def _each(shown: Histogram) -> tuple[list[svg.Box], svg.Ticks]:
    """Return a bar for each number, and its label."""
    text = near if shown.quantity == "rdr" else at_most
    names = [text(one.low) for one in shown.bins]
    every = svg.thinned(names, svg.WIDTH - svg.RIGHT - 80)
    bars: list[svg.Box] = [
        (at - 0.35, _LOW, at + 0.35, one.people) for at, one in enumerate(shown.bins)
    ]
    return bars, [(at, names[at]) for at in range(0, len(names), every)]


def _wide(shown: Histogram) -> tuple[list[svg.Box], svg.Ticks]:
    """Return a bar for each range of numbers, and the labels of some numbers."""
    bars: list[svg.Box] = [(one.low, _LOW, one.high, one.people) for one in shown.bins]
    scale = svg.Scale(shown.bins[0].low, shown.bins[-1].high, 0, 1)
    return bars, [(one, near(one)) for one in scale.ticks(7)]
