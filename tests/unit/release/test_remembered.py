"""What is remembered of mechanisms changes nothing but the time that it takes."""

from __future__ import annotations

import copy
import marshal
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import modicum as mo
from modicum.core.canonical import digest, encode
from modicum.core.document import from_python
from modicum.core.errors import InputError
from modicum.core.yaml_reader import read_document
from modicum.release import (
    Label,
    Partition,
    Population,
    PricedRelease,
    Unit,
    Vocabulary,
    content_digest,
    parse_release,
    price,
    price_cache,
    read_and_price,
)
from modicum.release.memo import Memo
from modicum.release.model import Mechanism, to_plain
from modicum.release.parts import Part, part_written

Written: TypeAlias = dict[str, Any]


def words() -> Vocabulary:
    units = {
        "user": Unit("user", "id"),
        "day": Unit("day", "id", "day", "at", ("user",)),
    }
    return Vocabulary(
        frozenset({"age", "country"}),
        {"ml": Label(("none", "all"), "none"), "aim": Label(("a", "b"), "b")},
        tuple(units),
        "add-remove",
        units,
        Population(
            {"country": Partition("country", ("CH", "DE"), 0, 1, (), None)},
            frozenset({"user"}),
        ),
    )


#: One for all examples: what one leaves in it, the others meet.
SHARED = words()

numbers = st.sampled_from(
    [1, 1.0, True, 2, "1", Decimal(1), Fraction(1), 0, None, 1e-7]
)
parts = st.fixed_dictionaries(
    {},
    optional={
        "ml": st.sampled_from(["none", "all", "al"]),
        "aim": st.sampled_from(["a", "b"]),
        "where": st.sampled_from([{"country": "CH"}, {"country": ["DE"]}, {"age": 1}]),
        "periods": st.sampled_from(["2026", 2026, "2026-11-03", ["2026-11-03"]]),
        "groups": st.sampled_from([1, True, 1.0, [1], (1,)]),
    },
)
mechanisms = st.builds(
    lambda base, part: {**base, **part},
    st.fixed_dictionaries(
        {
            "mechanism": st.sampled_from(["declared", "declared", "gaussian"]),
            "attributes": st.sampled_from([["age"], ("age",), ["country"], []]),
            "cost": st.fixed_dictionaries(
                {"user": st.builds(lambda eps: {"eps": eps}, numbers)},
                optional={"day": st.just({"eps": 1})},
            ),
        },
        optional={"name": st.sampled_from(["a", "b", "mechanism-1"])},
    ),
    parts,
)
releases = st.builds(
    lambda base, part: {**base, **part},
    st.fixed_dictionaries(
        {
            "release": st.sampled_from(["r-1", "r-2", "r 3", 4]),
            "mechanisms": st.lists(mechanisms, min_size=0, max_size=2),
        },
        optional={"purpose": st.sampled_from(["x", 1]), "zzz": st.just(1)},
    ),
    parts,
)


def outcome(
    read: Callable[[Written, Vocabulary], PricedRelease],
    release: Written,
    vocabulary: Vocabulary,
) -> object:
    try:
        found = read(release, vocabulary)
    except InputError as error:
        return error.render()
    written = [(one.plain, one.encoded) for one in found.release.mechanisms]
    assert all(encode(plain) == encoded for plain, encoded in written)
    return found, written, content_digest(found.release)


def slowly(release: Written, vocabulary: Vocabulary) -> PricedRelease:
    return price(parse_release(from_python(release), vocabulary), vocabulary)


@settings(max_examples=examples(500), deadline=None)
@given(st.lists(releases, min_size=1, max_size=3))
def test_what_is_remembered_is_what_would_be_read(some: list[Written]) -> None:
    for release in (*some, *some):
        before = copy.deepcopy(release)
        expected = outcome(slowly, before, words())
        assert outcome(read_and_price, release, SHARED) == expected
        assert release == before


def release_of(identifier: str = "r-1", **changed: object) -> Written:
    one: Written = {"mechanism": "declared", "attributes": ["age"], **changed}
    one.setdefault("cost", {"user": {"rho": 1}, "day": {"rho": 1}})
    return {"release": identifier, "mechanisms": [one]}


