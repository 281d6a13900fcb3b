"""`modicum request`: releases that wait for approval."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.governance import Reason, approval_lines, governance_of
from modicum.cli.options import DEFAULT_LEDGER, Actor, Json, Ledger
from modicum.cli.output import print_json, reporting
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.local.governance.requests import PendingRequest, Requested
    from modicum.ledger.decision.approvals import ApprovalState
    from modicum.ledger.state.pending import Request

app = typer.Typer(help="List and withdraw requests for approval.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(help="The id of the release.", metavar="ID")]


@app.command("list")
def list_requests(ledger: Ledger = DEFAULT_LEDGER, as_json: Json = False) -> None:
    """List the requested releases, and the missing approvals."""
    from modicum.api.local.views.approvals import pending_view

    with reporting(as_json=as_json):
        found = governance_of(ledger, None).requests()
        if as_json:
            print_json({"requests": [pending_view(one) for one in found]})
            return
        for line in _lines(found) if found else ["there are no requests"]:
            print(line)


@app.command()
def show(release: Id, ledger: Ledger = DEFAULT_LEDGER, as_json: Json = False) -> None:
    """Show a requested release, and the missing approvals."""
    from msgspec.structs import asdict

    from modicum.api.local.views.approvals import pending_view
    from modicum.ledger.state.pending import no_request

    with reporting(as_json=as_json):
        found = governance_of(ledger, None).requests()
        known = [one for one in found if one.request.release == release]
        if not known:
            raise no_request(release)
        if as_json:
            print_json({**asdict(pending_view(known[0])), "body": _body(known[0])})
            return
        for line in (*_lines(known), *_described(known[0])):
            print(line)


@app.command()
def withdraw(
    release: Id,
    reason: Reason,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Withdraw a request of your own, or any request to correct a past release."""
    from modicum.api.local.views.approvals import withdrawn_view

    with reporting(as_json=as_json):
        office = governance_of(ledger, actor)
        known = office.withdraw_request(release, reason=reason)
        if as_json:
            print_json({"withdrawn": withdrawn_view(known)})
        else:
            print(printable(f"release `{known.release}` is no longer requested"))


def print_requested(found: Requested, *, as_json: bool) -> None:
    """Print a new request."""
    from modicum.api.local.views.approvals import request_view

    if as_json:
        print_json(request_view(found))
        return
    for line in _asked_lines(found.request, "", found.approval_states):
        print(line)


# --- text and JSON ----------------------------------------------------------------


def _lines(found: Iterable[PendingRequest]) -> Iterator[str]:
    for one in found:
        yield from _asked_lines(one.request, f": {one.reason}", one.approval_states)
        if one.corrects:
            yield "  MISSING  approval by a person other than the requester"
        if not one.current:
            yield (
                "  AGAIN    it was requested under an earlier policy: request it again"
            )


def _asked_lines(
    request: Request, why: str, states: Iterable[ApprovalState]
) -> Iterator[str]:
    yield printable(
        f"release `{request.release}` is requested by {request.by} since"
        f" {request.at[:10]} (entry {request.seq}){why}"
    )
    for line in approval_lines(states):
        yield f"  {line}"


def _described(one: PendingRequest) -> Iterator[str]:
    """Yield the content of a request, in brief."""
    release = one.release
    for key, value in {**release.labels, **release.metadata}.items():
        yield printable(f"  {key}: {value}")
    for mechanism in release.mechanisms:
        kind, name = (mechanism.description.get(key) for key in ("kind", "name"))
        reads = ", ".join(mechanism.attributes) or "nothing"
        yield printable(f"  mechanism {name}: {kind}, reads {reads}")
    yield "  everything, with losses:  --json"


def _body(one: PendingRequest) -> object:
    from modicum.ledger.log.codec import release_to_plain

    return release_to_plain(one.release)
