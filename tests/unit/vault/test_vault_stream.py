"""Does encrypted content open to what was put in, and to nothing else?"""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.sealed_things import decrypt

from modicum.core.errors import Code, InputError, VerificationError
from modicum.vault import encrypted_stream
from modicum.vault.encrypted_stream import HEADER_BYTES, decrypted, encrypted
from modicum.vault.folder import Names, names_of

KEY = bytes(range(32))
#: The smallest chunks that are read.
EXPONENT = 12
CHUNK = 2**EXPONENT
BLOCK = CHUNK + 16
NAMES = names_of("visits/3")


def sealed(content: bytes, names: Names = NAMES, key: bytes = KEY) -> bytes:
    return b"".join(encrypted(io.BytesIO(content).read, key, names, EXPONENT))


def opened(data: bytes, names: Names = NAMES, key: bytes = KEY) -> bytes:
    return b"".join(decrypted(io.BytesIO(data).read, key, names))


def content_of(size: int) -> bytes:
    return bytes((at * 7 + at // 251) % 256 for at in range(size))


def refused(data: bytes, names: Names = NAMES, key: bytes = KEY) -> bool:
    with pytest.raises(VerificationError) as caught:
        opened(data, names, key)
    assert caught.value.code is Code.SEALED_BROKEN
    return True


SIZES = st.one_of(
    st.integers(0, 40),
    st.builds(
        lambda chunks, more: max(0, chunks * CHUNK + more),
        st.integers(1, 4),
        st.integers(-18, 18),
    ),
)


@settings(max_examples=examples(200, 60), deadline=None)
@given(size=SIZES, identifier=st.sampled_from(["a", "visits/3", "../x", "é ü"]))
def test_what_is_sealed_opens_here_and_by_the_book(size: int, identifier: str) -> None:
    names, content = names_of(identifier), content_of(size)
    data = sealed(content, names)
    assert opened(data, names) == content
    assert decrypt(data, KEY, identifier) == content
    blocks = max(1, -(-size // CHUNK))
    assert len(data) == HEADER_BYTES + size + 16 * blocks


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK])
def test_every_bit_counts(size: int) -> None:
    data = sealed(content_of(size))
    first = range(HEADER_BYTES + 20)
    ends = {at + d for at in range(HEADER_BYTES, len(data), BLOCK) for d in (-1, 0, 17)}
    places = {*first, *ends, *range(0, len(data), 401), len(data) - 1, len(data) - 17}
    for at in sorted(place for place in places if 0 <= place < len(data)):
        for bit in (0, 7):
            other = bytearray(data)
            other[at] ^= 1 << bit
            assert refused(bytes(other)), at


@pytest.mark.parametrize("size", [0, 5, CHUNK, 2 * CHUNK, 2 * CHUNK + 5])
def test_nothing_can_be_cut_off_or_added(size: int) -> None:
    data = sealed(content_of(size))
    borders = range(HEADER_BYTES, len(data) + 1, BLOCK)
    cuts = {0, 1, 47, *borders, *(at + 16 for at in borders), *(b - 1 for b in borders)}
    for cut in sorted(at for at in cuts if at < len(data)):
        assert refused(data[:cut]), cut
    for more in (b"\0", bytes(16), bytes(17), bytes(BLOCK), data[HEADER_BYTES:]):
        assert refused(data + more)


def test_chunks_keep_their_places() -> None:
    data = sealed(content_of(4 * CHUNK + 9))
    header, rest = data[:HEADER_BYTES], data[HEADER_BYTES:]
    blocks = [rest[at : at + BLOCK] for at in range(0, len(rest), BLOCK)]
    for left in range(4):
        for right in range(left):
            moved = list(blocks)
            moved[left], moved[right] = moved[right], moved[left]
            assert refused(header + b"".join(moved))
    for gone in range(5):
        assert refused(header + b"".join(blocks[:gone] + blocks[gone + 1 :]))
    again = sealed(content_of(4 * CHUNK + 9))
    assert refused(again[:HEADER_BYTES] + rest), "the header of another time"
    assert refused(data[:-BLOCK] + again[-BLOCK:]), "the end of another time"


def test_neither_another_id_nor_another_key_opens_it() -> None:
    data = sealed(content_of(100))
    other = names_of("visits/4")
    assert refused(data, other)
    assert refused(data[:16] + other.tag + data[HEADER_BYTES:], other)
    assert refused(data, key=bytes(32))


def test_the_id_is_authenticated_and_not_its_hash_alone() -> None:
    data = sealed(content_of(100))
    assert refused(data, Names("visits/4", NAMES.tag))


def test_a_chunk_that_ends_nothing_is_refused() -> None:
    """A last chunk without bytes, after others, would be a second form of the same."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    content = content_of(CHUNK)
    header = sealed(content)[:HEADER_BYTES]
    data = header
    for number, (part, last) in enumerate([(content, 0), (b"", 1)]):
        place = number.to_bytes(4, "big") + bytes([last])
        beside = header + place + b"visits/3"
        data += AESGCM(KEY).encrypt(header[9:16] + place, part, beside)
    assert decrypt(data, KEY, "visits/3") == content
    assert refused(data)


def test_the_same_content_never_looks_the_same() -> None:
    assert len({sealed(b"same") for _ in range(20)}) == 20


def test_sizes_of_chunks_are_bounded() -> None:
    for exponent in (0, 11, 25, 255):
        data = bytearray(sealed(b"x"))
        data[8] = exponent
        assert refused(bytes(data))


def test_the_counter_of_chunks_never_begins_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = sealed(content_of(3 * CHUNK))
    monkeypatch.setattr(encrypted_stream, "_CHUNKS_MAX", 2)
    assert opened(sealed(content_of(2 * CHUNK)))
    with pytest.raises(InputError):
        sealed(content_of(3 * CHUNK))
    assert refused(data)


def test_content_is_never_held_as_a_whole() -> None:
    """At most two chunks are read before the first comes out."""
    sizes = list[int]()

    def endless(size: int) -> bytes:
        sizes.append(size)
        return bytes(size)

    pieces: Iterator[bytes] = encrypted(endless, KEY, NAMES, EXPONENT)
    for _ in range(3):
        next(pieces)
    assert sizes == [CHUNK] * 3
