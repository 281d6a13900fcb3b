"""Requests for a round in files: one, several in a file, or a folder of files.

Each is a release with its utility. Their order is that of the names of the files, and
within a file that of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, TypeAlias

from modicum.core.document import Entries, Items, Node
from modicum.core.errors import Code, InputError, Mark, Problem
from modicum.core.yaml_reader import TEXT_BYTES_MAX, read_document
from modicum.policy import CompiledPolicy
from modicum.shell.files import load_policy
from modicum.shell.json_lines import read_json_lines
from modicum.shell.regular_files import opened
from modicum.shell.yaml_pieces import pieces
from modicum.workspace.planning.requests import Batch, Handed, Request

__all__ = ["Request", "load"]

#: Reads what is open, knows its name for messages, and adds its requests to a batch.
Reader: TypeAlias = Callable[[BinaryIO, Path, Batch], None]

#: A document with one of these as its only key lists requests under it.
_LISTS = ("requests", "releases")


def load(
    path: str | Path, *, policy: str | Path | CompiledPolicy
) -> tuple[Request, ...]:
    """Return the requests of a batch, in their order, read and priced.

    Args:
        path: A folder of such files, or a file of one or more releases: `.yaml`,
            `.yml` or `.json`; `.jsonl` with one on each line; `.parquet` with a column
            `release` and maybe `utility`. In a folder only regular files are read,
            and no link that leads out of it; a file may be a link.
        policy: A compiled policy, or the path of one, whose words and guards hold.

    Raises:
        InputError: With every mistake found, each with its place, the first 100; or if
            there is no request, or more than 100,000, or two of one id.
    """
    compiled = policy if isinstance(policy, CompiledPolicy) else load_policy(policy)
    source = Path(path)
    batch = Batch(compiled)
    folder = source if source.is_dir() else None
    for file in [source] if folder is None else _files(folder):
        with batch.guard():
            reader = _reader(file)
            with opened(file, folder) as stream:
                reader(stream, file, batch)
    return batch.finished(str(source))


def _files(folder: Path) -> list[Path]:
    """Return the files of a folder that have a known name."""
    try:
        found = sorted(folder.iterdir(), key=lambda file: file.name)
    except OSError as error:
        reason = (error.strerror or "the system refuses to read it").lower()
        problem = Problem(Code.FILE_UNREADABLE, f"cannot read {folder}: {reason}")
        raise InputError(problem) from error
    return [
        file
        for file in found
        if file.suffix.lower() in _READERS and file.name[0] != "."
    ]


def _reader(file: Path) -> Reader:
    found = _READERS.get(file.suffix.lower())
    if found is None:
        raise InputError(
            Problem(
                Code.UNKNOWN_CHOICE,
                f"{file}: no format of this name is known",
                help=f"use a name that ends in {', '.join(_READERS)}",
            )
        )
    return found


def _read_documents(stream: BinaryIO, file: Path, batch: Batch) -> None:
    """Read the requests of a YAML or JSON file."""
    data = stream.read(TEXT_BYTES_MAX + 1)
    if len(data) > TEXT_BYTES_MAX:
        read_document(data, str(file))  # Says that it is too large.
    for piece in pieces(data, str(file)):
        with batch.guard():
            for node in _listed(piece.read()):
                batch.add(_handed(node, file))


def _read_table(stream: BinaryIO, file: Path, batch: Batch) -> None:
    # Imported here: few batches are tables, and these need arrays.
    from modicum.shell.request_tables import read_table

    read_table(stream, file, batch)


def _listed(node: Node) -> tuple[Node, ...]:
    """Return the requests of a document: a list of them, or a single one."""
    if isinstance(node, Entries) and len(node.entries) == 1:
        key, inner = node.entries[0]
        if key.text in _LISTS and isinstance(inner, Items):
            return inner.items
    return node.items if isinstance(node, Items) else (node,)


def _handed(node: Node, file: Path) -> Handed:
    mark = node.mark or Mark(str(file), 1, 1)
    return Handed(f"{mark.file}:{mark.line}", mark, partial(_itself, node))


def _itself(node: Node) -> Node:
    return node


_READERS: Mapping[str, Reader] = MappingProxyType(
    {
        ".yaml": _read_documents,
        ".yml": _read_documents,
        ".json": _read_documents,
        ".jsonl": read_json_lines,
        ".parquet": _read_table,
    }
)
