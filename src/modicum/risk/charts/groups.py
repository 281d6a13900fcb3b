"""Groups of people side by side, at each epsilon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import brief
from modicum.reports.charts.canvas import COLORS, label, panels, styled
from modicum.risk.charts.axes import (
    begin,
    chosen_text,
    draw_note,
    epsilons_across,
    mark_chosen,
    short,
)
from modicum.risk.study.study import Candidate, Spread, Study, Target

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure

#: Maximum number of distinguishable groups.
GROUPS_MAX = 6
#: More bars in one panel are too thin.
_BARS_MAX = 48
_COLORS = [COLORS[index] for index in (4, 5, 2, 3, 0, 1)]
_HATCHES = ("", "////", "....", "xxx", "\\\\", "---")
#: The style of marks that mean the same in every bar: a dot fits into a circle.
_LOOKS: dict[str, dict[str, Any]] = {
    "median": {"size": 1, "style": {"marker": "o", "mfc": "white", "mec": "black"}},
    "p99": {"size": 0.5, "style": {"marker": "o", "color": "black"}},
}
_SHARES = {"median": "median", "p99": "99th percentile"}
#: The position of a bar, its span, and whose maximum it is relative to.
_Bars: TypeAlias = list[tuple[float, Spread, Spread]]


def risk_groups(study: Study) -> Figure:
    """Return a figure with a bar for each group at each epsilon.

    Bars go from the least indicator of a group to its greatest, as parts of the
    greatest of all people. Of many epsilons only some are shown, the chosen one among
    them: the table has all.
    """
    if not 1 <= len(study.groups) <= GROUPS_MAX:
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"nothing can be drawn: there are {len(study.groups)} groups of people",
                help=f"compare 1 to {GROUPS_MAX} groups in one picture",
            )
        )
    shown = shown_candidates(study)
    with styled():
        figure, (axes,) = panels(4.2)
        begin(figure, study, groups_text(study))
        title = f"RDR of groups of people; {chosen_text(study)}"
        label(axes, title, _across(study, shown), "RDR, share of the largest of all")
        axes.set_ylim(0, 1.06)
        if any(one.rdr is not None for one in shown):
            _legend(figure, *_draw(axes, study, shown))
        else:
            draw_note(axes, "the table has no people")
    return figure


def shown_candidates(study: Study) -> list[Candidate]:
    """Return the candidates that a figure of groups has room for."""
    many, room = len(study.candidates), _BARS_MAX // len(study.groups)
    places = set(range(0, many, -(-many // room) or 1))
    chosen = study.chosen
    if chosen is not None:
        places.add(study.candidates.index(chosen))
    return [study.candidates[place] for place in sorted(places)]


def groups_text(study: Study) -> str:
    """Return the text alternative of the figure."""
    names = ", ".join(group.name for group in study.groups)
    description = f"Range plot that compares these groups of people: {names}; "
    return f"{description}{chosen_text(study)}. See the table for all numbers."


def _across(study: Study, shown: Sequence[Candidate]) -> str:
    if len(shown) == len(study.candidates):
        return "epsilon"
    return f"epsilon; {len(shown)} of {len(study.candidates)}, all in the table"


def _draw(
    axes: Axes, study: Study, shown: Sequence[Candidate]
) -> tuple[list[Any], list[str]]:
    """Draw all groups, and return the handles and names of the legend."""
    from matplotlib.patches import Patch

    epsilons_across(axes, shown)
    mark_chosen(axes, study, shown)
    width = 0.84 / len(study.groups)
    names: list[str] = []
    handles: list[Any] = []
    for index, group in enumerate(study.groups):
        aside = -0.42 + width * (index + 0.5)
        bars = [
            (place + aside, one.groups[index], one.rdr)
            for place, one in enumerate(shown)
        ]
        there = [(x, own, every) for x, own, every in bars if own and every]
        look: dict[str, Any] = {"facecolor": _COLORS[index], "hatch": _HATCHES[index]}
        look |= {"edgecolor": "black", "linewidth": 0.8}
        handles.append(Patch(**look))
        _draw_bars(axes, there, width, look)
        _mark(axes, there, 5 if len(shown) * len(study.groups) <= 24 else 3.5)
        few = {0: "nobody", 1: "1 person"}
        people = few.get(group.people, f"{group.people:,} people")
        names.append(f"{short(group.name)}: {people}")
    for which, look in _LOOKS.items():
        handles += axes.plot([], [], ls="none", ms=5 * look["size"], **look["style"])
        names.append(_SHARES[which])
    if study.wanted is not None and study.wanted.statistic is not None:
        handles.append(_draw_wanted(axes, study.wanted, shown))
        tau, statistic = brief(study.wanted.tau), study.wanted.statistic
        names.append(f"target: {statistic} of each at least {tau} of the largest")
    return handles, names


def _draw_bars(axes: Axes, there: _Bars, width: float, look: Mapping[str, Any]) -> None:
    least = [every.part(own.least) for _, own, every in there]
    greatest = [every.part(own.greatest) for _, own, every in there]
    axes.bar(
        [x for x, _, _ in there],
        [high - low for high, low in zip(greatest, least, strict=True)],
        width * 0.9,
        bottom=least,
        **look,
    )


def _mark(axes: Axes, there: _Bars, size: float) -> None:
    for which, look in _LOOKS.items():
        marks = [(x, getattr(own, which), every) for x, own, every in there]
        parts = [(x, every.part(at)) for x, at, every in marks if at is not None]
        if parts:
            across, up = zip(*parts, strict=True)
            style = look["style"]
            axes.plot(
                across,
                up,
                ls="none",
                ms=size * look["size"],
                zorder=4,
                clip_on=False,
                **style,
            )


def _draw_wanted(
    axes: Axes, wanted: Target, shown: Sequence[Candidate]
) -> LineCollection:
    """Draw the lower limit for the statistic of a group, given the largest."""
    which = "greatest" if wanted.statistic == "max" else str(wanted.statistic)
    places, lows = [], []
    for place, one in enumerate(shown):
        found = [getattr(own, which) for own in one.groups if own is not None]
        if found and one.rdr is not None:
            places.append(place)
            lows.append(float(wanted.tau) * one.rdr.part(max(found)))
    ends = ([at - 0.48 for at in places], [at + 0.48 for at in places])
    return axes.hlines(lows, *ends, color="black", ls="--", lw=1.5, zorder=3)


def _legend(figure: Figure, handles: Sequence[Any], names: Sequence[str]) -> None:
    # The legend omits names that begin with an underscore: so names are set later.
    numbers = [str(number) for number in range(len(names))]
    legend = figure.legend(
        handles, numbers, loc="outside lower center", ncols=2, fontsize="small"
    )
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(name)
