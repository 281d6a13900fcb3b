"""`modicum audit`: a ledger in one file, checked without it; statements about it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.ledger_access import current_log, open_log, opened_source
from modicum.cli.ledger_signatures import PassphraseFile, file_named, open_key
from modicum.cli.options import DEFAULT_LEDGER, Json, Ledger
from modicum.cli.output import note, print_json, reporting
from modicum.cli.progress import counting
from modicum.cli.verification import (
    Claims,
    PublicKeys,
    RequireCheckpoint,
    print_verified,
)
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.ledger.proof.access_trail import AccessEvent
    from modicum.reports.sources import Source
    from modicum.reports.statement import Statement

#: Maximum number of changed limits printed; the page has them all.
_LIMITS_SHOWN = 20

app = typer.Typer(
    help="Export a ledger for an auditor, verify it offline, and report on it.",
    no_args_is_help=True,
)

Bundle = Annotated[Path, typer.Argument(help="The audit bundle.")]
OptionalBundle = Annotated[
    Path | None,
    typer.Argument(help="The audit bundle; by default, the ledger."),
]


@app.command()
def export(
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", help="The bundle.", metavar="FILE", callback=file_named
        ),
    ],
    ledger: Ledger = DEFAULT_LEDGER,
    key: Annotated[
        Path | None,
        typer.Option(
            "--key",
            help="Sign a checkpoint of the last entry with this private key.",
            metavar="FILE",
        ),
    ] = None,
    passphrase_file: PassphraseFile = None,
    without_trail: Annotated[
        bool, typer.Option("--without-trail", help="Leave the access trail out.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write the ledger, its checkpoints, policies and access trail to one file."""
    from modicum.storage.access_table import access_table
    from modicum.storage.proofs.bundles import export_bundle
    from modicum.storage.proofs.ledger_log import stored_checkpoints
    from modicum.storage.proofs.signing_keys import Signing
    from modicum.system.clock import SystemClock

    with reporting(as_json=as_json):
        signing = None
        if key is not None:
            signing = Signing(open_key(key, passphrase_file), SystemClock().now())
        store = current_log(ledger)
        manifest = export_bundle(
            store,
            output,
            stored=stored_checkpoints(store),
            signing=signing,
            trail=None if without_trail else access_table(store),
        )
        events = 0 if manifest.trail is None else manifest.trail.events
        if as_json:
            print_json(
                {
                    "file": str(output),
                    "ledger": manifest.ledger,
                    "entries": manifest.entries,
                    "head": manifest.head,
                    "checkpoints": manifest.checkpoints,
                    "keys": list(manifest.keys),
                    "policies": manifest.policies,
                    "access_events": events,
                }
            )
            return
        print(
            f"{output}: {manifest.entries} entries, {manifest.checkpoints} checkpoints"
            + (f", access trail of {_events(events)}" if events else "")
            + f"\n  head {manifest.head}"
        )


@app.command()
def verify(
    bundle: Bundle,
    public_keys: PublicKeys = None,
    claims: Claims = None,
    require_checkpoint: RequireCheckpoint = False,
    as_json: Json = False,
) -> None:
    """Verify a bundle offline: chain, signatures, every decision; exits 0 or 6."""
    from modicum.storage.proofs.bundles import open_bundle, verify_bundle
    from modicum.storage.proofs.verification import load_trust, require_pinned

    with reporting(as_json=as_json):
        trust = load_trust(public_keys or (), claims or ())
        with open_bundle(bundle) as found:
            total = found.manifest.entries
            with counting("verifying", quiet=as_json, total=total) as on_entry:
                verified = verify_bundle(found, trust, path=bundle, on_entry=on_entry)
        if require_checkpoint:
            require_pinned(verified)
        print_verified(str(bundle), verified, as_json=as_json)
        trail = found.manifest.trail
        if trail is not None and not as_json:
            print(f"  access trail: {_events(trail.events)}, head {trail.head}")


