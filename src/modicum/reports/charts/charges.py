"""How much of a limit is spent: a bar for a line of text, and a history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from itertools import pairwise
from math import ceil, inf, isinf
from typing import TypeAlias

from modicum.accounting.decimals import significant
from modicum.core.diagnostics import cut
from modicum.core.rationals import brief
from modicum.reports.charts import svg
from modicum.reports.charts.chart import Chart, chart
from modicum.reports.markup import Markup, element

#: The number of an entry, or a time.
Moment: TypeAlias = int | datetime
#: Exact, or infinite.
Amount: TypeAlias = Fraction | float

_WIDTH, _HEIGHT = 120, 10
#: Diagonal lines over a meter: what is over its limit is distinct without color.
_STROKES = "".join(f"M{x} {_HEIGHT}l{_HEIGHT}-{_HEIGHT}" for x in range(0, 110, 8))
_DIGITS = 4
#: The columns of a unit beside the axis.
_UNIT_MAX = 22


def meter(share: Fraction, label: str, state: str = "ok") -> Markup:
    """Return a small drawing of how much of a limit is spent.

    Args:
        share: Which part is spent; more than 1 is drawn as 1.
        label: The same in words.
        state: `near` or `over` the limit, or another word; decided on exact numbers.
    """
    filled = min(ceil(share * _WIDTH), _WIDTH)
    kind = state if state in ("near", "over") else "fill"
    strokes = element("path", d=_STROKES, stroke="currentColor", **svg.paint("paper"))
    return element(
        "svg",
        element("title", label),
        svg.rectangle((0, 0, _WIDTH, _HEIGHT), "rail"),
        svg.rectangle((0, 0, filled, _HEIGHT), kind),
        strokes if state == "over" else "",
        role="img",
        aria_label=label,
        width=str(_WIDTH),
        height=str(_HEIGHT),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
    )


def cell_history(
    charges: Sequence[tuple[Moment, Amount]],
    limit: Amount,
    *,
    until: Moment | None = None,
    title: str = "Charge over time",
    unit: str = "epsilon",
    name: str = "history",
) -> Chart:
    """Return a chart of what a cell was charged, beside its limit.

    Args:
        charges: By the number of an entry or its time, in order, the charge from it on.
        limit: The limit of the cell; infinite if it has none.
        until: The present moment, up to which the last charge holds; None if unknown.
        title: What is charged.
        unit: The unit of charges.
        name: Begins the ids in the picture.
    """
    known = all(amount >= 0 for _, amount in charges) and limit >= 0
    svg.require(known, "a charge or a limit is not a number from 0 on")
    points = [(_position(at), float(amount)) for at, amount in charges]
    svg.require(
        points == sorted(points, key=lambda one: one[0]), "moments are not in order"
    )
    times = bool(charges) and isinstance(charges[0][0], datetime)
    first, last = (points[0][0], points[-1][0]) if points else (0.0, 1.0)
    last = max(last, _position(until)) if until else last + (last - first) / 25
    place, frame = _frame(points, float(limit), first, last, (title, unit), times=times)
    samples = [(svg.line_sample("series-1"), "charge")]
    drawn: list[Markup] = []
    if not isinf(limit):
        ends = place.at([(place.x.low, float(limit)), (place.x.high, float(limit))])
        drawn.append(svg.curve(ends, "ink limit", stroke_dasharray="7 3"))
        samples.append((svg.line_sample("ink", stroke_dasharray="7 3"), "limit"))
    over = [amount > limit for _, amount in charges]
    if any(over):
        fill = {"fill": f"url(#{name}-over)"}
        drawn.insert(0, svg.pattern(f"{name}-over", "/", "over"))
        drawn += _excess(place, points, over, float(limit), fill)
        samples.append((svg.box_sample("over", **fill), "over the limit"))
    if points:
        line = svg.steps([(first, 0.0), *points, (place.x.high, points[-1][1])])
        drawn.append(svg.curve(place.at(line), "series-1 line"))
    else:
        drawn.append(svg.note(place, "nothing was charged"))
    key, height = svg.legend(samples, place)
    sentence = _sentence(charges, limit, unit, sum(over))
    heading = "Time" if times else "Entry"
    headings = (heading, f"Charge, {unit}", f"Limit, {unit}", "State")
    rows = tuple(
        (_moment(at), *_amounts(amount, limit), "over" if beyond else "within")
        for (at, amount), beyond in zip(charges, over, strict=True)
    )
    return chart(name, title, sentence, (headings, rows), height, frame, *drawn, key)


def _frame(
    points: Sequence[tuple[float, float]],
    limit: float,
    first: float,
    last: float,
    names: tuple[str, str],
    *,
    times: bool,
) -> tuple[svg.Panel, Markup]:
    finite = [one for one in (limit, *(y for _, y in points)) if not isinf(one)]
    room = 1.25 if any(isinf(y) for _, y in points) else 1.08
    ends = (0.0, room * max(finite, default=0) or 1.0)
    labels = [text for _, text in svg.labeled(svg.Scale(*ends, 0, 1))]
    across = (first, last if last > first else first + 1)
    place = svg.panel(svg.TOP, 220, across, ends, left=svg.margin(*labels))
    x_ticks = _days(place.x) if times else svg.labeled(place.x, whole=True)
    label = "time (UTC)" if times else "ledger entry"
    ticks = x_ticks, svg.labeled(place.y)
    up = f"charge, {cut(names[1], _UNIT_MAX)}"
    return place, svg.axes(place, names[0], label, up, ticks)


def _excess(
    place: svg.Panel,
    points: Sequence[tuple[float, float]],
    over: Sequence[bool],
    limit: float,
    fill: dict[str, str],
) -> Iterator[Markup]:
    """Yield the areas between the limit and the charges above it."""
    ends = [*points, (place.x.high, 0.0)]
    for ((x, y), (end, _)), beyond in zip(pairwise(ends), over, strict=True):
        if beyond:
            yield from svg.boxes(
                place, [(x, limit, end, y)], "over", **fill, stroke="none"
            )


def _sentence(
    charges: Sequence[tuple[Moment, Amount]], limit: Amount, unit: str, over: int
) -> str:
    if not charges:
        return f"Nothing was charged; the limit is {_amounts(0.0, limit)[1]} {unit}."
    at, amount = charges[-1]
    spent, most = _amounts(amount, limit)
    since = "at" if isinstance(at, datetime) else "after entry"
    times = f"after {over} of {len(charges)} entries" if over else "at no time"
    return (
        f"The charge is {spent} of {most} {unit} {since} {_moment(at)}; it was over the"
        f" limit {times}."
    )


def _amounts(charge: Amount, limit: Amount) -> tuple[str, str]:
    """Return a charge, rounded up, and a limit, rounded down."""
    return _rounded(charge, up=True), _rounded(limit, up=False)


def _rounded(amount: Amount, *, up: bool) -> str:
    if amount == inf:
        return "infinite"
    return brief(significant(Fraction(amount), _DIGITS, up=up)) if amount else "0"


def _position(at: Moment) -> float:
    if isinstance(at, datetime):
        svg.require(at.tzinfo is not None, "a time has no zone")
        return at.timestamp()
    return float(at)


def _moment(at: Moment) -> str:
    if isinstance(at, datetime):
        return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"
    return str(at)


_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_STEPS = (
    *(_MINUTE, 5 * _MINUTE, 15 * _MINUTE, _HOUR, 6 * _HOUR, _DAY, 2 * _DAY, 7 * _DAY),
    *(14 * _DAY, 30 * _DAY, 91 * _DAY, 182 * _DAY, 365 * _DAY, 1826 * _DAY),
)


def _days(scale: svg.Scale) -> svg.Ticks:
    """Return round times on a scale, and the same as text."""
    room = (scale.high - scale.low) / 6
    step = next((one for one in _STEPS if one >= room), _STEPS[-1])
    shape = "%Y-%m-%d" if step >= _DAY else "%m-%d %H:%M"
    first = ceil(scale.low / step)
    return [
        (at, f"{datetime.fromtimestamp(at, UTC):{shape}}")
        for at in range(first * step, int(scale.high) + 1, step)
    ]
