"""`modicum release approvals`: who agreed to a release, and who is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import typer

from modicum.cli.exit_codes import Exit
from modicum.cli.governance import Subject
from modicum.cli.hearings import hearing_lines, spoken_line
from modicum.cli.options import DEFAULT_LEDGER, Json, Ledger
from modicum.cli.output import print_json, reporting
from modicum.cli.release_files import named_releases
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.local.approvers import AskedPeople
    from modicum.api.local.ledger_view import LedgerView


def approvals(
    subject: Subject, ledger: Ledger = DEFAULT_LEDGER, as_json: Json = False
) -> None:
    """Show who agreed to a release and who is missing. Exits 5 if somebody is.

    By its id, a release is weighed that somebody spoke about. If only its digest is
    known, that is done by every approval of the policy.
    """
    from modicum.cli.ledger_access import open_workspace

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
    from modicum.api.local.approvers import asked_people, asked_people_of

    for one in named_releases(subject):
        if isinstance(one, str):
            yield asked_people_of(one, view)
        else:
            yield asked_people(one, view)


def _lines(found: Iterable[AskedPeople]) -> Iterator[str]:
    for people in found:
        if people.standing is not None:
            status, seq = people.standing.status.value, people.standing.seq
            stands = f"{people.release} is {status} (entry {seq})"
            yield f"{stands}: nobody is asked any more"
        elif people.corrects:
            yield (
                f"{people.release} is to be corrected: a person who did not ask for"
                " that approves it"
            )
        elif not people.hearings:
            yield f"{people.release} needs no approval"
        elif not people.exact:
            yield (
                "its contents are not in the ledger: it needs these at most; with its"
                " file, only those that it needs are shown"
            )
        yield from hearing_lines(people.hearings)
        for said in people.spoken:
            other = said.content != people.content
            yield spoken_line(said, "another content" if other else "")


def _to_dict(found: Iterable[AskedPeople]) -> dict[str, object]:
    from modicum.api.local.views.approvals import approvals_view, vote_view

    return {
        "approvals": approvals_view(one for each in found for one in each.hearings),
        "exact": all(one.exact for one in found),
        "spoken": [
            vote_view(one, current=one.content == each.content)
            for each in found
            for one in each.spoken
        ],
    }
