"""A zip file with one possible form for its members: stored, in order, undated.

Nothing is compressed, so nothing can expand while it is read, and the same members give
the same bytes everywhere. The reader makes one pass and accepts exactly what the writer
writes, so a flipped bit is always detected. Any zip program opens these files.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

#: A member: its name and contents.
Member: TypeAlias = tuple[str, bytes]

#: The most bytes that one member may have.
MEMBER_BYTES_MAX = 1 << 26
#: The most bytes that a member's name may have.
NAME_BYTES_MAX = 200

_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_OFFSET_64 = struct.Struct("<2HQ")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR_64 = struct.Struct("<4sLQL")
_END = struct.Struct("<4s4H2LH")

_VERSION = 20
_VERSION_64 = 45
#: The first day that the format knows, at midnight: every member's date and time.
_DATE = 0x0021
_MOST_16 = 0xFFFF
_MOST_32 = 0xFFFFFFFF


def packed(members: Iterable[Member]) -> Iterator[bytes]:
    """Yield the bytes of a zip file, piece by piece.

    Args:
        members: The members, in order; names are plain ASCII and unique.

    Raises:
        ValueError: If a member or its name is too large.
    """
    directory = Directory()
    for name, data in members:
        if len(data) > MEMBER_BYTES_MAX or len(name) > NAME_BYTES_MAX:
            message = f"`{name[:NAME_BYTES_MAX]}` is too large to be stored"
            raise ValueError(message)
        yield directory.add(name, data)
        yield data
    yield directory.ending()


def unpacked(
    read: Callable[[int], bytes],
    most: Callable[[str], int] = lambda _: MEMBER_BYTES_MAX,
) -> Iterator[Member]:
    """Yield the members of a zip file that `packed` made, in order.

    Args:
        read: Returns that many further bytes of the file, fewer only at its end.
        most: Returns the most bytes that a member of a name may have; no more are
            read.

    Raises:
        ValueError: At the first byte that `packed` would not have written.
    """
    directory = Directory()
    while True:
        signature = read(4)
        if signature != b"PK\x03\x04":
            _check_ending(signature, directory.ending(), read)
            return
        header = signature + read(_LOCAL.size - 4)
        if len(header) < _LOCAL.size:
            raise _cut_off()
        size, name_size = _LOCAL.unpack(header)[8:10]
        if size > MEMBER_BYTES_MAX or not 0 < name_size <= NAME_BYTES_MAX:
            message = "a member is larger than any that is written"
            raise ValueError(message)
        raw_name = read(name_size)
        name = raw_name.decode("ascii", errors="strict")
        if len(raw_name) == name_size and size > most(name):
            message = "a member is larger than any that is written"
            raise ValueError(message)
        data = read(size)
        if len(raw_name) < name_size or len(data) < size:
            raise _cut_off()
        if directory.add(name, data) != header + raw_name:
            message = f"the header or the checksum of `{name}` is invalid"
            raise ValueError(message)
        yield name, data


def _check_ending(
    beginning: bytes, expected: bytes, read: Callable[[int], bytes]
) -> None:
    found = beginning + read(len(expected) - len(beginning) + 1)
    if len(found) < len(expected):
        raise _cut_off()
    if found != expected:
        message = "what follows the members is not their directory"
        raise ValueError(message)


def _cut_off() -> ValueError:
    return ValueError("the file is truncated")


class Directory:
    """The members so far, and the directory at the end of a zip file.

    Args:
        offset: The position of the first member in the file.
    """

    def __init__(self, offset: int = 0) -> None:
        self._offset = offset
        self._entries = bytearray()
        self._names: set[str] = set()

    def add(self, name: str, data: bytes) -> bytes:
        """Return the header of a member, and note it.

        Raises:
            ValueError: If the name was stored before.
        """
        if name in self._names:
            message = f"`{name}` occurs twice"
            raise ValueError(message)
        self._names.add(name)
        raw_name, sum_, size = name.encode("ascii"), zlib.crc32(data), len(data)
        far = self._offset >= _MOST_32
        extra = _OFFSET_64.pack(1, 8, self._offset) if far else b""
        self._entries += _CENTRAL.pack(
            b"PK\x01\x02",
            _VERSION,
            _VERSION_64 if far else _VERSION,
            *(0, 0, 0, _DATE),
            *(sum_, size, size),
            *(len(raw_name), len(extra), 0, 0, 0),
            *(0, _MOST_32 if far else self._offset),
        )
        self._entries += raw_name + extra
        header = _LOCAL.pack(
            *(b"PK\x03\x04", _VERSION, 0, 0, 0, _DATE),
            *(sum_, size, size, len(raw_name), 0),
        )
        self._offset += len(header) + len(raw_name) + size
        return header + raw_name

    def ending(self) -> bytes:
        """Return the end of the file: the directory, and its position."""
        count, size, at = len(self._names), len(self._entries), self._offset
        far = b""
        if count >= _MOST_16 or size >= _MOST_32 or at >= _MOST_32:
            far = _END_64.pack(
                *(b"PK\x06\x06", _END_64.size - 12, _VERSION, _VERSION_64, 0, 0),
                *(count, count, size, at),
            ) + _LOCATOR_64.pack(b"PK\x06\x07", 0, at + size, 1)
        count, size, at = (
            min(count, _MOST_16),
            min(size, _MOST_32),
            min(at, _MOST_32),
        )
        return (
            bytes(self._entries)
            + far
            + _END.pack(b"PK\x05\x06", 0, 0, count, count, size, at, 0)
        )


def begins_like(start: bytes, name: str) -> bool:
    """Return whether bytes look like the beginning of a file with this first member.

    This recognizes a damaged file in spite of a few flipped bits.
    """
    expected = Directory().add(name, b"")
    sums = range(14, 26)  # The sum and the two sizes.
    same = sum(
        found == wanted
        for place, (found, wanted) in enumerate(zip(start, expected, strict=False))
        if place not in sums
    )
    return same >= len(expected) - len(sums) - 3
