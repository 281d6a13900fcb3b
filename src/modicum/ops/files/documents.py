"""Reading and formatting documents."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import BinaryIO

from modicum.core.document import Entries, Items, Node
from modicum.core.errors import Code, InputError, Problem
from modicum.core.reader import fail
from modicum.core.yaml_reader import TEXT_BYTES_MAX, read_document
from modicum.policy import CompiledPolicy, compile_policy, parse_policy
from modicum.policy.document.canonical_form import formatted, reformatted
from modicum.policy.document.include import check_part, has_include, merged

#: The remedy for a file that cannot be rewritten.
_AS_IT_WAS = "the file is unchanged; free some space"


def read_bytes(
    path: str | Path, remedy: str = "correct the path, or create the file"
) -> bytes:
    """Return a file's bytes, at most a little over the limit for texts."""
    try:
        with Path(path).open("rb") as file:
            return file.read(TEXT_BYTES_MAX + 1)
    except OSError as error:
        raise InputError(_cannot("read", path, error, remedy)) from error


def _cannot(what: str, path: str | Path, error: OSError, remedy: str) -> Problem:
    reason = error.strerror or f"permission denied to {what} it"
    if isinstance(error, IsADirectoryError):
        remedy = "name a file in this folder"
    elif isinstance(error, PermissionError):
        remedy = f"ask its owner for permission to {what} it"
    return Problem(
        Code.FILE_UNREADABLE, f"cannot {what} {path}: {reason.lower()}", help=remedy
    )


# --- policies ----------------------------------------------------------------


def load_policy(path: str | Path) -> CompiledPolicy:
    """Return the compiled policy of a file and of all that it includes.

    The text of a policy in several files is the canonical text of all of them, so that
    a ledger stores the whole policy.

    Raises:
        InputError: With every mistake found, each with file, line and column.
    """
    return _compiled(read_bytes(path), path)[0]


def canonical_policy(path: str | Path) -> tuple[CompiledPolicy, str]:
    """Return the policy of a file with its canonical text, whose hash is its digest."""
    compiled, node = _compiled(read_bytes(path), path)
    return compiled, formatted(node)


def _compiled(data: bytes, path: str | Path) -> tuple[CompiledPolicy, Node]:
    own = read_document(data, str(path))
    whole = not has_include(own)
    node = own if whole else _with_parts(own, path)
    text = data.decode("utf-8-sig") if whole else formatted(node)
    compiled = compile_policy(parse_policy(node, text))
    _refuse_too_large(compiled.policy.text, path)
    compiled.refuse_mistakes()
    return compiled, node


def lay_out_policy(path: str | Path, *, write: bool) -> bool:
    """Return whether a policy file was not in canonical layout, comments apart."""
    data = read_bytes(path)
    node = read_document(data, str(path))
    if _is_part(node):
        check_part(node)
    else:
        _compiled(data, path)
    text = reformatted(data, str(path)).encode()
    if write and text != data:
        _replace(Path(path), text)
    return text != data


def _is_part(node: Node) -> bool:
    return isinstance(node, Entries) and all(
        key.text != "modicum" for key, _ in node.entries
    )


def _with_parts(node: Node, path: str | Path) -> Node:
    own = Path(path)

    def read(part: str) -> Node:
        target = own.parent / part
        _refuse_outside(target, own.parent)
        if target.exists() and not target.is_file():
            raise fail(Code.INCLUDE, f"`{part}` is not a file")
        # The including file determines how its path is resolved.
        return read_document(read_bytes(target, remedy=""), str(target))

    return merged(node, own.name, read)


def _refuse_outside(target: Path, folder: Path) -> None:
    """Refuse a file that a link leads out of the folder to."""
    try:
        inside = target.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError) as error:  # Links in a circle.
        problem = Problem(Code.FILE_UNREADABLE, f"cannot read {target}: links")
        raise InputError(problem) from error
    if not inside:
        raise fail(
            Code.INCLUDE,
            f"`{target}` is a link to a file outside the folder of the policy",
            notes=("a policy may not read files outside its folder",),
            help="put a copy of the file into the folder",
        )


def _refuse_too_large(text: str, path: str | Path) -> None:
    """Refuse a policy that no ledger could read back: one text has limits."""
    if len(text.encode()) > TEXT_BYTES_MAX:
        raise fail(
            Code.TOO_LARGE,
            f"{path} and what it includes have more than {TEXT_BYTES_MAX} bytes",
        )
    read_document(text.encode(), f"{path} with its included files")


def _replace(path: Path, data: bytes) -> None:
    """Write a file as a whole: who reads it finds the old text or the new one."""
    target = path.resolve()  # A link stays a link.
    try:
        mode = target.stat().st_mode & 0o7777
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise InputError(_cannot("write", path, error, _AS_IT_WAS)) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        Path(name).replace(target)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise InputError(_cannot("write", path, error, _AS_IT_WAS)) from error


# --- releases ----------------------------------------------------------------


def load_release(path: str | Path) -> Node:
    """Return a release file as a tree that knows its places.

    Raises:
        InputError: If the file is not one YAML or JSON document.
    """
    return read_document(read_bytes(path), str(path))


def standard_input(stream: BinaryIO) -> Node:
    """Return the document on standard input as a tree with positions."""
    return read_document(stream.read(TEXT_BYTES_MAX + 1), "standard input")


def releases_of(node: Node) -> tuple[Node, ...]:
    """Return the releases of a tree: a list of them, or a single one."""
    if isinstance(node, Items):
        return node.items
    if isinstance(node, Entries) and [k.text for k, _ in node.entries] == ["releases"]:
        inner = node.entries[0][1]
        return inner.items if isinstance(inner, Items) else (inner,)
    return (node,)
