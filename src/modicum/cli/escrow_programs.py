"""Programs as the command line names them: a task file, or somebody's own code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from modicum.api.local import Workspace
    from modicum.escrow.programs import Program, Range
    from modicum.query.query_file import QueryFile

Task = Annotated[
    Path | None,
    typer.Option(
        "--task",
        help="A task of the catalogue, as a file says it.",
        metavar="TASK.yaml",
    ),
]
Code = Annotated[
    Path | None,
    typer.Option(
        "--code",
        help="A program of your own: Python, or a module of WebAssembly if its name"
        " ends in .wasm. In Python it is given private answers alone.",
        metavar="FILE",
    ),
]
Scores = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--range",
        help="The least and the greatest score of your own code; without it, 0 1.",
        metavar="LOW HIGH",
    ),
]
Compares = Annotated[
    bool,
    typer.Option(
        "--compares",
        help="Your own code holds exact answers against private ones: it has a score"
        " of exact answers only.",
    ),
]
Tier = Annotated[
    str | None,
    typer.Option(
        "--tier",
        help="The sandbox: bubblewrap, gvisor or wasm; by default the one for its"
        " language.",
    ),
]


def chosen_program(
    task: Path | None,
    code: Path | None,
    scores: tuple[str, str] | None,
    columns: Mapping[str, Sequence[str]] | None,
    *,
    compares: bool,
) -> Program:
    """Return the program that options name.

    Args:
        task: The task file, or None.
        code: The file of somebody's own code, or None.
        scores: Where its scores lie, or None.
        columns: By table, the columns of the answers; None if nobody knows.
        compares: Whether own code compares.

    Raises:
        InputError: If a file cannot be read, or is no task or program.
    """
    from modicum.ops.escrow.inputs import read_program, read_task

    if (task is None) == (code is None):
        raise typer.BadParameter(
            "name a task file with --task, or your own code with --code",
            param_hint="--task",
        )
    if code is not None:
        return read_program(code, _range(scores or ("0", "1")), compares=compares)
    if scores is not None or compares:
        option = "--range" if scores is not None else "--compares"
        raise typer.BadParameter(
            "a task of the catalogue says that itself: leave it out", param_hint=option
        )
    from modicum.escrow.tasks import program
    from modicum.sandbox.texts import installed

    assert task is not None  # One of both is there.
    found = read_task(task)
    return program(found.task, found.evaluation, installed(), columns)


def tier_of(program: Program, tier: str | None) -> str:
    """Return the sandbox that a program shall run in.

    Args:
        program: The program.
        tier: What was asked for; None for the one for its language.

    Raises:
        UsageError: If there is no such sandbox.
    """
    from modicum.ops.escrow.equipment import sandbox_of

    wasm = program.language == "wasm"
    found = tier or ("wasm" if wasm else "bubblewrap")
    sandbox_of(found)  # Nobody shall agree to what can never run.
    if (found == "wasm") != wasm:
        raise typer.BadParameter(
            f"`{found}` holds no programs in {program.language}", param_hint="--tier"
        )
    return found


def queries_of(workspace: Workspace, contract: str) -> Mapping[str, QueryFile] | None:
    """Return the queries of a contract, by release.

    Args:
        workspace: The ledger.
        contract: What the contract is called.

    Returns:
        None if the active policy no longer reads them as it did.

    Raises:
        InputError: If there is no such contract.
    """
    from modicum.api.local.escrow.review import examined

    found = {}
    for one in examined(workspace, contract).queries:
        if one.query is None:
            return None
        found[one.charge.release] = one.query
    return found or None


def columns_of(
    queries: Mapping[str, QueryFile] | None,
) -> Mapping[str, Sequence[str]] | None:
    """Return the columns that answers have, by release.

    Args:
        queries: The queries, by release; None if nobody knows.
    """
    if queries is None:
        return None
    return {
        release: [
            *(key.name for key in one.asked.query.keys),
            *(each.name for each in one.asked.query.aggregates),
        ]
        for release, one in queries.items()
    }


def _range(ends: tuple[str, str]) -> Range:
    from modicum.core.rationals import parse_number
    from modicum.escrow.programs import Range

    low, high = (parse_number(one) for one in ends)
    if low is None or high is None:
        raise typer.BadParameter("write two numbers", param_hint="--range")
    return Range(low, high)
