"""`modicum init` and `modicum ledger`: make, list and verify the ledger."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from modicum.cli.governance import add_to_ledger
from modicum.cli.ledger_access import current_log, open_log
from modicum.cli.ledger_gaps import add_to as add_gaps_to
from modicum.cli.ledger_signatures import add_to
from modicum.cli.options import (
    DEFAULT_LEDGER,
    Actor,
    AsOf,
    Json,
    Ledger,
    Policy,
    point,
    shown,
)
from modicum.cli.output import print_json, print_table, reporting, seconds
from modicum.cli.progress import counting
from modicum.cli.verification import (
    Claims,
    PublicKeys,
    RequireCheckpoint,
    noted_head,
    print_verified,
    whole_head,
)
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.local.cell_balance import CellBalance
    from modicum.api.schema.ledger import Entry
    from modicum.core.canonical import Plain
    from modicum.ledger import Record
    from modicum.release import Partition


def balance(
    rule: Annotated[
        str, typer.Argument(help="The id of a rule over history.", metavar="RULE")
    ],
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            help="The part of the population: country=CH, country=CH,DE or age=18..64;"
            " repeatable.",
            metavar="NAME=VALUE",
        ),
    ] = None,
    period: Annotated[
        list[str] | None,
        typer.Option("--period", help="The period, such as 2026-11; repeatable."),
    ] = None,
    group: Annotated[
        list[int] | None,
        typer.Option("--group", help="The user group; repeatable."),
    ] = None,
    top: Annotated[
        int, typer.Option("--top", min=1, help="The number of releases to list.")
    ] = 10,
    policy: Policy = None,
    ledger: Ledger = DEFAULT_LEDGER,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Show the fullest cell of a rule: spent, limit, and the releases that filled it.

    By default, --where, --period and --group cover all cells. Writes nothing.
    """
    from modicum.cli.ledger_access import note_if_empty, open_view

    with reporting(as_json=as_json):
        view = open_view(ledger, policy=policy, as_of=point(as_of))
        partitions = view.policy().policy.vocabulary.population.partitions
        found = view.spenders(
            rule,
            where=_box(where, partitions) if where else None,
            periods=period or None,
            groups=group or None,
        )
        if as_json:
            print_json(found.view(top))
        else:
            note_if_empty(view, ledger)
            print_balance(found, top)


def print_balance(found: CellBalance, top: int) -> None:
    """Print the charge of a cell, by release."""
    from modicum.api.local.explanation.denial_text import amount_text, room_text

    loss, spent = found.loss, found.spent
    print(printable(f"{loss.rule.id}, per {loss.rule.unit}"))
    if loss.cell:
        of = f", the fullest of {found.cells}" if found.cells > 1 else ""
        print(printable(f"  cell   {loss.cell}{of}"))
    print(f"  spent  {spent.measure} {amount_text(spent.together, spent.scale)}")
    if not loss.own_filter.enforced:
        print("  limit  none: tracked only")
    else:
        over = "" if loss.allowed else ", OVER: matching releases are denied"
        print(f"  limit  {spent.measure} {amount_text(spent.limit, spent.scale)}{over}")
    if found.cause:
        print(printable(f"  cause  {found.cause}"))
    if found.rho_left is not None:
        print(f"  left   for a Gaussian mechanism: rho = {room_text(found.rho_left)}")
    if found.spenders:
        _print_spenders(found, top)
    if found.nearby:
        print("  also charged for others: there are too many segments to separate")


def _print_spenders(found: CellBalance, top: int) -> None:
    from rich.markup import escape
    from rich.table import Table

    from modicum.accounting.grid import DELTA, coordinate_name
    from modicum.api.local.explanation.denial_text import amount_text
    from modicum.core.rationals import DELTA_UNIT, LOSS_UNIT

    scale = DELTA_UNIT if found.coordinate == DELTA else LOSS_UNIT
    table = Table(box=None, pad_edge=False)
    table.add_column("RELEASE", overflow="fold")
    table.add_column(coordinate_name(found.coordinate).upper(), justify="right")
    table.add_column("SHARE", justify="right")
    shown = found.spenders[:top]
    if any(one.undated for one in shown):
        table.add_column("PERIODS")
    for one in shown:
        share = "" if one.share is None else f"{int(100 * one.share)} %"
        periods = ("missing" if one.undated else "",) * (len(table.columns) - 3)
        amount = amount_text(one.units, scale)
        table.add_row(escape(printable(one.release)), amount, share, *periods)
    print_table(table)
    left = len(found.spenders) - top
    if left > 0:
        print(f"… {left} more (--top)")


