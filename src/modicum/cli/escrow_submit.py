"""`modicum escrow submit`: proposing contracts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.escrow_options import Contract, Vault, VaultKeys, open_escrow
from modicum.cli.escrow_text import terms_lines
from modicum.cli.governance import Reason
from modicum.cli.options import DEFAULT_LEDGER, Actor, Json, Ledger
from modicum.cli.output import note, print_json, reporting
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.local import Workspace
    from modicum.api.local.escrow.proposal import Purpose
    from modicum.escrow.blocks import ByBlocks
    from modicum.escrow.programs import Program, Range
    from modicum.ledger.state.flow import Flow
    from modicum.query.query_file import QueryFile

Number = Annotated[
    int | None,
    typer.Option(
        "--blocks",
        min=2,
        max=1000,
        help="Split people into this number of blocks, and withhold the noisy"
        " mean of their scores on exact answers: differentially private, and charged.",
    ),
]
Loss = Annotated[
    str | None,
    typer.Option(
        "--loss",
        help="With --blocks, the loss: eps for laplace, rho for gaussian.",
        metavar="NUMBER",
    ),
]
Noise = Annotated[
    str, typer.Option("--noise", help="With --blocks: laplace or gaussian.")
]
Unit = Annotated[
    str,
    typer.Option(
        "--unit",
        help="With --blocks, the privacy unit that is split; required if several"
        " have no period.",
    ),
]


def chosen_blocks(
    number: int | None, loss: str | None, noise: str, unit: str
) -> ByBlocks | None:
    """Return the division of people given by options; None without one."""
    from modicum.core.rationals import parse_number
    from modicum.escrow.blocks import ByBlocks

    if (number is None) != (loss is None):
        raise typer.BadParameter(
            "a score by blocks needs --blocks and --loss", param_hint="--blocks"
        )
    if number is None or loss is None:
        if unit or noise != "laplace":
            hint = "--unit" if unit else "--noise"
            raise typer.BadParameter("it needs --blocks", param_hint=hint)
        return None
    amount = parse_number(loss)
    if amount is None:
        raise typer.BadParameter(f"`{loss}` is not a number", param_hint="--loss")
    if noise not in ("laplace", "gaussian"):
        message = f"`{noise}` is neither laplace nor gaussian"
        raise typer.BadParameter(message, param_hint="--noise")
    return ByBlocks(
        number, amount, unit, "gaussian" if noise == "gaussian" else "laplace"
    )


Task = Annotated[
    Path | None,
    typer.Option(
        "--task",
        help="A task file, for a task of the catalogue.",
        metavar="TASK.yaml",
    ),
]
Code = Annotated[
    Path | None,
    typer.Option(
        "--code",
        help="Custom code: Python, or a WebAssembly module if its name ends in"
        " .wasm. Python gets private answers only.",
        metavar="FILE",
    ),
]
Scores = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--range",
        help="The minimum and maximum score of custom code; by default 0 1.",
        metavar="LOW HIGH",
    ),
]
Compares = Annotated[
    bool,
    typer.Option(
        "--compares",
        help="The custom code compares exact answers with private ones: it has a"
        " score on exact answers only.",
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
    """Return the program that options name."""
    from modicum.ops.escrow.inputs import read_program, read_task

    if (task is None) == (code is None):
        raise typer.BadParameter(
            "give a task file with --task, or custom code with --code",
            param_hint="--task",
        )
    if code is not None:
        return read_program(code, _range(scores or ("0", "1")), compares=compares)
    if scores is not None or compares:
        option = "--range" if scores is not None else "--compares"
        raise typer.BadParameter(
            "a task of the catalogue defines it: leave it out", param_hint=option
        )
    from modicum.escrow.tasks import program
    from modicum.sandbox.catalog import installed

    assert task is not None  # One of both is there.
    found = read_task(task)
    return program(found.task, found.evaluation, installed(), columns)


def tier_of(program: Program, tier: str | None) -> str:
    """Return the sandbox that a program shall run in."""
    from modicum.ops.escrow.equipment import sandbox_of

    wasm = program.language == "wasm"
    found = tier or ("wasm" if wasm else "bubblewrap")
    sandbox_of(found)  # Nobody should approve what can never run.
    if (found == "wasm") != wasm:
        raise typer.BadParameter(
            f"`{found}` does not run programs in {program.language}",
            param_hint="--tier",
        )
    return found


def queries_of(workspace: Workspace, contract: str) -> Mapping[str, QueryFile] | None:
    """Return the queries of a contract, by release."""
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
    """Return the columns of answers, by release."""
    if queries is None:
        return None
    return {
        release: [
            *(key.name for key in one.request.query.keys),
            *(each.name for each in one.request.query.outputs),
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


app = typer.Typer(
    help="Request a flow of data; its owners approve or reject it.",
    no_args_is_help=True,
)

Days = Annotated[
    int,
    typer.Option(
        "--days", min=1, max=3650, help="The lifetime of the contract, in days."
    ),
]
Uses = Annotated[
    int | None,
    typer.Option(
        "--uses",
        min=1,
        help="The number of uses; by default 1 for a query, 3 for a task, 20 for a"
        " disclosure.",
    ),
]
To = Annotated[
    list[str] | None,
    typer.Option(
        "--to",
        help="A recipient; repeatable. By default, the analyst.",
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
#: Shown whenever a score on exact answers is requested.
RAW = (
    "WARNING: the score on exact answers is NOT differentially private: no epsilon"
    " bounds what it reveals about people, and no rule counts it"
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
            help="Also compute exact answers, for scores; they are never disclosed.",
        ),
    ] = False,
    analyst: Annotated[
        str,
        typer.Option(
            "--analyst", help="The analyst; by default, the requester.", metavar="WHO"
        ),
    ] = "",
    days: Days = _MONTH,
    uses: Uses = None,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Request to run queries on registered data; their answers are withheld.

    Their tables are data sets, in their newest versions. Reads no row.
    """
    from modicum.ops.escrow.inputs import read_text

    with reporting(as_json=as_json):
        workspace = open_escrow(ledger, actor)
        texts = [read_text(one) for one in queries]
        heading = _heading(name, reason, days, uses, analyst=analyst)
        flow = workspace.escrow.submit_query(heading, texts, exact=exact)
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
            help="The fixed duration of a run.",
        ),
    ] = 60,
    memory: Annotated[
        int,
        typer.Option("--memory-mib", min=64, help="The memory limit."),
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
    """Request to run a program on withheld answers; its scores are withheld.

    It is a task of the catalogue, from a task file, or custom code. The owners review
    it before they approve. With --blocks it has one score, on exact answers, that every
    rule counts; it runs once, for each block as long as --seconds.
    """
    from modicum.api.ports.escrow import Limits

    with reporting(as_json=as_json):
        by_blocks = chosen_blocks(blocks, loss, noise, unit)
        workspace = open_escrow(ledger, actor, vault, vault_keys)
        columns = columns_of(queries_of(workspace, query))
        program = chosen_program(task, code, scores, columns, compares=compares)
        heading = _heading(name, reason, days, uses)
        limits = Limits(float(seconds), memory * 2**20)
        flow = workspace.escrow.submit_task(
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
    """Request to disclose the private answers of a query."""
    with reporting(as_json=as_json):
        workspace = open_escrow(ledger, actor)
        heading = _heading(name, reason, days, uses, to)
        flow = workspace.escrow.submit_output(heading, query)
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
    """Request to disclose the score of a task on private answers."""
    with reporting(as_json=as_json):
        workspace = open_escrow(ledger, actor)
        heading = _heading(name, reason, days, uses, to)
        flow = workspace.escrow.submit_signal(heading, task)
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
            help="Release the bin of the score, with bins of this width, such as 0.05.",
            metavar="NUMBER",
        ),
    ] = None,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            help="Release the score itself; at least two people must approve.",
        ),
    ] = False,
    to: To = None,
    days: Days = _MONTH,
    uses: Uses = None,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Request to disclose the score on EXACT answers: NOT differentially private.

    No epsilon bounds what it reveals. The ledger counts it in bits, and records its
    disclosure.
    """
    with reporting(as_json=as_json):
        wide = _width(width, exact=exact)
        note(RAW)
        workspace = open_escrow(ledger, actor)
        heading = _heading(name, reason, days, uses, to)
        flow = workspace.escrow.submit_raw_signal(heading, task, width=wide)
        _print(workspace, flow, as_json=as_json)


def _heading(
    name: str,
    reason: str,
    days: int,
    uses: int | None,
    to: list[str] | None = None,
    *,
    analyst: str = "",
) -> Purpose:
    from modicum.api.local.escrow.proposal import Purpose as Heading

    seconds = days * 24 * 60 * 60
    return Heading(name, reason, seconds, uses, tuple(to or ()), analyst)


def _width(width: str | None, *, exact: bool) -> Fraction | None:
    from modicum.core.rationals import parse_number

    if (width is None) != exact:
        raise typer.BadParameter(
            "choose its form: in bins, with --width, or exactly, with --exact",
            param_hint="--width",
        )
    found = None if width is None else parse_number(width)
    if width is not None and found is None:
        raise typer.BadParameter(f"`{width}` is not a number", param_hint="--width")
    return found


def _print(workspace: Workspace, flow: Flow, *, as_json: bool) -> None:
    from modicum.api.local.escrow.review import contract_review
    from modicum.api.local.views.contracts import listed_view

    review = contract_review(workspace, flow.contract.id)
    if as_json:
        print_json(listed_view(review))
        return
    for line in terms_lines(review):
        print(printable(line))
