"""`modicum release`: check, submit, and follow releases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.exit_codes import Exit
from modicum.cli.governance import Subject, approval_lines, vote_line
from modicum.cli.group import later
from modicum.cli.options import (
    DEFAULT_LEDGER,
    Actor,
    AsOf,
    EveryRule,
    Json,
    Ledger,
    Policy,
    ReleaseId,
    expires_in_seconds,
    point,
)
from modicum.cli.output import (
    note,
    print_decision,
    print_json,
    print_table,
    reporting,
    seconds,
)
from modicum.cli.release_files import File, named_releases, read_release, was_query
from modicum.core.errors import ModicumError, printable

if TYPE_CHECKING:
    from modicum.api.local import Workspace
    from modicum.api.local.approvers import Approvers
    from modicum.api.local.ledger_view import LedgerView
    from modicum.api.schema.approval import KnownApprovals
    from modicum.ledger import Standing

app = typer.Typer(help="Check, submit, and follow releases.", no_args_is_help=True)


@app.command()
def check(
    file: File,
    policy: Policy = None,
    ledger: Ledger = DEFAULT_LEDGER,
    as_of: AsOf = None,
    show_all: EveryRule = False,
    as_json: Json = False,
) -> None:
    """Dry run: show the decision. Writes nothing; exits 0 or 3."""
    from modicum.cli.ledger_access import open_view

    with reporting(as_json=as_json):
        view = open_view(ledger, policy=policy, as_of=point(as_of))
        decision = view.check(read_release(file))
        print_decision(decision, as_json=as_json, whole=show_all)


later(app, fit="release_fit.fit", options="release_fit.options")


@app.command()
def submit(
    file: File,
    policy: Policy = None,
    ledger: Ledger = DEFAULT_LEDGER,
    publish: Annotated[
        bool,
        typer.Option(
            "--publish", help="Publish immediately: the release is already public."
        ),
    ] = False,
    expires_in: Annotated[
        str,
        typer.Option(
            "--expires-in",
            help="How long an unstarted reservation lasts: 90s, 30m, 24h.",
        ),
    ] = "24h",
    request: Annotated[
        str | None,
        typer.Option(
            "--request",
            help="The reason: if approval is needed, request it in the ledger,"
            " and exit with code 5.",
            metavar="REASON",
        ),
    ] = None,
    actor: Actor = None,
    show_all: EveryRule = False,
    as_json: Json = False,
) -> None:
    """Decide a release, and reserve its loss if it is allowed; exits 0 or 3."""
    from modicum.core.errors import ApprovalError

    with reporting(as_json=as_json):
        release = read_release(file)
        workspace = _workspace(ledger, policy, actor)
        try:
            decision = workspace.submit(
                release, publish=publish, reserve_seconds=expires_in_seconds(expires_in)
            )
        except ApprovalError:
            if request is None:
                raise
            from modicum.cli.request import print_requested

            requested = workspace.governance.request(release, reason=request)
            print_requested(requested, as_json=as_json)
            raise typer.Exit(Exit.NEEDS_APPROVAL) from None
        print_decision(
            decision, as_json=as_json, of_query=was_query(release), whole=show_all
        )


@app.command()
def start(
    release: ReleaseId,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Mark as started, before reading rows; the budget is spent."""
    with reporting(as_json=as_json):
        workspace = _workspace(ledger, None, actor)
        _print_standing(workspace, workspace.start(release), as_json=as_json)


