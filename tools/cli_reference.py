"""Write docs/reference/cli.md from the help of every command.

Run `.venv/bin/python tools/cli_reference.py` after changing a command or an option;
with `--check` nothing is written, and the exit code says whether the page is current.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import typer
from typer.testing import CliRunner

from modicum.cli.main import app

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "cli.md"

_INTRODUCTION = """\
# The command line

*For everybody who types or scripts `modicum`.
This page is generated from the program's own help by `tools/cli_reference.py`.*

Every command prints text for people, and one JSON document with `--json`
(see [JSON documents](json.md)); without that option are `demo`,
`policy graph`, which prints a drawing, and `policy schema`, which prints JSON anyway.
Results go to standard output, mistakes and remarks to standard error;
with `--json` a mistake in a file or in the ledger is a JSON document
on standard output.
A mistake in the command line itself is always text, with exit code 2.
`-h` is short for `--help`.
The exit code is part of the answer (see [Exit codes](exit-codes.md)).

Three environment variables stand in for options:
`MODICUM_LEDGER` for `--ledger`, `MODICUM_POLICY` for `--policy`
and `MODICUM_ACTOR` for `--actor`.
For `modicum escrow` there are `MODICUM_VAULT`, `MODICUM_VAULT_KEYS` and
`MODICUM_SANDBOX_UID` as well.
`MODICUM_WITNESS` names the
[witness of the ledger](../how-to/verify-and-back-up.md#keep-the-head-with-a-witness).
`MODICUM_DEBUG` shows the traceback of an internal error.
"""


def commands(command: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every command, groups before what is in them."""
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        if not inner.hidden:
            yield from commands(inner, (*path, name))


def help_of(path: tuple[str, ...]) -> str:
    """Return the help of a command, eighty columns wide on every machine."""
    result = CliRunner(env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"}).invoke(
        app, [*path, "--help"], prog_name="modicum"
    )
    if result.exit_code:
        raise RuntimeError(result.output)
    return "\n".join(line.rstrip() for line in result.output.strip().splitlines())


def page() -> str:
    """Return the whole page."""
    parts = [_INTRODUCTION]
    for path in commands(typer.main.get_command(app)):
        title = " ".join(("modicum", *path))
        parts.append(f"## {title}\n\n```text\n{help_of(path)}\n```\n")
    return "\n".join(parts)


def main() -> None:
    """Write the page, or check it."""
    if "--check" in sys.argv[1:]:
        current = PAGE.exists() and PAGE.read_text(encoding="utf-8") == page()
        print(f"{PAGE.name} is {'current' if current else 'out of date'}")
        sys.exit(not current)
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
