"""Draw docs/images/conversions.svg: epsilon of k Gaussian answers, by each method.

Run `.venv/bin/python tools/conversion_plot.py` after changing a conversion; with
`--check` nothing is written, and the exit code says whether the picture is current.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from modicum.accounting.conversions.guarantees import Guarantee, Target
from modicum.accounting.conversions.registry import convert
from modicum.accounting.grid import ORDERS
from modicum.reports.charts import svg
from modicum.reports.charts.chart import chart

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "conversions.svg"

DELTA = Fraction(1, 10**6)
SIGMA = 10
COUNTS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 65, 80, 100)
EPSILON_MAX = 6


class Line(NamedTuple):
    """A method."""

    label: str
    epsilon: Callable[[int], Fraction]


def _rho(count: int) -> Guarantee:
    return Guarantee("rho", Fraction(1, 2 * SIGMA**2), times=count)


def _renyi(count: int) -> Guarantee:
    rho = Fraction(1, 2 * SIGMA**2)
    points = tuple((order, order * rho) for order in ORDERS[:-2])
    return Guarantee("rdp", points=points, times=count)


def _mu(count: int) -> Guarantee:
    return Guarantee("mu", Fraction(1, SIGMA), times=count)


def _by(proven: Callable[[int], Guarantee], method: str) -> Callable[[int], Fraction]:
    return lambda count: convert(proven(count), Target("eps", DELTA), method).value


LINES = (
    Line("bun-steinke", _by(_rho, "bun-steinke")),
    Line("mironov", _by(_renyi, "mironov")),
    Line("bun-steinke-lemma-3.6", _by(_rho, "bun-steinke-lemma-3.6")),
    Line("cks", _by(_renyi, "cks")),
    Line("real-order", _by(_rho, "real-order")),
    Line("gaussian-exact", _by(_mu, "gaussian-exact")),
)


def picture() -> str:
    """Return the whole picture."""
    place = svg.panel(svg.TOP, 330, (0, COUNTS[-1]), (0, EPSILON_MAX))
    ticks = svg.labeled(place.x, whole=True), svg.labeled(place.y)
    parts = [svg.axes(place, "ε at δ = 1e-6", "number of answers", "ε", ticks)]
    samples = []
    rows = (
        (str(count), *(f"{float(line.epsilon(count)):.2f}" for line in LINES))
        for count in COUNTS
    )
    for index, line in enumerate(LINES):
        values = [float(line.epsilon(count)) for count in COUNTS]
        points = place.at(zip(COUNTS, values, strict=True))
        parts.append(svg.curve(points, svg.series(index), **svg.dashes(index)))
        text = f"{line.label} ({values[-1]:.2f})"
        samples.append((svg.line_sample(svg.series(index), **svg.dashes(index)), text))
    key, height = svg.legend(samples, place)
    best, worst = LINES[-1], LINES[0]
    sentence = (
        f"Lines over 1 to {COUNTS[-1]} answers with Gaussian noise of {SIGMA} times"
        " their sensitivity. At the right end, from the top: "
        + ", ".join(
            f"{line.label} {float(line.epsilon(COUNTS[-1])):.2f}"
            for line in sorted(LINES, key=lambda x: -x.epsilon(COUNTS[-1]))
        )
        + f". {best.label} is the lowest everywhere, {worst.label} the highest of"
        " those that start with rho."
    )
    title = "Epsilon of repeated Gaussian answers, by method"
    numbers = ("Answers", *(line.label for line in LINES)), tuple(rows)
    drawn = chart("conversions", title, sentence, numbers, height, *parts, key)
    return f"{drawn.svg}\n"


def main() -> None:
    """Draw the picture, or check it."""
    if "--check" in sys.argv[1:]:
        current = PICTURE.exists() and PICTURE.read_text(encoding="utf-8") == picture()
        print(f"{PICTURE.name} is {'current' if current else 'out of date'}")
        sys.exit(not current)
    PICTURE.write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
