"""HTTP/1.1 requests as they are sent: heads, and where bodies end.

What could be read in two ways is refused, since a proxy may read it in the other one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from modicum.core.errors import Code, InputError, Problem

#: Maximum size of a request's head, up to one read more; also of what follows chunks.
HEAD_BYTES: Final = 2**15
#: The end of a head, and of a chunked body.
HEAD_END: Final = b"\r\n\r\n"
#: Maximum size of the line before a chunk.
_SIZE_LINE_BYTES: Final = 256

_TOKEN: Final = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_LINE: Final = re.compile(rb"(%s) ([!-~]+) HTTP/(1\.[01])\r\n" % _TOKEN)
_FIELD: Final = re.compile(rb"(%s):([^\x00-\x08\x0a-\x1f\x7f]*)\r\n" % _TOKEN)
_SIZE: Final = re.compile(
    rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\x00-\x08\x0a-\x1f\x7f]*)?\r\n"
)
#: A line without CR, or one that continues the line before.
_ODD_LINE: Final = re.compile(rb"(?<!\r)\n|\n[ \t]")
_DIGITS: Final = re.compile(rb"[0-9]{1,15}")


@dataclass(slots=True)
class Head:
    """The head of a request.

    Attributes:
        method: Its method.
        target: What follows: a path and a query, as they are sent.
        version: The version of HTTP, `1.0` or `1.1`.
        headers: Its headers; their names in small letters.
        length: The size of its body; None if it is sent in chunks.
        is_last: Whether the connection ends with its answer.
        awaits: Whether its body is sent once the server agrees.
    """

    method: str
    target: bytes
    version: str
    headers: list[tuple[bytes, bytes]]
    length: int | None = 0
    is_last: bool = False
    awaits: bool = False


def head_size(received: bytearray) -> int:
    """Return the size of the head at the beginning; 0 if it is not whole.

    Raises:
        InputError: If it is too large, or cannot become one.
    """
    end = received.find(HEAD_END)
    if end > HEAD_BYTES or (end < 0 and len(received) > HEAD_BYTES):
        raise _unreadable()
    if end < 0:
        if _ODD_LINE.search(received):
            raise _unreadable()
        return 0
    return end + len(HEAD_END)


def head_of(text: bytes) -> Head:
    """Return the head of a request, up to the empty line after it.

    Raises:
        InputError: If it is none.
    """
    line = _LINE.match(text)
    if line is None:
        raise _unreadable()
    method, target, version = line.groups()
    found = Head(
        method.decode("ascii"),
        target,
        version.decode("ascii"),
        _fields(text, line.end()),
        is_last=version == b"1.0",
    )
    hosts, lengths, codings = 0, [], []
    for name, value in found.headers:
        if name == b"host":
            hosts += 1
        elif name == b"content-length":
            lengths.append(value)
        elif name == b"transfer-encoding":
            codings.append(value)
        elif name == b"connection":
            tokens = [one.strip(b" \t") for one in value.lower().split(b",")]
            found.is_last = found.is_last or b"close" in tokens
        elif name == b"expect":
            found.awaits = value.lower() == b"100-continue"
    if hosts != 1 and (hosts or version == b"1.1"):
        raise _unreadable()
    found.length = _length(lengths, codings, version)
    return found


def _fields(text: bytes, start: int) -> list[tuple[bytes, bytes]]:
    """Return the fields from a place to the end, which is an empty line."""
    found: list[tuple[bytes, bytes]] = []
    match, end = _FIELD.match, len(text) - 2
    while start < end:
        one = match(text, start)
        if one is None:
            raise _unreadable()
        name, value = one.groups()
        found.append((name.lower(), value.strip(b" \t")))
        start = one.end()
    return found


def _length(lengths: list[bytes], codings: list[bytes], version: bytes) -> int | None:
    """Return the size of a body; None if it is sent in chunks."""
    if codings:
        is_chunked = [one.lower() for one in codings] == [b"chunked"]
        if lengths or not is_chunked or version == b"1.0":
            raise _unreadable()
        return None
    if not lengths:
        return 0
    if len(lengths) > 1 or not _DIGITS.fullmatch(lengths[0]):
        raise _unreadable()
    return int(lengths[0])


@dataclass(slots=True)
class BodyReader:
    """Finds the end of a body.

    Attributes:
        left: How many bytes are left of it, or of the present chunk.
        is_chunked: Whether it is sent in chunks.
        is_whole: Whether it is over.
    """

    left: int
    is_chunked: bool = False
    is_whole: bool = field(init=False)
    _trailer: int = field(default=-1, init=False)
    _is_in_chunk: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.is_whole = not self.left and not self.is_chunked

    def take(self, received: bytearray) -> bytes:
        """Return a part of the body from the beginning, and remove what it used.

        Raises:
            InputError: If its form is wrong.
        """
        if not self.is_chunked:
            part = bytes(received[: self.left])
            del received[: len(part)]
            self.left -= len(part)
            self.is_whole = not self.left
            return part
        parts = []
        while self._next_chunk(received):
            part = bytes(received[: self.left])
            del received[: len(part)]
            self.left -= len(part)
            parts.append(part)
        return b"".join(parts)

    def _next_chunk(self, received: bytearray) -> bool:
        """Return whether there are bytes of a chunk; read what is before them."""
        if self.is_whole:
            return False
        if self._trailer >= 0:
            self._end(received)
            return False
        if self._is_in_chunk and not self.left:
            if len(received) < 2:
                return False
            if not received.startswith(b"\r\n"):
                raise _unreadable()
            del received[:2]
            self._is_in_chunk = False
        if not self._is_in_chunk:
            size = self._line(received, _SIZE, _SIZE_LINE_BYTES)
            if size is None:
                return False
            self.left = int(size[1], 16)
            if not self.left:
                self._trailer = 0
                self._end(received)
                return False
            self._is_in_chunk = True
        return bool(received)

    def _end(self, received: bytearray) -> None:
        """Read the fields after the last chunk; they mean nothing here."""
        while not self.is_whole:
            if received.startswith(b"\r\n"):
                del received[:2]
                self.is_whole = True
                return
            left = HEAD_BYTES - self._trailer
            field_ = self._line(received, _FIELD, left)
            if field_ is None:
                return
            self._trailer += field_.end()

    @staticmethod
    def _line(
        received: bytearray, form: re.Pattern[bytes], most: int
    ) -> re.Match[bytes] | None:
        """Return a line of a form, and remove it; None if it is not whole."""
        end = received.find(b"\n", 0, most)
        if end < 0:
            if len(received) >= most:
                raise _unreadable()
            return None
        found = form.fullmatch(bytes(received[: end + 1]))
        if found is None:
            raise _unreadable()
        del received[: end + 1]
        return found


def body_of(head: Head) -> BodyReader:
    """Return what finds the end of the body after a head."""
    return BodyReader(head.length or 0, is_chunked=head.length is None)


def _unreadable() -> InputError:
    return InputError(
        Problem(
            Code.BAD_REQUEST,
            f"this is not HTTP/1.1, or its head has more than {HEAD_BYTES // 1024} KiB",
            help="send less in the address and in headers",
        )
    )