@app.command()
def publish(
    release: ReleaseId,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Mark a started release as published."""
    with reporting(as_json=as_json):
        workspace = _workspace(ledger, None, actor)
        _print_standing(workspace, workspace.publish(release), as_json=as_json)


@app.command()
def cancel(
    release: ReleaseId,
    reason: Annotated[str, typer.Option("--reason", help="The reason.")],
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Cancel a reservation that was not started; its loss is released."""
    with reporting(as_json=as_json):
        workspace = _workspace(ledger, None, actor)
        _print_standing(
            workspace, workspace.cancel(release, reason=reason), as_json=as_json
        )


def _workspace(ledger: str, policy: Path | None, actor: str | None) -> Workspace:
    from modicum.cli.ledger_access import open_workspace

    return open_workspace(ledger, policy=policy, actor=actor)


def _print_standing(workspace: Workspace, standing: Standing, *, as_json: bool) -> None:
    if as_json:
        from modicum.api.local.views.releases import release_view

        release = workspace.release_of(standing)
        vocabulary = workspace.policy().policy.vocabulary
        print_json(release_view(standing, release, vocabulary))
    else:
        from modicum.cli.release_show import print_standing

        print_standing(standing)


# The former names.
later(
    app,
    hidden=True,
    post="release.publish",
    void="release.cancel",
    record_past="backfill.backfill",
)
later(
    app,
    run="release.run",
    list="release.list_releases",
    show="release_show.show",
    backfill="backfill.backfill",
    redescribe="backfill.redescribe",
    approve="governance.approve",
    reject="governance.reject",
    approvals="release.approvals",
)


def approvals(
    subject: Subject, ledger: Ledger = DEFAULT_LEDGER, as_json: Json = False
) -> None:
    """Show the approvals of a release. Exits 5 if some are missing.

    An id works for a release with votes. If only its digest is known, all approvals of
    the policy are shown.
    """
    from modicum.cli.ledger_access import open_workspace

    with reporting(as_json=as_json):
        found = list(_asked(subject, open_workspace(ledger)))
        if as_json:
            print_json(_view(found))
        else:
            for line in _lines(found):
                print(printable(line))
        if not all(one.complete for one in found):
            raise typer.Exit(Exit.NEEDS_APPROVAL)


def _asked(subject: str, view: LedgerView) -> Iterator[Approvers]:
    from modicum.api.local.approvers import approvers, approvers_of

    for one in named_releases(subject):
        if isinstance(one, str):
            yield approvers_of(one, view)
        else:
            yield approvers(one, view)


def _lines(found: Iterable[Approvers]) -> Iterator[str]:
    for people in found:
        if people.standing is not None:
            status, seq = people.standing.status.value, people.standing.seq
            stands = f"{people.release} is {status} (entry {seq})"
            yield f"{stands}: no approval is pending"
        elif people.corrects:
            yield (
                f"{people.release} is to be corrected: a person other than the"
                " requester approves it"
            )
        elif not people.approval_states:
            yield f"{people.release} needs no approval"
        elif not people.exact:
            yield (
                "its contents are not in the ledger: these are the most it can need;"
                " give its file for the exact ones"
            )
        yield from approval_lines(people.approval_states)
        for vote in people.votes:
            other = vote.content != people.content
            yield vote_line(vote, "other contents" if other else "")


def _view(found: Iterable[Approvers]) -> KnownApprovals:
    from modicum.api.local.views.approvals import approvals_view, vote_view
    from modicum.api.schema.approval import KnownApprovals

    return KnownApprovals(
        approvals=approvals_view(one for each in found for one in each.approval_states),
        exact=all(one.exact for one in found),
        votes=tuple(
            vote_view(one, current=one.content == each.content)
            for each in found
            for one in each.votes
        ),
    )


def list_releases(
    status: Annotated[
        list[str] | None,
        typer.Option(
            "--status",
            help="Only this status: reserved, started, published, recorded,"
            " canceled or expired; repeatable.",
            metavar="STATUS",
        ),
    ] = None,
    ledger: Ledger = DEFAULT_LEDGER,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """List the allowed releases with their status, oldest first."""
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
            print(
                "no release has this status"
                if wanted
                else "there are no allowed releases"
            )


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

    book, _, now = view.current()
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


Words = Annotated[
    list[str],
    typer.Argument(
        help="The command and its arguments, after two dashes.",
        metavar="CMD",
        show_default=False,
    ),
]


def run(
    release: ReleaseId,
    command: Words,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
) -> None:
    """Start a reserved release, run a command, and publish the release on success.

    The loss is spent before the command starts. If the command fails, or is killed, the
    release stays started, and its loss spent. The exit code is that of the command: 128
    plus the number of the signal if a signal ended it. Signals are forwarded to the
    command.

    The command gets the id of the release in MODICUM_RESERVATION, the ledger in
    MODICUM_LEDGER, and the declared guarantee of each mechanism in MODICUM_RESERVED, as
    JSON.
    """
    from modicum.api.local.reservation_use import Use
    from modicum.cli.ledger_access import open_workspace
    from modicum.ops.command import Command, environment

    with reporting(as_json=False), TemporaryDirectory(prefix="modicum-run-") as claims:
        workspace = open_workspace(ledger, actor=actor)
        use = Use(workspace, release)  # Refuses what is not reserved.
        ready = Command(command, environment(use, ledger, Path(claims)))
        code = ready.run(lambda: _start(release, workspace.start))
        if code == 0:
            _publish(release, workspace.publish)
        else:
            note(
                f"{release}: the command exited with code {code}; the release stays"
                " started, and its loss spent"
            )
    raise typer.Exit(code)


def _start(release: str, start: Callable[[str], object]) -> None:
    start(release)
    note(f"{release}: started; its loss is spent")


def _publish(release: str, publish: Callable[[str], object]) -> None:
    try:
        publish(release)
    except ModicumError:
        note(f"{release}: the command succeeded, and the release is not yet published")
        raise
    note(f"{release}: published")
