"""Requests in a Parquet table: each row a release as JSON, and maybe its utility."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from modicum.core.document import Node, from_python
from modicum.core.errors import Code, InputError, Mark, Problem
from modicum.release.utility import UTILITY
from modicum.shell.json_lines import LINE_BYTES_MAX, handed
from modicum.shell.yaml_pieces import Piece
from modicum.workloads.arrow import library
from modicum.workspace.planning.requests import REQUESTS_MAX, Batch

#: The column of releases; that of utilities is named like the key.
RELEASE = "release"
#: So many rows are in memory at a time.
_ROWS = 256


def read_table(file: Path, batch: Batch) -> None:
    """Read the requests of a table.

    Args:
        file: The file.
        batch: Takes the requests, and the mistakes of each row.

    Raises:
        InputError: If pyarrow is missing, the file cannot be read, or its columns or
            the number of its rows are others than they may be.
    """
    pa = library()
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(file) as table:
            _check(file, table)
            number = 0
            for rows in table.iter_batches(batch_size=_ROWS):
                for row in rows.to_pylist():
                    number += 1
                    _add(row, f"{file}, row {number}", batch)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        problem = Problem(
            Code.FILE_UNREADABLE, f"{file} cannot be read, or is not a Parquet file"
        )
        raise InputError(problem) from error


def _check(file: Path, table: Any) -> None:
    """Refuse a table of other columns, or of too many rows."""
    types, schema = library().types, table.schema_arrow
    names = schema.names
    if RELEASE not in names:
        raise _refusal(Code.MISSING_KEY, f"{file} has no column `{RELEASE}`")
    for name in names:
        if name not in (RELEASE, UTILITY):
            raise _refusal(Code.UNKNOWN_KEY, f"{file}: unknown column `{name[:60]}`")
    if len(set(names)) < len(names):
        raise _refusal(Code.DUPLICATE_KEY, f"two columns of {file} have one name")
    kind = schema.field(RELEASE).type
    if not (types.is_string(kind) or types.is_large_string(kind)):
        raise _refusal(Code.WRONG_TYPE, f"{file}: `{RELEASE}` is no column of text")
    rows = table.metadata.num_rows
    if rows > REQUESTS_MAX:
        raise _refusal(
            Code.TOO_LARGE,
            f"{file} has {rows} rows; a batch has at most {REQUESTS_MAX} requests",
        )


def _refusal(code: Code, message: str) -> InputError:
    remedy = f"give it a column `{RELEASE}` of JSON texts, and maybe `{UTILITY}`"
    return InputError(
        Problem(code, message, help="" if code is Code.TOO_LARGE else remedy)
    )


def _add(row: dict[str, object], source: str, batch: Batch) -> None:
    with batch.guard():
        text = row[RELEASE]
        if not isinstance(text, str):
            raise _of_row(Code.WRONG_TYPE, f"`{RELEASE}` is empty", source)
        data = text.encode()
        if len(data) > LINE_BYTES_MAX:
            most = f"`{RELEASE}` has more than {LINE_BYTES_MAX} bytes"
            raise _of_row(Code.TOO_LARGE, most, source)
        batch.add(handed(Piece(data, source), source, _utility(row, source)))


def _utility(row: dict[str, object], source: str) -> Node | None:
    """Return what stands in the column of utilities; None if nothing does."""
    value = row.get(UTILITY)
    if value is None:
        return None
    try:
        return from_python(value)
    except InputError as error:
        raise _of_row(Code.NOT_A_NUMBER, f"`{UTILITY}` is no number", source) from error


def _of_row(code: Code, message: str, source: str) -> InputError:
    return InputError(Problem(code, message, Mark(source, 1, 1)))
