"""Requests in a Parquet table: each row a release as JSON, with an optional utility.

The footer of a file states the sizes of its columns, and may be wrong. But a page is
unpacked to exactly the size in its header. These headers are written in Thrift's
compact protocol, and are small: all of them are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from modicum.api.local.plans.requests import REQUESTS_MAX, Batch
from modicum.core.document import Node, from_python
from modicum.core.errors import Code, InputError, Mark, Problem
from modicum.ops.files.json_lines import LINE_BYTES_MAX, handed
from modicum.ops.files.yaml_documents import Piece
from modicum.release.utility import UTILITY
from modicum.workloads.arrow import library

#: The fields of a structure by their numbers; texts are left out.
_Fields: TypeAlias = "dict[int, int | _Fields]"

# Of a page's header: its fields, and of the header within for each kind of page the
# number of values.
_UNPACKED, _PACKED, _KINDS = 2, 3, (5, 7, 8)
_VALUES = 1
# Of the compact protocol: how a field is written.
_BOOLEANS, _BYTE, _INTEGERS, _DOUBLE, _TEXT, _STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, 12
_DEPTH_MAX = 8
_FIELD_MAX = 100
_SIZE_MAX = 2**31 - 1
_INTEGER_BYTES_MAX = 10


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a column.

    Attributes:
        unpacked: How many bytes it has, unpacked.
        values: The stated number of values.
    """

    unpacked: int
    values: int


def pages(file: BinaryIO, metadata: Any) -> Iterator[Page]:
    """Yield every page of a file, by its header."""
    for group in range(metadata.num_row_groups):
        columns = metadata.row_group(group)
        for place in range(columns.num_columns):
            yield from _pages_of(file, columns.column(place))


def _pages_of(file: BinaryIO, column: Any) -> Iterator[Page]:
    first = column.data_page_offset
    if column.dictionary_page_offset:
        first = min(first, column.dictionary_page_offset)
    end = first + column.total_compressed_size
    if first < 0 or end < first:
        raise _odd("a column has no position")
    at = first
    while at < end:
        file.seek(at)
        header = _struct(file)
        at = file.tell() + _size(header, _PACKED)
        inner = [found for key in _KINDS if isinstance(found := header.get(key), dict)]
        values = sum(_size(found, _VALUES) for found in inner)
        yield Page(max(_size(header, _UNPACKED), _size(header, _PACKED)), values)


def _size(fields: _Fields, key: int) -> int:
    value = fields.get(key)
    if not isinstance(value, int) or not 0 <= value <= _SIZE_MAX:
        raise _odd("a page has no size")
    return value


# --- Thrift's compact protocol --------------------------------------------------------


def _struct(file: BinaryIO, depth: int = 0) -> _Fields:
    """Return a structure. One of which two readings are thinkable is refused."""
    found: _Fields = {}
    number = 0
    while begin := _byte(file):
        step, kind = begin >> 4, begin & 15
        number = number + step if step else _integer(file)
        if not 0 < number <= _FIELD_MAX or number in found or depth > _DEPTH_MAX:
            raise _odd("a header is odd")
        found[number] = _value(file, kind, depth)
    return found


def _value(file: BinaryIO, kind: int, depth: int) -> int | _Fields:
    if kind in _BOOLEANS:
        return 0
    if kind in _INTEGERS:
        return _integer(file)
    if kind == _STRUCT:
        return _struct(file, depth + 1)
    lengths = {_BYTE: 1, _DOUBLE: 8}
    length = _natural(file) if kind == _TEXT else lengths.get(kind)
    if length is None:
        raise _odd("a header has invalid contents")
    file.seek(length, 1)
    return 0


def _integer(file: BinaryIO) -> int:
    folded = _natural(file)
    return (folded >> 1) ^ -(folded & 1)


def _natural(file: BinaryIO) -> int:
    value = 0
    for place in range(_INTEGER_BYTES_MAX):
        byte = _byte(file)
        value |= (byte & 127) << 7 * place
        if byte < 128:  # The last byte has no high bit.
            return value
    raise _odd("a number does not end")


def _byte(file: BinaryIO) -> int:
    found = file.read(1)
    if not found:
        raise _odd("the file ends within a header")
    return found[0]


def _odd(why: str) -> ValueError:
    return ValueError(why)


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
    """Read the requests of a table."""
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
    """Return the size of the largest page, if all of them may be unpacked."""
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
        raise _refusal(Code.WRONG_TYPE, f"{file}: `{RELEASE}` is not a column of text")
    if not _is_flat(table.schema, len(names)):
        raise _refusal(Code.WRONG_TYPE, f"{file}: a column has lists or structures")
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
            help="split the requests into several files, or use JSON Lines",
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
    """Return the value of a cell; None if it is empty."""
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
    """Return the value of the utility column; None if it is empty."""
    if UTILITY not in rows.schema.names:
        return None
    value = _cell(rows, UTILITY, place, source)
    if value is None:
        return None
    try:
        return from_python(value)
    except InputError as error:
        raise _of_row(
            Code.NOT_A_NUMBER, f"`{UTILITY}` is not a number", source
        ) from error


def _of_row(code: Code, message: str, source: str) -> InputError:
    return InputError(Problem(code, message, Mark(source, 1, 1)))
