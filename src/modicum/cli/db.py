"""`modicum db`: back up, restore and upgrade the store of a ledger.

These commands copy the raw log; `ledger` reads its contents.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.exit_codes import Exit
from modicum.cli.ledger_access import open_log, refuse_no_ledger
from modicum.cli.ledger_signatures import file_named
from modicum.cli.options import (
    DEFAULT_LEDGER,
    Json,
    Ledger,
    exclusive_option,
    shown,
)
from modicum.cli.output import note, print_json, reporting
from modicum.cli.progress import counting
from modicum.cli.verification import noted_head, whole_head

if TYPE_CHECKING:
    from modicum.ops.backup.restore import Restored

app = typer.Typer(
    help="Back up, restore and upgrade the store of a ledger.", no_args_is_help=True
)


@app.command()
def backup(
    destination: Annotated[
        Path,
        typer.Argument(help="The new file.", metavar="DEST", callback=file_named),
    ],
    ledger: Ledger = DEFAULT_LEDGER,
    as_json: Json = False,
) -> None:
    """Copy a ledger to a new file, while it is in use, and verify the copy."""
    from modicum.ops.backup.backup import back_up

    with reporting(as_json=as_json):
        store = open_log(ledger)
        with counting("copying", quiet=as_json) as on_entry:
            done = back_up(store, destination, on_entry)
        if as_json:
            print_json(
                {
                    "file": str(destination),
                    "entries": done.entries,
                    "head": done.head,
                    "at": done.at,
                    "checkpoints": done.checkpoints,
                }
            )
            return
        print(
            f"{destination}: chain ok, {done.entries} entries,"
            f" {done.checkpoints} checkpoints\n  head {done.head}"
        )


@app.command()
def restore(
    source: Annotated[str, typer.Argument(help="The backup.", metavar="SRC")],
    ledger: Ledger = DEFAULT_LEDGER,
    head: Annotated[
        str | None,
        typer.Option(
            "--head",
            help="A head that you recorded: the backup must contain it. The hash, or"
            " at least its first 12 digits.",
        ),
    ] = None,
    known_heads: Annotated[
        list[str] | None,
        typer.Option(
            "--known-head",
            help="The head of a backup, as printed when it was made: the backup"
            " must end with it. Repeatable: one of them must match.",
            metavar="HEAD",
        ),
    ] = None,
    no_head: Annotated[
        bool,
        typer.Option(
            "--no-head",
            help="Restore without a head: nothing shows then that losses are missing.",
        ),
    ] = False,
    until: Annotated[
        str | None,
        typer.Option(
            "--until",
            help="Restore the entries up to this one only, for instance the last one"
            " before a clock jumped. MODICUM_WITNESS gets the last one of all, so that"
            " the ledger is refused until two people go on:  modicum ledger resume -h.",
            metavar="HEAD",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Verify a backup, and restore it to a new ledger.

    One of --head, --known-head, --until and --no-head is required.
    """
    from modicum.ops.backup.restore import Heads
    from modicum.ops.backup.restore import restore as restore_backup

    given = {"--head": head, "--known-head": known_heads, "--until": until}
    _require_heads(given, no_head=no_head)
    with reporting(as_json=as_json):
        refuse_no_ledger(ledger)
        noted = None if head is None else noted_head(head)
        known = [noted_head(one) for one in known_heads or ()]
        refuse_no_ledger(source)
        last = None if until is None else noted_head(until, "--until")
        noted, last = (
            one and whole_head(one, (each.hash for each in open_log(source).read(0)))
            for one in (noted, last)
        )
        with counting("verifying", quiet=as_json) as on_entry:
            done = restore_backup(source, ledger, Heads(noted, known, last), on_entry)
        if as_json:
            print_json({"ledger": shown(ledger), **_restored(done)})
        else:
            _print_restored(shown(ledger), done, shown(source))
        if no_head:
            note(
                "note: no head was compared: nothing shows that this is a backup of the"
                " lost ledger, or that it is the latest; losses may be missing"
            )


def _require_heads(heads: Mapping[str, object], *, no_head: bool) -> None:
    """Refuse to restore what was not compared, unless that is explicit."""
    given = [name for name, one in heads.items() if one not in (None, [])]
    if not given and not no_head:
        raise typer.BadParameter(
            "--head, --known-head or --no-head is required: a backup alone does not"
            " show what it is missing; give --head with the last head that you"
            " recorded, or --no-head if you have none"
        )
    if given and no_head:
        raise exclusive_option("--no-head", given[0])


def _restored(done: Restored) -> dict[str, object]:
    report = done.verified.report
    return {
        "entries": report.entries,
        "head": report.head,
        "at": done.at,
        "decisions": report.decisions,
        "noted": done.verified.noted,
        "left_out": done.left_out,
    }


def _print_restored(ledger: str, done: Restored, backup: str) -> None:
    report = done.verified.report
    print(
        f"{ledger}: restored, {report.entries} entries,"
        f" {report.decisions} decisions replayed, all match\n  head {report.head}"
    )
    if done.verified.noted is not None:
        print(f"  the given hash is that of entry {done.verified.noted}")
    if done.left_out:
        print(
            f"  the last entry is of {done.at}; later ones left out: {done.left_out}\n"
            "  the witness has the last of them; this ledger is refused until two"
            " people go on:  modicum ledger resume --after-loss --reason …\n"
            f"  then:  modicum ledger bring-back '{backup}'"
        )
        return
    print(
        f"  the last entry is of {done.at}; every loss since then is missing\n"
        "  before using it, record what was started, published or recorded since"
        " then, with  modicum release backfill"
    )


@app.command()
def upgrade(
    ledger: Ledger = DEFAULT_LEDGER,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Change nothing; exit with code 7 if tables are out of date.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Upgrade the tables of a ledger; its entries do not change."""
    with reporting(as_json=as_json):
        store = open_log(ledger)
        before = store.table_versions()
        changed = not check and before.stored != before.current
        if changed:
            with store.turn():
                pass  # Starting a turn migrates the tables.
        found = store.table_versions()
        if as_json:
            print_json(
                {
                    "ledger": shown(ledger),
                    "before": before.stored,
                    "tables": found.stored,
                    "current": found.current,
                    "changed": changed,
                }
            )
        elif changed:
            print(
                f"{shown(ledger)}: tables upgraded from version {before.stored}"
                f" to {found.stored}"
            )
        elif found.stored == found.current:
            print(f"{shown(ledger)}: tables are up to date, version {found.stored}")
        else:
            print(
                f"{shown(ledger)}: tables have version {found.stored}, and"
                f" {found.current} is current; run  modicum db upgrade"
            )
        if found.stored != found.current:
            raise typer.Exit(Exit.STALE)
