"""The command `modicum`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from io import TextIOWrapper
from typing import Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from modicum.cli.exit_codes import Exit
from modicum.cli.group import ADVANCED, Commands, Group, imported
from modicum.core.diagnostics import close_matches
from modicum.core.errors import Code

#: Maximum number of suggested commands.
_MEANT_MAX = 5


#: The module of each command, and its help. Only the one that runs is imported.
_COMMANDS = {
    "demo": ("demo.demo", "Create an example organization and show the main workflow."),
    "init": ("ledger.init", "Create a ledger and activate a policy in it."),
    "status": (
        "status.status",
        "Show the spent budget of every rule, the tightest first.",
    ),
    "serve": ("serve.serve", "Serve a ledger over HTTP until stopped."),
    "doctor": (
        "doctor.doctor",
        "Check this machine and a ledger; show problems and remedies.",
    ),
    "policy": (
        "policy.app",
        "Check, show, draw, explain, compare, test and activate policies.",
    ),
    "release": ("release.app", "Check, submit, and follow releases."),
    "request": ("request.app", "List and withdraw requests for approval."),
    "ledger": ("ledger.app", "List and verify the ledger."),
    "audit": (
        "audit.app",
        "Export a ledger for an auditor, verify it offline, and report on it.",
    ),
    "db": ("db.app", "Back up, restore and upgrade the store of a ledger."),
    "account": (
        "account.app",
        "Convert guarantees, price mechanisms, find the noise for a target.",
    ),
    "plan": ("plan.app", "Plan rounds, user groups and budgets."),
    "query": (
        "query.app",
        "Price and run private SQL queries.",
    ),
    "risk": (
        "risk.app",
        "Assess the disclosure risk of an epsilon for the people in a table, and"
        " choose one.",
    ),
    "token": ("token.app", "Create, list and revoke API tokens."),
}

#: Commands for those who have an escrow or study planners.
_ADVANCED = {
    "escrow": ("escrow.app", "Run analysts' queries on data they cannot see."),
    "workload": ("workload.app", "Generate and describe workloads of requests."),
}


class _Root(Group):
    """All commands; one that is not there is looked for among all of them."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        makers = {
            name: partial(imported, place, name)
            for name, (place, _) in {**_COMMANDS, **_ADVANCED}.items()
        }
        self.commands = Commands(makers)  # type: ignore[assignment]

    def listed(self) -> Iterable[tuple[str, Any]]:
        """Return the commands that help lists, without importing them."""
        for panel, commands in ((None, _COMMANDS), (ADVANCED, _ADVANCED)):
            for name, (_, text) in commands.items():
                yield name, TyperCommand(name, help=text, rich_help_panel=panel)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command, or suggest similar ones."""
        group, path = cast("Any", self), "modicum"
        for word in args:
            if not isinstance(group, TyperGroup) or word.startswith("-"):
                break
            if word not in group.commands:
                suggestion = self._suggestion(word, f"{path} ")
                if suggestion:
                    ctx.fail(f"No such command {word!r}. Did you mean {suggestion}?")
                break
            group, path = group.commands[word], f"{path} {word}"
        return super().resolve_command(ctx, args)

    def _suggestion(self, word: str, inside: str) -> str:
        """Return the commands that end with a word, or a similar one."""
        every = dict(_paths(self, "modicum"))
        own = [last for path, last in every.items() if path == inside + last]
        same = [path for path, last in every.items() if last == word]
        found = [inside + last for last in close_matches(word, own)] + same
        if not found:
            like = close_matches(word, every.values())[:1]
            found = [path for path, last in every.items() if last in like]
        return " or ".join(f"`{path}`" for path in found[:_MEANT_MAX])


def _paths(group: TyperGroup, path: str) -> Iterator[tuple[str, str]]:
    """Yield each command with all its words, and its last one."""
    for name, command in group.commands.items():
        typed = f"{path} {name}"
        if not command.hidden:
            yield typed, name
        if isinstance(command, TyperGroup):
            yield from _paths(command, typed)


app = typer.Typer(
    name="modicum",
    cls=_Root,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Privacy budgets for organizations: check, reserve, record and explain"
    " every release under one policy.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog="Exit codes: 0 ok or allow, 1 internal error, 2 usage, 3 denied, 4 invalid"
    " policy or release, 5 needs approval, 6 verification failed, 7 stale, 8 a policy"
    " test failed, 130 interrupted.",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"modicum {version('modicum')}")
        raise typer.Exit(Exit.OK)


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    """Options of every command."""


def main() -> None:
    """Run the command line; an unforeseen error leaves with 1 and no traceback."""
    # NumPy starts a thread per core for linear algebra, which nothing here uses; that
    # took a third of a command's time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # noqa: TID251 - read by NumPy
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # A terminal that cannot show all.
            stream.reconfigure(errors="replace")
    try:
        app()
    except SystemExit as left:
        if left.code == Exit.INTERRUPTED:
            print(
                "interrupted: confirmed work is stored; pending work may or may not be",
                file=sys.stderr,
            )
        raise
    except Exception as error:
        if os.environ.get("MODICUM_DEBUG"):  # noqa: TID251 - for developers only
            raise
        print(
            f"error[{Code.INTERNAL.value}]: internal error ({type(error).__name__})\n"
            "   = help: set MODICUM_DEBUG=1 for the traceback, and report it",
            file=sys.stderr,
        )
        sys.exit(Exit.INTERNAL)
