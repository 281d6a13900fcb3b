"""Options of `modicum risk`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    list[str],
    typer.Argument(
        help="The data of the query's table: Parquet, .csv, or FILE.duckdb::TABLE. Of"
        " several tables, TABLE=PLACE each.",
        metavar="DATA...",
        show_default=False,
    ),
]
Query = Annotated[
    str,
    typer.Option("--query", "-q", help="One SELECT with aggregates.", metavar="SQL"),
]
Unit = Annotated[
    str | None,
    typer.Option(
        "--unit",
        help="The column that tells whose a row is; by default each row is a person.",
        metavar="COLUMN",
    ),
]
Mechanism = Annotated[
    str, typer.Option("--mechanism", help="The noise: laplace or gaussian.")
]
Epsilons = Annotated[
    str | None,
    typer.Option(
        "--epsilons",
        help="Candidates: 0.1,0.5,1 or LOW:HIGH:N; by default the papers' 37.",
    ),
]
Delta = Annotated[
    str | None, typer.Option("--delta", help="For Gaussian noise, such as 1e-6.")
]
Sensitivity = Annotated[
    str | None,
    typer.Option(
        "--sensitivity",
        help="How far one person can move the answer in any table, in the norm of the"
        " noise.",
    ),
]
BoundsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--bounds",
        help="The least and the greatest value that is aggregated, from public"
        " knowledge; values outside count as the nearer bound. Repeatable by column.",
        metavar="[COLUMN=]LOW:HIGH",
    ),
]
RowsMax = Annotated[
    int | None,
    typer.Option("--rows-max", help="How many rows of a person count at most.", min=1),
]
Dimensions = Annotated[
    int | None,
    typer.Option(
        "--dimensions", help="How many numbers the answer has, if public.", min=1
    ),
]
Form = Annotated[
    str,
    typer.Option("--indicator", help="published (the papers' bound) or exact."),
]
Calibration = Annotated[
    str,
    typer.Option("--calibration", help="Of Gaussian noise: exact or published."),
]
Engine = Annotated[str, typer.Option("--engine", help="duckdb or spark.")]
Groups = Annotated[
    list[str] | None,
    typer.Option(
        "--groups",
        help="A group of people to compare, as a condition on rows; repeatable.",
        metavar="CONDITION",
    ),
]
Choice = Annotated[
    str,
    typer.Option(
        "--choice",
        help="data-independent (may be released), as-published (for the controller"
        " only), private-selection, find-and-release, or"
        " find-and-release-as-published (for study).",
    ),
]
TellingChoice = Annotated[
    str,
    typer.Option(
        "--choice",
        help="data-independent, or private-selection, which costs something itself."
        " What is for the controller only: `modicum risk rdr`.",
    ),
]
Tau = Annotated[
    str | None,
    typer.Option(
        "--tau", help="The least indicator is to be so large a part of the greatest."
    ),
]
MaxVariance = Annotated[
    str | None,
    typer.Option(
        "--max-variance",
        help="As published, or to find and release: the variance of the indicators is"
        " to be so small.",
    ),
]
Statistic = Annotated[
    str,
    typer.Option(
        "--statistic", help="What is compared of each group: max, p99 or median."
    ),
]
Allowance = Annotated[
    int | None,
    typer.Option(
        "--allowance",
        help="Private selection: so many people may be exposed more.",
        min=0,
    ),
]
People = Annotated[
    int | None,
    typer.Option(
        "--people", help="To find and release: the public number of people.", min=1
    ),
]
EpsSelect = Annotated[
    str | None,
    typer.Option("--eps-select", help="What a private choice itself may cost."),
]
Report = Annotated[
    Path | None,
    typer.Option("--report", help="Write pictures and tables here, as HTML."),
]
AsRelease = Annotated[
    str | None,
    typer.Option(
        "--release", help="Private selection: charge it in the ledger as this."
    ),
]
Charge = Annotated[
    list[str] | None,
    typer.Option(
        "--charge",
        help="The unit of the policy that a person is; other units with what they lose"
        " by your own proof, as UNIT=EPS. Repeatable.",
        metavar="UNIT[=EPS]",
    ),
]
Attributes = Annotated[
    str | None,
    typer.Option(
        "--attributes",
        help="What the query reads, by the policy's names; by default the columns that"
        " it reads.",
        metavar="NAME[=COLUMN],…",
    ),
]
