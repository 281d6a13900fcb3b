"""`modicum escrow`: programs of others on data that they never see."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli import (
    escrow_data,
    escrow_submit,
    escrow_text,
)
from modicum.cli import (
    escrow_trial as escrow_risk,
)
from modicum.cli.escrow_options import (
    Contract,
    SandboxUid,
    Vault,
    VaultKeys,
    open_escrow,
)
from modicum.cli.escrow_text import (
    data_lines,
    print_contracts,
    print_disclosed,
    version_vote_lines,
    vote_lines,
)
from modicum.cli.governance import Head, Key, Reason, signer_of
from modicum.cli.ledger_signatures import PassphraseFile
from modicum.cli.options import DEFAULT_LEDGER, Actor, Json, Ledger
from modicum.cli.output import (
    console,
    note,
    print_decision,
    print_json,
    reporting,
)
from modicum.core.errors import printable
from modicum.system.core_dumps import forbid_core_dumps

if TYPE_CHECKING:
    from modicum.api.local.escrow.approvals import (
        RecordedContractVote,
        RecordedVersionVote,
    )

app = typer.Typer(
    help="Run analysts' queries and programs on data they cannot see, as its"
    " owners agree.",
    no_args_is_help=True,
    callback=forbid_core_dumps,
)
escrow_data.add_to(app)
app.add_typer(escrow_submit.app, name="submit")
escrow_text.add_to(app)
app.add_typer(escrow_data.app, name="keys")
escrow_risk.add_risk_to(app)
escrow_risk.add_try_to(app)

Content = Annotated[
    str | None,
    typer.Option(
        "--content",
        help="The digest of what you reviewed; exit with code 7 if it differs.",
        metavar="DIGEST",
    ),
]


DataVersion = Annotated[
    int | None,
    typer.Option(
        "--version",
        help="Vote on this version of the data set NAME, not on a contract.",
        min=1,
        metavar="VERSION",
    ),
]


@app.command("list")
def list_contracts(
    data: Annotated[bool, typer.Option("--data", help="List the data sets.")] = False,
    ledger: Ledger = DEFAULT_LEDGER,
    as_json: Json = False,
) -> None:
    """List the contracts with their status, or the data sets."""
    with reporting(as_json=as_json):
        (_list_data if data else _list_contracts)(ledger, as_json)


def _list_contracts(ledger: str, as_json: bool) -> None:
    from modicum.api.local.escrow.review import contract_reviews
    from modicum.api.local.views.contracts import listed_view

    found = contract_reviews(open_escrow(ledger))
    if as_json:
        print_json({"contracts": [listed_view(one) for one in found]})
    elif found:
        print_contracts(found)
    else:
        print("there are no contracts")


def _list_data(ledger: str, as_json: bool) -> None:
    from modicum.api.local.views.contracts import data_set_view

    found = open_escrow(ledger).escrow.data()
    if as_json:
        listed = [data_set_view(name, one) for name, one in found.items()]
        print_json({"data_sets": listed})
        return
    for name, one in found.items():
        for line in data_lines(name, one):
            print(printable(line))
    if not found:
        print("no data set is registered")


@app.command()
def approve(
    name: Contract,
    reason: Reason,
    version: DataVersion = None,
    head: Head = None,
    content: Content = None,
    key: Key = None,
    passphrase_file: PassphraseFile = None,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Approve a contract, as an owner of its data. Review it first: `escrow show`.

    With --version, approve new rows of your data set: `escrow list --data` shows them.
    """
    from modicum.ledger.log.contracts import Version

    with reporting(as_json=as_json):
        signer = signer_of(key, passphrase_file)
        office = open_escrow(ledger, actor).escrow
        if version is not None:
            receipt = office.approve_data(
                Version(name, version),
                reason=reason,
                head=head,
                content=content,
                key=signer,
            )
            _print_data_vote(receipt, as_json=as_json)
            return
        vote = office.approve(
            name, reason=reason, head=head, content=content, key=signer
        )
        if vote.flow.contract.flow == "raw-signal":
            note(escrow_submit.RAW)
        _print_vote(vote, as_json=as_json)


