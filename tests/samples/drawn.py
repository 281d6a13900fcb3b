"""Reads charts as people do: by the numbers beside their axes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import log10
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

SVG = "{http://www.w3.org/2000/svg}"
#: Pixels are written in tenths; so are the ticks that others are computed from.
SAME = 0.2


@dataclass(frozen=True)
class Label:
    """A text in a picture, and the space that it needs in a font of wide letters."""

    text: str
    x: float
    y: float
    anchor: str
    box: tuple[float, float, float, float]

    def overlaps(self, other: Label) -> bool:
        left, top, right, bottom = self.box
        x, y, end, low = other.box
        return left < end and x < right and top < low and y < bottom


@dataclass(frozen=True)
class Axis:
    """Pixels, and the texts beside them."""

    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    @property
    def texts(self) -> list[str]:
        return [text for _, text in self.ticks]

    def pixel(self, value: float) -> float:
        """Return where a number belongs, by the first and the last tick."""
        (start, low), *_, (end, high) = self.ticks
        first, last = (float(text.replace(",", "")) for text in (low, high))
        if self.log:
            first, last, value = log10(first), log10(last), log10(value)
        return start + (value - first) / (last - first) * (end - start)

    def place(self, at: float, names: Sequence[str]) -> float:
        """Return where the middle of a place belongs, if every n-th has its name."""
        (first, name), *_, (last, other) = self.ticks * 2
        start, steps = names.index(name), names.index(other) - names.index(name)
        assert steps or at == start
        return first + (at - start) * (last - first) / (steps or 1)


@dataclass(frozen=True)
class Plot:
    """A panel: its title, its axes, and what is drawn in it."""

    title: str
    across: str
    up: str
    x: Axis
    y: Axis
    left: float
    top: float
    right: float
    bottom: float
    shapes: tuple[Element, ...]

    def at(self, points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
        """Return where points of numbers belong."""
        return [(self.x.pixel(x), self.y.pixel(y)) for x, y in points]

    def kind(self, *classes: str) -> list[Element]:
        """Return the shapes that have all of these classes."""
        return [one for one in self.shapes if {*classes} <= {*_classes(one)}]

    def bars(self, *classes: str) -> list[tuple[float, float, float, float]]:
        """Return the left, upper, right and lower ends of bars."""
        return [sides(one) for one in self.kind("bar", *classes)]


def root_of(svg: str) -> Element:
    return ElementTree.fromstring(svg)


def sides(rectangle: Element) -> tuple[float, float, float, float]:
    x, y, width, height = (
        float(rectangle.get(name, "")) for name in ("x", "y", "width", "height")
    )
    return x, y, x + width, y + height


def corners(path: Element) -> list[tuple[float, float]]:
    """Return the pixels that a line goes through."""
    numbers = re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path.get("d", ""))
    return [(float(x), float(y)) for x, y in numbers]


def _classes(one: Element) -> list[str]:
    return (one.get("class") or "").split()


def _marks(root: Element) -> Iterator[Element]:
    """Yield the shapes outside of legends and patterns."""
    for one in root:
        if one.tag == f"{SVG}pattern" or "legend" in _classes(one):
            continue
        yield one
        yield from _marks(one)


def legend_of(root: Element) -> list[tuple[Element, str]]:
    """Return the sample and the name of each entry."""
    found = (one for one in root.iter(f"{SVG}g") if "legend" in _classes(one))
    return [
        (entry[0], entry.findtext(f"{SVG}text") or "") for one in found for entry in one
    ]


def labels(root: Element) -> list[Label]:
    """Return all texts, with their places in the whole picture."""
    return list(_labels(root, (0.0, 0.0), 12.0))


def _labels(
    parent: Element, shift: tuple[float, float], size: float
) -> Iterator[Label]:
    move = re.match(r"translate\(([-\d.]+) ([-\d.]+)\)", parent.get("transform", ""))
    if move:
        shift = shift[0] + float(move[1]), shift[1] + float(move[2])
    size = float(parent.get("font-size", size))
    if parent.tag == f"{SVG}text":
        yield _label(parent, shift, size)
    for one in parent:
        yield from _labels(one, shift, size)


def _label(one: Element, shift: tuple[float, float], size: float) -> Label:
    text, anchor = one.text or "", one.get("text-anchor", "start")
    x, y = (
        float(one.get(name, "")) + far for name, far in zip("xy", shift, strict=True)
    )
    bold = 1.1 if one.get("font-weight") == "bold" else 1.0
    width = 0.58 * bold * size * len(text)
    before = {"start": 0.0, "middle": width / 2, "end": width}[anchor]
    box = (x - before, y - 0.75 * size, x - before + width, y + 0.2 * size)
    if one.get("transform", "").startswith("rotate(-90"):
        ahead = width - before
        box = (x - 0.75 * size, y - ahead, x + 0.2 * size, y + before)
    return Label(text, x, y, anchor, box)


def plots(svg: str) -> list[Plot]:
    """Return the panels of a chart, from the top."""
    root = root_of(svg)
    every, texts = list(_marks(root)), labels(root)
    borders = [
        corners(one)
        for one in every
        if one.tag == f"{SVG}path" and "soft" in _classes(one)
    ]
    found = []
    for border in borders:
        if len(border) == 3 and border[0][0] == border[1][0]:
            (left, top), (_, bottom), (right, _) = border
            found.append(_plot((left, top, right, bottom), every, texts))
    return found


def _plot(
    place: tuple[float, float, float, float],
    shapes: Sequence[Element],
    texts: Sequence[Label],
) -> Plot:
    left, top, _, bottom = place
    x_ticks = [(one.x, one.text) for one in texts if _same(one.y, bottom + 16)]
    y_ticks = [
        (one.y - 4, one.text)
        for one in texts
        if one.anchor == "end" and one.x < left and top - 1 <= one.y - 4 <= bottom + 1
    ]
    (title,) = [one.text for one in texts if _same(one.y, top - 10)]
    (across,) = [one.text for one in texts if _same(one.y, bottom + 34)]
    (up,) = [one.text for one in texts if one.x == 14 and top < one.y < bottom]
    inside = [
        one
        for one in shapes
        if (middle := _middle(one)) is not None and top - 1 <= middle <= bottom + 1
    ]
    axes = Axis(tuple(x_ticks)), _vertical(tuple(y_ticks))
    return Plot(title, across, up, *axes, *place, tuple(inside))


def _same(one: float, other: float) -> bool:
    return abs(one - other) < SAME


def _vertical(ticks: tuple[tuple[float, str], ...]) -> Axis:
    """Return an axis, logarithmic if its second number is elsewhere on a plain one."""
    plain = Axis(ticks)
    if len(ticks) < 3 or not re.fullmatch(r"-?[\d,.]+(e-?\d+)?", ticks[1][1]):
        return plain
    pixel, text = ticks[1]
    return Axis(ticks, not _same(plain.pixel(float(text.replace(",", ""))), pixel))


def _middle(one: Element) -> float | None:
    if one.tag == f"{SVG}rect":
        return (sides(one)[1] + sides(one)[3]) / 2
    if one.tag == f"{SVG}circle":
        return float(one.get("cy", ""))
    if one.tag == f"{SVG}path":
        heights = [y for _, y in corners(one)]
        return sum(heights) / len(heights)
    return None


def centers(shapes: Sequence[Element]) -> list[tuple[float, float]]:
    """Return the centers of round marks."""
    return [(float(one.get("cx", "")), float(one.get("cy", ""))) for one in shapes]


def check_room(svg: str) -> None:
    """Check that no text is cut off, or on top of another one."""
    root = root_of(svg)
    _, _, width, height = map(float, root.get("viewBox", "").split())
    texts = labels(root)
    for number, one in enumerate(texts):
        left, top, right, bottom = one.box
        assert left >= 0, one
        assert top >= 0, one
        assert right <= width, one
        assert bottom <= height, one
        for other in texts[:number]:
            assert not one.overlaps(other), (one, other)