def _box(given: Iterable[str], partitions: Mapping[str, Partition]) -> dict[str, Any]:
    """Return a box as a release names it."""
    box: dict[str, Any] = {}
    for text in given:
        name, equals, values = text.partition("=")
        if not equals:
            raise typer.BadParameter(
                f"`{text}` is not NAME=VALUE", param_hint="--where"
            )
        numbers = name in partitions and partitions[name].values is None
        read = [_span(one) if numbers else one for one in values.split(",")]
        box.setdefault(name, []).extend(read)
    return box


def _span(text: str) -> Any:
    """Return a number, or a span such as `18..64`, as a release names it."""
    low, dots, high = text.partition("..")
    if not dots:
        return _number(text)
    ends = {"from": low, "to": high}
    return {end: _number(value) for end, value in ends.items() if value}


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(
            f"`{text}` is not an integer", param_hint="--where"
        ) from None


def add_entries_to(app: typer.Typer) -> None:
    """Add the commands to those about the ledger."""
    app.command("list")(list_entries)
    app.command("show")(show)


def list_entries(
    ledger: Ledger = DEFAULT_LEDGER,
    last: Annotated[
        int, typer.Option("--last", min=1, help="Show only the newest entries.")
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
    from modicum.api.local.views.ledger import entry_view
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

    from modicum.api.local.views.ledger import entry_view
    from modicum.core.canonical import decode
    from modicum.ledger import event_of

    with reporting(as_json=as_json):
        record = _record(ledger, entry)
        view = entry_view(record, event_of(record, entry))
        stored = decode(record.payload)
        body = stored["event"]["body"]  # type: ignore[call-overload,index]
        if as_json:
            print_json({**asdict(view), "body": body})
            return
        print(printable(f"entry {entry}: {view.kind}  {view.what}"))
        rows = {"at": view.at, "actor": view.actor, "hash": view.hash}
        for key, value in [*rows.items(), *_shown(body)]:  # type: ignore[arg-type]
            print(printable(f"  {key}: {value}"))


def _record(ledger: str, entry: int) -> Record:
    from modicum.cli.ledger_access import open_workspace
    from modicum.core.errors import Code, InputError, Problem

    _, read, _ = open_workspace(ledger).current()
    record = next(iter(read(entry - 1)), None)
    if record is None:
        raise InputError(
            Problem(Code.OUT_OF_RANGE, f"{shown(ledger)} has no entry {entry} yet")
        )
    return record


def _shown(body: Mapping[str, Plain]) -> Iterator[tuple[str, object]]:
    """Yield the fields of an entry; of long texts only their existence."""
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


#: The digits of a hash.
_WHOLE = 64


def verify(
    ledger: Ledger = DEFAULT_LEDGER,
    head: Annotated[
        str | None,
        typer.Option(
            "--head",
            help="A head that you recorded: its hash, or at least its first 12 digits.",
        ),
    ] = None,
    public_keys: PublicKeys = None,
    claims: Claims = None,
    require_checkpoint: RequireCheckpoint = False,
    as_json: Json = False,
) -> None:
    """Verify chain, signatures and every decision; exits 0 or 6."""
    from modicum.storage.proofs.ledger_log import verify_ledger
    from modicum.storage.proofs.verification import (
        load_trust,
        require_noted,
        require_pinned,
    )

    with reporting(as_json=as_json):
        current_log(ledger)
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
    """Return the noted hash; what is read here is verified afterwards."""
    digits = noted_head(head)
    if len(digits) == _WHOLE:
        return digits
    return whole_head(digits, (one.hash for one in open_log(ledger).read(0)))


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
    """Create a ledger and activate a policy in it."""
    from modicum.cli.ledger_access import open_or_create

    with reporting(as_json=as_json):
        workspace = open_or_create(ledger, policy=policy, actor=actor)
        before = workspace.state().seq
        state = workspace.init()
        compiled = workspace.policy()
        changed = state.policy is not None and state.policy.seq > before
        if as_json:
            print_json(
                {
                    "ledger": shown(ledger),
                    "seq": state.seq,
                    "head": state.head,
                    "changed": changed,
                    "policy": {
                        "name": compiled.policy.name,
                        "digest": compiled.policy.digest,
                        "rules": len(compiled.rules),
                    },
                }
            )
            return
        rules = len(compiled.rules)
        active = "is active" if changed else "is already active"
        print(
            f"{shown(ledger)}: policy `{compiled.policy.name}`"
            f" ({compiled.policy.digest[:12]}) {active},"
            f" {rules} rule{'' if rules == 1 else 's'}"
        )


add_entries_to(app)
app.command()(balance)
app.command()(verify)
add_to(app)
add_to_ledger(app)
add_gaps_to(app)
