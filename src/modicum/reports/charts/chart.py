"""A chart: its picture, its sentence and its table; and its file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from modicum.core.errors import Code, Problem, UsageError, check
from modicum.reports.charts.svg import MIDDLE, WIDTH, px, rectangle
from modicum.reports.markup import Markup, element, table
from modicum.system.files import write_whole

#: The headings of a table, and its rows.
Numbers: TypeAlias = tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]


@dataclass(frozen=True, slots=True, repr=False)
class Chart:
    """A picture of numbers, and the same numbers for who cannot see it.

    Attributes:
        title: What it shows.
        sentence: A summary in one sentence.
        svg: The picture: loads nothing, runs nothing, has no style of its own.
        table: The headings and the rows of the same numbers.
    """

    title: str
    sentence: str
    svg: Markup
    table: Numbers

    def figure(self) -> Markup:
        """Return the chart for a page, with its table to unfold."""
        return element(
            "figure",
            self.svg,
            element("figcaption", self.sentence),
            element(
                "details",
                element("summary", "Numbers"),
                table(self.title, *self.table),
            ),
        )

    def __repr__(self) -> str:
        return f"<Chart {self.title!r}>"

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return self.figure()


def chart(
    name: str,
    title: str,
    sentence: str,
    numbers: Numbers,
    height: float,
    *parts: Markup,
    width: float = WIDTH,
    **attributes: str,
) -> Chart:
    """Return a chart of the parts of its picture.

    Args:
        name: Begins the ids in it, so it is unique on a page: small letters, digits and
            hyphens.
        title: What it shows.
        sentence: A summary.
        numbers: The headings and the rows of its table.
        height: The height of the picture, in pixels.
        parts: The parts of the picture.
        width: The width of the picture, in pixels.
        attributes: Attributes of the picture, beside the usual ones or instead of them.
    """
    check(re.fullmatch("[a-z][a-z0-9-]*", name) is not None, "a chart has a plain name")
    wide, high = px(width), px(height)
    usual = {
        "xmlns": "http://www.w3.org/2000/svg",
        "class_": "chart",
        "role": "img",
        "aria_labelledby": f"{name}-title {name}-desc",
        "width": wide,
        "height": high,
        "viewBox": f"0 0 {wide} {high}",
        "font_family": "system-ui, sans-serif",
        "font_size": str(MIDDLE),
    }
    picture = element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", sentence, id=f"{name}-desc"),
        rectangle((0, 0, width, height), "paper"),
        *parts,
        **{**usual, **attributes},
    )
    return Chart(title, sentence, picture, numbers)


def check_path(path: str | Path) -> None:
    """Refuse a file name of another type than SVG."""
    if Path(path).suffix.lower() != ".svg":
        raise UsageError(
            Problem(
                Code.UNKNOWN_CHOICE,
                f"cannot draw {path}: charts are SVG files",
                help="use a name that ends in .svg",
            )
        )


def save(chart: Chart, path: str | Path) -> None:
    """Write a chart as SVG: for the same chart the same bytes."""
    check_path(path)
    write_whole(path, [f"{chart.svg}\n".encode()])
