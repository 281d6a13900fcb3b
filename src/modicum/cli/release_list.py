"""`modicum release list`: which releases stand, and where."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.options import DEFAULT_LEDGER, AsOf, Json, Ledger, point
from modicum.cli.output import print_json, print_table, reporting, seconds
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.local.ledger_view import LedgerView
    from modicum.ledger import Standing


def list_releases(
    status: Annotated[
        list[str] | None,
        typer.Option(
            "--status",
            help="Only those that stand so: reserved, started, posted, recorded, voided"
            " or expired; repeatable.",
            metavar="STATUS",
        ),
    ] = None,
    ledger: Ledger = DEFAULT_LEDGER,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """List the releases that were let in, oldest first, and where each stands."""
    from modicum.cli.ledger_access import open_view

    with reporting(as_json=as_json):
        wanted = _statuses(status or ())
        found = [
            one
            for one in _standings(open_view(ledger, as_of=point(as_of)))
            if not wanted or one.status.value in wanted
        ]
        if as_json:
            from modicum.api.local.views.releases import listed_view

            print_json({"releases": [listed_view(one) for one in found]})
        elif found:
            _print_list(found)
        else:
            print("no release stands so" if wanted else "no release was let in")


def _statuses(given: Iterable[str]) -> frozenset[str]:
    from modicum.ledger import ReleaseStatus

    known = [one.value for one in ReleaseStatus]
    for one in given:
        if one not in known:
            raise typer.BadParameter(
                f"`{one}` is not one of {', '.join(known)}", param_hint="--status"
            )
    return frozenset(given)


def _standings(view: LedgerView) -> list[Standing]:
    from modicum.api.local.history import standings_at

    book, _, now = view.look()
    return standings_at(book, now)


def _print_list(found: Iterable[Standing]) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("ENTRY", justify="right", no_wrap=True)
    for title in ("STATUS", "DAY", "RELEASE", "RESERVED UNTIL"):
        table.add_column(title, no_wrap=True)
    for one in found:
        table.add_row(
            str(one.seq),
            one.status.value,
            date.fromordinal(one.day).isoformat(),
            escape(printable(one.id)),
            seconds(one.expires_at) if one.expires_at else "",
        )
    print_table(table, spare=("DAY",))
