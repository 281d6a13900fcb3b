"""`modicum release approvals`: who agreed to a release, and who is missing."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from modicum.cli.exits import Exit
from modicum.cli.governance import Subject, hearing_lines
from modicum.cli.options import DEFAULT_LEDGER, Json, Ledger
from modicum.cli.output import print_json, reporting
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.workspace.asked_people import AskedPeople
    from modicum.workspace.governing.topics import Spoken
    from modicum.workspace.ledger_view import LedgerView

#: A word that ends so is the name of a file, whether or not there is one.
_FILES = (".yaml", ".yml", ".json")


def add_to(app: typer.Typer) -> None:
    """Add the command to those about releases."""
    app.command("approvals")(approvals)


def approvals(
    subject: Subject, ledger: Ledger = DEFAULT_LEDGER, as_json: Json = False
) -> None:
    """Show who agreed to a release and who is missing. Exits 5 if somebody is.

    By its id, a release is weighed that somebody spoke about. If only its digest is
    known, that is done by every approval of the policy.
    """
    from modicum.cli.opening import open_workspace

    with reporting(as_json=as_json):
        found = list(_asked(subject, open_workspace(ledger)))
        if as_json:
            print_json(_to_dict(found))
        else:
            for line in _lines(found):
                print(printable(line))
        if not all(one.complete for one in found):
            raise typer.Exit(Exit.NEEDS_APPROVAL)


def _asked(subject: str, view: LedgerView) -> Iterator[AskedPeople]:
    from modicum.shell.files import load_release, releases_of, standard_input
    from modicum.workspace.asked_people import asked_people, asked_people_of

    if subject == "-":
        nodes = releases_of(standard_input(sys.stdin.buffer))
    elif subject.endswith(_FILES) or _is_file(subject):
        nodes = releases_of(load_release(subject))
    else:
        yield asked_people_of(subject, view)
        return
    for node in nodes:
        yield asked_people(node, view)


def _is_file(subject: str) -> bool:
    try:
        return Path(subject).is_file()
    except (OSError, ValueError):  # It is too long for a path, or has a zero in it.
        return False


def _lines(found: Iterable[AskedPeople]) -> Iterator[str]:
    for people in found:
        if people.standing is not None:
            status, seq = people.standing.status.value, people.standing.seq
            stands = f"{people.release} is {status} (entry {seq})"
            yield f"{stands}: nobody is asked any more"
        elif not people.hearings:
            yield f"{people.release} needs no approval"
        elif not people.exact:
            yield (
                "its contents are not in the ledger: it needs these at most; with its"
                " file, only those that it needs are shown"
            )
        yield from hearing_lines(people.hearings)
        for said in people.spoken:
            yield _said(said, people.content)


def _said(one: Spoken, content: str) -> str:
    verb = "approved" if one.approves else "rejected"
    about = verb if one.content == content else f"{verb} (another content)"
    roles = " and ".join(one.roles)
    return f"entry {one.seq}  {one.at[:10]}  {one.by} {about} as {roles}: {one.reason}"


def _to_dict(found: Iterable[AskedPeople]) -> dict[str, object]:
    from modicum.workspace.governing.governance import hearing_to_dict

    return {
        "approvals": [hearing_to_dict(one) for each in found for one in each.hearings],
        "exact": all(one.exact for one in found),
        "spoken": [
            {
                "entry": one.seq,
                "at": one.at,
                "by": one.by,
                "approves": one.approves,
                "roles": list(one.roles),
                "reason": one.reason,
                "content": one.content,
                "current": one.content == each.content,
            }
            for each in found
            for one in each.spoken
        ],
    }
