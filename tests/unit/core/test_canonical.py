"""Canonical bytes: one value, one encoding, one hash; nothing else decodes."""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple
from uuid import uuid4

import msgspec
import pytest
from budget import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from modicum.core.canonical import Plain, Written, decode, digest, encode, join

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
    ids=lambda value: repr(value).split(" at 0x")[0],
)
def test_floats_and_whatever_is_not_plain_are_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        encode(value)


class Text(str):
    __slots__ = ()


class Whole(int):
    pass


class Map(dict[str, Any]):
    pass


class Renamed(dict[str, Any]):
    def items(self) -> Any:
        return [("other", value) for value in super().values()]


class Row(list[Any]):
    pass


class Pair(NamedTuple):
    one: Any
    other: Any


class TextWord(enum.StrEnum):
    A = "a"


class Number(enum.IntEnum):
    A = 1


@dataclass
class Data:
    one: int = 1


class Fast(msgspec.Struct):
    one: int = 1


def by_json(value: Any) -> bytes:
    """The bytes by the standard library, after a look at every value."""
    refuse_others(value)
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode("utf-8")


def refuse_others(value: Any) -> None:
    if isinstance(value, dict):
        if any(type(key) is not str for key in value):
            raise TypeError
        for one in value.values():
            refuse_others(one)
    elif isinstance(value, list | tuple):
        for one in value:
            refuse_others(one)
    elif type(value) not in {bool, int, str, type(None)}:
        raise TypeError


def result(work: Callable[[Any], object], value: Any) -> object:
    try:
        found = work(value)
    except (ValueError, TypeError, RecursionError) as error:
        return type(error)
    return found


wild = st.one_of(
    leaves,
    st.text(max_size=3),
    st.floats(),
    st.sampled_from([2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1]),
    st.sampled_from(["\ud800", "\U0010ffff", "\uffff", "\ue000"]),
    st.sampled_from([Text("a"), Whole(1), TextWord.A, Number.A, Word.A, b"a", 1j]),
    st.sampled_from([Data(), Fast(), Data, Decimal(1), Fraction(1), date.min, uuid4()]),
    st.sampled_from([Map(a=1), Renamed(a=1), Row([1]), Pair(1, "x"), Pair(1.5, 1)]),
    st.sampled_from([Written(b"1"), {1}, frozenset({1}), range(2), {}.keys()]),
)
wild_keys = st.one_of(
    texts,
    st.sampled_from(["\ud800", "\U00010000", "\uffff", "a", "aa", "b", "B"]),
    st.sampled_from([1, None, True, 1.5, Text("a"), TextWord.A, Number.A]),
)
wild_values = st.recursive(
    wild,
    lambda children: st.one_of(
        st.lists(children, max_size=3),
        st.tuples(children, children),
        st.dictionaries(wild_keys, children, max_size=3),
    ),
    max_leaves=6,
)


@settings(max_examples=examples(1500), deadline=None)
@given(wild_values)
def test_both_ways_of_writing_agree_on_every_value(value: Any) -> None:
    assert result(encode, value) == result(by_json, value)


def test_both_ways_agree_on_numbers_of_many_digits() -> None:
    for value in (10**4299, 10**4300 - 1, 10**4300, -(10**4300)):
        assert result(encode, value) == result(by_json, value)
        assert result(encode, [value]) == result(by_json, [value])
    for digits in (4299, 4300, 4301):
        refused_or_same(b"9" * digits)


def test_every_character_is_written_as_the_standard_library_does() -> None:
    for first in range(0, 0x110000, 0x800):
        if first != 0xD800:
            text = "".join(map(chr, range(first, first + 0x800)))
            assert encode(text) == by_json(text)
            assert decode(encode({text: text})) == {text: text}


@pytest.mark.parametrize("kind", ["list", "map"])
def test_deep_nesting_is_written_or_refused_but_never_falls(kind: str) -> None:
    for depth in (10, 300, 2000, 50_000):
        value: Any = 1
        for _ in range(depth):
            value = [value] if kind == "list" else {"a": value}
        found = result(encode, value)
        before, after = (b"[", b"]") if kind == "list" else (b'{"a":', b"}")
        data = before * depth + b"1" + after * depth
        assert found == (data if depth < 1000 else RecursionError)
        assert (result(decode, data) is ValueError) == (depth >= 1000)


def read_by_json(data: bytes) -> Any:
    """The value by the standard library, if it is written to the same bytes."""

    def refuse(_: str) -> None:
        raise ValueError

    reader = json.JSONDecoder(parse_float=refuse, parse_constant=refuse)
    value = reader.decode(data.decode("utf-8"))
    if by_json(value) != data:
        raise ValueError
    return value


def refused_or_same(data: bytes) -> None:
    found, expected = result(decode, data), result(read_by_json, data)
    if isinstance(expected, type):
        assert isinstance(found, type), data
        assert issubclass(found, ValueError)
    else:
        assert same(found, expected), data


pieces = st.sampled_from(
    [
        *(b"{", b"}", b"[", b"]", b",", b":", b'"', b'"a"', b'"b"', b'"\\u0000"'),
        *(b"1", b"-0", b"-1", b"0", b"1.5", b"1e5", b".5", b"NaN", b"true", b"null"),
        *(b"18446744073709551616", b"-9223372036854775809", b"18446744073709552000"),
        *(b'{"a":1}', b'{"a":1,"a":1}', b'{"b":1,"a":1}', b'"\\ud800"', b"\xff", b" "),
        *(b'"\xed\xa0\x80"', b'"\xf0\x9f\x98\x80"', b'"\\n"', b'"\\/"', b'"\x7f"'),
    ]
)


@settings(max_examples=examples(1000), deadline=None)
@given(st.lists(pieces, max_size=5).map(b"".join))
def test_both_ways_of_reading_agree_on_pieces(data: bytes) -> None:
    refused_or_same(data)
    refused_or_same(b"[" + data + b"]")
    refused_or_same(b'{"k":' + data + b"}")


@settings(max_examples=examples(500), deadline=None)
@given(plain, st.data())
def test_both_ways_of_reading_agree_on_changed_bytes(
    value: Plain, data: st.DataObject
) -> None:
    changed = bytearray(encode(value))
    place = data.draw(st.integers(0, len(changed) - 1))
    changed[place : place + data.draw(st.integers(0, 2))] = data.draw(pieces)
    refused_or_same(bytes(changed))


def partly_written(value: Any, draw: Callable[[], bool]) -> Any:
    if draw():
        return Written(encode(value))
    if isinstance(value, dict):
        return {key: partly_written(one, draw) for key, one in value.items()}
    if isinstance(value, list):
        return [partly_written(one, draw) for one in value]
    return value


@settings(max_examples=examples(300), deadline=None)
@given(plain, st.randoms())
def test_written_parts_are_joined_to_the_same_bytes(value: Plain, random: Any) -> None:
    joined = partly_written(value, lambda: random.random() < 0.3)
    assert join(joined) == encode(value)
    assert join(Map(a=joined)) == encode({"a": value})
    if not isinstance(joined, Written):
        with pytest.raises(TypeError):
            join([joined, 1.5])  # type: ignore[list-item]


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
