"""Options of planning: who is active when, what budget there is, how it is unlocked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

#: What `--slack` says for: unlock everything when a group becomes active.
AT_ONCE = "at-once"

Active = Annotated[
    int,
    typer.Option(
        "--active", min=1, help="Groups active at a time; rounds of a group's life."
    ),
]
Horizon = Annotated[
    int,
    typer.Option(
        "--horizon",
        min=1,
        help="Coming groups that new users are spread over; 1: by arrival.",
    ),
]
Slack = Annotated[
    str,
    typer.Option(
        "--slack",
        help="How far early rounds of a group unlock more, 0 to 1; or at-once.",
        metavar="NUMBER",
    ),
]
RoundDays = Annotated[
    int, typer.Option("--round-days", min=1, help="The length of a round in days.")
]
Eps = Annotated[
    str, typer.Option("--eps", help="The budget of a user's life.", metavar="NUMBER")
]
Delta = Annotated[
    str | None,
    typer.Option(
        "--delta",
        help="Its delta, 1e-7 if not given; 0 for pure epsilon.",
        metavar="NUMBER",
    ),
]
Rho = Annotated[
    str | None,
    typer.Option(
        "--rho", help="A budget in zCDP, in place of --eps.", metavar="NUMBER"
    ),
]
FilterName = Annotated[
    str,
    typer.Option(
        "--filter", help="The filter that an eps is spent through.", metavar="NAME"
    ),
]
UsersPerRound = Annotated[
    str,
    typer.Option(
        "--users-per-round",
        help="Users who join in a round; or a list from round 0 on, such as 90000,500,"
        " of which the last number goes on.",
        metavar="NUMBERS",
    ),
]
Rounds = Annotated[
    int | None,
    typer.Option(
        "--rounds",
        min=1,
        help="Rounds to tell; if not given, until the number of users is steady.",
    ),
]
Compare = Annotated[
    list[str] | None,
    typer.Option(
        "--compare",
        help="Choices side by side: active, horizon or slack. May be repeated.",
        metavar="NAME=V,V...",
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option(
        "--plot", help="Draw it, as .svg or .png.", metavar="FILE", dir_okay=False
    ),
]
