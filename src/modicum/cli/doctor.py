"""`modicum doctor`: is this machine, and this ledger, in order?"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.escrow_options import SandboxUid
from modicum.cli.exit_codes import Exit
from modicum.cli.ledger_access import open_log, refuse_no_ledger
from modicum.cli.ledger_signatures import file_named
from modicum.cli.options import DEFAULT_LEDGER, Json, Ledger
from modicum.cli.output import count_text, note, print_json, reporting
from modicum.cli.progress import counting
from modicum.core.errors import UnavailableError, printable

if TYPE_CHECKING:
    from modicum.ops.doctor.findings import Diagnosis


def doctor(
    context: typer.Context,
    ledger: Ledger = DEFAULT_LEDGER,
    deep: Annotated[
        bool,
        typer.Option("--deep", help="Read all entries, and replay each decision."),
    ] = False,
    try_sandboxes: Annotated[
        bool,
        typer.Option(
            "--sandboxes",
            help="Test each sandbox of an escrow; this takes some seconds.",
        ),
    ] = False,
    sandbox_uid: SandboxUid = None,
    bundle: Annotated[
        Path | None,
        typer.Option(
            "--bundle",
            help="Write versions, results and counts to this file, for a bug report;"
            " without names, ids and paths.",
            metavar="FILE",
            callback=file_named,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check this machine and a ledger; show problems and remedies."""
    from modicum.ops.doctor.checks import examine, write_bundle
    from modicum.ops.doctor.sandboxes import sandboxes
    from modicum.ops.wiring import witness_named
    from modicum.storage.witness.factory import open_witness
    from modicum.system.clock import SystemClock

    with reporting(as_json=as_json):
        given = _ledger(context, ledger)
        with counting("verifying", quiet=as_json) as on_entry:
            found = examine(
                given,
                SystemClock(),
                deep=deep,
                on_entry=on_entry,
                boxes=sandboxes(sandbox_uid) if try_sandboxes else (),
                witness=open_witness(witness_named()),
            )
        if bundle is not None:
            write_bundle(bundle, found)
        if as_json:
            print_json(found.to_dict())
        else:
            _print(found)
            if given is None:
                note(
                    f"note: there is no {DEFAULT_LEDGER} here; name one with  --ledger"
                )
        _leave(found)


def _ledger(context: typer.Context, ledger: str) -> str | None:
    """Return the ledger to look at: one that was named must be there."""
    source = context.get_parameter_source("ledger")
    is_named = source is not None and source.name != "DEFAULT"
    if not is_named and not Path(ledger).exists():
        return None
    refuse_no_ledger(ledger)
    with suppress(UnavailableError):  # A store that is away is a finding.
        open_log(ledger)
    return ledger


def _print(found: Diagnosis) -> None:
    from modicum.ops.doctor.findings import Status

    width = max(len(one.check) for one in found.findings)
    for one in found.findings:
        print(printable(f"{one.status.value:<5} {one.check:<{width}}  {one.message}"))
        if one.remedy:
            print(printable(f"{'':<5} {'':<{width}}  help: {one.remedy}"))
    counts = {status: found.count(status) for status in Status}
    print(
        f"{counts[Status.OK]} ok, {count_text(counts[Status.WARN], 'warning')},"
        f" {count_text(counts[Status.FAIL], 'failure')}"
    )


def _leave(found: Diagnosis) -> None:
    """Leave with 6 if the ledger is broken, with 1 if something else is wrong."""
    from modicum.ops.doctor.findings import Status

    if found.is_broken:
        raise typer.Exit(Exit.BROKEN)
    if found.count(Status.FAIL):
        raise typer.Exit(Exit.INTERNAL)
