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

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "conversions.svg"

DELTA = Fraction(1, 10**6)
SIGMA = 10
COUNTS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 65, 80, 100)
EPSILON_MAX = 6

WIDTH, HEIGHT = 760, 460
LEFT, RIGHT, TOP, BOTTOM = 60, 230, 40, 50


class Line(NamedTuple):
    """A method: its label, its color (told apart by the color-blind), its dashes."""

    label: str
    color: str
    dashes: str
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
    Line("bun-steinke", "#d55e00", "2 4", _by(_rho, "bun-steinke")),
    Line("mironov", "#cc79a7", "8 4", _by(_renyi, "mironov")),
    Line("bun-steinke-lemma-3.6", "#e69f00", "", _by(_rho, "bun-steinke-lemma-3.6")),
    Line("cks", "#56b4e9", "10 3 2 3", _by(_renyi, "cks")),
    Line("real-order", "#0072b2", "", _by(_rho, "real-order")),
    Line("gaussian-exact", "#009e73", "", _by(_mu, "gaussian-exact")),
)


def _x(count: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * count / COUNTS[-1]


def _y(epsilon: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * epsilon / EPSILON_MAX


def _axes() -> list[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = []
    for epsilon in range(EPSILON_MAX + 1):
        y = _y(epsilon)
        parts += [
            f'<line x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" class="grid"/>',
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" class="end">{epsilon}</text>',
        ]
    for count in range(0, COUNTS[-1] + 1, 20):
        text = f'<text x="{_x(count):.1f}" y="{bottom + 20}" class="mid">{count}</text>'
        parts.append(text)
    middle = (LEFT + right) / 2
    parts += [
        f'<text x="{middle:.1f}" y="{HEIGHT - 8}" class="mid">number of answers</text>',
        f'<text x="{LEFT}" y="{TOP - 14}">ε at δ = 1e-6</text>',
    ]
    return parts


def _line(line: Line, label_y: float) -> list[str]:
    values = [float(line.epsilon(count)) for count in COUNTS]
    points = " ".join(
        f"{_x(count):.1f},{_y(value):.1f}"
        for count, value in zip(COUNTS, values, strict=True)
    )
    dashes = f' stroke-dasharray="{line.dashes}"' if line.dashes else ""
    end = WIDTH - RIGHT
    color = f'stroke="{line.color}"'
    label = f"{line.label} ({values[-1]:.2f})"
    return [
        f'<polyline points="{points}" class="curve" {color}{dashes}/>',
        f'<path d="M{end},{_y(values[-1]):.1f} L{end + 14},{label_y:.1f}" '
        f'class="curve thin" {color}/>',
        f'<text x="{end + 18}" y="{label_y + 4:.1f}">{label}</text>',
    ]


def _label_heights() -> dict[str, float]:
    """Return where the labels stand: beside the ends, none over another."""
    ends = {line.label: _y(float(line.epsilon(COUNTS[-1]))) for line in LINES}
    placed: dict[str, float] = {}
    lowest = TOP - 10.0
    for label, height in sorted(ends.items(), key=lambda item: item[1]):
        lowest = max(height, lowest + 19)
        placed[label] = lowest
    return placed


def picture() -> str:
    """Return the whole picture."""
    heights = _label_heights()
    best, worst = LINES[-1], LINES[0]
    desc = (
        f"Lines over 1 to {COUNTS[-1]} answers with Gaussian noise of {SIGMA} times"
        " their sensitivity. At the right end, from the top: "
        + ", ".join(
            f"{line.label} {float(line.epsilon(COUNTS[-1])):.2f}"
            for line in sorted(LINES, key=lambda x: -x.epsilon(COUNTS[-1]))
        )
        + f". {best.label} is the lowest everywhere, {worst.label} the highest of"
        " those that start with rho."
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'role="img" aria-labelledby="title desc">',
        '<title id="title">Epsilon of repeated Gaussian answers, by method</title>',
        f'<desc id="desc">{desc}</desc>',
        "<style>text{font:14px sans-serif;fill:#222}.end{text-anchor:end}"
        ".mid{text-anchor:middle}.grid{stroke:#ddd}"
        ".curve{fill:none;stroke-width:2.5}.thin{stroke-width:1}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        *_axes(),
    ]
    for line in LINES:
        parts += _line(line, heights[line.label])
    return "\n".join([*parts, "</svg>"]) + "\n"


def main() -> None:
    """Draw the picture, or check it."""
    if "--check" in sys.argv[1:]:
        current = PICTURE.exists() and PICTURE.read_text(encoding="utf-8") == picture()
        print(f"{PICTURE.name} is {'current' if current else 'out of date'}")
        sys.exit(not current)
    PICTURE.write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
