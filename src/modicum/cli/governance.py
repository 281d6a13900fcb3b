"""`modicum release approve` and `reject`, and remarks in the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.hearings import hearing_lines, hearings_to_list
from modicum.cli.options import DEFAULT_LEDGER, Actor, Json, Ledger, shown
from modicum.cli.output import note, print_json, reporting
from modicum.cli.release_files import named_releases, read_release
from modicum.core.document import Entries
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.core.document import Node
    from modicum.workspace.governing.governance import Said
    from modicum.workspace.governing.governing import Governance

Subject = Annotated[
    str,
    typer.Argument(
        help="The release's file, - for standard input; or its id, if somebody spoke"
        " about it before.",
        metavar="FILE|ID",
    ),
]
Reason = Annotated[str, typer.Option("--reason", help="Why, for the record.")]


def add_to_ledger(app: typer.Typer) -> None:
    """Add the commands about remarks to those about the ledger."""
    app.command("annotate")(annotate)
    app.command("disclose")(disclose)


# --- approvals ------------------------------------------------------------------


def approve(
    subject: Subject,
    reason: Reason,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Agree to a release that needs approval, as the policy's `roles` allow."""
    _say(
        subject,
        ledger,
        actor,
        lambda office, release: office.approve(release, reason=reason),
        as_json=as_json,
    )


def reject(
    subject: Subject,
    reason: Reason,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Refuse a release, or take an approval back; it is blocked until you approve."""
    _say(
        subject,
        ledger,
        actor,
        lambda office, release: office.reject(release, reason=reason),
        as_json=as_json,
    )


def _say(
    subject: str,
    ledger: str,
    actor: str | None,
    verb: Callable[[Governance, Node | str], Said],
    *,
    as_json: bool,
) -> None:
    with reporting(as_json=as_json):
        office = office_of(ledger, actor)
        named = list(named_releases(subject))
        said = [verb(office, one) for one in named]
        if as_json:
            print_json({"said": [said_to_dict(one) for one in said]})
            return
        for one in said:
            print_said(one)
        if any(one.approves for one in said):
            _warn_of_nobody(named)


def _warn_of_nobody(named: Iterable[Node | str]) -> None:
    """Say of releases that do not tell who asks: plans with approvals need to know."""
    for one in named:
        if isinstance(one, Entries) and "requester" not in {
            key.text for key, _ in one.entries
        }:
            note(
                "note: it does not name its `requester`, so no plan takes it; who adds"
                " one later asks for these approvals anew"
            )


def print_said(said: Said) -> None:
    """Print what somebody said, and what is missing after it."""
    verb = "approved" if said.approves else "rejected"
    roles = " and ".join(said.roles)
    already = f" already (entry {said.seq})" if said.repeated else ""
    print(printable(f"{said.topic.called} {verb} by {said.by} as {roles}{already}"))
    for line in hearing_lines(said.hearings):
        print(f"  {line}")


def said_to_dict(said: Said) -> dict[str, object]:
    """Return what somebody said, as plain JSON (docs/reference/json.md)."""
    return {
        "subject": said.topic.subject,
        "id": said.topic.id,
        "content": said.topic.content,
        "by": said.by,
        "approves": said.approves,
        "roles": list(said.roles),
        "entry": said.seq,
        "repeated": said.repeated,
        "approvals": hearings_to_list(said.hearings),
    }


def office_of(ledger: str, actor: str | None) -> Governance:
    """Return what people do who govern a ledger."""
    from modicum.cli.opening import open_workspace

    return open_workspace(ledger, actor=actor).governance


# --- remarks --------------------------------------------------------------------


def annotate(
    remark: Annotated[str, typer.Argument(help="The remark.", metavar="TEXT")],
    about: Annotated[
        str,
        typer.Option(
            "--about", help="The id of a release or a disclosure.", metavar="ID"
        ),
    ] = "",
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Add a remark for those who read the ledger later. It changes nothing."""
    with reporting(as_json=as_json):
        seq = office_of(ledger, actor).annotate(remark, about=about)
        if as_json:
            print_json({"entry": seq, "about": about or None})
        else:
            print(f"{shown(ledger)}: remark added (entry {seq})")


def disclose(
    file: Annotated[
        Path,
        typer.Argument(
            help="The disclosure, YAML or JSON; - for standard input.", metavar="FILE"
        ),
    ],
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Record what was disclosed outside differential privacy: no rule counts it."""
    with reporting(as_json=as_json):
        body, seq = office_of(ledger, actor).disclose(read_release(file))
        if as_json:
            print_json(
                {
                    "disclosure": body.id,
                    "entry": seq,
                    "attributes": list(body.attributes),
                }
            )
            return
        print(f"{body.id}: disclosure recorded (entry {seq}); no rule counts it")
