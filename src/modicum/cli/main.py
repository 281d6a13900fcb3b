"""The command `modicum`."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from modicum.cli import (
    account,
    audit,
    db,
    demo,
    doctor,
    escrow,
    ledger,
    plan,
    policy,
    query,
    release,
    request,
    risk,
    serve,
    status,
    token,
    workload,
)
from modicum.cli.exits import Exit
from modicum.core.errors import Code

app = typer.Typer(
    name="modicum",
    help="Privacy budgets for organizations: check, reserve, remember and explain"
    " every release under one policy.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog="Exit codes: 0 ok or allow, 1 internal error, 2 usage, 3 denied, 4 invalid"
    " policy or release, 5 needs approval, 6 verification failed, 7 stale, 8 a policy"
    " test failed, 130 interrupted.",
)
app.command("demo")(demo.demo)
app.command("init")(ledger.init)
app.command("status")(status.status)
app.command("serve")(serve.serve)
app.command("doctor")(doctor.doctor)
app.add_typer(policy.app, name="policy")
app.add_typer(release.app, name="release")
app.add_typer(request.app, name="request")
app.add_typer(ledger.app, name="ledger")
app.add_typer(audit.app, name="audit")
app.add_typer(db.app, name="db")
app.add_typer(account.app, name="account")
app.add_typer(workload.app, name="workload")
app.add_typer(plan.app, name="plan")
app.add_typer(query.app, name="query")
app.add_typer(risk.app, name="risk")
app.add_typer(escrow.app, name="escrow")
app.add_typer(token.app, name="token")


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"modicum {version('modicum')}")
        raise typer.Exit(Exit.OK)


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    """Options of every command."""


def main() -> None:
    """Run the command line; an unforeseen error leaves with 1 and no traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # A terminal that cannot show all.
            stream.reconfigure(errors="replace")
    try:
        app()
    except SystemExit as left:
        if left.code == Exit.INTERRUPTED:
            print(
                "interrupted: what was answered before is stored; what was under way"
                " may or may not be",
                file=sys.stderr,
            )
        raise
    except Exception as error:
        if os.environ.get("MODICUM_DEBUG"):  # noqa: TID251 - for developers only
            raise
        print(
            f"error[{Code.INTERNAL.value}]: internal error ({type(error).__name__})\n"
            "   = help: set MODICUM_DEBUG=1 for the traceback, and report it",
            file=sys.stderr,
        )
        sys.exit(Exit.INTERNAL)
