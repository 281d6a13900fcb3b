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
        help="Divide people into so many blocks, and withhold the mean of the"
        " scores on exact answers about each, with noise: differentially private,"
        " and charged.",
    ),
]
Loss = Annotated[
    str | None,
    typer.Option(
        "--loss",
        help="With --blocks, what that may cost: eps of laplace, rho of gaussian.",
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
        help="With --blocks, the privacy unit that is divided; needed if several"
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
            "a score by blocks has both --blocks and --loss", param_hint="--blocks"
        )
    if number is None or loss is None:
        if unit or noise != "laplace":
            hint = "--unit" if unit else "--noise"
            raise typer.BadParameter("it needs --blocks", param_hint=hint)
        return None
    amount = parse_number(loss)
    if amount is None:
        raise typer.BadParameter(f"`{loss}` is no number", param_hint="--loss")
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
    """Return the program that options name."""
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
            f"`{found}` holds no programs in {program.language}", param_hint="--tier"
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
#: Shown whenever a score on exact answers is requested.
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
) -> Purpose:
    from modicum.api.local.escrow.proposal import Purpose as Heading

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
    from modicum.api.local.escrow.review import contract_review
    from modicum.api.local.views.contracts import listed_view

    looked = contract_review(workspace, flow.contract.id)
    if as_json:
        print_json(listed_view(looked))
        return
    for line in terms_lines(looked):
        print(printable(line))
