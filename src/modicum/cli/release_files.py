"""Releases given to commands: files, or standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.core.document import Entries, Scalar
from modicum.core.errors import Code, InputError, Problem

if TYPE_CHECKING:
    from modicum.core.document import Node

File = Annotated[
    Path,
    typer.Argument(help="The release, YAML or JSON; - for standard input."),
]

#: A word with such a suffix is a file name, whether or not the file exists.
_FILES = (".yaml", ".yml", ".json")


def read_release(file: Path) -> Node:
    """Return the release in a file, with positions."""
    from modicum.ops.files.documents import load_release, standard_input

    if str(file) == "-":
        return standard_input(sys.stdin.buffer)
    if not (file.suffix or file.exists()):
        raise InputError(
            Problem(
                Code.FILE_UNREADABLE,
                f"cannot read {str(file)[:200]}: no such file",
                help="correct the path; for a release in the ledger, give its file,"
                " with the right `periods` to correct it;  modicum release show"
                f" {str(file)[:200]}  shows its contents",
            )
        )
    found = load_release(file)
    if _is_query(found):
        raise InputError(
            Problem(
                Code.UNKNOWN_KEY,
                "this is a query file, not a release",
                found.mark,
                help=f"modicum query plan {file}  prices it, and  modicum query compile"
                f" {file}  prints its release",
            )
        )
    return found


def _is_query(node: Node) -> bool:
    return isinstance(node, Entries) and any(
        key.text == "query" and isinstance(value, Entries)
        for key, value in node.entries
    )


def was_query(release: Node) -> bool:
    """Return whether a release that was accepted was compiled from a query."""
    from modicum.release.vocabulary import QUERY

    return isinstance(release, Entries) and any(
        key.text == QUERY and isinstance(value, Scalar) and value.text[:7] == "sha256:"
        for key, value in release.entries
    )


def read_releases(file: Path) -> tuple[Node, ...]:
    """Return the releases of a file: a list of them, or a single one."""
    from modicum.ops.files.documents import releases_of

    return releases_of(read_release(file))


def named_releases(subject: str) -> tuple[Node | str, ...]:
    """Return the releases of a file, or else of an id."""
    if subject == "-" or subject.endswith(_FILES) or _is_file(subject):
        return read_releases(Path(subject))
    return (subject,)


def _is_file(subject: str) -> bool:
    try:
        return Path(subject).is_file()
    except (OSError, ValueError):  # It is too long for a path, or has a zero in it.
        return False
