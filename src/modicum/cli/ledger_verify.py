"""`modicum ledger verify`: the whole log, checked where it lies."""

from __future__ import annotations

from typing import Annotated

import typer

from modicum.cli.opening import refuse_no_ledger
from modicum.cli.options import DEFAULT_LEDGER, Json, Ledger, shown
from modicum.cli.output import reporting
from modicum.cli.progress import counting
from modicum.cli.verification import (
    Claims,
    PublicKeys,
    RequireCheckpoint,
    print_verified,
)


def verify(
    ledger: Ledger = DEFAULT_LEDGER,
    head: Annotated[
        str | None,
        typer.Option("--head", help="A head's hash, noted earlier elsewhere."),
    ] = None,
    public_keys: PublicKeys = None,
    claims: Claims = None,
    require_checkpoint: RequireCheckpoint = False,
    as_json: Json = False,
) -> None:
    """Check chain, signatures and every decision; exits 0 or 6."""
    from modicum.shell.proofs.logs import verify_ledger
    from modicum.shell.proofs.verification import (
        load_trust,
        require_noted,
        require_pinned,
    )

    with reporting(as_json=as_json):
        refuse_no_ledger(ledger)
        trust = load_trust(public_keys or (), claims or ())
        with counting("verifying", quiet=as_json) as on_entry:
            verified = verify_ledger(
                ledger,
                trust,
                on_entry=on_entry,
                noted_hash=head.strip().lower() if head else None,
            )
        if head is not None:
            require_noted(verified, head)
        if require_checkpoint:
            require_pinned(verified)
        print_verified(shown(ledger), verified, as_json=as_json)
