"""`modicum workload requests`: the requests of a round as releases, to be planned."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from modicum.cli.options import Json
from modicum.cli.output import print_json, reporting
from modicum.core.errors import printable


def add_to(app: typer.Typer) -> None:
    """Add the command to those of `modicum workload`.

    Args:
        app: The group of commands.
    """
    app.command()(requests)


def requests(
    file: Annotated[
        Path,
        typer.Argument(
            help="A file that `modicum workload generate` wrote.", metavar="FILE"
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", help="Where to write them.", metavar="FILE.yaml"),
    ],
    number: Annotated[
        int | None,
        typer.Option("--round", help="Which round; the first, if left out.", min=0),
    ] = None,
    partition: Annotated[
        str,
        typer.Option(
            "--partition",
            help="What the policy calls the attribute whose values are the ring."
            " If left out, everybody's rows are read.",
            metavar="ATTRIBUTE",
        ),
    ] = "",
    unit: Annotated[
        str, typer.Option("--unit", help="The privacy unit that costs are for.")
    ] = "user",
    as_json: Json = False,
) -> None:
    """Write a round's requests as releases, for a planner."""
    from modicum.ops.files.workloads import read_workload
    from modicum.system.new_files import write_whole
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
