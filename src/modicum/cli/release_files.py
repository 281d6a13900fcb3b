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

#: A word that ends so is the name of a file, whether or not there is one.
_FILES = (".yaml", ".yml", ".json")


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


def read_releases(file: Path) -> tuple[Node, ...]:
    """Return the releases of a file: a list of them, or a single one.

    Args:
        file: Its path; - for standard input.

    Raises:
        InputError: If it cannot be read.
    """
    from modicum.shell.files import releases_of

    return releases_of(read_release(file))


def named_releases(subject: str) -> tuple[Node | str, ...]:
    """Return the releases that somebody names by a file, or else by an id.

    Args:
        subject: The path of a file, - for standard input, or an id.

    Raises:
        InputError: If it is a file that cannot be read.
    """
    if subject == "-" or subject.endswith(_FILES) or _is_file(subject):
        return read_releases(Path(subject))
    return (subject,)


def _is_file(subject: str) -> bool:
    try:
        return Path(subject).is_file()
    except (OSError, ValueError):  # It is too long for a path, or has a zero in it.
        return False
