"""`modicum policy show`: the text of a ledger's active policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.options import DEFAULT_LEDGER, AsOf, Json, Ledger, point
from modicum.cli.output import print_json, reporting
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.ledger.state.state import ActivePolicy


def register(app: typer.Typer) -> None:
    """Add the command to those about policies."""
    app.command("show")(show)


def show(
    ledger: Ledger = DEFAULT_LEDGER,
    numbers: Annotated[
        bool,
        typer.Option("--numbers", help="Number the lines, as denials name them."),
    ] = False,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Print the text of the ledger's active policy, as it was activated.

    A denial that names `(active):47:5` means its line 47.
    """
    from modicum.api.local.governance.governance import active_policy
    from modicum.cli.ledger_access import open_view

    with reporting(as_json=as_json):
        book, _, _ = open_view(ledger, as_of=point(as_of)).look()
        active_policy(book)  # Refuses a ledger without one, or one that is damaged.
        policy = book.state.policy
        assert policy is not None
        if as_json:
            print_json(_to_dict(policy))
            return
        for number, line in enumerate(policy.text.splitlines(), 1):
            shown = printable(line)
            print(f"{number:>5}  {shown}".rstrip() if numbers else shown)


def _to_dict(policy: ActivePolicy) -> dict[str, object]:
    return {
        "name": policy.name,
        "digest": policy.digest,
        "entry": policy.seq,
        "reason": policy.reason or None,
        "accepted": list(policy.accepted),
        "text": policy.text,
    }
