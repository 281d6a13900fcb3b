"""`modicum plan`: spend a scarce budget well."""

from __future__ import annotations

import typer

from modicum.cli.plan_access import export_access
from modicum.cli.plan_compare import compare
from modicum.cli.plan_rotation import rotation
from modicum.cli.plan_rounds import open_round, remainder
from modicum.cli.plan_run import commit, run, show, why_not
from modicum.cli.plan_simulation import simulate

app = typer.Typer(
    help="Plan who is active when, and how a budget is spent.", no_args_is_help=True
)
app.command("open")(open_round)
app.command("run")(run)
app.command("show")(show)
app.command("why-not")(why_not)
app.command("commit")(commit)
app.command("export-access")(export_access)
app.command("remainder")(remainder)
app.command("rotation")(rotation)
app.command("simulate")(simulate)
app.command("compare")(compare)
