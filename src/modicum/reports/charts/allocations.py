"""Charts of a planner's allocations over many rounds, from plain numbers.

The numbers concern requests and budgets, which are public; nothing here is, or may be,
computed from rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import floor, isfinite, isnan
from statistics import fmean

from modicum.core.diagnostics import cut
from modicum.reports.charts import svg
from modicum.reports.charts.chart import Chart, chart
from modicum.reports.markup import Markup, element

#: More names than that beside a heat map would lie on top of each other.
_SEGMENTS_NAMED_MAX = 30
#: The columns of a name beside a heat map, and of a unit.
_SEGMENT_MAX, _UNIT_MAX = 20, 24


def utility_by_round(
    utility: Mapping[str, Sequence[float]],
    *,
    spread: Mapping[str, Sequence[float]] | None = None,
    first_round: int = 1,
    unit: str = "% of what was requested",
    name: str = "utility",
) -> Chart:
    """Return a chart of the utility of each round, one line for each planner."""
    svg.require(bool(utility) and all(map(len, utility.values())), "there is no round")
    spread = spread or {}
    for planner, far in spread.items():
        fits = planner in utility and len(far) == len(utility[planner])
        svg.require(fits, f"the spread of {planner} is not that of a line")
    known = all(
        map(isfinite, (x for e in (utility, spread) for v in e.values() for x in v))
    )
    svg.require(known, "a utility is not a number")
    last = first_round + max(map(len, utility.values())) - 1
    pairs = {
        one: list(zip(values, spread.get(one, [0.0] * len(values)), strict=True))
        for one, values in utility.items()
    }
    top = max(value + far for line in pairs.values() for value, far in line)
    place = svg.panel(
        svg.TOP, 240, svg.span(first_round, last), (0, 1.05 * top if top > 0 else 1)
    )
    drawn: list[Markup] = []
    samples = []
    for index, (planner, line) in enumerate(pairs.items()):
        kind = svg.series(index)
        if planner in spread:
            ends = [(x, v - far) for x, (v, far) in enumerate(line, first_round)]
            ends += reversed(
                [(x, v + far) for x, (v, far) in enumerate(line, first_round)]
            )
            look = {"fill": "currentColor", "fill_opacity": "0.15", "stroke": "none"}
            drawn.append(svg.curve(place.at(ends), f"{kind} spread", **look))
        points = list(enumerate(utility[planner], first_round))
        drawn.append(svg.curve(place.at(points), f"{kind} line", **svg.dashes(index)))
        samples.append((svg.line_sample(kind, **svg.dashes(index)), planner))
    title = "Utility by round"
    frame = svg.axes(
        *(place, title, "round", f"utility, {cut(unit, _UNIT_MAX)}"),
        (svg.labeled(place.x, whole=True), svg.labeled(place.y)),
    )
    names, height = svg.legend(samples, place)
    means = ", ".join(
        f"{svg.number(round(fmean(values), 1))} ({planner})"
        for planner, values in utility.items()
    )
    sentence = f"Mean utility of rounds {first_round} to {last}, {unit}: {means}."
    headings = ("Round", *utility, *(f"{planner}, ±" for planner in spread))
    lines = [*utility.values(), *spread.values()]
    rows = tuple(
        (
            str(first_round + at),
            *(svg.number(line[at]) if at < len(line) else "-" for line in lines),
        )
        for at in range(last - first_round + 1)
    )
    return chart(name, title, sentence, (headings, rows), height, frame, *drawn, names)


def accepted_by_size(
    accepted: Mapping[str, Mapping[str, float]], *, name: str = "accepted"
) -> Chart:
    """Return a chart of the part of requests that was accepted, by their size."""
    classes = list(next(iter(accepted.values()), ()))
    svg.require(bool(classes), "there is no class of sizes")
    for planner, shares in accepted.items():
        svg.require(
            set(shares) == set(classes), f"{planner} has other classes of sizes"
        )
        parts = all(0 <= share <= 1 for share in shares.values())
        svg.require(parts, f"a part of {planner} is not from 0 to 1")
    place = svg.panel(svg.TOP, 240, (-0.5, len(classes) - 0.5), (0, 108))
    width = 0.8 / len(accepted)
    drawn: list[Markup] = []
    samples = []
    for index, (planner, shares) in enumerate(accepted.items()):
        starts = [at - 0.4 + width * (index + 0.04) for at in range(len(classes))]
        heights = [100 * shares[one] for one in classes]
        bars = [
            (x, 0.0, x + 0.92 * width, y) for x, y in zip(starts, heights, strict=True)
        ]
        drawn += svg.boxes(place, bars, svg.series(index))
        for x, _, end, y in bars:
            middle, top = place.x((x + end) / 2), place.y(y) - 4
            drawn.append(
                svg.words(middle, top, f"{y:.0f}", text_anchor="middle", font_size="11")
            )
        samples.append((svg.box_sample(svg.series(index)), planner))
    title = "Accepted by size"
    frame = svg.axes(
        *(place, title, "size of the request", "accepted, %"),
        (
            [(at, cut(one, _SEGMENT_MAX)) for at, one in enumerate(classes)],
            svg.labeled(place.y),
        ),
    )
    names, height = svg.legend(samples, place)
    least = (
        min(shares.items(), key=lambda one: one[1]) for shares in accepted.values()
    )
    each = ", ".join(
        f"{100 * share:.0f} % of {size} ({planner})"
        for planner, (size, share) in zip(accepted, least, strict=True)
    )
    sentence = f"Accepted least of any size: {each}."
    rows = tuple(
        (one, *(svg.number(100 * shares[one]) for shares in accepted.values()))
        for one in classes
    )
    headings = ("Size", *(f"{planner}, %" for planner in accepted))
    return chart(name, title, sentence, (headings, rows), height, frame, *drawn, names)


def budget_left(
    left: Sequence[Sequence[float]],
    segments: Sequence[str],
    *,
    first_round: int = 1,
    unit: str = "% of the unlocked budget",
    name: str = "left",
) -> Chart:
    """Return a heat map of the remaining budget of each segment, round by round.

    Args:
        left: For each segment, the share that is left after each round, from 0 to 1;
            NaN where the segment is not active.
        segments: The names of the segments.
        first_round: The number of the first round.
        unit: The unit of the remaining budget in percent.
        name: Begins the ids in the picture.
    """
    svg.require(
        len(left) == len(segments) > 0, "segments and their names differ in number"
    )
    rounds = len(left[0])
    same = rounds > 0 and all(len(row) == rounds for row in left)
    svg.require(same, "segments have different numbers of rounds, or none")
    parts = all(isnan(one) or 0 <= one <= 1 for row in left for one in row)
    svg.require(parts, "a part of a budget is not from 0 to 1")
    every = -(-len(segments) // _SEGMENTS_NAMED_MAX)
    labels = [
        (at + 0.5, cut(segments[at], _SEGMENT_MAX))
        for at in range(0, len(segments), every)
    ]
    last = first_round + rounds - 1
    place = svg.panel(
        svg.TOP,
        min(600, max(18 * len(segments), 60)),
        (first_round - 0.5, last + 0.5),
        (len(segments), 0),
        left=svg.margin(*(text for _, text in labels)),
    )
    title = "Budget left"
    frame = svg.axes(
        *(place, title, "round", "segment"),
        (svg.labeled(place.x, whole=True), labels),
        grid=False,
    )
    samples = [
        (svg.box_sample("series-1", **_shade(share)), f"{100 * share:g} %")
        for share in (0, 0.25, 0.5, 0.75, 1)
    ]
    drawn = [frame, *_cells(place, left, first_round, name)]
    if any(isnan(one) for row in left for one in row):
        drawn.insert(0, svg.pattern(f"{name}-idle", "/", "soft"))
        samples.append(
            (svg.box_sample("soft", fill=f"url(#{name}-idle)"), "not active")
        )
    names, height = svg.legend(samples, place)
    sentence = _left_text(left, segments, last, unit)
    headings = ("Segment", *(f"Round {first_round + at}" for at in range(rounds)))
    rows = tuple(
        (segment, *map(_percent, row))
        for segment, row in zip(segments, left, strict=True)
    )
    return chart(name, title, sentence, (headings, rows), height, *drawn, names)


def _left_text(
    left: Sequence[Sequence[float]], segments: Sequence[str], last: int, unit: str
) -> str:
    ends = {
        segment: row[-1]
        for segment, row in zip(segments, left, strict=True)
        if not isnan(row[-1])
    }
    if not ends:
        return f"No segment is active in round {last}."
    least = min(ends, key=lambda one: ends[one])
    return (
        f"After round {last}, {least} has least left of {len(ends)}"
        f" segment{'' if len(ends) == 1 else 's'}:"
        f" {_percent(ends[least])} {unit}."
    )


def _percent(share: float) -> str:
    """Return what is left in percent, rounded down."""
    return "-" if isnan(share) else svg.number(floor(1000 * share) / 10)


def _shade(share: float) -> dict[str, str]:
    return {"fill_opacity": f"{share:.2f}"}


def _cells(
    place: svg.Panel, left: Sequence[Sequence[float]], first: int, name: str
) -> Iterator[Markup]:
    """Yield one path for each shade: the darker a cell, the more is left."""
    paths: dict[float, list[str]] = defaultdict(list)
    for line, row in enumerate(left):
        for at, share in enumerate(row, first):
            ends = place.at(((at - 0.5, line), (at + 0.5, line + 1)))
            (x, y), (right, bottom) = (
                (svg.px(one), svg.px(other)) for one, other in ends
            )
            shade = -1 if isnan(share) else round(share, 2)
            paths[shade].append(f"M{x} {y}H{right}V{bottom}H{x}z")
    for shade, cells in sorted(paths.items()):
        look = {**svg.paint("series-1 cell"), "fill": "currentColor", **_shade(shade)}
        if shade < 0:
            look = {**svg.paint("soft idle"), "fill": f"url(#{name}-idle)"}
        path = "".join(cells)
        yield element("path", d=path, shape_rendering="crispEdges", **look)