@app.command()
def reject(
    name: Contract,
    reason: Reason,
    version: DataVersion = None,
    content: Content = None,
    key: Key = None,
    passphrase_file: PassphraseFile = None,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Reject a contract, or withdraw an approval; it is blocked until you approve.

    With --version, reject new rows of your data set that await its owners.
    """
    from modicum.ledger.log.contracts import Version

    with reporting(as_json=as_json):
        signer = signer_of(key, passphrase_file)
        office = open_escrow(ledger, actor).escrow
        if version is not None:
            receipt = office.reject_data(
                Version(name, version), reason=reason, content=content, key=signer
            )
            _print_data_vote(receipt, as_json=as_json)
            return
        vote = office.reject(name, reason=reason, content=content, key=signer)
        _print_vote(vote, as_json=as_json)


def _print_data_vote(vote: RecordedVersionVote, *, as_json: bool) -> None:
    from modicum.api.local.views.contracts import version_receipt_view

    if as_json:
        print_json(version_receipt_view(vote))
        return
    for line in version_vote_lines(vote):
        print(printable(line))


def _print_vote(vote: RecordedContractVote, *, as_json: bool) -> None:
    from modicum.api.local.views.contracts import receipt_view

    if as_json:
        print_json(receipt_view(vote))
        return
    for line in vote_lines(vote):
        print(printable(line))


@app.command()
def withdraw(
    name: Contract,
    reason: Reason,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Withdraw a contract that you requested, or decline one as a recipient.

    Nothing is disclosed under it any more.
    """
    from modicum.api.local.views.contracts import contract_view

    with reporting(as_json=as_json):
        flow = open_escrow(ledger, actor).escrow.withdraw(name, reason=reason)
        if as_json:
            print_json({"withdrawn": contract_view(flow)})
        else:
            print(printable(f"contract `{flow.contract.id}` is withdrawn"))


@app.command()
def run(
    name: Contract,
    vault: Vault = None,
    vault_keys: VaultKeys = None,
    sandbox_uid: SandboxUid = None,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Run the query or task of a contract. Its results are withheld.

    From its start, the run is counted and its loss is spent, whatever its outcome.
    Exits 0, or 3 if a rule denies a query.
    """
    from modicum.api.local.escrow.review import contract_review

    with reporting(as_json=as_json):
        workspace = open_escrow(ledger, actor, vault, vault_keys, sandbox_uid)
        with _running(name, quiet=as_json):
            ran = workspace.escrow.run(name)
        if ran.denied is not None:
            print_decision(ran.denied, as_json=as_json)
            return
        flow = contract_review(workspace, name).flow
        if as_json:
            print_json({"contract": name, "results": sorted(flow.results)})
            return
        results = " and ".join(sorted(flow.results))
        print(printable(f"contract `{name}` ran; withheld: {results}"))
        then = "output" if flow.contract.flow == "query" else "signal"
        then = then if "private" in flow.results else "raw-signal"
        print(printable(f"next:  modicum escrow submit {then} NAME {name} --reason …"))


@app.command()
def receive(
    name: Contract,
    vault: Vault = None,
    vault_keys: VaultKeys = None,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Print the result of a contract, to a recipient. It counts as a use."""
    with reporting(as_json=as_json):
        office = open_escrow(ledger, actor, vault, vault_keys).escrow
        found = office.receive(name)
        if as_json:
            print_json(found.view)
        else:
            print_disclosed(found)


@contextmanager
def _running(name: str, *, quiet: bool) -> Iterator[None]:
    """Show progress of a run at a terminal."""
    drawn = console(stderr=True)
    if quiet or not drawn.is_terminal:
        yield
        return
    from rich.markup import escape

    with drawn.status(f"running `{escape(printable(name))}` …"):
        yield
