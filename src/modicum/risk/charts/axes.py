"""Common parts of risk charts: the epsilon axis, and the notice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from modicum.core.errors import printable
from modicum.core.rationals import brief
from modicum.reports.charts.canvas import GRAY
from modicum.risk.study.rounding import near
from modicum.risk.study.study import Candidate, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Dark enough for paper: marks that must not be overlooked.
_RED = "#9b1c1c"
#: Number of letters, and two between numbers, that fit below an axis.
_LETTERS_MAX = 76
#: Fewer candidates than that would have bars as wide as the picture.
_SLOTS_MIN = 4
_NAME_MAX = 34


def begin(figure: Figure, study: Study, description: str) -> None:
    """Add the notice to a figure, and set its text alternative."""
    notice = study.notice
    figure.set_label(printable(f"{notice}. {description}" if notice else description))
    if notice:
        figure.suptitle(notice, color=_RED, fontsize=10, fontweight="bold")


def epsilons_across(axes: Axes, candidates: Sequence[Candidate]) -> None:
    """Label candidates in even steps: every one, or every n-th."""
    names = [brief(one.epsilon) for one in candidates]
    every = 1
    while sum(len(name) + 2 for name in names[::every]) > _LETTERS_MAX:
        every += 1
    axes.set_xticks(range(0, len(names), every), names[::every])
    aside = 0.6 + max(0, _SLOTS_MIN - len(names)) / 2
    axes.set_xlim(-aside, len(names) - 1 + aside)
    axes.grid(visible=False, axis="x")


def mark_chosen(axes: Axes, study: Study, candidates: Sequence[Candidate]) -> None:
    """Mark the chosen candidate by a band over the whole panel."""
    for place, one in enumerate(candidates):
        if one is study.chosen:
            axes.axvspan(place - 0.5, place + 0.5, color="#e3e3e3", zorder=0.1, lw=0)


def chosen_text(study: Study) -> str:
    """Return the choice, as text."""
    epsilon = study.choice.epsilon
    if epsilon is None:
        return "no epsilon was chosen"
    elsewhere = "" if study.chosen else ", which is not shown"
    return f"chosen epsilon: {brief(epsilon)}{elsewhere}"


def logarithmic(axes: Axes) -> None:
    """Label a logarithmic axis with plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axes.get_ylim()
    # Within a factor of 500 powers of ten are too few to read anything from.
    between = (1.0, 2.0, 5.0) if high < 500 * low else (1.0,)
    axes.yaxis.set_major_locator(LogLocator(subs=between, numticks=8))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: near(value)))
    axes.yaxis.set_minor_formatter(NullFormatter())


def draw_note(axes: Axes, description: str) -> None:
    """Explain why a panel is empty."""
    axes.text(0.5, 0.5, description, transform=axes.transAxes, ha="center", color=GRAY)
    axes.set_xticks([])
    axes.set_yticks([])


def short(name: str) -> str:
    """Return a name in one short line; the table has all of it."""
    line = printable(" ".join(name.split()))
    return line if len(line) <= _NAME_MAX else f"{line[: _NAME_MAX - 3]}..."
