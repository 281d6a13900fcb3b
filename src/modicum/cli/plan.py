"""`modicum plan`: spend a scarce budget well."""

from __future__ import annotations

import typer

from modicum.cli.plan_compare import compare
from modicum.cli.plan_rotation import rotation
from modicum.cli.plan_simulate import simulate

app = typer.Typer(
    help="Plan who is active when, and how a budget is spent.", no_args_is_help=True
)
app.command("rotation")(rotation)
app.command("simulate")(simulate)
app.command("compare")(compare)
