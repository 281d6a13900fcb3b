"""The similarity of people at each epsilon, beside the error of the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modicum.core.rationals import brief
from modicum.reports.charts.canvas import COLORS, label, panels, styled
from modicum.risk.charts.axes import (
    begin,
    chosen_text,
    draw_note,
    epsilons_across,
    logarithmic,
    mark_chosen,
    short,
)
from modicum.risk.study.rounding import at_least, at_most, near
from modicum.risk.study.study import Spread, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BAR, _CHOSEN_BAR = COLORS[4], COLORS[0]
#: A wider range is shown as a number: it does not fit on an axis.
_LARGE = 1e250


def risk_ranges(study: Study) -> Figure:
    """Return a figure of the people's indicators at each epsilon, and of its error.

    A bar spans the least to the greatest indicator, both relative to the greatest: the
    shorter a bar, the more alike people are. In units of the answer all bars of Laplace
    noise would have the same length, and epsilons could not be distinguished.
    """
    with styled():
        figure, (alike, error) = panels(3.4, 2.3)
        begin(figure, study, ranges_text(study))
        people = "people are" if study.seen else "people are at least, in any table"
        title = f"Similarity of {people}; {chosen_text(study)}"
        label(alike, title, "epsilon", "RDR, share of the largest")
        title = f"Error of the answer{_of(study)}"
        label(error, title, "epsilon", _unit(study))
        if study.candidates:
            _draw_ranges(alike, study)
            _draw_errors(error, study)
        else:
            for axes in (alike, error):
                draw_note(axes, "there are no candidates")
    return figure


def ranges_text(study: Study) -> str:
    """Return the text alternative of the figure."""
    if not study.candidates:
        return "Range plot without candidates."
    first, last = (brief(study.candidates[end].epsilon) for end in (0, -1))
    description = (
        f"Range plot of {len(study.candidates)} epsilons from {first} to {last}; "
    )
    description += f"{chosen_text(study)}."
    chosen = study.chosen
    if chosen is not None:
        description += (
            f" There, half of the 95 % interval is {at_most(chosen.half_width)}"
        )
        description += f" {study.query.unit}"
        if chosen.rdr is not None:
            description += (
                f", and the smallest indicator is {at_least(chosen.rdr.ratio)}"
            )
            description += " of the largest"
        description += "."
    return f"{description} See the table for all numbers."


def _draw_ranges(axes: Axes, study: Study) -> None:
    epsilons_across(axes, study.candidates)
    mark_chosen(axes, study, study.candidates)
    axes.set_ylim(0, 1.06)
    spreads = [one.rdr for one in study.candidates]
    there = [(place, one) for place, one in enumerate(spreads) if one is not None]
    if not there:
        draw_note(axes, "the table has no people")
        return
    colors = [
        _CHOSEN_BAR if study.candidates[place] is study.chosen else _BAR
        for place, _ in there
    ]
    axes.bar(
        [place for place, _ in there],
        [1 - spread.ratio for _, spread in there],
        0.62,
        bottom=[spread.ratio for _, spread in there],
        color=colors,
        edgecolor="black",
        linewidth=0.8,
        label="from the smallest to the largest",
    )
    _mark_people(axes, there)
    if study.wanted is not None and study.wanted.statistic is None:
        tau = float(study.wanted.tau)
        description = f"target: at least {brief(study.wanted.tau)}"
        axes.axhline(tau, color="black", ls="--", lw=1.5, label=description, zorder=3)
    _legend_below(axes)


def _mark_people(axes: Axes, there: list[tuple[int, Spread]]) -> None:
    """Mark the median by a circle and 99 % by a dot, which fits into the circle."""
    size = 6 if len(there) <= 30 else 4.5
    looks: dict[str, dict[str, Any]] = {
        "median": {"marker": "o", "ms": size, "mfc": "white", "mec": "black"},
        "99th percentile": {"marker": "o", "ms": size / 2.2, "color": "black"},
    }
    for (name, look), which in zip(looks.items(), ("median", "p99"), strict=True):
        marks = [(place, spread, getattr(spread, which)) for place, spread in there]
        known = [(place, one.part(at)) for place, one, at in marks if at is not None]
        if known:
            places, parts = zip(*known, strict=True)
            axes.plot(
                places, parts, ls="none", label=name, zorder=4, clip_on=False, **look
            )


def _legend_below(axes: Axes) -> None:
    axes.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=4, fontsize="small"
    )


def _of(study: Study) -> str:
    return f", compared to {short(study.reference.source)}" if study.reference else ""


def _unit(study: Study) -> str:
    unit = "%" if study.reference else short(study.query.unit)
    return f"95 % half width, {unit}"


def _draw_errors(axes: Axes, study: Study) -> None:
    epsilons_across(axes, study.candidates)
    mark_chosen(axes, study, study.candidates)
    reference = study.reference
    unit = 1.0 if reference is None else abs(reference.value) / 100
    widths = [one.half_width / unit for one in study.candidates]
    there = [(at, width) for at, width in enumerate(widths) if 0 < width < _LARGE]
    axes.set_yscale("log")
    if there:
        places, shown = zip(*there, strict=True)
        axes.plot(places, shown, color=COLORS[1], marker="s", ms=4, lw=1.2)
        axes.set_ylim(min(shown) / 1.6, max(shown) * 1.6)
        logarithmic(axes)
    for place in sorted({*range(len(widths))} - {at for at, _ in there}):
        axes.annotate(
            near(widths[place]),
            (place, 0.96),
            xycoords=("data", "axes fraction"),
            ha="center",
            va="top",
            rotation="vertical",
            fontsize="small",
        )
