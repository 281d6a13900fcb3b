"""`modicum escrow risk` and `try`: before a request."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from modicum.cli.escrow_options import SandboxUid, Vault, VaultKeys, open_escrow
from modicum.cli.escrow_submit import (
    Code,
    Compares,
    Scores,
    Task,
    Tier,
    chosen_program,
    columns_of,
    tier_of,
)
from modicum.cli.options import DEFAULT_LEDGER, Actor, Json, Ledger
from modicum.cli.output import note, print_json, reporting
from modicum.cli.risk_options import Delta, Epsilons, epsilons_given, in_options
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.local import Workspace
    from modicum.api.local.escrow.synthetic_answers import SyntheticAnswers
    from modicum.api.ports.escrow import Limits
    from modicum.escrow.programs import Program
    from modicum.ops.escrow.epsilon_choice import QueryRisk
    from modicum.query.query_file import QueryFile
    from modicum.risk.choice import Choice
    from modicum.risk.measurement import Risk
    from modicum.sandbox.trial import Tried

_MADE_UP = (
    "the answers are synthetic: a score shows that the task runs, not how good it is"
)


def add_try_to(app: typer.Typer) -> None:
    """Add the command to those about the escrow."""
    app.command("try")(try_task)


def try_task(
    queries: Annotated[
        list[Path] | None,
        typer.Argument(help="Query files; no contract is needed.", metavar="QUERY..."),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option(
            "--query",
            help="The contract of a query, in place of files.",
            metavar="NAME",
        ),
    ] = None,
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
            help="The fixed duration of a run, in a sandbox.",
        ),
    ] = 10,
    memory: Annotated[
        int,
        typer.Option("--memory-mib", min=64, help="The memory limit."),
    ] = 2048,
    unheld: Annotated[
        bool,
        typer.Option(
            "--no-sandbox",
            help="Run it without a sandbox, and show its output: only for code that"
            " you trust.",
        ),
    ] = False,
    seed: Annotated[
        int, typer.Option("--seed", help="The seed of the synthetic answers.")
    ] = 1,
    sandbox_uid: SandboxUid = None,
    ledger: Ledger = DEFAULT_LEDGER,
    as_json: Json = False,
) -> None:
    """Try a task on synthetic answers, in the sandbox. No data is read.

    The answers are generated from the declarations of data sets only. No approval is
    needed, nothing is written to the ledger, and nothing is spent. Shows the scores,
    and the remarks for the owners.
    """
    from modicum.api.local.escrow.synthetic_answers import synthetic_answers_of
    from modicum.api.ports.escrow import Limits

    with reporting(as_json=as_json):
        if unheld and tier is not None:
            raise typer.BadParameter("without a sandbox, none", param_hint="--tier")
        read = _queries(queries or [], query, ledger)
        columns = columns_of(read)
        program = chosen_program(task, code, scores, columns, compares=compares)
        inside = None if unheld else tier_of(program, tier)
        answers = synthetic_answers_of(read, random.Random(seed))  # noqa: S311 - not noise
        limits = Limits(float(seconds), memory * 2**20)
        runs = _runs(program, answers, inside, limits, sandbox_uid)
        if as_json:
            print_json(_to_dict(program, answers, inside, runs))
        else:
            _print(program, answers, inside, runs)


def _to_dict(
    program: Program,
    answers: SyntheticAnswers,
    tier: str | None,
    runs: Mapping[str, Tried],
) -> dict[str, object]:
    from modicum.api.local.views.contracts import remarks_view
    from modicum.escrow.inspection import inspected

    inspection = inspected(program)
    return {
        "queries": {name: len(one.rows) for name, one in answers.exact.items()},
        "sandbox": tier,
        "runs": {
            name: {"score": one.score, "remark": one.remark, "printed": one.printed}
            for name, one in runs.items()
        },
        "catalogue": inspection.vetted or None,
        "remarks": remarks_view(inspection),
    }


def _print(
    program: Program,
    answers: SyntheticAnswers,
    tier: str | None,
    runs: Mapping[str, Tried],
) -> None:
    from modicum.escrow.inspection import inspected

    for release, table in answers.exact.items():
        rows = len(table.rows)
        shown = f"{rows:,} synthetic row{'' if rows == 1 else 's'}"
        print(printable(f"answers to {release}: {shown}"))
    for name, one in runs.items():
        document = "no score" if one.score is None else f"score {one.score:g}"
        why = f" ({one.remark})" if one.remark else ""
        print(printable(f"on {name} answers: {document}{why}"))
        for line in one.printed.splitlines():
            print(printable(f"  | {line}"))
    for line in str(inspected(program)).splitlines():
        print(printable(line))
    if tier is not None and any(one.score is None for one in runs.values()):
        note("a sandbox hides why there is no score; --no-sandbox shows it")
    note(_MADE_UP)


def _queries(
    files: list[Path], contract: str | None, ledger: str
) -> Mapping[str, QueryFile]:
    from modicum.api.local.escrow.synthetic_answers import (
        queries_under,
        queries_written,
    )
    from modicum.cli.ledger_access import open_workspace
    from modicum.ops.escrow.inputs import read_text

    if bool(files) == (contract is not None):
        raise typer.BadParameter(
            "name query files, or the contract of a query with --query",
            param_hint="--query",
        )
    workspace = open_workspace(ledger)
    if contract is not None:
        return queries_under(workspace, contract)
    return queries_written(workspace, [read_text(one) for one in files])


def _runs(
    program: Program,
    answers: SyntheticAnswers,
    tier: str | None,
    limits: Limits,
    uid: int | None,
) -> Mapping[str, Tried]:
    """Return the results on synthetic exact and private answers."""
    from modicum.ops.escrow.equipment import sandbox_of
    from modicum.sandbox.trial import Tried, dry_run

    given: dict[str, Any] = {"exact": answers.exact}
    if not program.compares:
        given["private"] = answers.private
    reference = answers.private if program.compares else None
    if tier is None:
        return {
            name: dry_run(program, tables, reference, seconds=limits.seconds)
            for name, tables in given.items()
        }
    with sandbox_of(tier, uid).turn() as turn:
        return {
            name: Tried(turn.score(program, tables, reference, limits), "", "")
            for name, tables in given.items()
        }


def add_risk_to(app: typer.Typer) -> None:
    """Add the command to those about the escrow."""
    app.command("risk")(risk)


def risk(
    tau: Annotated[
        str,
        typer.Option(
            "--tau",
            help="The required ratio of the smallest indicator to the largest.",
        ),
    ],
    name: Annotated[
        str | None,
        typer.Argument(help="The id of the contract.", metavar="NAME"),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            help="A query file, in place of a contract, on the newest data.",
            metavar="QUERY",
        ),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option(
            "--query",
            help="The query of the contract, by its release id.",
            metavar="RELEASE",
        ),
    ] = None,
    delta: Delta = None,
    epsilons: Epsilons = None,
    own_rows: Annotated[
        bool,
        typer.Option(
            "--own-rows",
            help="Also read the rows, as an owner of the data: for your eyes only.",
        ),
    ] = False,
    vault: Vault = None,
    vault_keys: VaultKeys = None,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Choose by risk the epsilon that you approve for a query. Writes nothing.

    The choice depends on the contract only: it may be shared with analysts. The output
    of --own-rows is computed from rows without noise: never share it.
    """
    with reporting(as_json=as_json), in_options():
        if (name is None) == (file is None):
            raise typer.BadParameter("give a contract, or a query file with --file")
        if file is not None and query is not None:
            raise typer.BadParameter("a query file has one query", param_hint="--query")
        workspace = open_escrow(ledger, actor, vault, vault_keys)
        facts: dict[str, Any] = {"delta": delta}
        if epsilons is not None:
            facts["epsilons"] = epsilons_given(epsilons)
        query_risk = _query_risk(workspace, name, file, query, facts)
        choice = query_risk.choose(tau)
        found = _own(workspace, query_risk) if own_rows else None
        if as_json:
            print_json(_risk_to_dict(query_risk, choice, found, tau))
            return
        for line in _lines(query_risk, choice):
            print(printable(line))
        if found is not None:
            _print_own(found, tau)


