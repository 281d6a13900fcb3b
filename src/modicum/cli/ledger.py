"""`modicum init` and `modicum ledger`: make, list and verify the ledger."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.options import DEFAULT_LEDGER, Actor, Json, Ledger
from modicum.cli.output import console, print_json, print_table, reporting

if TYPE_CHECKING:
    from modicum.ledger import Event, Record

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
    from modicum.shell.wiring import open_workspace

    with reporting(as_json=as_json):
        workspace = open_workspace(ledger, policy=policy, actor=actor)
        state = workspace.init()
        compiled = workspace.policy()
        if as_json:
            print_json(
                {
                    "ledger": str(ledger),
                    "seq": state.seq,
                    "head": state.head,
                    "policy": {
                        "name": compiled.policy.name,
                        "digest": compiled.policy.digest,
                        "rules": len(compiled.rules),
                    },
                }
            )
            return
        rules = len(compiled.rules)
        print(
            f"{ledger}: policy `{compiled.policy.name}`"
            f" ({compiled.policy.digest[:12]}) is active,"
            f" {rules} rule{'' if rules == 1 else 's'}"
        )


@app.command("list")
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

    from modicum.shell.wiring import open_workspace

    with reporting(as_json=as_json):
        rows = list(_entries(open_workspace(ledger).records()))[-last:]
        if as_json:
            print_json({"entries": rows})
            return
        table = Table(box=None, pad_edge=False)
        for title in ("SEQ", "AT", "ACTOR", "KIND", "WHAT", "HASH"):
            table.add_column(title, no_wrap=title != "WHAT")
        for row in rows:
            cells = (row["seq"], row["at"], row["actor"], row["kind"], row["what"])
            short = str(row["hash"])[:12]
            table.add_row(*(escape(str(cell)) for cell in cells), short)
        print_table(table)


def _entries(records: Iterable[Record]) -> Iterator[dict[str, object]]:
    from modicum.ledger import GENESIS, read_record

    previous = GENESIS
    for seq, record in enumerate(records, 1):
        event = read_record(record, seq, previous)
        previous = record.hash
        yield _entry(record, event)


def _entry(record: Record, event: Event) -> dict[str, object]:
    from modicum.ledger.events import PolicyActivated, event_name

    body = event.body
    if isinstance(body, PolicyActivated):
        what = f"{body.name} {body.digest[:12]}"
    else:
        what = body.release if isinstance(body.release, str) else body.release.id
    return {
        "seq": record.seq,
        "at": event.at,
        "actor": event.actor,
        "kind": event_name(body),
        "what": what,
        "blocking": list(getattr(body, "blocking", ())),
        "hash": record.hash,
    }


@app.command()
def verify(
    ledger: Ledger = DEFAULT_LEDGER,
    head: Annotated[
        str | None,
        typer.Option("--head", help="A head's hash, noted earlier elsewhere."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check the chain and take every decision again; exits 0 or 6."""
    from modicum.core.errors import Code, Problem, VerificationError
    from modicum.shell.wiring import open_workspace

    with reporting(as_json=as_json):
        with _progress(as_json=as_json) as on_entry:
            report = open_workspace(ledger).verify(
                on_entry, noted_hash=head.strip().lower() if head else None
            )
        if head is not None and report.noted is None:
            raise VerificationError(
                Problem(
                    Code.LEDGER_BROKEN,
                    f"no entry has the hash {head[:64]}",
                    notes=("entries were cut off or replaced since it was noted",),
                )
            )
        if as_json:
            print_json(
                {
                    "ok": True,
                    "entries": report.entries,
                    "head": report.head,
                    "state": report.state_digest,
                    "decisions": report.decisions,
                    "noted": report.noted,
                }
            )
            return
        print(
            f"{ledger}: chain ok, {report.entries} entries,"
            f" {report.decisions} decisions taken again and agree\n  head {report.head}"
        )
        if report.noted is not None:
            print(f"  the noted hash is that of entry {report.noted}")


@contextmanager
def _progress(*, as_json: bool) -> Iterator[Callable[[int], None] | None]:
    """Yield something to call with each entry's number; draws only on a terminal."""
    if as_json or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task("verifying")

        def on_entry(seq: int) -> None:
            progress.update(task, description=f"verifying entry {seq}")

        yield on_entry