def test_a_mechanism_under_a_new_id_is_not_priced_again() -> None:
    vocabulary = words()
    first = read_and_price(release_of("r-1"), vocabulary)
    second = read_and_price({**release_of("r-2"), "purpose": "x"}, vocabulary)
    assert second.mechanisms[0] is first.mechanisms[0]
    assert second.release.id == "r-2"
    assert second.release.metadata == {"purpose": "x"}
    third = read_and_price({**release_of("r-3"), "ml": "all"}, vocabulary)
    assert third.mechanisms[0].labels == {"ml": "all", "aim": "b"}
    assert third.labels == {"ml": "all", "aim": "b"}


def test_drafts_are_remembered_too() -> None:
    vocabulary = words()
    one = mo.declared(attributes=["age"], cost={"user": mo.zcdp(1), "day": mo.zcdp(1)})
    found = [
        read_and_price(mo.Release(name, mechanisms=[one]), vocabulary)
        for name in ("r-1", "r-2")
    ]
    assert found[0].mechanisms[0] is found[1].mechanisms[0]


def test_what_stands_in_a_file_keeps_its_places() -> None:
    vocabulary = words()
    read_and_price(release_of(), vocabulary)
    text = "{release: r, mechanisms: [{mechanism: declared, attributes: [age],"
    text += " cost: {user: {rho: 1}, day: {rho: 1}}}]}"
    found = read_and_price(read_document(text.encode(), "release.yaml"), vocabulary)
    assert found.mechanisms[0].mechanism.mark is not None


def test_a_mistake_is_found_again_and_again() -> None:
    vocabulary = words()
    read_and_price(release_of(), vocabulary)
    wrong: list[Written] = [
        release_of(cost={"user": {"rho": "1"}, "day": {"rho": 1}}),
        {**release_of(), "zzz": 1},
        {**release_of(), "release": "r 1"},
        {**release_of(), "periods": "2026-13"},
        {"release": "r", "mechanisms": [*release_of(name="a")["mechanisms"]] * 2},
    ]
    for release in (*wrong, *wrong):
        with pytest.raises(InputError):
            read_and_price(release, vocabulary)


def test_a_remembered_mechanism_does_not_change_with_what_it_was_made_of() -> None:
    vocabulary = words()
    release = release_of()
    before = content_digest(read_and_price(release, vocabulary).release)
    release["mechanisms"][0]["attributes"].append("country")
    changed = content_digest(read_and_price(release, vocabulary).release)
    release["mechanisms"][0]["attributes"].pop()
    assert content_digest(read_and_price(release, vocabulary).release) == before
    assert changed != before


@settings(max_examples=examples(200), deadline=None)
@given(releases)
def test_contents_are_the_digest_of_the_canonical_form(release: Written) -> None:
    try:
        found = parse_release(from_python(release), SHARED)
    except InputError:
        return
    assert content_digest(found) == digest(encode(to_plain(found)))


identifiers = st.one_of(
    st.text(max_size=6),
    st.text("aZ09_.:/@+-é٣\n [", max_size=6),
    st.sampled_from(["r" * 200, "r" * 201, "r\n", "-r", "e\u0301", "[r]", "ab\u200b"]),
)


@settings(max_examples=examples(300), deadline=None)
@given(identifiers)
def test_an_id_is_taken_or_refused_as_if_nothing_was_remembered(given_id: str) -> None:
    vocabulary = words()
    read_and_price(release_of("r-1"), vocabulary)
    again = outcome(read_and_price, release_of(given_id), vocabulary)
    assert again == outcome(slowly, release_of(given_id), words())


boxes = st.sampled_from(["CH", "DE"]).map(lambda one: (("country", (one,)),))
spans = st.tuples(st.integers(1, 800_000), st.integers(0, 9)).map(
    lambda one: (one[0], sum(one))
)
some_parts = st.builds(
    Part,
    st.none() | st.tuples(boxes),
    st.none() | st.tuples(spans),
    st.none() | st.tuples(spans),
)


@settings(max_examples=examples(100), deadline=None)
@given(some_parts, some_parts)
def test_a_mechanism_over_another_part_is_a_new_one(before: Part, after: Part) -> None:
    release = {**release_of(), "ml": "all", "purpose": "x"}
    one = read_and_price(release, SHARED).mechanisms[0].mechanism
    first = replace(one, part=before)
    moved, anew = first.over(after), replace(one, part=after)
    for name in Mechanism.__dataclass_fields__:
        assert getattr(moved, name) == getattr(anew, name), name
    assert moved.encoded == encode(moved.plain)
    assert first.encoded == encode(first.plain), "the first is as it was"


