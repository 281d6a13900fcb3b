"""Canonical bytes: one value, one encoding, one hash; nothing else decodes."""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from budget import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from modicum.core.canonical import Plain, decode, digest, encode

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**70), 2**70),
    texts,
    st.sampled_from(
        ["", '"', "\\", "\n", "\u2028", "\x00", "\x7f", "é", "e\u0301", "😀"]
    ),
)
plain: st.SearchStrategy[Any] = st.recursive(
    leaves,
    lambda children: st.one_of(
        st.lists(children, max_size=4), st.dictionaries(texts, children, max_size=4)
    ),
    max_leaves=12,
)


def same(a: object, b: object) -> bool:
    """Equal in type too: Python thinks that True == 1."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return type(a) is type(b) and a == b


def text_of(value: object) -> str:
    """The canonical text by its definition, written out by hand."""
    if isinstance(value, Mapping):
        pairs = (f"{text_of(key)}:{text_of(value[key])}" for key in sorted(value))
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ",".join(map(text_of, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    names = {True: "true", False: "false", None: "null"}
    if value is None or isinstance(value, bool):
        return names[value]
    assert isinstance(value, int)
    return str(value)


@settings(max_examples=examples(150))
@given(plain)
def test_what_was_encoded_decodes_to_itself(value: Plain) -> None:
    data = encode(value)
    assert same(decode(data), value)
    assert data.decode("utf-8") == text_of(value)


@settings(max_examples=examples(150))
@given(st.dictionaries(texts, leaves, min_size=2, max_size=6), st.randoms())
def test_the_order_of_keys_does_not_show(value: dict[str, Any], random: Any) -> None:
    keys = list(value)
    random.shuffle(keys)
    assert encode({key: value[key] for key in keys}) == encode(value)


@settings(max_examples=examples(300))
@given(plain, st.data())
def test_a_flipped_byte_is_refused_or_says_something_else(
    value: Plain, data: st.DataObject
) -> None:
    original = encode(value)
    place = data.draw(st.integers(0, len(original) - 1))
    flip = data.draw(st.one_of(st.sampled_from([1, 32, 128]), st.integers(1, 255)))
    changed = bytearray(original)
    changed[place] ^= flip
    try:
        other = decode(bytes(changed))
    except ValueError:
        return
    assert not same(other, value)
    assert encode(other) == bytes(changed)


@settings(max_examples=examples(200))
@given(st.binary(max_size=30))
def test_any_bytes_decode_canonically_or_not_at_all(data: bytes) -> None:
    try:
        value = decode(data)
    except ValueError:
        return
    assert encode(value) == data


@settings(max_examples=examples(100))
@given(
    plain, st.sampled_from(["spaces", "ascii", "unsorted", "newline", "bom", "twice"])
)
def test_another_spelling_of_the_same_value_is_refused(value: Plain, how: str) -> None:
    canonical = encode(value)
    other = {
        "spaces": json.dumps(value, sort_keys=True, ensure_ascii=False).encode(),
        "ascii": json.dumps(value, sort_keys=True, separators=(",", ":")).encode(),
        "unsorted": text_of(value).encode()[::-1],
        "newline": canonical + b"\n",
        "bom": b"\xef\xbb\xbf" + canonical,
        "twice": canonical + canonical,
    }[how]
    assume(other != canonical)
    try:
        found = decode(other)
    except ValueError:
        return
    assert not same(found, value), "reversed or doubled digits are another number"


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b" ", b"1.0", b"1e5", b"1E5", b"-0", b"01", b"+1", b"NaN", b"Infinity"),
        *(b"-Infinity", b"nul", b"True", b"'a'", b"[1,]", b"{}{}", b"[1] ", b" [1]"),
        *(b'{"a":1,"a":1}', b'{"b":1,"a":2}', b'{"a": 1}', b"{1:2}", b"[1,\n2]"),
        *(b'"\\u0041"', b'"\\/"', b'"\\ud800"', b'"\xed\xa0\x80"', b'"\xff"', b"1 2"),
        *(b"/**/1", b'"\t"', b"[" * 100_000, b"[" * 100_000 + b"]" * 100_000),
        *(b"9" * 5000, b'{"a":1.5}', b"[null,0.0]", b'{"\xc3":1}'),
    ],
    ids=lambda data: repr(data[:20]),
)
def test_bytes_that_are_not_canonical_are_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(data)


class Word(enum.Enum):
    A = "a"


@pytest.mark.parametrize(
    "value",
    [
        *(0.5, float("nan"), float("inf"), 1.0, Decimal(1), Fraction(1), b"a", {1, 2}),
        *({1: "a"}, {None: 1}, {True: 1}, {("a",): 1}, object(), Word.A, 1j),
        *([0.5], {"a": [{"b": 0.5}]}, (1, (2.0,))),
    ],
    ids=repr,
)
def test_floats_and_whatever_is_not_plain_are_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        encode(value)


def test_half_a_surrogate_pair_has_no_encoding() -> None:
    with pytest.raises(UnicodeEncodeError):
        encode("\ud800")
    with pytest.raises(UnicodeEncodeError):
        encode({"\udfff": 1})


def test_text_is_kept_as_it_is_and_not_normalized() -> None:
    """Two texts that look alike are two texts; names are normalized on reading."""
    assert encode("é") != encode("e\u0301")
    assert decode(encode("e\u0301")) == "e\u0301"


def test_the_canonical_form_is_the_documented_one() -> None:
    value: Plain = {"b": [1, True, None], "a": "é\n", "A": {}}
    assert encode(value) == '{"A":{},"a":"é\\n","b":[1,true,null]}'.encode()


def test_the_digest_is_sha_256() -> None:
    """NIST's vector for the three bytes `abc`."""
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert digest(b"abc") == expected
    assert digest(b"") == hashlib.sha256(b"").hexdigest()
