"""The number of people by indicator, or by individual loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modicum.core.rationals import brief
from modicum.reports.charts.canvas import COLORS, label, panels, styled, thousands
from modicum.risk.charts.axes import begin, draw_note
from modicum.risk.study.histograms import Bin, Histogram
from modicum.risk.study.rounding import at_most, near
from modicum.risk.study.study import Study
from modicum.risk.study.tables import quantity_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def risk_histogram(study: Study, shown: Histogram) -> Figure:
    """Return a figure of how many people have which number, counts by factors."""
    what = quantity_text(study, shown)
    with styled():
        figure, (axes,) = panels(3.2)
        begin(figure, study, histogram_text(study, shown))
        label(axes, f"People at epsilon {brief(shown.epsilon)}", what, "people")
        if not shown.bins:
            draw_note(axes, "the table has no people")
        elif all(one.low == one.high for one in shown.bins):
            _draw_each(axes, shown)
        else:
            _draw_wide(axes, shown.bins)
        if shown.bins:
            axes.set_ylim(0.7, 2.5 * max(one.people for one in shown.bins))
            thousands(axes)
    return figure


def histogram_text(study: Study, shown: Histogram) -> str:
    """Return the text alternative of the figure."""
    what = quantity_text(study, shown)
    description = f"Histogram of people's {what} at epsilon {brief(shown.epsilon)}"
    if not shown.bins:
        return f"{description}: the table has no people."
    text = near if shown.quantity == "rdr" else at_most
    low, high = text(shown.bins[0].low), text(shown.bins[-1].high)
    return f"{description}, from {low} to {high}. See the table for all numbers."


def _draw_each(axes: Axes, shown: Histogram) -> None:
    """Draw a bar for each number, with the count of people above it."""
    text = near if shown.quantity == "rdr" else at_most
    people = [one.people for one in shown.bins]
    bars = axes.bar(range(len(people)), people, 0.7, log=True, **_LOOK)
    axes.bar_label(bars, [f"{n:,}" for n in people], padding=1, fontsize="small")
    axes.set_xticks(range(len(people)), [text(one.low) for one in shown.bins])
    axes.set_xlim(-0.8, len(people) - 0.2)
    axes.grid(visible=False, axis="x")


def _draw_wide(axes: Axes, bins: tuple[Bin, ...]) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.bar(
        [one.low for one in bins],
        [one.people for one in bins],
        [one.high - one.low for one in bins],
        align="edge",
        log=True,
        **_LOOK,
    )
    axes.xaxis.set_major_locator(MaxNLocator(7))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: near(value)))


_LOOK: dict[str, Any] = {"color": COLORS[4], "edgecolor": "black", "linewidth": 0.8}
