"""Requests for a round in files: one, several in a file, or a folder of files.

Each is a release with its utility. Their order is that of the names of the files, and
within a file that of the text.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, TypeAlias

from modicum.api.local.plans.requests import Batch, Handed, Request
from modicum.core.document import Entries, Items, Node
from modicum.core.errors import Code, InputError, Mark, Problem
from modicum.core.yaml_reader import TEXT_BYTES_MAX, read_document
from modicum.ops.files.documents import load_policy
from modicum.ops.files.json_lines import read_json_lines
from modicum.ops.files.yaml_documents import pieces
from modicum.policy import CompiledPolicy
from modicum.system.files import opened

__all__ = ["Request", "load", "load_text", "unread"]

#: Reads an open file with its display name, and adds its requests to a batch.
Reader: TypeAlias = Callable[[BinaryIO, Path, Batch], None]

#: Maximum length of skipped content quoted in an error.
_NAMED = 5

#: A document with one of these as its only key lists requests under it.
_LISTS = ("requests", "releases")


def load(
    path: str | Path, *more: str | Path, policy: str | Path | CompiledPolicy
) -> tuple[Request, ...]:
    """Return the requests of a batch, in their order, read and priced.

    Args:
        path: A folder of such files, or a file of one or more releases: `.yaml`, `.yml`
            or `.json`; `.jsonl` with one per line; `.parquet` with a column `release`
            and optionally `utility`. In a folder only regular files with a single name
            are read, and no link that leads out of it; a file may be a link.
        more: Further ones, which follow it.
        policy: A compiled policy, or the path of one, whose vocabulary and guards
            apply.

    Raises:
        InputError: With every mistake found, each with its position, the first 100; or
            if there is no request, or more than 100,000, or two with one id.
    """
    compiled = policy if isinstance(policy, CompiledPolicy) else load_policy(policy)
    sources = [Path(one) for one in (path, *more)]
    batch = Batch(compiled)
    for source in sources:
        with batch.guard():
            _read(source, batch)
    return batch.finished(" and ".join(map(_looked_into, sources)))


def load_text(
    text: bytes, name: str, policy: CompiledPolicy, *, by_line: bool = False
) -> tuple[Request, ...]:
    """Return the requests of a batch that is no file, read and priced.

    Args:
        text: As the content of a file of requests, YAML or JSON.
        name: Its name in messages.
        policy: The policy whose vocabulary and guards apply.
        by_line: Whether each line is a JSON document.

    Raises:
        InputError: As for `load`.
    """
    batch = Batch(policy)
    read = read_json_lines if by_line else _read_documents
    with batch.guard():
        read(BytesIO(text), Path(name), batch)
    return batch.finished(name)


def unread(path: str | Path) -> tuple[str, ...]:
    """Return the names in a folder that `load` skips.

    Names that begin with a dot are ignored. The name of a folder ends in a slash.

    Args:
        path: The folder; for a file the result is empty.

    Raises:
        InputError: If the folder cannot be listed.
    """
    folder = Path(path)
    if not folder.is_dir():
        return ()
    left = (file for file in _visible(folder) if not _has_known_name(file))
    return tuple(f"{file.name}{'/' * file.is_dir()}" for file in left)


def _read(source: Path, batch: Batch) -> None:
    """Read the requests of a file, or of all files of a folder."""
    folder = source if source.is_dir() else None
    for file in [source] if folder is None else _files(folder):
        with batch.guard():
            reader = _reader(file)
            with opened(file, folder) as stream:
                if folder is not None:
                    _refuse_shared(file, stream)
                reader(stream, file, batch)


def _refuse_shared(file: Path, stream: BinaryIO) -> None:
    """Refuse a file of a folder with another hard link, which cannot be traced.

    A person who may not read a file may be able to give it a second name, in the
    folder.
    """
    if os.fstat(stream.fileno()).st_nlink > 1:
        raise InputError(
            Problem(
                Code.FILE_UNREADABLE,
                f"cannot read {file}: it has several names",
                help="put a copy of the file into the folder, or name the file itself",
            )
        )


def _files(folder: Path) -> list[Path]:
    """Return the files of a folder that have a known name."""
    return [file for file in _visible(folder) if _has_known_name(file)]


def _visible(folder: Path) -> list[Path]:
    """Return the contents of a folder, in the order of the names."""
    try:
        found = sorted(folder.iterdir(), key=lambda file: file.name)
    except OSError as error:
        reason = (error.strerror or "system error").lower()
        problem = Problem(Code.FILE_UNREADABLE, f"cannot read {folder}: {reason}")
        raise InputError(problem) from error
    return [file for file in found if file.name[0] != "."]


def _has_known_name(file: Path) -> bool:
    return file.suffix.lower() in _READERS


def _looked_into(source: Path) -> str:
    """Return where requests were searched, and what was skipped."""
    left: tuple[str, ...] = ()
    with suppress(InputError):  # It was already reported as unreadable.
        left = unread(source)
    if not left:
        return str(source)
    shown = ", ".join(left[:_NAMED]) + (", ..." if len(left) > _NAMED else "")
    return f"{source} (not read: {shown})"


def _reader(file: Path) -> Reader:
    found = _READERS.get(file.suffix.lower())
    if found is None:
        raise InputError(
            Problem(
                Code.UNKNOWN_CHOICE,
                f"{file}: unknown file format",
                help=f"use a name that ends in {', '.join(_READERS)}",
            )
        )
    return found


def _read_documents(stream: BinaryIO, file: Path, batch: Batch) -> None:
    """Read the requests of a YAML or JSON file."""
    data = stream.read(TEXT_BYTES_MAX + 1)
    if len(data) > TEXT_BYTES_MAX:
        read_document(data, str(file))  # Reports that it is too large.
    for piece in pieces(data, str(file)):
        with batch.guard():
            for node in _listed(piece.read()):
                batch.add(_handed(node, file))


def _read_table(stream: BinaryIO, file: Path, batch: Batch) -> None:
    # Imported here: few batches are tables, and these need arrays.
    from modicum.ops.files.request_tables import read_table

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
