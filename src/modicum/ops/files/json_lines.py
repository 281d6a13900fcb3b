"""Requests as JSON Lines: one release on each line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import BinaryIO

from modicum.api.local.plans.requests import Batch, Handed
from modicum.core.document import Node
from modicum.core.errors import Code, InputError, Mark, Problem
from modicum.core.rationals import parse_number
from modicum.core.yaml_reader import decode_text
from modicum.ops.files.yaml_documents import Piece

#: A longer line is refused.
LINE_BYTES_MAX = 2**19
#: More lines are refused, blank ones included.
LINES_MAX = 1_000_000
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_json_lines(lines: BinaryIO, file: Path, batch: Batch) -> None:
    """Read the requests of a file; blank lines are nothing."""
    number = 0
    while line := lines.readline(LINE_BYTES_MAX + 1):
        number += 1
        _refuse_large(line, Mark(str(file), number, 1))
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        line = line.rstrip(b"\r\n")
        if line.strip():
            batch.add(handed(Piece(line, str(file), number - 1)))


def handed(piece: Piece, source: str = "", utility: Node | None = None) -> Handed:
    """Return the request in a JSON text, to be read."""
    line = piece.before + 1
    return Handed(
        source or f"{piece.file}:{line}",
        Mark(piece.file, line, 1),
        piece.read,
        plain_of(piece),
        utility,
    )


def _refuse_large(line: bytes, mark: Mark) -> None:
    if len(line) > LINE_BYTES_MAX:
        message = f"the line has more than {LINE_BYTES_MAX} bytes"
    elif mark.line > LINES_MAX:
        message = f"the file has more than {LINES_MAX} lines"
    else:
        return
    raise InputError(Problem(Code.TOO_LARGE, message, mark))


# --- plain data, which is many times quicker to have than a tree ----------------------


def plain_of(piece: Piece) -> dict[str, object] | None:
    """Return the value of a JSON text; None if the strict reader is needed."""
    try:
        found = _READER.decode(decode_text(piece.text, piece.file))
    except (InputError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _exact_float(text: str) -> float:
    """Return a float that equals its digits; others are left to the tree."""
    value = float(text)
    exact = parse_number(text)
    if exact is None or parse_number(str(value)) != exact:
        message = "not the shortest text of a float"
        raise ValueError(message)
    return value


def _once_each(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        message = "a key is repeated"
        raise ValueError(message)
    return found


def _no_number(text: str) -> object:
    message = f"{text} is not a number"
    raise ValueError(message)


_READER = json.JSONDecoder(
    parse_float=_exact_float,
    parse_constant=_no_number,
    object_pairs_hook=_once_each,
)
