"""`modicum init` and `modicum ledger`: make, list and verify the ledger."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli import ledger_entries
from modicum.cli.governance import add_to_ledger
from modicum.cli.ledger_balance import balance
from modicum.cli.ledger_checkpoints import add_to
from modicum.cli.ledger_verify import verify
from modicum.cli.options import DEFAULT_LEDGER, Actor, Json, Ledger, shown
from modicum.cli.output import print_json, reporting

if TYPE_CHECKING:
    from modicum.ledger import State
    from modicum.workspace import Workspace

app = typer.Typer(help="List and verify the ledger.", no_args_is_help=True)


def init(
    policy: Annotated[
        Path,
        typer.Option(
            "--policy", envvar="MODICUM_POLICY", help="The policy to activate."
        ),
    ] = Path("policy.yaml"),
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Make a ledger and activate a policy in it."""
    from modicum.cli.opening import open_or_begin

    with reporting(as_json=as_json):
        workspace = open_or_begin(ledger, policy=policy, actor=actor)
        before = workspace.state().seq
        state = _begun(workspace)
        compiled = workspace.policy()
        changed = state.policy is not None and state.policy.seq > before
        if as_json:
            print_json(
                {
                    "ledger": shown(ledger),
                    "seq": state.seq,
                    "head": state.head,
                    "changed": changed,
                    "policy": {
                        "name": compiled.policy.name,
                        "digest": compiled.policy.digest,
                        "rules": len(compiled.rules),
                    },
                }
            )
            return
        rules = len(compiled.rules)
        active = "is active" if changed else "is active already"
        print(
            f"{shown(ledger)}: policy `{compiled.policy.name}`"
            f" ({compiled.policy.digest[:12]}) {active},"
            f" {rules} rule{'' if rules == 1 else 's'}"
        )


def _begun(workspace: Workspace) -> State:
    """Return the state of a ledger in which the policy is active now.

    Raises:
        UsageError: If another one is; a second ledger would have budgets of its own.
    """
    from modicum.core.errors import Code, UsageError

    try:
        return workspace.init()
    except UsageError as error:
        if error.code is not Code.ALREADY_EXISTS:
            raise
        remedy = "to change its policy:  modicum policy activate FILE --reason …"
        raise UsageError(replace(error.problems[0], help=remedy)) from error


ledger_entries.add_to(app)
app.command()(balance)
app.command()(verify)
add_to(app)
add_to_ledger(app)
