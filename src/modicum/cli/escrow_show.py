"""`modicum escrow show`: a contract, as its owners look at it before they speak."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.escrow_options import Contract, Vault, VaultKeys, open_escrow
from modicum.cli.escrow_program_text import program_lines
from modicum.cli.escrow_text import consent_lines, heading
from modicum.cli.options import DEFAULT_LEDGER, Json, Ledger
from modicum.cli.output import print_json, reporting, seconds
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.local.escrow.review import Examined, Priced
    from modicum.escrow.inspection import Inspection
    from modicum.escrow.programs import Program


def add_to(app: typer.Typer) -> None:
    """Add the command to those about the escrow."""
    app.command("show")(show)


def show(
    name: Contract,
    vault: Vault = None,
    vault_keys: VaultKeys = None,
    code: Annotated[
        bool,
        typer.Option(
            "--code",
            help="Print the text of a program of the catalogue, too. That of somebody's"
            " own program is always printed.",
        ),
    ] = False,
    ledger: Ledger = DEFAULT_LEDGER,
    as_json: Json = False,
) -> None:
    """Show all that an owner should see before agreeing to a contract.

    Its queries with what they cost; its program, for which the vault is needed, with
    remarks; who agreed; and how to agree to exactly this. Writes nothing.
    """
    from modicum.api.local.escrow.review import examined
    from modicum.api.local.views.contracts import details_view
    from modicum.escrow.inspection import inspected

    with reporting(as_json=as_json):
        workspace = open_escrow(ledger, None, vault, vault_keys)
        # Looked at first: its head never hides what came in since.
        found = examined(workspace, name)
        shown = workspace.escrow.show(name)
        inspection = None if shown.program is None else inspected(shown.program)
        if as_json:
            print_json(details_view(found, shown.program, inspection))
        else:
            _print(found, shown.program, inspection, code=code)


def _print(
    found: Examined,
    program: Program | None,
    inspection: Inspection | None,
    *,
    code: bool,
) -> None:
    from modicum.ledger.log.contracts import TaskTerms

    for line in _head_lines(found):
        print(printable(line))
    terms = found.looked.flow.contract.terms
    for one in found.queries:
        _print_charge("score" if isinstance(terms, TaskTerms) else "query", one)
    if isinstance(terms, TaskTerms):
        print()
        for line in program_lines(terms, program, inspection, code=code):
            print(printable(line))
    print("\nowners:")
    for line in consent_lines(found.looked.consents):
        print(printable(line))
    for word in found.words:
        verb = "approved" if word.approves else "rejected"
        print(printable(f"  {word.by} {verb} on {word.at[:10]}: {word.reason}"))
    if not found.looked.waits:
        return
    contract = found.looked.flow.contract
    print(
        printable(
            f"agree to exactly this:  modicum escrow approve {contract.id}"
            f" --content {contract.digest} --head {found.head} --reason …"
        )
    )


def _head_lines(found: Examined) -> Iterator[str]:
    from modicum.ledger.log.contracts import QueryTerms, RawSignalTerms

    flow = found.looked.flow
    one, terms = flow.contract, flow.contract.terms
    yield f"{heading(flow)}: {found.reason}"
    yield f"  digest      {one.digest}"
    yield f"  analyst     {one.analyst}"
    if not flow.computes:
        yield f"  recipients  {', '.join(one.recipients)}"
    for table, version in one.data.items():
        gone = ", which was shredded" if table in found.shredded else ""
        yield f"  data        {table}: version {version.number}{gone}"
    for above in found.above:
        other = above.flow.contract
        yield f"  follows     {other.id} ({other.flow}, {other.digest[:12]})"
    yield f"  ends        {seconds(one.expires_at)}"
    yield f"  uses        {one.uses}, of which {flow.uses_left} are left"
    yield f"  stands      {found.looked.stage}"
    if isinstance(terms, QueryTerms) and "exact" in terms.results:
        yield "  computes    exact answers, too, for scores; they never go out"
    if isinstance(terms, RawSignalTerms):
        form = f"one of {terms.bins} bins" if terms.bins else "the score itself"
        yield f"  tells       {form}, of EXACT answers: at most {terms.bits} bits"
        yield "  WARNING     this is NOT differentially private"


def _print_charge(what: str, one: Priced) -> None:
    print()
    print(printable(f"{what} {one.charge.release}:"))
    for line in one.charge.text.rstrip("\n").split("\n"):  # And at nothing else.
        print(printable(f"  | {line}"))
    if one.score is not None and one.decision is not None:
        for line in (*one.decision.explain().split("\n"), "", *one.score.explain()):
            print(printable(line))
        return
    if one.query is None or one.decision is None:
        print(printable(f"what it costs cannot be said: {one.problem}"))
        return
    from modicum.cli.query_text import print_plan

    print_plan(one.query, one.decision, whole=True)
