"""`modicum escrow submit`: asking for flows of data."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.escrow_blocks import Loss, Noise, Number, Unit, chosen_blocks
from modicum.cli.escrow_options import Contract, Vault, VaultKeys, open_escrow
from modicum.cli.escrow_programs import (
    Code,
    Compares,
    Scores,
    Task,
    Tier,
    chosen_program,
    columns_of,
    queries_of,
    tier_of,
)
from modicum.cli.escrow_text import asked_lines
from modicum.cli.governance import Reason
from modicum.cli.options import DEFAULT_LEDGER, Actor, Json, Ledger
from modicum.cli.output import note, print_json, reporting
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.local import Workspace
    from modicum.api.local.escrow.proposal import Heading
    from modicum.ledger.state.flow import Flow

app = typer.Typer(
    help="Ask for a flow of data; its owners agree or refuse.", no_args_is_help=True
)

Days = Annotated[
    int,
    typer.Option(
        "--days", min=1, max=3650, help="For so many days the contract holds."
    ),
]
Uses = Annotated[
    int | None,
    typer.Option(
        "--uses",
        min=1,
        help="How often it may be used; by default a query once, a task three times,"
        " what goes out 20 times.",
    ),
]
To = Annotated[
    list[str] | None,
    typer.Option(
        "--to",
        help="Who may have it; repeatable. Without it, the analyst.",
        metavar="WHO",
    ),
]
QueryContract = Annotated[
    str,
    typer.Argument(help="The contract of the query.", metavar="QUERY"),
]
TaskContract = Annotated[
    str, typer.Argument(help="The contract of the task.", metavar="TASK")
]
#: Said wherever somebody asks for a score on exact answers.
RAW = (
    "WARNING: the score on exact answers is NOT differentially private: no epsilon"
    " describes what it tells about people, and no rule counts it"
)
_MONTH = 30


@app.command("query")
def submit_query(
    name: Contract,
    queries: Annotated[
        list[Path], typer.Argument(help="Query files.", metavar="QUERY...")
    ],
    reason: Reason,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            help="Compute the exact answers, too, for scores; they never go out.",
        ),
    ] = False,
    analyst: Annotated[
        str,
        typer.Option(
            "--analyst", help="For whom; without it, whoever asks.", metavar="WHO"
        ),
    ] = "",
    days: Days = _MONTH,
    uses: Uses = None,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Ask that queries run on registered data, and their answers are withheld.

    The tables that they read are data sets, in their newest versions. Reads no row.
    """
    from modicum.ops.escrow.inputs import read_text

    with reporting(as_json=as_json):
        workspace = open_escrow(ledger, actor)
        texts = [read_text(one) for one in queries]
        heading = _heading(name, reason, days, uses, analyst=analyst)
        flow = workspace.escrow.ask_query(heading, texts, exact=exact)
        _print(workspace, flow, as_json=as_json)


