"""`modicum release redescribe`: ask for the correction of past releases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.governance import Reason, office_of
from modicum.cli.hearings import hearing_lines
from modicum.cli.options import DEFAULT_LEDGER, Actor, Json, Ledger
from modicum.cli.output import print_json, reporting
from modicum.cli.release_files import read_releases
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.workspace.governing.requesting import Requested


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
    from modicum.workspace.documents.approvals import redescribed_to_dict
    from modicum.workspace.past_descriptions import id_of

    with reporting(as_json=as_json):
        office = office_of(ledger, actor)
        nodes = [node for file in files for node in read_releases(file)]
        found = [
            (id_of(node), office.redescribe(node, reason=reason)) for node in nodes
        ]
        if as_json:
            print_json({"corrections": [redescribed_to_dict(*one) for one in found]})
            return
        for name, asked in found:
            for line in _lines(name, asked):
                print(printable(line))


def _lines(name: str, asked: Requested | None) -> Iterator[str]:
    if asked is None:
        yield f"{name}: described so already; nothing is asked for"
        return
    again = " already" if asked.repeated else ""
    over = ", ".join(asked.decision.over_limit)
    yield (
        f"{name}: a correction is asked for{again} (entry {asked.request.seq}); with"
        f" it, {f'over their limit: {over}' if over else 'none of its rules is over'}"
    )
    yield from (f"  {line}" for line in hearing_lines(asked.hearings))
    yield f"  another person agrees by  modicum release approve {name} --reason …"
