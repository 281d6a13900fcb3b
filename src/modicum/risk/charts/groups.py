"""Groups of people side by side, at each epsilon."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from modicum.core.errors import Code, InputError, Problem
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
from modicum.risk.study.study import Candidate, Group, Study, Target
from modicum.risk.study.tables import groups_table

#: Maximum number of distinguishable groups.
GROUPS_MAX = 6
#: More bars in one panel are too thin.
_BARS_MAX = 48
#: The color and the pattern of each group.
_LOOKS = (
    *(("series-5", ""), ("series-6", "/"), ("series-3", ".")),
    *(("series-4", "x"), ("series-1", "\\"), ("series-2", "-")),
)
_TARGET = {"stroke_dasharray": "7 3", "stroke_width": "1.5"}


def risk_groups(study: Study, *, name: str = "groups") -> Chart:
    """Return a chart with a bar for each group at each epsilon.

    Bars go from the least indicator of a group to its greatest, as parts of the
    greatest of all people. Of many epsilons only some are shown, the chosen one among
    them: the table has all.
    """
    if not 1 <= len(study.groups) <= GROUPS_MAX:
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"nothing can be drawn: there are {len(study.groups)} groups of people",
                help=f"compare 1 to {GROUPS_MAX} groups in one picture",
            )
        )
    shown = shown_candidates(study)
    sides = svg.margin("0.0"), top_of(study), 270.0
    place, ticks = epsilon_panel(sides, shown, (0, 1.06))
    title = f"RDR of groups of people; {chosen_text(study)}"
    names = title, _across(study, shown), "RDR, share of the largest of all"
    parts = [
        *chosen_band(place, study, shown),
        svg.axes(place, *names, (ticks, svg.labeled(place.y))),
    ]
    below = place.y.start + svg.BELOW
    if any(one.rdr is not None for one in shown):
        bars, entries = _drawn(place, study, shown, name)
        key, below = svg.legend(entries, place)
        parts += [*bars, key]
    else:
        parts.append(svg.note(place, "the table has no people"))
    text, numbers = groups_text(study), groups_table(study)
    return chart_of(name, study, text, numbers, below, *parts)


def shown_candidates(study: Study) -> list[Candidate]:
    """Return the candidates that a chart of groups has room for."""
    many, room = len(study.candidates), _BARS_MAX // len(study.groups)
    places = set(range(0, many, -(-many // room) or 1))
    chosen = study.chosen
    if chosen is not None:
        places.add(study.candidates.index(chosen))
    return [study.candidates[place] for place in sorted(places)]


def groups_text(study: Study) -> str:
    """Return the text alternative of the chart."""
    names = ", ".join(group.name for group in study.groups)
    description = f"Range plot that compares these groups of people: {names}; "
    return f"{description}{chosen_text(study)}. See the table for all numbers."


def _across(study: Study, shown: Sequence[Candidate]) -> str:
    if len(shown) == len(study.candidates):
        return "epsilon"
    return f"epsilon; {len(shown)} of {len(study.candidates)}, all in the table"


def _drawn(
    place: svg.Panel, study: Study, shown: Sequence[Candidate], name: str
) -> tuple[list[Markup], list[tuple[Markup, str]]]:
    """Return what is drawn of all groups, and the entries of the legend."""
    width = 0.84 / len(study.groups)
    radius = 3.0 if len(shown) * len(study.groups) <= 24 else 2.2
    parts: list[Markup] = []
    entries: list[tuple[Markup, str]] = []
    for index, group in enumerate(study.groups):
        kind, lines = _LOOKS[index]
        look = {"fill": f"url(#{name}-{index})"} if lines else {}
        if lines:
            parts.append(svg.pattern(f"{name}-{index}", lines, "ink", kind))
        aside = -0.42 + width * (index + 0.5)
        bars = [
            (at + aside, own, one.rdr)
            for at, one in enumerate(shown)
            if (own := one.groups[index]) is not None and one.rdr is not None
        ]
        for x, own, every in bars:
            low, high = every.part(own.least), every.part(own.greatest)
            box = (x - 0.45 * width, low, x + 0.45 * width, high)
            parts += svg.boxes(place, [box], kind, **look)
        parts += people_marks(place, bars, radius)
        entries.append((svg.box_sample(kind, **look), _group_text(group)))
    entries += people_samples()
    wanted = study.wanted
    if wanted is not None and wanted.statistic is not None:
        parts += _target_lines(place, wanted, shown)
        text = f"target: {wanted.statistic} of each at least {brief(wanted.tau)} of the"
        entries.append((svg.line_sample("ink", **_TARGET), f"{text} largest"))
    return parts, entries


def _group_text(group: Group) -> str:
    few = {0: "nobody", 1: "1 person"}
    people = few.get(group.people, f"{group.people:,} people")
    return f"{short(group.name)}: {people}"


def _target_lines(
    place: svg.Panel, wanted: Target, shown: Sequence[Candidate]
) -> Iterator[Markup]:
    """Yield the lower limit for the statistic of a group, given the largest."""
    which = "greatest" if wanted.statistic == "max" else str(wanted.statistic)
    for at, one in enumerate(shown):
        found = [getattr(own, which) for own in one.groups if own is not None]
        if found and one.rdr is not None:
            low = float(wanted.tau) * one.rdr.part(max(found))
            line = place.at([(at - 0.48, low), (at + 0.48, low)])
            yield svg.curve(line, "ink target", **_TARGET)
