"""Requests in a Parquet table: each row a release as JSON, and maybe its utility."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

from modicum.api.local.plans.requests import REQUESTS_MAX, Batch
from modicum.core.document import Node, from_python
from modicum.core.errors import Code, InputError, Mark, Problem
from modicum.ops.files.json_lines import LINE_BYTES_MAX, handed
from modicum.ops.files.parquet_pages import pages
from modicum.ops.files.yaml_documents import Piece
from modicum.release.utility import UTILITY
from modicum.workloads.arrow import library

#: The column of releases; that of utilities is named like the key.
RELEASE = "release"
#: A table that is larger when it is unpacked is refused.
BYTES_MAX = 512 * 2**20
#: So is one of which a page is: it is unpacked as a whole.
PAGE_BYTES_MAX = 128 * 2**20
#: More rows are not in memory at a time.
_ROWS_MAX = 256
#: More values, those of dictionaries included, no table of two columns needs.
_VALUES_MAX = 4 * REQUESTS_MAX


def read_table(stream: BinaryIO, file: Path, batch: Batch) -> None:
    """Read the requests of a table.

    Args:
        stream: Its bytes.
        file: Its name, for messages.
        batch: Takes the requests, and the mistakes of each row.

    Raises:
        InputError: If pyarrow is missing, the file cannot be read, its columns or
            the number of its rows are others than they may be, or it would become
            too large.
    """
    pa = library()
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(stream) as table:
            _check(file, table)
            largest = _largest_page(stream, file, table.metadata)
            number = 0
            for rows in table.iter_batches(batch_size=_rows_at_a_time(largest)):
                for place in range(rows.num_rows):
                    number += 1
                    _add(rows, place, f"{file}, row {number}", batch)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _unreadable(file) from error


def _largest_page(stream: BinaryIO, file: Path, metadata: Any) -> int:
    """Return how many bytes the largest page has, if all of them may be unpacked."""
    largest = bytes_ = values = 0
    try:
        for number, page in enumerate(pages(stream, metadata), 1):
            largest = max(largest, page.unpacked)
            bytes_ += page.unpacked
            values += page.values
            if largest > PAGE_BYTES_MAX:
                raise _too_large(f"a page of {file}", PAGE_BYTES_MAX)
            if bytes_ > BYTES_MAX:
                raise _too_large(str(file), BYTES_MAX)
            if values > _VALUES_MAX or number > _VALUES_MAX:
                raise _refusal(Code.TOO_LARGE, f"{file} has too many values")
    except ValueError as error:
        raise _unreadable(file) from error
    return largest


def _rows_at_a_time(largest: int) -> int:
    """Return of how many rows all cells fit into memory: none exceeds its page."""
    return max(1, min(_ROWS_MAX, PAGE_BYTES_MAX // max(largest, 1)))


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
    if not _is_flat(table.schema, len(names)):
        raise _refusal(Code.WRONG_TYPE, f"{file}: a column holds lists or structures")
    rows = table.metadata.num_rows
    if rows > REQUESTS_MAX:
        raise _refusal(
            Code.TOO_LARGE,
            f"{file} has {rows} rows; a batch has at most {REQUESTS_MAX} requests",
        )


def _is_flat(schema: Any, columns: int) -> bool:
    """Return whether each row has one value of each column, or none."""
    leaves = [schema.column(place) for place in range(len(schema))]
    return len(leaves) == columns and all(
        leaf.max_repetition_level == 0 and leaf.max_definition_level <= 1
        for leaf in leaves
    )


def _refusal(code: Code, message: str) -> InputError:
    remedy = f"give it a column `{RELEASE}` of JSON texts, and maybe `{UTILITY}`"
    return InputError(
        Problem(code, message, help="" if code is Code.TOO_LARGE else remedy)
    )


def _too_large(what: str, most: int) -> InputError:
    return InputError(
        Problem(
            Code.TOO_LARGE,
            f"{what} has more than {most} bytes when it is unpacked",
            help="hand the requests in as several files, or as JSON Lines",
        )
    )


def _unreadable(file: Path) -> InputError:
    return InputError(
        Problem(
            Code.FILE_UNREADABLE, f"{file} cannot be read, or is not a Parquet file"
        )
    )


def _add(rows: Any, place: int, source: str, batch: Batch) -> None:
    with batch.guard():
        text = _cell(rows, RELEASE, place, source)
        if not isinstance(text, str):
            raise _of_row(Code.WRONG_TYPE, f"`{RELEASE}` is empty", source)
        data = text.encode()
        batch.add(handed(Piece(data, source), source, _utility(rows, place, source)))


def _cell(rows: Any, column: str, place: int, source: str) -> object:
    """Return what stands in a cell; None if nothing does.

    Raises:
        InputError: If it is longer than a line may be.
    """
    scalar = rows.column(column)[place]
    # A text is measured before it is copied.
    size = scalar.as_buffer().size if _has_bytes(scalar) else 0
    if size > LINE_BYTES_MAX:
        most = f"`{column}` has more than {LINE_BYTES_MAX} bytes"
        raise _of_row(Code.TOO_LARGE, most, source)
    value: object = scalar.as_py()
    return value


def _has_bytes(scalar: Any) -> bool:
    return bool(scalar.is_valid) and hasattr(scalar, "as_buffer")


def _utility(rows: Any, place: int, source: str) -> Node | None:
    """Return what stands in the column of utilities; None if nothing does."""
    if UTILITY not in rows.schema.names:
        return None
    value = _cell(rows, UTILITY, place, source)
    if value is None:
        return None
    try:
        return from_python(value)
    except InputError as error:
        raise _of_row(Code.NOT_A_NUMBER, f"`{UTILITY}` is no number", source) from error


def _of_row(code: Code, message: str, source: str) -> InputError:
    return InputError(Problem(code, message, Mark(source, 1, 1)))