@app.command("trail")
def access_trail(
    ledger: Ledger = DEFAULT_LEDGER,
    after: Annotated[
        int, typer.Option("--after", min=0, help="Print events after this one.")
    ] = 0,
    known_head: Annotated[
        str | None,
        typer.Option(
            "--known-head",
            help="An event that the trail must contain: its number and its hash, or at"
            " least its first 12 digits.",
            metavar="SEQ:HASH",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Verify the access trail, and print its events: as JSON, one on each line.

    Exits with 6 if an event was changed, moved or left out. That the trail was cut at
    its end is found only with --known-head, such as of the last event that was shipped.
    """
    from modicum.core.document import from_python
    from modicum.ledger.proof.access_trail import line_of, verified
    from modicum.server.settings.binding import known_head as head_of
    from modicum.storage.access_table import AccessTable

    with reporting(as_json=as_json):
        table = AccessTable(open_log(ledger))
        known = None
        if known_head is not None:
            known = head_of(from_python(known_head), "`--known-head`")
            table.must_have(known.seq, known.digits)
        last = None
        for last, event in verified(table.read()):
            if last.seq <= after:
                continue
            if as_json:
                print(line_of(last).decode())
            else:
                print(printable(_event_text(last.seq, event)))
        head = "" if last is None else f", head {last.seq}:{last.hash}"
        count = 0 if last is None else last.seq
        note(f"access trail ok: {_events(count)}{head}")


@app.command()
def report(
    context: typer.Context,
    bundle: OptionalBundle = None,
    ledger: Ledger = DEFAULT_LEDGER,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="The HTML page.",
            metavar="FILE",
            callback=file_named,
        ),
    ] = None,
    public_keys: PublicKeys = None,
    claims: Claims = None,
    as_json: Json = False,
) -> None:
    """Verify a ledger or a bundle, and write a privacy statement."""
    from modicum.reports.statement_html import page
    from modicum.system.files import write_whole

    with reporting(as_json=as_json):
        refuse_no_output(output, as_json=as_json)
        _refuse_both(context, bundle)
        with opened_source(bundle, ledger) as source:
            statement = _stated(source, public_keys, claims, quiet=as_json)
        if output is not None:
            write_whole(output, [page(statement).encode("utf-8")])
        if as_json:
            print_json(statement.to_dict())
            return
        over = len(statement.over)
        print(
            f"{output}: {statement.verified.report.entries} entries verified,"
            f" {len(statement.story.releases)} releases,"
            f" {over} of {len(statement.rules)} rules over their limit"
        )
        _print_limits(statement)
        _print_bits(statement)


@app.command()
def registry(
    context: typer.Context,
    bundle: OptionalBundle = None,
    ledger: Ledger = DEFAULT_LEDGER,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="The YAML file.",
            metavar="FILE",
            callback=file_named,
        ),
    ] = None,
    public_keys: PublicKeys = None,
    claims: Claims = None,
    as_json: Json = False,
) -> None:
    """Write the releases as records for a public registry of deployments."""
    from modicum.reports.deployment_registry import registry_records, registry_text
    from modicum.system.files import write_whole

    with reporting(as_json=as_json):
        refuse_no_output(output, as_json=as_json)
        _refuse_both(context, bundle)
        with opened_source(bundle, ledger) as source:
            statement = _stated(source, public_keys, claims, quiet=as_json)
            records = registry_records(statement, source.store.read(0))
        if output is not None:
            write_whole(output, [registry_text(records).encode("utf-8")])
        if as_json:
            print_json({"records": records})
            return
        print(f"{output}: {len(records)} records; fill in what is UNKNOWN")


def _events(count: int) -> str:
    return "1 event" if count == 1 else f"{count} events"


def _event_text(seq: int, event: AccessEvent) -> str:
    """Return an event as a line for people."""
    more = ", ".join(event.parts) or event.action or event.token or event.of
    count = str(event.count) if event.count else ""
    who = event.who or event.client
    found = (event.outcome, who, more, count, event.code)
    words = " ".join(one for one in found if one)
    return f"{seq:>6}  {event.at[:19]}Z  {event.kind.value:<17} {words}"


def _stated(
    source: Source,
    public_keys: list[Path] | None,
    claims: list[Path] | None,
    *,
    quiet: bool,
) -> Statement:
    from modicum.reports.sources import report_on
    from modicum.storage.proofs.verification import load_trust

    trust = load_trust(public_keys or (), claims or ())
    with counting("verifying", quiet=quiet) as on_entry:
        return report_on(source, trust, on_entry)


def _print_limits(statement: Statement) -> None:
    """Print the limits that changed after releases, the first of them if many did."""
    changed = [one for one in statement.rules if one.changes]
    for one in changed[:_LIMITS_SHOWN]:
        print(printable(f"  limit of {one.id}: {one.changes}"))
    if len(changed) > _LIMITS_SHOWN:
        print(f"  and {len(changed) - _LIMITS_SHOWN} more limits that changed")


def _print_bits(statement: Statement) -> None:
    """Print disclosures outside differential privacy, by person and data set."""
    for one in statement.story.escrow.bits:
        if one.disclosed:
            text = f"{one.person} received {one.disclosed} bits of {one.data}"
            limit = f"not differentially private; {one.allowed} are allowed"
            print(printable(f"  {text}, {limit}"))


def refuse_no_output(output: Path | None, *, as_json: bool) -> None:
    """Refuse to check a whole ledger for nothing."""
    if output is None and not as_json:
        raise typer.BadParameter("name a file with  -o, or use  --json")


def _refuse_both(context: typer.Context, bundle: Path | None) -> None:
    """Refuse a ledger beside a bundle: one of them would not be looked at.

    A ledger that the environment names is for other commands, and is passed over.
    """
    given = context.get_parameter_source("ledger")
    if bundle is not None and given is not None and given.name == "COMMANDLINE":
        raise typer.BadParameter("name a bundle, or a ledger with  --ledger, not both")
