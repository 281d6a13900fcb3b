"""Reading what people wrote."""

from __future__ import annotations

from pathlib import Path

from modicum.core.document import Entries, Items, Node
from modicum.core.errors import Code, InputError, Problem
from modicum.core.yaml_reader import TEXT_BYTES_MAX, read_document
from modicum.policy import CompiledPolicy
from modicum.policy.compile import compile_text


def read_bytes(path: str | Path) -> bytes:
    """Return a file's bytes, at most a little over the limit for texts.

    Raises:
        InputError: If it cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            return file.read(TEXT_BYTES_MAX + 1)
    except OSError as error:
        reason = error.strerror or "it cannot be read"
        problem = Problem(Code.FILE_UNREADABLE, f"cannot read {path}: {reason.lower()}")
        raise InputError(problem) from error


def load_policy(path: str | Path) -> CompiledPolicy:
    """Return the compiled policy of a file.

    Raises:
        InputError: With every mistake found, each with file, line and column.
    """
    return compile_text(read_bytes(path), str(path))


def load_release(path: str | Path) -> Node:
    """Return a release file as a tree that knows its places.

    Raises:
        InputError: If the file is not one YAML or JSON document.
    """
    return read_document(read_bytes(path), str(path))


def releases_of(node: Node) -> tuple[Node, ...]:
    """Return the releases of a tree: a list of them, or a single one."""
    if isinstance(node, Items):
        return node.items
    if isinstance(node, Entries) and [k.text for k, _ in node.entries] == ["releases"]:
        inner = node.entries[0][1]
        return inner.items if isinstance(inner, Items) else (inner,)
    return (node,)
