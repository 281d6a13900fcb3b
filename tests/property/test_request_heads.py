"""Heads and bodies of requests: what is read is what h11 reads in the same bytes."""

from __future__ import annotations

import random

import h11
import pytest
from budget import examples
from budget import seed as the_seed

from modicum.core.errors import InputError
from modicum.server.wire_format import HEAD_BYTES, body_of, head_of, head_size

DRAWN = 4_000
LINES = (
    *("GET / HTTP/1.1", "POST /a?b=c HTTP/1.1", "GET /x HTTP/1.0", "FOO * HTTP/1.1"),
    *("GET http://a/b HTTP/1.1", "POST /%2F%00 HTTP/1.1", "GET /a#b HTTP/1.1"),
    *(
        "GET / HTTP/2.0",
        "GET  / HTTP/1.1",
        "GET / HTTP/1.1 ",
        "GET /",
        "get / http/1.1",
    ),
    *(
        "GET /\x80 HTTP/1.1",
        "GET /a b HTTP/1.1",
        "G\x00T / HTTP/1.1",
        "",
        "PRI * HTTP/2",
    ),
)
FIELDS = (
    *("Host: a", "Host: a", "Host: a", "Host: b", "Host:", "X: y", "X:", "x:\t y \t"),
    *(
        "Content-Length: 3",
        "Content-Length: 3",
        "Content-Length: 4",
        "CoNtEnT-LeNgTh:3",
    ),
    *("Content-Length: +3", "Content-Length: 3, 3", "Content-Length: 0x3", " folded"),
    *("Transfer-Encoding: chunked", "Transfer-Encoding: gzip, chunked", "\tfolded"),
    *("Transfer-Encoding: Chunked", "Transfer-Encoding: identity", "a b: c", "a : b"),
    *("Connection: close", "Connection: Keep-Alive, Close", "Connection: upgrade"),
    *("Upgrade: h2c", "Expect: 100-continue", ": x", "x", "X: \x01", "X: \x80\xff"),
    *("X: a\nY: b", "X: a\rY: b", "X: a\x00b", "X\x80: y", "\u00a0X: y", "X: \x7f"),
)
GOOD = (
    *("X: y", "X:", "x:\t y \t", "CoNtEnT-LeNgTh:3", "Connection: close", "a_b: c"),
    *("Connection: upgrade", "Upgrade: h2c", "Expect: 100-continue", "X: \x80\xff"),
)
CHUNKS = (
    *(b"3\r\nabc\r\n", b"3\r\nabc\r\n", b"03\r\nabc\r\n", b"3;a=b\r\nabc\r\n"),
    *(b"a\r\n0123456789\r\n", b"A\r\n0123456789\r\n", b"3\nabc\n", b"3\r\nabcd\r\n"),
    *(
        b"-3\r\nabc\r\n",
        b"3 \r\nabc\r\n",
        b"0x3\r\nabc\r\n",
        b"3\r\nabc",
        b"\r\n",
        b"3",
    ),
    b"0" * 30 + b"3\r\nabc\r\n",
)
ENDS = (
    *(b"0\r\n\r\n", b"0\r\n\r\n", b"00\r\n\r\n", b"0\r\nX: y\r\n\r\n", b"0\r\n", b""),
    *(b"0\n\n", b"0\r\nX : y\r\n\r\n", b"0;x\r\n\r\n", b"0\r\n folded\r\n\r\n"),
)


def drawn_head(rng: random.Random) -> bytes:
    """Return a head; about half of them are well formed."""
    common = rng.random() < 0.5
    line = rng.choice(LINES[:3] if common else LINES)
    fields = ["Host: a"] if common else []
    fields += rng.choices(FIELDS, k=rng.randrange(4))
    end = rng.choice(("\r\n",) * 9 + ("\n",))
    return (end.join([line, *fields]) + end * 2).encode("latin-1")


def drawn_chunks(rng: random.Random) -> bytes:
    few = rng.random() < 0.5
    chunks = rng.choices(CHUNKS[:5] if few else CHUNKS, k=rng.randrange(4))
    return b"".join(chunks) + rng.choice(ENDS[:2] if few else ENDS)


def h11_of(sent: bytes) -> tuple[h11.Request, bytes, bool]:
    """Return a request, as much of its body as there is, and whether it is whole."""
    own = h11.Connection(h11.SERVER, HEAD_BYTES)
    own.receive_data(sent)
    first = own.next_event()
    if not isinstance(first, h11.Request):
        raise h11.RemoteProtocolError("not a whole head")
    body = b""
    while isinstance(event := own.next_event(), h11.Data):
        body += event.data
    return first, body, isinstance(event, h11.EndOfMessage)


def test_a_head_is_read_as_h11_reads_it() -> None:
    rng, read, refused = random.Random(the_seed()), 0, 0
    for _ in range(examples(DRAWN)):
        sent = drawn_head(rng)
        try:
            size = head_size(bytearray(sent))
            found = head_of(sent[:size])
        except InputError:
            refused += 1
            continue
        read += 1
        other, _, _ = h11_of(sent)  # Else it is refused as well.
        assert size == len(sent)
        assert (found.method.encode(), found.target) == (other.method, other.target)
        assert found.version.encode() == other.http_version
        # h11 gives the length and the coding another form.
        form = {b"content-length", b"transfer-encoding"}
        wanted = [one for one in other.headers if one[0] not in form]
        assert [one for one in found.headers if one[0] not in form] == wanted
        is_chunked = any(name == b"transfer-encoding" for name, _ in other.headers)
        assert (found.length is None) is is_chunked
        lengths = dict(other.headers).get(b"content-length", b"0")
        assert is_chunked or found.length == int(lengths)
    assert min(read, refused) > examples(DRAWN) // 8


def test_a_head_in_good_form_is_read() -> None:
    rng = random.Random(the_seed())
    for _ in range(examples(DRAWN)):
        fields = ["Host: a", *rng.sample(GOOD, k=3)]
        rng.shuffle(fields)
        sent = "\r\n".join([rng.choice(LINES[:7]), *fields, "", ""]).encode("latin-1")
        other, _, _ = h11_of(sent)
        assert head_size(bytearray(sent)) == len(sent)
        found = head_of(sent)
        assert (found.method.encode(), found.target) == (other.method, other.target)


@pytest.mark.parametrize("is_split", [False, True])
def test_chunks_are_read_as_h11_reads_them(*, is_split: bool) -> None:
    rng, whole = random.Random(the_seed()), 0
    head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    for _ in range(examples(DRAWN)):
        sent, unread, body = drawn_chunks(rng), bytearray(), b""
        reader = body_of(head_of(head))
        left = sent + b"GET /next"
        try:
            while left and not reader.is_whole:
                size = rng.randint(1, 4) if is_split else len(left)
                unread += left[:size]
                left = left[size:]
                body += reader.take(unread)
        except InputError:
            continue
        try:
            _, other, is_over = h11_of(head + sent + b"GET /next")
        except h11.RemoteProtocolError:
            # It waits for more of a line that h11 refuses already.
            assert not reader.is_whole
            continue
        assert (body, reader.is_whole) == (other, is_over), sent
        if reader.is_whole:
            whole += 1
            assert bytes(unread) + left == b"GET /next"
    assert whole > examples(DRAWN) // 8
