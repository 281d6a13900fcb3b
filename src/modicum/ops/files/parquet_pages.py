"""How large the pages of a Parquet file become, told before any is unpacked.

The footer of a file says how large its columns are, and may say anything. But a page is
unpacked to exactly as many bytes as stand in the header before it. These headers are
written in Thrift's compact protocol, and are small: all of them are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, TypeAlias

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
        values: How many values it says to hold.
    """

    unpacked: int
    values: int


def pages(file: BinaryIO, metadata: Any) -> Iterator[Page]:
    """Yield every page of a file, by what stands in its header.

    Args:
        file: The file; where it stands afterwards is not said.
        metadata: Its footer, as pyarrow reads it.

    Raises:
        ValueError: If a header is not as the format wants it.
    """
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
        raise _odd("a column lies nowhere")
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
        raise _odd("a header holds what no header holds")
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