@app.command("task")
def submit_task(
    name: Contract,
    query: QueryContract,
    reason: Reason,
    task: Task = None,
    code: Code = None,
    scores: Scores = None,
    compares: Compares = False,
    tier: Tier = None,
    seconds: Annotated[
        int,
        typer.Option(
            "--seconds",
            min=1,
            max=86_400,
            help="So long a run takes, whatever it does.",
        ),
    ] = 60,
    memory: Annotated[
        int,
        typer.Option("--memory-mib", min=64, help="How much memory it may have."),
    ] = 2048,
    blocks: Number = None,
    loss: Loss = None,
    noise: Noise = "laplace",
    unit: Unit = "",
    days: Days = _MONTH,
    uses: Uses = None,
    vault: Vault = None,
    vault_keys: VaultKeys = None,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Ask that a program runs on withheld answers, and its scores are withheld.

    It is a task of the catalogue, as a task file says it, or code of your own. The
    owners read it before they agree. With --blocks it has one score, on exact answers,
    that every rule counts; it runs once, for each block as long as --seconds say.
    """
    from modicum.api.ports.escrow import Limits

    with reporting(as_json=as_json):
        by_blocks = chosen_blocks(blocks, loss, noise, unit)
        workspace = open_escrow(ledger, actor, vault, vault_keys)
        columns = columns_of(queries_of(workspace, query))
        program = chosen_program(task, code, scores, columns, compares=compares)
        heading = _heading(name, reason, days, uses)
        limits = Limits(float(seconds), memory * 2**20)
        flow = workspace.escrow.ask_task(
            heading,
            query,
            program,
            tier=tier_of(program, tier),
            limits=limits,
            blocks=by_blocks,
        )
        _print(workspace, flow, as_json=as_json)


@app.command("output")
def submit_output(
    name: Contract,
    query: QueryContract,
    reason: Reason,
    to: To = None,
    days: Days = _MONTH,
    uses: Uses = None,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Ask that the private answers of a query go out."""
    with reporting(as_json=as_json):
        workspace = open_escrow(ledger, actor)
        heading = _heading(name, reason, days, uses, to)
        flow = workspace.escrow.ask_output(heading, query)
        _print(workspace, flow, as_json=as_json)


@app.command("signal")
def submit_signal(
    name: Contract,
    task: TaskContract,
    reason: Reason,
    to: To = None,
    days: Days = _MONTH,
    uses: Uses = None,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Ask that the score of a task on private answers goes out."""
    with reporting(as_json=as_json):
        workspace = open_escrow(ledger, actor)
        heading = _heading(name, reason, days, uses, to)
        flow = workspace.escrow.ask_signal(heading, task)
        _print(workspace, flow, as_json=as_json)


@app.command("raw-signal")
def submit_raw_signal(
    name: Contract,
    task: TaskContract,
    reason: Reason,
    width: Annotated[
        str | None,
        typer.Option(
            "--width",
            help="Tell in which bin it lies, of bins so wide, such as 0.05.",
            metavar="NUMBER",
        ),
    ] = None,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact", help="Tell the score itself; two people at least must agree."
        ),
    ] = False,
    to: To = None,
    days: Days = _MONTH,
    uses: Uses = None,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Ask that the score on EXACT answers goes out: NOT differentially private.

    No epsilon describes what it tells. The ledger counts it in bits, and records a
    disclosure when it goes out.
    """
    with reporting(as_json=as_json):
        wide = _width(width, exact=exact)
        note(RAW)
        workspace = open_escrow(ledger, actor)
        heading = _heading(name, reason, days, uses, to)
        flow = workspace.escrow.ask_raw_signal(heading, task, width=wide)
        _print(workspace, flow, as_json=as_json)


def _heading(
    name: str,
    reason: str,
    days: int,
    uses: int | None,
    to: list[str] | None = None,
    *,
    analyst: str = "",
) -> Heading:
    from modicum.api.local.escrow.proposal import Heading

    seconds = days * 24 * 60 * 60
    return Heading(name, reason, seconds, uses, tuple(to or ()), analyst)


def _width(width: str | None, *, exact: bool) -> Fraction | None:
    from modicum.core.rationals import parse_number

    if (width is None) != exact:
        raise typer.BadParameter(
            "say how it is told: in bins, with --width, or as it is, with --exact",
            param_hint="--width",
        )
    found = None if width is None else parse_number(width)
    if width is not None and found is None:
        raise typer.BadParameter(f"`{width}` is no number", param_hint="--width")
    return found


def _print(workspace: Workspace, flow: Flow, *, as_json: bool) -> None:
    from modicum.api.local.escrow.review import looked_at
    from modicum.api.local.views.contracts import listed_view

    looked = looked_at(workspace, flow.contract.id)
    if as_json:
        print_json(listed_view(looked))
        return
    for line in asked_lines(looked):
        print(printable(line))
