"""`modicum policy activate`: another policy takes over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli import policy_approvals
from modicum.cli.exit_codes import exit_for
from modicum.cli.governance import Reason, office_of
from modicum.cli.hearings import hearing_lines
from modicum.cli.options import DEFAULT_LEDGER, Actor, Json, Ledger, shown
from modicum.cli.output import print_json, reporting
from modicum.cli.policy_approvals import PolicyFile, conflict_lines, load
from modicum.core.errors import ModicumError, printable

if TYPE_CHECKING:
    from modicum.api.local.governance.activation import Activation, Weighed


def register(app: typer.Typer) -> None:
    """Add the commands to those about policies."""
    app.command("activate")(activate)
    policy_approvals.add_to(app)


def activate(
    file: PolicyFile,
    reason: Reason,
    ledger: Ledger = DEFAULT_LEDGER,
    accept_conflict: Annotated[
        list[str] | None,
        typer.Option(
            "--accept-conflict",
            help="The id of a rule, or its scope, that history exceeds and that may"
            " stay so: it denies what it is about, in the cells that are over. Or"
            " `attribute:NAME`: the attribute is gone, and is none of the new ones.",
            metavar="NAME",
        ),
    ] = None,
    replaces: Annotated[
        str | None,
        typer.Option(
            "--replaces",
            help="The digest of the policy that this one was reviewed against; leave"
            " with 7 if another one is active.",
            metavar="DIGEST",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it means; write nothing.")
    ] = False,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Put a policy in the place of the ledger's active one.

    Leaves with 4 if releases already made exceed a rule that is new or tighter, or
    that they did not exceed before, unless each is accepted; if a privacy unit is
    redefined under a name that losses were recorded for; and if an attribute that they
    read is gone where others are new, unless that is accepted. Leaves with 5 if people
    must agree first.
    """
    from modicum.api.local.governance.activation import refuse_unready

    with reporting(as_json=as_json):
        office, successor = office_of(ledger, actor), load(file)
        accept = accept_conflict or []
        if dry_run:
            weighed = office.weigh(successor, accept=accept, replaces=replaces)
            _print(weighed, None, ledger, as_json=as_json)
            try:
                refuse_unready(weighed)
            except ModicumError as error:
                if not as_json:  # One document says it all.
                    raise
                raise typer.Exit(exit_for(error)) from error
            return
        done = office.activate(
            successor, reason=reason, accept=accept, replaces=replaces
        )
        _print(done.weighed, done, ledger, as_json=as_json)


def _print(
    weighed: Weighed, done: Activation | None, ledger: str, *, as_json: bool
) -> None:
    from modicum.api.local.views.approvals import activation_view

    if as_json:
        print_json(activation_view(weighed, done))
    else:
        for line in _lines(weighed, done, ledger):
            print(printable(line))


def _lines(weighed: Weighed, done: Activation | None, ledger: str) -> Iterator[str]:
    new, old = weighed.successor, weighed.replaced.policy
    called = f"policy `{new.policy.name}` ({new.policy.digest[:12]})"
    if weighed.holds_already:
        yield f"{shown(ledger)}: {called} is active already"
        return
    verb = "is active" if done else "would be active"
    replaced = f"`{old.name}` ({old.digest[:12]})"
    yield f"{shown(ledger)}: {called} {verb}, in place of {replaced}"
    rules = len(new.rules)
    entry = f", entry {done.seq}" if done else ""
    yield f"  {rules} rule{'' if rules == 1 else 's'}{entry}"
    yield from conflict_lines(weighed)
    for line in hearing_lines(weighed.hearings):
        yield f"  {line}"
