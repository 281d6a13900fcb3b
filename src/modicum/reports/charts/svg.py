"""The parts of charts as SVG: scales, axes, shapes, patterns and legends.

Every shape has a class and the color of that class, which holds unless the style of
a page sets another `color` for the class. The same input gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, isnan, log10
from types import MappingProxyType
from typing import TypeAlias

from modicum.core.diagnostics import columns, cut
from modicum.core.errors import Code, InputError, Problem, check
from modicum.reports.markup import Markup, element, joined

#: The colors of classes on white. Those of series are distinguishable with color
#: blindness (Okabe & Ito 2008).
COLORS: Mapping[str, str] = MappingProxyType(
    {
        "series-1": "#0072b2",
        "series-2": "#d55e00",
        "series-3": "#009e73",
        "series-4": "#cc79a7",
        "series-5": "#56b4e9",
        "series-6": "#e69f00",
        "series-7": "#000000",
        "ink": "#1c2128",
        "soft": "#57606a",
        "grid": "#d9dee3",
        "paper": "#ffffff",
        "rail": "#c9d1d9",
        "fill": "#2f6fab",
        "near": "#8a5a00",
        "over": "#b3261e",
    }
)
_SERIES = 7
#: Lines are distinct without color.
_DASHES = ("", "7 3", "2 3", "9 3 2 3")
#: The lines of each pattern in a square of 6 pixels.
_PATTERNS: Mapping[str, str] = MappingProxyType(
    {
        "/": "M-1 1l2-2M0 6l6-6M5 7l2-2",
        "\\": "M-1 5l2 2M0 0l6 6M5-1l2 2",
        "x": "M0 6l6-6M0 0l6 6",
        "-": "M0 3h6",
        ".": "M2 3h2",
    }
)

#: The width of a chart, and the space right of its panels and above the first one.
WIDTH, RIGHT, TOP = 720, 36, 30
#: The space below a panel for the labels of its horizontal axis.
BELOW = 46
#: The columns of a title and of a name in a legend that fit into a chart.
TITLE_MAX, _NAME_MAX = 70, 60
#: The font sizes of numbers and legends, of labels of axes, and of titles.
_SMALL, MIDDLE, _LARGE = 11, 12, 13

Point: TypeAlias = tuple[float, float]
#: The left, lower, right and upper end of a bar.
Box: TypeAlias = tuple[float, float, float, float]
#: Places on an axis and their labels.
Ticks: TypeAlias = Sequence[tuple[float, str]]


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps numbers to pixels. Numbers beyond its ends are drawn at its ends.

    Attributes:
        low: The number at the start.
        high: The number at the end; above the low one.
        start: A pixel.
        end: Another one.
        log: Whether it is logarithmic; then numbers are > 0.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the pixel of a number."""
        check(not isnan(value), "a chart needs numbers")
        low, high = self.low, self.high
        if self.log:
            low, high = log10(low), log10(high)
            value = log10(value) if value > 0 else low
        part = min(max((value - low) / (high - low), 0.0), 1.0)
        return self.start + part * (self.end - self.start)

    def ticks(self, most: int = 6, *, whole: bool = False) -> list[float]:
        """Return round numbers on the scale, about as many as given or fewer."""
        if self.log and self.high >= 10 * self.low:
            return self._powers(most + 2)
        step = _round_step((self.high - self.low) / most)
        if whole:
            step = max(step, 1)
        first, last = ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]

    def _powers(self, most: int) -> list[float]:
        """Return powers of ten; on a short scale, some numbers between them, too."""
        first, last = floor(log10(self.low)), ceil(log10(self.high))
        between = (1, 2, 5) if self.high < 500 * self.low else (1,)
        every = -(-(last - first + 1) // most)
        numbers = (
            float(f"{digit}e{power}")
            for power in range(first, last + 1, every)
            for digit in between
        )
        return [one for one in numbers if self.low <= one <= self.high]


def _round_step(least: float) -> float:
    """Return the least of 1, 2 and 5 times a power of ten that is not below."""
    power = floor(log10(least))
    steps = [float(f"{digit}e{power}") for digit in (1, 2, 5, 10)]
    return next((step for step in steps if step >= least * (1 - 1e-9)), steps[-1])


@dataclass(frozen=True, slots=True)
class Panel:
    """The area of a plot.

    Attributes:
        x: The scale from left to right.
        y: The scale from the bottom up: it starts at the lower pixel.
    """

    x: Scale
    y: Scale

    def at(self, points: Iterable[Point]) -> list[Point]:
        """Return the pixels of points."""
        return [(self.x(x), self.y(y)) for x, y in points]


def panel(
    top: float,
    height: float,
    across: tuple[float, float],
    up: tuple[float, float],
    *,
    left: float = 80,
    log: bool = False,
) -> Panel:
    """Return the area of a plot.

    Args:
        top: Its upper end, in pixels.
        height: Its height, in pixels.
        across: The numbers at its left and right ends.
        up: The numbers at its lower and upper ends.
        left: Its left end, in pixels.
        log: Whether the vertical scale is logarithmic.
    """
    return Panel(
        Scale(*across, left, WIDTH - RIGHT), Scale(*up, top + height, top, log)
    )


def paint(kind: str) -> dict[str, str]:
    """Return the attributes that color a shape: its classes, and the first's color."""
    return {"class_": kind, "color": COLORS[kind.partition(" ")[0]]}


def series(index: int) -> str:
    """Return the class of a series; they repeat after the seventh."""
    return f"series-{index % _SERIES + 1}"


def dashes(index: int) -> dict[str, str]:
    """Return the attribute of a line that is distinct from its neighbors."""
    found = _DASHES[index % len(_DASHES)]
    return {"stroke_dasharray": found} if found else {}


def px(value: float) -> str:
    """Return a number of pixels, in tenths."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def number(value: float) -> str:
    """Return a number beside an axis, such as 600,000."""
    return f"{value:,.10g}"


def words(
    x: float, y: float, content: str, kind: str = "ink", **attributes: str
) -> Markup:
    """Return a line of text."""
    look = {"fill": "currentColor", **paint(kind), **attributes}
    return element("text", content, x=px(x), y=px(y), **look)


def text_width(text: str, size: float = _SMALL) -> float:
    """Return how wide a text is at most, in a usual font."""
    return columns(text) * size * 0.61


def curve(points: Sequence[Point], kind: str, **attributes: str) -> Markup:
    """Return a line through pixels."""
    path = "M" + "L".join(f"{px(x)} {px(y)}" for x, y in points)
    look = {"fill": "none", "stroke": "currentColor", "stroke_width": "2"}
    return element("path", d=path, **{**look, **paint(kind), **attributes})


def steps(points: Sequence[Point]) -> list[Point]:
    """Return the corners of a line that keeps its height up to the next point."""
    found = [points[0]]
    for x, y in points[1:]:
        before, height = found[-1]
        if y != height:
            found += [(x, y)] if x == before else [(x, height), (x, y)]
    return [*found, (points[-1][0], found[-1][1])]


def boxes(
    place: Panel, bars: Iterable[Box], kind: str, **attributes: str
) -> Iterator[Markup]:
    """Yield bars, with an edge."""
    look = {"stroke": COLORS["ink"], "stroke_width": "0.8", **attributes}
    for x_low, y_low, x_high, y_high in bars:
        (left, bottom), (right, top) = place.at(((x_low, y_low), (x_high, y_high)))
        sides = left, top, right - left, bottom - top
        yield rectangle(sides, f"{kind} bar", **look)


def rectangle(
    place: tuple[float, float, float, float], kind: str, **attributes: str
) -> Markup:
    """Return a rectangle at a left and upper end, of a width and height."""
    sides = dict(zip(("x", "y", "width", "height"), map(px, place), strict=True))
    look = {"fill": "currentColor", **paint(kind), **attributes}
    return element("rect", **sides, **look)


def dots(points: Iterable[Point], radius: float, *, hollow: bool) -> Iterator[Markup]:
    """Yield round marks at pixels, dark ones or circles."""
    look = paint("ink hollow" if hollow else "ink")
    look["fill"] = COLORS["paper"] if hollow else "currentColor"
    for x, y in points:
        center = {"cx": px(x), "cy": px(y), "r": px(radius)}
        yield element("circle", **center, stroke="currentColor", **look)


def pattern(name: str, lines: str, kind: str, background: str = "") -> Markup:
    """Return the definition of a pattern, to fill shapes by `url(#name)`."""
    ground = [rectangle((0, 0, 6, 6), background)] if background else []
    thick = "2" if lines == "." else "1"
    look = {"fill": "none", "stroke": "currentColor", "stroke_width": thick}
    return element(
        "pattern",
        *ground,
        element("path", d=_PATTERNS[lines], **look, **paint(kind)),
        id=name,
        width="6",
        height="6",
        patternUnits="userSpaceOnUse",
    )


def axes(
    place: Panel,
    title: str,
    across: str,
    up: str,
    ticks: tuple[Ticks, Ticks],
    *,
    grid: bool = True,
) -> Markup:
    """Return what is around a plot, and the lines behind it.

    Args:
        place: Its area.
        title: What it shows.
        across: The name of the horizontal axis, with its unit.
        up: The name of the vertical axis, with its unit.
        ticks: The places that are labeled on the horizontal and the vertical axis.
        grid: Whether there are lines behind the plot at the latter.
    """
    x_ticks, y_ticks = ticks
    head = cut(title, TITLE_MAX)
    left, right, bottom, top = place.x.start, place.x.end, place.y.start, place.y.end
    middle, center = (left + right) / 2, (bottom + top) / 2
    lines = [
        curve([(left, place.y(y)), (right, place.y(y))], "grid", stroke_width="1")
        for y, _ in y_ticks
        if grid
    ]
    labels = [
        words(left - 7, place.y(y) + 4, text, text_anchor="end") for y, text in y_ticks
    ]
    labels += [
        words(place.x(x), bottom + 16, text, text_anchor="middle")
        for x, text in x_ticks
    ]
    border = [(left, top), (left, bottom), (right, bottom)]
    size = str(MIDDLE)
    turned = f"rotate(-90 14 {px(center)})"
    return joined(
        (
            *lines,
            curve(border, "soft", stroke_width="1"),
            element("g", *labels, font_size=str(_SMALL)),
            words(left, top - 10, head, font_weight="bold", font_size=str(_LARGE)),
            words(middle, bottom + 34, across, text_anchor="middle", font_size=size),
            words(
                *(14, center, up),
                text_anchor="middle",
                font_size=size,
                transform=turned,
            ),
        )
    )


def labeled(scale: Scale, *, whole: bool = False) -> Ticks:
    """Return round numbers, or whole ones, on a scale, and the same as text."""
    return [(one, number(one)) for one in scale.ticks(10 if whole else 6, whole=whole)]


def span(first: float, last: float) -> tuple[float, float]:
    """Return two numbers, or those around one number if they are equal."""
    return (first, last) if first < last else (first - 0.5, last + 0.5)


def margin(*labels: str) -> float:
    """Return the space that labels need left of a panel, with the name of the axis."""
    return 32 + max(map(text_width, labels), default=0)


def thinned(labels: Sequence[str], width: float) -> int:
    """Return n if every n-th of evenly spaced labels fits into a width."""
    every = 1
    while every < len(labels) and _needed(labels[::every]) > width:
        every += 1
    return every


def _needed(labels: Sequence[str]) -> float:
    return sum(text_width(one) + 14 for one in labels)


def legend(entries: Sequence[tuple[Markup, str]], place: Panel) -> tuple[Markup, float]:
    """Return a legend and its lower end, in as many rows as it needs.

    Args:
        entries: A sample of 24 by 12 pixels for each name.
        place: The panel that it is below.
    """
    left = place.x.start
    x, y, drawn = left, place.y.start + BELOW, []
    for sample, text in entries:
        name = cut(text, _NAME_MAX)
        width = 30 + text_width(name) + 16
        if x > left and x + width > WIDTH:
            x, y = left, y + 18
        name_of = words(30, 10, name)
        drawn.append(
            element("g", sample, name_of, transform=f"translate({px(x)} {px(y)})")
        )
        x += width
    return element("g", *drawn, font_size=str(_SMALL), class_="legend"), y + 18


def line_sample(kind: str, **attributes: str) -> Markup:
    """Return the sample of a line, for a legend."""
    return curve([(0, 6), (24, 6)], kind, **attributes)


def box_sample(kind: str, **attributes: str) -> Markup:
    """Return the sample of bars, for a legend."""
    look = {"stroke": COLORS["ink"], "stroke_width": "0.8", **attributes}
    return rectangle((3, 1, 18, 10), f"{kind} bar", **look)


def note(place: Panel, text: str) -> Markup:
    """Return a text in the middle of a panel: why it is empty."""
    x, y = (place.x.start + place.x.end) / 2, (place.y.start + place.y.end) / 2
    return words(x, y, text, "soft", text_anchor="middle")


def require(condition: bool, otherwise: str) -> None:  # noqa: FBT001 - a sentence
    """Refuse numbers that cannot be drawn.

    Raises:
        InputError: Unless the condition holds.
    """
    if not condition:
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"nothing can be drawn: {otherwise}",
                help="give one number for each round, class or segment",
            )
        )
