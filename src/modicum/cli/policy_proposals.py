"""`modicum policy propose` and `proposals`: policies that people are asked about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.exit_codes import Exit
from modicum.cli.governance import Reason, office_of
from modicum.cli.hearings import hearing_lines
from modicum.cli.options import DEFAULT_LEDGER, Actor, Json, Ledger
from modicum.cli.output import print_json, reporting
from modicum.cli.policy_approvals import PolicyFile, load
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.ledger.state.pending import Proposal

Text = Annotated[
    bool, typer.Option("--text", help="Print the texts of the policies, too.")
]


def add_to(app: typer.Typer) -> None:
    """Add the commands to those about policies."""
    app.command("propose")(propose)
    app.command("proposals")(proposals)


def propose(
    file: PolicyFile,
    reason: Reason,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Ask people to agree to a policy; its text stands in the ledger. Exits 0 or 5."""
    from modicum.api.local.governance.governance import missing_approvals
    from modicum.api.local.views.approvals import proposal_view

    with reporting(as_json=as_json):
        office = office_of(ledger, actor)
        found = office.propose_policy(load(file), reason=reason)
        if as_json:
            print_json(proposal_view(found))
        else:
            print(_line(found.proposal))
            for line in hearing_lines(found.hearings):
                print(f"  {line}")
        if missing_approvals(found.hearings):
            raise typer.Exit(Exit.NEEDS_APPROVAL)


def proposals(
    ledger: Ledger = DEFAULT_LEDGER, text: Text = False, as_json: Json = False
) -> None:
    """List the policies that are proposed, and who is missing."""
    from modicum.api.local.views.approvals import pending_policy_view

    with reporting(as_json=as_json):
        found = office_of(ledger, None).proposals()
        if as_json:
            print_json({"proposals": tuple(map(pending_policy_view, found))})
            return
        if not found:
            print("no policy is proposed")
        for one in found:
            print(printable(f"{_line(one.proposal)}: {one.reason}"))
            for line in hearing_lines(one.hearings):
                print(f"  {line}")
            for line in one.text.splitlines() if text else ():
                print(printable(f"    {line}"))


def _line(one: Proposal) -> str:
    return printable(
        f"policy `{one.name}` ({one.digest[:12]}) is proposed by {one.by} since"
        f" {one.at[:10]} (entry {one.seq})"
    )
