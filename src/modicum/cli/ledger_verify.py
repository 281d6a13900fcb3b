"""`modicum ledger verify`: the whole log, checked where it lies."""

from __future__ import annotations

from typing import Annotated

import typer

from modicum.cli.ledger_access import open_log, refuse_no_ledger
from modicum.cli.noted_head import noted_head, whole_head
from modicum.cli.options import DEFAULT_LEDGER, Json, Ledger, shown
from modicum.cli.output import reporting
from modicum.cli.progress import counting
from modicum.cli.verification import (
    Claims,
    PublicKeys,
    RequireCheckpoint,
    print_verified,
)

#: The digits of a hash.
_WHOLE = 64


def verify(
    ledger: Ledger = DEFAULT_LEDGER,
    head: Annotated[
        str | None,
        typer.Option(
            "--head",
            help="A head noted earlier elsewhere: its hash, or the first 12 digits"
            " of it or more.",
        ),
    ] = None,
    public_keys: PublicKeys = None,
    claims: Claims = None,
    require_checkpoint: RequireCheckpoint = False,
    as_json: Json = False,
) -> None:
    """Check chain, signatures and every decision; exits 0 or 6."""
    from modicum.storage.proofs.ledger_log import verify_ledger
    from modicum.storage.proofs.verification import (
        load_trust,
        require_noted,
        require_pinned,
    )

    with reporting(as_json=as_json):
        refuse_no_ledger(ledger)
        noted = None if head is None else _noted(ledger, head)
        trust = load_trust(public_keys or (), claims or ())
        with counting("verifying", quiet=as_json) as on_entry:
            verified = verify_ledger(
                ledger,
                trust,
                on_entry=on_entry,
                noted_hash=noted,
            )
        if noted is not None:
            require_noted(verified, noted)
        if require_checkpoint:
            require_pinned(verified)
        print_verified(shown(ledger), verified, as_json=as_json)


def _noted(ledger: str, head: str) -> str:
    """Return the hash that was noted; what is read here is checked afterwards."""
    digits = noted_head(head)
    if len(digits) == _WHOLE:
        return digits
    return whole_head(digits, (one.hash for one in open_log(ledger).read(0)))
