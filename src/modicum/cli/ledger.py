"""`modicum init` and `modicum ledger`: make, list and verify the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from modicum.cli import ledger_entries
from modicum.cli.governance import add_to_ledger
from modicum.cli.ledger_balance import balance
from modicum.cli.ledger_signatures import add_to
from modicum.cli.ledger_verify import verify
from modicum.cli.options import DEFAULT_LEDGER, Actor, Json, Ledger, shown
from modicum.cli.output import print_json, reporting

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
    from modicum.cli.ledger_access import open_or_begin

    with reporting(as_json=as_json):
        workspace = open_or_begin(ledger, policy=policy, actor=actor)
        before = workspace.state().seq
        state = workspace.init()
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


ledger_entries.add_to(app)
app.command()(balance)
app.command()(verify)
add_to(app)
add_to_ledger(app)
