"""Charts of the effect of a choice of rotation and unlocking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from modicum.reports.charts.canvas import (
    COLORS,
    GRAY,
    count_across,
    label,
    legend,
    panels,
    styled,
    thousands,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from modicum.planner import Outlook

#: The budget is replenished after one life of a group; this many lives are shown.
_LIVES_SHOWN = 3


def rotation_outlook(outlooks: Sequence[Outlook]) -> Figure:
    """Return a figure of one choice, or of several ones in the same panels.

    It shows the active users of each round, the unlocked budget at each age of a group,
    and the budget available in each round if all of it is used.
    """
    with styled():
        figure, (users, unlocked, available) = panels(2.6, 2.6, 2.6)
        for index, outlook in enumerate(outlooks):
            color = COLORS[index % len(COLORS)]
            dashes = ("-", "--", ":", "-.")[index % 4]  # Distinct without color.
            _draw_users(users, outlook, color, dashes)
            _draw_unlocked(unlocked, outlook, color, dashes)
            _draw_available(available, outlook, color, dashes)
        if len(outlooks) == 1:
            figure.suptitle(outlooks[0].choice.name)
            _draw_promise(available, outlooks[0])
        else:
            legend(users)
            legend(available)
        label(users, "Active users", "round", "users, on average")
        label(
            unlocked,
            "Unlocked by age",
            "age of a group, in rounds",
            "part of its budget, %",
        )
        label(
            available,
            "Available in each round, if all of it is used",
            "round",
            "part of the budget, %",
        )
        thousands(users)
        for panel in (users, available):
            panel.set_xlim(left=1)
        for panel in (users, unlocked, available):
            panel.set_ylim(bottom=0)
            count_across(panel)
    return figure


def _draw_users(axes: Axes, outlook: Outlook, color: str, dashes: str) -> None:
    rounds = [one.round for one in outlook.rounds]
    users = [float(one.users) for one in outlook.rounds]
    name = outlook.choice.name
    axes.plot(rounds, users, color=color, linestyle=dashes, label=name)


def _draw_unlocked(axes: Axes, outlook: Outlook, color: str, dashes: str) -> None:
    shares = [0.0, *(100 * float(share) for share in outlook.unlocked)]
    axes.plot(
        range(len(shares)),
        shares,
        color=color,
        linestyle=dashes,
        marker="o" if len(shares) <= 30 else None,
        markersize=4,
    )


def _draw_available(axes: Axes, outlook: Outlook, color: str, dashes: str) -> None:
    shown = outlook.rounds[: _LIVES_SHOWN * outlook.choice.rotation.active]
    rounds = [one.round for one in shown]
    greedy = [100 * float(one.greedy) for one in shown]
    axes.step(
        rounds,
        greedy,
        where="mid",
        color=color,
        linestyle=dashes,
        label=outlook.choice.name,
    )


def _draw_promise(axes: Axes, outlook: Outlook) -> None:
    """Draw the minimum budget of every round, and the use by an even split."""
    schedule = outlook.choice.schedule
    least, most = 100 * float(schedule.least), 100 * float(schedule.most)
    axes.axhspan(
        least, most, color=COLORS[4], alpha=0.2, label="between least\nand most"
    )
    even = 100 / schedule.rounds
    axes.axhline(even, color=GRAY, linestyle=":", label="even use of it")
    axes.lines[0].set_label("all of it")
    legend(axes)
