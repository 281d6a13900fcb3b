"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Ledger = Annotated[
    Path,
    typer.Option(
        "--ledger", envvar="MODICUM_LEDGER", help="The ledger file.", metavar="FILE"
    ),
]
Policy = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        envvar="MODICUM_POLICY",
        help="The policy file; without it, the ledger's active policy.",
        metavar="FILE",
    ),
]
Actor = Annotated[
    str | None,
    typer.Option(
        "--actor", envvar="MODICUM_ACTOR", help="Who asks; by default the login name."
    ),
]

#: The ledger that commands use when none is named.
DEFAULT_LEDGER = Path("ledger.db")
