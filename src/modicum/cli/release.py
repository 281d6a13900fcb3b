"""`modicum release`: check, submit, and follow releases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.exit_codes import Exit
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
from modicum.cli.output import print_decision, print_json, reporting
from modicum.cli.release_files import File, read_release, was_lowered

if TYPE_CHECKING:
    from modicum.api.local import Workspace
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
    """Say what submitting would answer now. Writes nothing; exits 0 or 3."""
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
    post: Annotated[
        bool,
        typer.Option("--post", help="Post at once, for a release that is out already."),
    ] = False,
    expires_in: Annotated[
        str,
        typer.Option(
            "--expires-in",
            help="How long a reservation stands unless started: 90s, 30m, 24h.",
        ),
    ] = "24h",
    request: Annotated[
        str | None,
        typer.Option(
            "--request",
            help="Why it is asked for: if people must agree first, ask them in the"
            " ledger, and leave with 5.",
            metavar="REASON",
        ),
    ] = None,
    actor: Actor = None,
    show_all: EveryRule = False,
    as_json: Json = False,
) -> None:
    """Decide a release and reserve its loss if it is allowed; exits 0 or 3."""
    from modicum.core.errors import ApprovalError

    with reporting(as_json=as_json):
        release = read_release(file)
        workspace = _workspace(ledger, policy, actor)
        try:
            decision = workspace.submit(
                release, post=post, reserve_seconds=expires_in_seconds(expires_in)
            )
        except ApprovalError:
            if request is None:
                raise
            from modicum.cli.request import print_requested

            asked = workspace.governance.request(release, reason=request)
            print_requested(asked, as_json=as_json)
            raise typer.Exit(Exit.NEEDS_APPROVAL) from None
        print_decision(
            decision, as_json=as_json, of_query=was_lowered(release), whole=show_all
        )


@app.command()
def start(
    release: ReleaseId,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Note that rows are about to be read; from here on the loss is spent."""
    with reporting(as_json=as_json):
        workspace = _workspace(ledger, None, actor)
        _print_standing(workspace, workspace.start(release), as_json=as_json)


@app.command()
def post(
    release: ReleaseId,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Note that a started release is out."""
    with reporting(as_json=as_json):
        workspace = _workspace(ledger, None, actor)
        _print_standing(workspace, workspace.post(release), as_json=as_json)


@app.command()
def void(
    release: ReleaseId,
    reason: Annotated[str, typer.Option("--reason", help="Why it is given up.")],
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Give up a reservation that was not started; its loss is taken back."""
    with reporting(as_json=as_json):
        workspace = _workspace(ledger, None, actor)
        _print_standing(
            workspace, workspace.void(release, reason=reason), as_json=as_json
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


later(
    app,
    run="release_run.run",
    list="release_list.list_releases",
    show="release_show.show",
    record_past="record_past.record_past",
    redescribe="redescribe.redescribe",
    approve="governance.approve",
    reject="governance.reject",
    approvals="approvals.approvals",
)
