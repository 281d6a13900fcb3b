"""`modicum ledger list` and `show`: what the entries of a ledger say."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.options import DEFAULT_LEDGER, Json, Ledger, shown
from modicum.cli.output import print_json, print_table, reporting, seconds
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.schema.ledger import Entry
    from modicum.core.canonical import Plain
    from modicum.ledger import Record


def add_to(app: typer.Typer) -> None:
    """Add the commands to those about the ledger."""
    app.command("list")(list_entries)
    app.command("show")(show)


def list_entries(
    ledger: Ledger = DEFAULT_LEDGER,
    last: Annotated[
        int, typer.Option("--last", min=1, help="Only the newest entries.")
    ] = 1_000_000,
    as_json: Json = False,
) -> None:
    """List the entries of the ledger, oldest first."""
    from rich.markup import escape
    from rich.table import Table

    from modicum.cli.ledger_access import open_workspace

    with reporting(as_json=as_json):
        rows = list(_entries(open_workspace(ledger).records()))[-last:]
        if as_json:
            print_json({"entries": rows})
            return
        table = Table(box=None, pad_edge=False)
        for title in ("SEQ", "AT", "ACTOR", "KIND", "WHAT", "HASH"):
            table.add_column(title, no_wrap=True)
        for row in rows:
            at = seconds(row.at)
            cells = (row.seq, at, row.actor, row.kind, row.what)
            short = row.hash[:12]
            table.add_row(*(escape(printable(str(cell))) for cell in cells), short)
        print_table(table, spare=("HASH", "ACTOR", "AT"))


def _entries(records: Iterable[Record]) -> Iterator[Entry]:
    from modicum.api.local.views.entries import entry_view
    from modicum.ledger import GENESIS, read_record

    previous = GENESIS
    for seq, record in enumerate(records, 1):
        event = read_record(record, seq, previous)
        previous = record.hash
        yield entry_view(record, event)


def show(
    entry: Annotated[int, typer.Argument(help="The number of the entry.", min=1)],
    ledger: Ledger = DEFAULT_LEDGER,
    as_json: Json = False,
) -> None:
    """Show one entry of the ledger as it is stored."""
    from msgspec.structs import asdict

    from modicum.api.local.views.entries import entry_view
    from modicum.core.canonical import decode
    from modicum.ledger import event_of

    with reporting(as_json=as_json):
        record = _record(ledger, entry)
        told = entry_view(record, event_of(record, entry))
        stored = decode(record.payload)
        body = stored["event"]["body"]  # type: ignore[call-overload,index]
        if as_json:
            print_json({**asdict(told), "body": body})
            return
        print(printable(f"entry {entry}: {told.kind}  {told.what}"))
        rows = {"at": told.at, "actor": told.actor, "hash": told.hash}
        for key, value in [*rows.items(), *_shown(body)]:  # type: ignore[arg-type]
            print(printable(f"  {key}: {value}"))


def _record(ledger: str, entry: int) -> Record:
    from modicum.cli.ledger_access import open_workspace
    from modicum.core.errors import Code, InputError, Problem

    _, read, _ = open_workspace(ledger).look()
    record = next(iter(read(entry - 1)), None)
    if record is None:
        raise InputError(
            Problem(Code.OUT_OF_RANGE, f"{shown(ledger)} has no entry {entry} yet")
        )
    return record


def _shown(body: Mapping[str, Plain]) -> Iterator[tuple[str, object]]:
    """Yield what an entry holds; of long texts only that they are there."""
    for key, value in body.items():
        if key == "release" and isinstance(value, Mapping):
            yield key, f"{value['id']} (all of it with  --json)"
        elif key == "text" and isinstance(value, str) and "\n" in value:
            yield key, f"{len(value.splitlines())} lines (with  --json)"
        elif isinstance(value, list | dict):
            if value:
                yield key, json.dumps(value, ensure_ascii=False)
        elif isinstance(value, bool):
            yield key, "true" if value else "false"
        elif value not in ("", None):
            yield key, value
