"""`modicum release redescribe`: ask for the correction of past releases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.governance import Reason, office_of
from modicum.cli.hearings import hearing_lines
from modicum.cli.options import DEFAULT_LEDGER, Actor, Json, Ledger
from modicum.cli.output import in_turn, once, print_json, reporting
from modicum.cli.release_files import read_releases
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.local.governance.requests import Requested


def redescribe(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="The releases as they were recorded, with other `periods`; - for"
            " standard input.",
            metavar="FILE...",
        ),
    ],
    reason: Reason,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Ask for a correction of past releases: of the `periods` that they read.

    Another person agrees with  release approve  , and whom the policy asks. Until then,
    the releases are charged as they were recorded.
    """
    from modicum.api.local.backfill import id_of
    from modicum.api.local.views.approvals import correction_view

    with reporting(as_json=as_json):
        office = office_of(ledger, actor)
        nodes = [node for file in files for node in read_releases(file)]
        found = in_turn(
            nodes,
            lambda node: (id_of(node), office.redescribe(node, reason=reason)),
            id_of,
        )
        if as_json:
            print_json({"corrections": [correction_view(*one) for one in found]})
            return
        for line in _lines(found):
            print(printable(line))


def _lines(found: Sequence[tuple[str, Requested | None]]) -> Iterator[str]:
    shared: list[tuple[str, str]] = []
    it = "it" if len(found) == 1 else "one alone"
    for name, asked in found:
        if asked is None:
            yield f"{name}: described so already; nothing is asked for"
            continue
        again = " already" if asked.repeated else ""
        yield f"{name}: a correction is asked for{again} (entry {asked.request.seq})"
        over = ", ".join(asked.decision.over_limit)
        rules = f"over their limit: {over}" if over else "none of its rules is over"
        shared.append((name, f"with {it}, {rules}"))
        shared.extend((name, line) for line in hearing_lines(asked.hearings))
    yield from once(shared)
    if shared:
        named = shared[0][0] if len(found) == 1 else "FILE"
        yield f"  another person agrees by  modicum release approve {named} --reason …"
