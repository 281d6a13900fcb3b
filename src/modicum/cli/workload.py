"""`modicum workload`: generate requests to plan for, and describe them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.options import Json, from_options
from modicum.cli.output import print_json, reporting
from modicum.core.errors import printable

if TYPE_CHECKING:
    from fractions import Fraction

    from modicum.workloads.model import Workload


def add_to(app: typer.Typer) -> None:
    """Add the command to those of `modicum workload`."""
    app.command()(requests)


def requests(
    file: Annotated[
        Path,
        typer.Argument(
            help="A file written by `modicum workload generate`.", metavar="FILE"
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", help="The output file.", metavar="FILE.yaml"),
    ],
    number: Annotated[
        int | None,
        typer.Option("--round", help="The round; by default the first.", min=0),
    ] = None,
    partition: Annotated[
        str,
        typer.Option(
            "--partition",
            help="The partitioning attribute whose values are the ring; by"
            " default, everybody's rows are read.",
            metavar="ATTRIBUTE",
        ),
    ] = "",
    unit: Annotated[
        str, typer.Option("--unit", help="The privacy unit of the losses.")
    ] = "user",
    as_json: Json = False,
) -> None:
    """Write the requests of a round as releases, for a planner."""
    from modicum.ops.files.workloads import read_workload
    from modicum.system.files import write_whole
    from modicum.workloads.releases import batch_of

    with reporting(as_json=as_json):
        workload = read_workload(file)
        chosen = workload.first_round if number is None else number
        text = batch_of(workload, chosen, unit=unit, partition=partition)
        write_whole(out, [text.encode()])
        count = len(workload.requests.of_round(chosen))
        if as_json:
            print_json({"file": str(out), "round": chosen, "requests": count})
        else:
            print(f"{printable(str(out))}: {count} requests of round {chosen}")


app = typer.Typer(
    help="Generate and describe workloads of requests.", no_args_is_help=True
)

Name = Annotated[
    str,
    typer.Argument(
        help="w1 (or gm), w2 (basic), w3 (ml) or w4 (all) of Cohere's evaluation;"
        " s1 (contexts), s2 (attributes) or s3 (months) of DPolicy's.",
        metavar="NAME",
    ),
]
Rounds = Annotated[
    int | None,
    typer.Option(
        "--rounds",
        help="The number of weeks; by default 40, or 20 for s1 to s3.",
        min=1,
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="The random seed.", min=0)]
Repetition = Annotated[
    int,
    typer.Option("--repetition", help="The repetition for this seed.", min=0),
]
Sampling = Annotated[
    list[str] | None,
    typer.Option(
        "--sampling",
        help="A rate of Poisson samples; repeatable, all equally likely; by default"
        " 0.25 and 1.",
        metavar="RATE",
    ),
]
Objective = Annotated[
    str,
    typer.Option(
        "--objective",
        help="The utility of requests: utility, as published, or requests, 1 for each.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="The output file: FILE.json or FILE.parquet; by default NAME.json.",
        metavar="FILE",
    ),
]


@app.command()
def generate(
    name: Name,
    rounds: Rounds = None,
    seed: Seed = 0,
    repetition: Repetition = 0,
    sampling: Sampling = None,
    objective: Objective = "utility",
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Write the requests of a workload; the same options give the same file."""
    from modicum.cli.workload_text import outline, sentence
    from modicum.ops.files.workloads import check_suffix, write_workload
    from modicum.workloads.cohere import Recipe
    from modicum.workloads.model import SAMPLING
    from modicum.workloads.registry import generated, usual_rounds

    with reporting(as_json=as_json):
        with from_options():
            recipe = Recipe(
                seed=seed,
                repetition=repetition,
                rounds=usual_rounds(name) if rounds is None else rounds,
                objective=objective,
                sampling=_rates(sampling) if sampling else SAMPLING,
            )
            if out is not None:
                check_suffix(out)
            workload = generated(name, recipe)
        file = out if out is not None else Path(f"{workload.name}.json")
        write_workload(workload, file)
        if as_json:
            print_json({"file": str(file), **outline(workload)})
        else:
            print(f"{printable(str(file))}: {sentence(workload)}")


@app.command()
def describe(
    source: Annotated[
        str,
        typer.Argument(
            help="A file of requests, or the name of a workload as for generate.",
            metavar="FILE|NAME",
        ),
    ],
    pricing: Annotated[
        str,
        typer.Option(
            "--pricing",
            help="The pricing: tight, or as-published.",
        ),
    ] = "tight",
    as_json: Json = False,
) -> None:
    """Show the contents of a workload, and the loss of each type of request."""
    from modicum.cli.workload_text import description, print_description
    from modicum.workloads.request_types import pricing_named

    with reporting(as_json=as_json):
        with from_options():
            by = pricing_named(pricing)
        workload = _described(source)
        if as_json:
            print_json(description(workload, by))
        else:
            print_description(workload, by)


def _described(source: str) -> Workload:
    from modicum.ops.files.workloads import SUFFIXES, read_workload
    from modicum.workloads.registry import generated

    if Path(source).suffix in SUFFIXES:
        return read_workload(source)
    with from_options():
        return generated(source)


def _rates(texts: list[str]) -> tuple[Fraction, ...]:
    from modicum.cli.account_options import number

    return tuple(number(text, "--sampling") for text in texts)


add_to(app)
