"""Charts of the effect of a choice of rotation and unlocking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING

from modicum.core.diagnostics import cut
from modicum.reports.charts import svg
from modicum.reports.charts.chart import Chart, chart
from modicum.reports.markup import Markup, joined

if TYPE_CHECKING:
    from modicum.planner import Outlook

#: The budget is replenished after one life of a group; this many lives are shown.
_LIVES_SHOWN = 3
_HEIGHT = 170


def rotation_outlook(outlooks: Sequence[Outlook], *, name: str = "outlook") -> Chart:
    """Return a chart of one choice, or of several ones in the same panels.

    It shows the active users of each round, the unlocked budget at each age of a group,
    and the budget available in each round if all of it is used.
    """
    lines = [_users(outlooks), _unlocked(outlooks), _available(outlooks)]
    most = max(y for line in lines[0] for _, y in line)
    left = max(svg.margin(svg.number(most)), svg.margin("100"))
    panels = [
        _panel(svg.TOP + 24 + at * (_HEIGHT + svg.BELOW + svg.TOP), left, names, each)
        for at, (names, each) in enumerate(zip(_NAMES, lines, strict=True))
    ]
    names = [one.choice.name for one in outlooks]
    samples = [
        (svg.line_sample(svg.series(at), **svg.dashes(at)), one)
        for at, one in enumerate(names)
    ]
    promise = []
    if len(outlooks) == 1:
        samples[0] = (samples[0][0], "all of it")
        samples += _PROMISE
        promise.append(_promise(panels[-1][0], outlooks[0]))
    place, _ = panels[-1]
    key, height = svg.legend(samples, place)
    title = f"Outlook of {', '.join(names)}"
    heading = svg.words(
        14, 20, cut(title, svg.TITLE_MAX), font_weight="bold", font_size="15"
    )
    sentence = f"{'; '.join(map(_summary, outlooks))}."
    drawn = (heading, *promise, *(one for _, one in panels), key)
    numbers = _HEADINGS, tuple(_rows(outlooks))
    return chart(name, title, sentence, numbers, height, *drawn)


#: The title and the axes of each panel.
_NAMES = (
    ("Active users", "round", "users, on average"),
    ("Unlocked by age", "age of a group, in rounds", "part of its budget, %"),
    ("Available in each round, if all of it is used", "round", "part of the budget, %"),
)
_HEADINGS = ("Choice", "Round or age", "Users", "Unlocked, %", "Available, %")
_BAND = {"fill_opacity": "0.2"}
_PROMISE = [
    (svg.box_sample("series-5", **_BAND), "between least and most"),
    (svg.line_sample("soft", stroke_dasharray="2 3"), "even use of it"),
]


def _users(outlooks: Sequence[Outlook]) -> list[list[svg.Point]]:
    return [[(at.round, float(at.users)) for at in one.rounds] for one in outlooks]


def _unlocked(outlooks: Sequence[Outlook]) -> list[list[svg.Point]]:
    return [
        [(0, 0.0), *enumerate((100 * float(share) for share in one.unlocked), 1)]
        for one in outlooks
    ]


def _available(outlooks: Sequence[Outlook]) -> list[list[svg.Point]]:
    """Return the corners of lines that change halfway between two rounds."""
    found = []
    for one in outlooks:
        shown = one.rounds[: _LIVES_SHOWN * one.choice.rotation.active]
        points = [(at.round - 0.5, 100 * float(at.greedy)) for at in shown]
        last = points[-1][0] + 0.5, points[-1][1]
        found.append([(max(x, 1), y) for x, y in svg.steps([*points, last])])
    return found


def _panel(
    top: float, left: float, names: tuple[str, str, str], lines: list[list[svg.Point]]
) -> tuple[svg.Panel, Markup]:
    """Return the area of a panel, and its contents."""
    across = [x for line in lines for x, _ in line]
    most = max(y for line in lines for _, y in line)
    ends = svg.span(min(across), max(across)), (0.0, 1.05 * most or 1.0)
    place = svg.panel(top, _HEIGHT, *ends, left=left)
    ticks = svg.labeled(place.x, whole=True), svg.labeled(place.y)
    frame = svg.axes(place, *names, ticks)
    curves = (
        svg.curve(place.at(line), f"{svg.series(at)} line", **svg.dashes(at))
        for at, line in enumerate(lines)
    )
    return place, joined((frame, *curves))


def _promise(place: svg.Panel, outlook: Outlook) -> Markup:
    """Return the minimum budget of every round, and the use by an even split."""
    schedule = outlook.choice.schedule
    least, most = 100 * float(schedule.least), 100 * float(schedule.most)
    low, high, even = 1.0, place.x.high, 100 / schedule.rounds
    line = place.at([(low, even), (high, even)])
    return joined(
        (
            *svg.boxes(place, [(low, least, high, most)], "series-5", **_BAND),
            svg.curve(line, "soft", stroke_dasharray="2 3"),
        )
    )


def _summary(outlook: Outlook) -> str:
    schedule, last = outlook.choice.schedule, outlook.rounds[-1]
    return (
        f"{outlook.choice.name}: {svg.number(round(float(last.users)))} active users in"
        f" round {last.round}, and at least {_percent(schedule.least)} % of the budget"
        " in every round"
    )


def _percent(share: Fraction) -> str:
    """Return a limit in percent, rounded down."""
    return svg.number(floor(1000 * share) / 10)


def _rows(outlooks: Sequence[Outlook]) -> Iterator[tuple[str, ...]]:
    for one in outlooks:
        shares = [Fraction(0), *one.unlocked]
        rounds = {at.round: at for at in one.rounds}
        for at in range(max(len(shares), max(rounds) + 1)):
            unlocked = _percent(shares[at]) if at < len(shares) else "-"
            found = rounds.get(at)
            users = svg.number(float(found.users)) if found else "-"
            available = _percent(found.greedy) if found else "-"
            yield one.choice.name, str(at), users, unlocked, available