def _query_risk(
    workspace: Workspace,
    name: str | None,
    file: Path | None,
    query: str | None,
    facts: dict[str, Any],
) -> QueryRisk:
    from modicum.ops.escrow.epsilon_choice import contract_risk, query_risk
    from modicum.ops.escrow.inputs import read_text

    if name is not None:
        return contract_risk(workspace, name, query=query, **facts)
    assert file is not None  # One of both is given.
    return query_risk(workspace, read_text(file), **facts)


def _own(workspace: Workspace, risk: QueryRisk) -> Risk:
    from modicum.ops.escrow.epsilon_choice import own_risk

    return own_risk(workspace, risk)


def _risk_to_dict(
    risk: QueryRisk, choice: Choice, found: Risk | None, tau: str
) -> dict[str, Any]:
    document = risk.to_dict(choice)
    if found is None:
        return document
    from modicum.ops.escrow.epsilon_choice import OWNERS_ONLY
    from modicum.risk.measurement.documents import risk_to_dict

    advice = risk_to_dict(found, found.choose(tau, choice="as-published"))
    return {**document, "owners_only": {"warning": OWNERS_ONLY, **advice}}


def _lines(risk: QueryRisk, choice: Choice) -> Iterator[str]:
    from modicum.core.rationals import brief, number_spelled
    from modicum.ops.escrow.epsilon_choice import DISCRETE

    risky = risk.risky
    query, measure, unit = risky.query, risky.measure, risky.unit.name
    of = f" of the contract `{risk.contract}`" if risk.contract else ""
    yield f"query `{query.heading.id}`{of}, on version {risk.data.number} of the data"
    yield f"requests   {unit}: {{{measure}: {number_spelled(query.request.loss)}}}"
    document = "none" if choice.epsilon is None else brief(choice.epsilon)
    yield f"epsilon    {document}"
    yield (
        f"claim      {choice.claim.value}: no row was read; it may be shared with"
        " analysts"
    )
    yield f"  {choice.why}"
    for one in (*choice.caveats, DISCRETE):
        yield f"note: {one}"
    loss = risk.loss_at(choice)
    if loss is None:
        yield "no loss meets the target: reject it, or lower the target"
        return
    line = f"loss: {{{unit}: {{{measure}: {number_spelled(loss)}}}}}"
    if risk.fits(choice):
        yield f"it meets the target: its loss is at most  {line}"
        return
    yield "it does not meet the target: reject it, and have it requested again with"
    yield f"  {line}"


def _print_own(found: Risk, tau: str) -> None:
    from modicum.cli.risk_text import print_risk
    from modicum.ops.escrow.epsilon_choice import OWNERS_ONLY

    print(f"\nFOR YOUR EYES ONLY. {OWNERS_ONLY}")
    print_risk(found, found.choose(tau, choice="as-published"))
