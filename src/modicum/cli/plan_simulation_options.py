"""Options of simulations: what is asked for, how it is planned, on which engine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

WorkloadName = Annotated[
    str,
    typer.Option(
        "--workload",
        help="w1 (or gm), w2 (basic), w3 (ml), w4 (all); or a file that `modicum"
        " workload generate` wrote.",
        metavar="NAME|FILE",
    ),
]
RoundCount = Annotated[
    int | None,
    typer.Option(
        "--rounds",
        min=1,
        help="How many rounds: 40 if left out, or those of the file, of which fewer are"
        " its first.",
    ),
]
SolverName = Annotated[
    str,
    typer.Option(
        "--solver",
        help="Who decides, such as fcfs, dpf-weighted, dpk or steady; an unknown name"
        " lists all.",
        metavar="NAME",
    ),
]
Solvers = Annotated[
    str,
    typer.Option(
        "--solvers",
        help="Who decides, one after the other; ratios are to the first.",
        metavar="NAME,NAME...",
    ),
]
Beside = Annotated[
    str | None,
    typer.Option(
        "--compare", help="Others, to be shown beside it.", metavar="NAME,NAME..."
    ),
]
Partitioning = Annotated[
    bool,
    typer.Option(
        "--partitioning/--no-partitioning",
        help="Whether requests are charged only to the part of the data they read.",
    ),
]
Subsampling = Annotated[
    bool,
    typer.Option(
        "--subsampling/--no-subsampling",
        help="Whether requests that read a sample are priced as that.",
    ),
]
Upc = Annotated[
    bool,
    typer.Option(
        "--upc",
        help="The baseline, user-parallel composition: blocks of users, without"
        " partitioning and subsampling.",
    ),
]
SimulatedActive = Annotated[
    int,
    typer.Option("--active", help="Groups active at a time; rounds of a group's life."),
]
Conversion = Annotated[
    str,
    typer.Option(
        "--conversion",
        help="as-published: prices and filter of the published evaluation; tight: our"
        " prices, and a filter that is proven for every budget.",
        metavar="as-published|tight",
    ),
]
OwnFilter = Annotated[
    str | None,
    typer.Option(
        "--filter",
        help="The filter that the budget is spent through, in place of the"
        " conversion's.",
        metavar="NAME",
    ),
]
SimulatedEps = Annotated[
    str, typer.Option("--eps", help="The budget of a user's life.", metavar="NUMBER")
]
SimulatedDelta = Annotated[
    str, typer.Option("--delta", help="Its delta, above 0.", metavar="NUMBER")
]
Attempts = Annotated[
    int,
    typer.Option(
        "--attempts",
        help="In how many rounds a request is tried; 1: a rejection is final.",
    ),
]
Objective = Annotated[
    str | None,
    typer.Option(
        "--objective",
        help="What requests are worth: utility, as published, or requests, 1 for each.",
        metavar="utility|requests",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed", min=0, help="What the workload is drawn from; 0 if left out."
    ),
]
Seeds = Annotated[
    int | None,
    typer.Option(
        "--seeds",
        min=1,
        help="How many seeds, from --seed on; 3 if left out, 1 with a file.",
    ),
]
EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        help="What computes it: numba is far faster; auto takes it if it is installed.",
        metavar="auto|numba|numpy",
    ),
]
RoundTimes = Annotated[
    bool,
    typer.Option("--round-times", help="With --json: also the times of each round."),
]
PlotRounds = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        help="Draw the utility of each round, as .svg or .png.",
        metavar="FILE",
        dir_okay=False,
    ),
]
PlotSizes = Annotated[
    Path | None,
    typer.Option(
        "--plot-sizes",
        help="Draw what is accepted by size, as .svg or .png.",
        metavar="FILE",
        dir_okay=False,
    ),
]
PlotBudget = Annotated[
    Path | None,
    typer.Option(
        "--plot-budget",
        help="Draw what is left of budgets after each round, as .svg or .png.",
        metavar="FILE",
        dir_okay=False,
    ),
]
