"""The similarity of people at each epsilon, beside the error of the answer."""

from __future__ import annotations

from collections.abc import Sequence

from modicum.core.rationals import brief
from modicum.reports.charts import svg
from modicum.reports.charts.chart import Chart
from modicum.reports.markup import Markup
from modicum.risk.charts.axes import (
    chart_of,
    chosen_band,
    chosen_text,
    epsilon_panel,
    people_marks,
    people_samples,
    short,
    top_of,
)
from modicum.risk.study.rounding import at_least, at_most, near
from modicum.risk.study.study import Study
from modicum.risk.study.tables import ranges_table

#: A wider range is shown as a number: it does not fit on an axis.
_LARGE = 1e250
#: The columns of a unit beside the lower panel, and the height of the panel.
_UNIT_MAX, _ERROR = 20, 180
_TARGET = {"stroke_dasharray": "7 3", "stroke_width": "1.5"}


def risk_ranges(study: Study, *, name: str = "ranges") -> Chart:
    """Return a chart of the people's indicators at each epsilon, and of its error.

    A bar spans the least to the greatest indicator, both relative to the greatest: the
    shorter a bar, the more alike people are. In units of the answer all bars of Laplace
    noise would have the same length, and epsilons could not be distinguished.
    """
    widths = _widths(study)
    shown = [one for one in widths if 0 < one < _LARGE]
    ends = (min(shown) / 1.6, max(shown) * 1.6) if shown else (1.0, 10.0)
    scale = svg.Scale(*ends, 0, 1, log=True)
    left = svg.margin("0.0", *(near(one) for one in scale.ticks()))
    alike, below = _ranges(study, left)
    error = _errors(study, widths, (left, below + svg.TOP, _ERROR), ends)
    height = below + svg.TOP + _ERROR + svg.BELOW
    return chart_of(
        name, study, ranges_text(study), ranges_table(study), height, *alike, *error
    )


def ranges_text(study: Study) -> str:
    """Return the text alternative of the chart."""
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


def _ranges(study: Study, left: float) -> tuple[list[Markup], float]:
    """Return the upper panel, and its lower end."""
    sides = left, top_of(study), 230.0
    place, ticks = epsilon_panel(sides, study.candidates, (0, 1.06))
    what = "Similarity of people" if study.seen else "Least similarity, in any table"
    title = f"{what}; {chosen_text(study)}"
    names = title, "epsilon", "RDR, share of the largest"
    spreads = [(float(at), one.rdr) for at, one in enumerate(study.candidates)]
    bars = [(at, one, one) for at, one in spreads if one is not None]
    parts = [
        *chosen_band(place, study, study.candidates),
        svg.axes(place, *names, (ticks, svg.labeled(place.y))),
    ]
    if not bars:
        empty = "the table has no people" if spreads else "there are no candidates"
        return [*parts, svg.note(place, empty)], place.y.start + svg.BELOW
    for at, one, _ in bars:
        chosen = study.candidates[int(at)] is study.chosen
        kind = "series-1" if chosen else "series-5"
        parts += svg.boxes(place, [(at - 0.31, one.ratio, at + 0.31, 1)], kind)
    parts += people_marks(place, bars, 3.5 if len(bars) <= 30 else 2.5)
    samples = [(svg.box_sample("series-5"), "from the smallest to the largest")]
    if bars[0][1].median is not None:
        samples += people_samples()
    if study.wanted is not None and study.wanted.statistic is None:
        tau = float(study.wanted.tau)
        line = place.at([(place.x.low, tau), (place.x.high, tau)])
        parts.append(svg.curve(line, "ink target", **_TARGET))
        text = f"target: at least {brief(study.wanted.tau)}"
        samples.append((svg.line_sample("ink", **_TARGET), text))
    key, below = svg.legend(samples, place)
    return [*parts, key], below


def _of(study: Study) -> str:
    return f", compared to {short(study.reference.source)}" if study.reference else ""


def _unit(study: Study) -> str:
    unit = "%" if study.reference else short(study.query.unit, _UNIT_MAX)
    return f"95 % half width, {unit}"


def _widths(study: Study) -> list[float]:
    """Return the half width at each candidate, in the unit of the lower panel."""
    reference = study.reference
    unit = 1.0 if reference is None else abs(reference.value) / 100
    return [one.half_width / unit for one in study.candidates]


def _errors(
    study: Study,
    widths: Sequence[float],
    sides: tuple[float, float, float],
    ends: tuple[float, float],
) -> list[Markup]:
    """Return the lower panel."""
    place, ticks = epsilon_panel(sides, study.candidates, ends, log=True)
    points = [(float(at), one) for at, one in enumerate(widths) if 0 < one < _LARGE]
    y_ticks = [(one, near(one)) for one in place.y.ticks()] if points else []
    title = f"Error of the answer{_of(study)}"
    parts = [
        *chosen_band(place, study, study.candidates),
        svg.axes(place, title, "epsilon", _unit(study), (ticks, y_ticks)),
    ]
    if not widths:
        parts.append(svg.note(place, "there are no candidates"))
    if points:
        parts.append(svg.curve(place.at(points), "series-2 line", stroke_width="1.2"))
    for x, y in place.at(points):
        parts.append(svg.rectangle((x - 2.5, y - 2.5, 5, 5), "series-2 mark"))
    for at in sorted({*range(len(widths))} - {int(at) for at, _ in points}):
        x, y = place.x(at) + 4, place.y.end + 6
        turned = {"text_anchor": "end", "transform": f"rotate(-90 {x:.1f} {y:.1f})"}
        parts.append(svg.words(x, y, near(widths[at]), font_size="11", **turned))
    return parts
