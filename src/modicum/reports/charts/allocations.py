"""Charts of a planner's allocations over many rounds, from plain numbers.

The numbers concern requests and budgets, which are public; nothing here is, or may be,
computed from rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from modicum.core.errors import Code, InputError, Problem
from modicum.reports.charts.canvas import (
    COLORS,
    count_across,
    label,
    legend,
    panels,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: More names than that beside a heat map would lie on top of each other.
_SEGMENTS_NAMED_MAX = 30


def utility_by_round(
    utility: Mapping[str, Sequence[float]],
    *,
    spread: Mapping[str, Sequence[float]] | None = None,
    first_round: int = 1,
    unit: str = "% of what was requested",
) -> Figure:
    """Return a figure of the utility of each round, one line for each planner."""
    _check(bool(utility) and all(map(len, utility.values())), "there is no round")
    spread = spread or {}
    for name, far in spread.items():
        fits = name in utility and len(far) == len(utility[name])
        _check(fits, f"the spread of {name} is not that of a line")
    with styled():
        figure, (axes,) = panels(3.4)
        for index, (name, values) in enumerate(utility.items()):
            color = COLORS[index % len(COLORS)]
            dashes = ("-", "--", ":", "-.")[index % 4]
            rounds = range(first_round, first_round + len(values))
            axes.plot(rounds, values, color=color, linestyle=dashes, label=name)
            if name in spread:
                pairs = list(zip(values, spread[name], strict=True))
                low, high = [v - s for v, s in pairs], [v + s for v, s in pairs]
                axes.fill_between(rounds, low, high, color=color, alpha=0.15, lw=0)
        label(axes, "Utility by round", "round", f"utility, {unit}")
        axes.set_ylim(bottom=0)
        count_across(axes)
        legend(axes)
    return figure


def accepted_by_size(accepted: Mapping[str, Mapping[str, float]]) -> Figure:
    """Return a figure of the part of requests that was accepted, by their size."""
    classes = list(next(iter(accepted.values()), ()))
    _check(bool(classes), "there is no class of sizes")
    for name, shares in accepted.items():
        _check(set(shares) == set(classes), f"{name} has other classes of sizes")
        parts = all(0 <= share <= 1 for share in shares.values())
        _check(parts, f"a part of {name} is not from 0 to 1")
    with styled():
        figure, (axes,) = panels(3.4)
        width = 0.8 / len(accepted)
        for index, (name, shares) in enumerate(accepted.items()):
            left = [
                place - 0.4 + width * (index + 0.5) for place in range(len(classes))
            ]
            heights = [100 * shares[one] for one in classes]
            color = COLORS[index % len(COLORS)]
            bars = axes.bar(left, heights, width * 0.92, color=color, label=name)
            axes.bar_label(bars, fmt="%.0f", padding=1, fontsize="small")
        axes.set_xticks(range(len(classes)), classes)
        axes.grid(visible=False, axis="x")
        axes.set_ylim(0, 108)
        label(axes, "Accepted by size", "size of the request", "accepted, %")
        legend(axes)
    return figure


def budget_left(
    left: Sequence[Sequence[float]],
    segments: Sequence[str],
    *,
    first_round: int = 1,
    unit: str = "% of the unlocked budget",
) -> Figure:
    """Return a heat map of the remaining budget of each segment, round by round."""
    _check(len(left) == len(segments) > 0, "segments and their names differ in number")
    rounds = len(left[0])
    same = rounds > 0 and all(len(row) == rounds for row in left)
    _check(same, "segments have different numbers of rounds, or none")
    with styled():
        figure, (axes,) = panels(min(9.0, 1.6 + 0.22 * len(segments)))
        drawn = axes.imshow(
            [[100 * share for share in row] for row in left],
            aspect="auto",
            cmap="cividis",
            vmin=0,
            vmax=100,
            interpolation="nearest",
            extent=(
                first_round - 0.5,
                first_round + rounds - 0.5,
                len(left) - 0.5,
                -0.5,
            ),
        )
        axes.grid(visible=False)
        _name_segments(axes, segments)
        label(axes, "Budget left", "round", "segment")
        count_across(axes)
        figure.colorbar(drawn, ax=axes, label=f"left, {unit}")
    return figure


def _name_segments(axes: Axes, segments: Sequence[str]) -> None:
    """Label every segment, or every n-th if they are too many."""
    every = -(-len(segments) // _SEGMENTS_NAMED_MAX)
    places = range(0, len(segments), every)
    axes.set_yticks(places, [segments[place] for place in places], fontsize="small")


def _check(condition: bool, otherwise: str) -> None:  # noqa: FBT001 - a sentence
    if not condition:
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"nothing can be drawn: {otherwise}",
                help="give one number for each round, class or segment",
            )
        )
