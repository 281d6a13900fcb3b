"""A chart: its picture, its sentence and its table; and its file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from modicum.core.errors import Code, Problem, UsageError
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
