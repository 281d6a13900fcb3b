"""Releases that commands are given: files, or standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from modicum.core.document import Node

File = Annotated[
    Path,
    typer.Argument(help="The release, YAML or JSON; - for standard input."),
]


def read_release(file: Path) -> Node:
    """Return a release that was written down, with the places of all it says.

    Args:
        file: Its path; - for standard input.

    Raises:
        InputError: If it cannot be read.
    """
    from modicum.shell.files import load_release, standard_input

    if str(file) == "-":
        return standard_input(sys.stdin.buffer)
    return load_release(file)
