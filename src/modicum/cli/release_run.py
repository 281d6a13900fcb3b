"""`modicum release run`: any command, under a reservation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from modicum.cli.options import DEFAULT_LEDGER, Actor, Ledger, ReleaseId
from modicum.cli.output import note, reporting
from modicum.core.errors import ModicumError

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
    """Start a reserved release, run a command, and post the release if it ends well.

    The loss is spent before the command begins. If the command fails, or is killed,
    the release stays started, and spent. The exit code is that of the command: 128 and
    the number of the signal if a signal ended it. Signals go to the command.

    It finds the release's id in MODICUM_RESERVATION, the ledger in MODICUM_LEDGER, and
    in MODICUM_RESERVED, as JSON, the guarantee that was declared for each mechanism.
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
            _post(release, workspace.post)
        else:
            note(f"{release}: the command left with {code}; stays started, and spent")
    raise typer.Exit(code)


def _start(release: str, start: Callable[[str], object]) -> None:
    start(release)
    note(f"{release}: started; its loss is spent")


def _post(release: str, post: Callable[[str], object]) -> None:
    try:
        post(release)
    except ModicumError:
        note(f"{release}: the command ended well, and the release is not posted yet")
        raise
    note(f"{release}: posted")