def test_a_mechanism_over_more_days_is_priced_anew() -> None:
    vocabulary, found = words(), []
    for days in ("2026-11-03", "2026-11", "2026-11-03", "2026-12-01"):
        release = {**release_of(cost={"day": {"rho": 1}}), "periods": days}
        again = read_and_price(release, vocabulary)
        assert again == slowly(release, words())
        found.append(again.mechanisms[0].losses["user"])
    assert found[0] == found[2] == found[3] != found[1]


def test_a_result_that_is_kept_once_is_not_taken_along() -> None:
    part = Part(groups=((1, 2),))
    assert bytes(part_written(part).groups) == b"[[1,2]]"
    assert bytes(part_written(replace(part, groups=((3, 4),))).groups) == b"[[3,4]]"
    assert part_written(part) is part_written(part)


def test_a_memory_is_bounded() -> None:
    memory: Memo[int, int] = Memo(3)
    for number in range(10):
        assert memory.keep(number, number + 1) == number + 1
        assert memory.get(number) == number + 1
    known = [number for number in range(10) if memory.get(number) is not None]
    assert 1 <= len(known) <= 3


@pytest.mark.parametrize(
    "other",
    [
        np.array([0.25]),
        np.int64(np.float64(0.25).view(np.int64)),
        np.float64(0.25).tobytes(),
        bytearray(np.float64(0.25).tobytes()),
    ],
    ids=["array", "integer", "bytes", "bytearray"],
)
def test_equal_buffers_are_not_one_price(other: Any) -> None:
    def asking(rho: Any) -> Written:
        cost = {"user": {"rho": rho}, "day": {"rho": rho}}
        mechanism = {"mechanism": "declared", "attributes": ["age"], "cost": cost}
        return {"release": "r", "mechanisms": [mechanism]}

    vocabulary = words()
    first = read_and_price(asking(np.float64(0.25)), vocabulary)
    assert read_and_price(asking(0.25), vocabulary) == first
    alone = outcome(read_and_price, asking(other), words())
    assert outcome(read_and_price, asking(other), vocabulary) == alone
    assert alone != first


def test_text_of_a_subclass_is_plain_text() -> None:
    class Aim(StrEnum):
        A = "a"

    class Name(str):
        __slots__ = ()

    def asking(aim: str, name: str) -> Written:
        cost = {"user": {"rho": 1}, "day": {"rho": 1}}
        mechanism = {
            "name": name,
            "mechanism": "declared",
            "attributes": [name],
            "cost": cost,
        }
        return {"release": name, "aim": aim, "mechanisms": [mechanism]}

    plain = read_and_price(asking("a", "age"), words())
    found = read_and_price(asking(Aim.A, Name("age")), words())
    assert found == plain
    assert content_digest(found.release) == content_digest(plain.release)


@pytest.mark.parametrize(
    "change",
    [{"cost": {"user": {"rho": 2}, "day": {"rho": 2}}}, {"where": {"country": "CH"}}],
)
@pytest.mark.parametrize("backwards", [False, True])
def test_what_changes_while_it_is_read_is_known_by_what_was_read(
    monkeypatch: pytest.MonkeyPatch, change: Written, backwards: bool
) -> None:
    vocabulary, before = words(), release_of(name="a", attributes=["country"])
    after = copy.deepcopy(before)
    after["mechanisms"][0].update(change)
    if backwards:
        before, after = after, before
    changing = copy.deepcopy(before)
    described: Written = changing["mechanisms"][0]

    def dumped(value: Any, version: int) -> bytes:
        written = marshal.dumps(value, version)
        if value is described:  # Somebody else is quick.
            described.clear()
            described.update(after["mechanisms"][0])
        return written

    with monkeypatch.context() as patched:
        own = SimpleNamespace(dumps=dumped, loads=marshal.loads)
        patched.setattr(price_cache, "marshal", own)
        found = read_and_price(changing, vocabulary)
    assert found == slowly(before, vocabulary)
    for one in (before, after, {**before, "where": {"country": "DE"}}):
        assert outcome(read_and_price, one, vocabulary) == outcome(slowly, one, words())


def test_of_many_mechanisms_only_new_ones_are_priced() -> None:
    vocabulary = words()
    known = release_of(name="a")["mechanisms"]
    first = read_and_price({"release": "r-1", "mechanisms": known}, vocabulary)
    several = [*known, *release_of(name="b")["mechanisms"]]
    second = read_and_price({"release": "r-2", "mechanisms": several}, vocabulary)
    assert second.mechanisms[0] is first.mechanisms[0]
    assert second.mechanisms[1] == replace(
        first.mechanisms[0], mechanism=second.release.mechanisms[1]
    )
