"""The JSON Schema of the part of the data that a release reads, against the reader."""

from __future__ import annotations

import json
from typing import Any

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from modicum.core.document import from_python
from modicum.core.errors import InputError
from modicum.policy.json_schema.release import release_schema
from modicum.release import Partition, Population, Unit, Vocabulary, parse_release

WORDS = Vocabulary(
    frozenset({"page"}),
    {},
    ("day",),
    "add-remove",
    {"day": Unit("day", "id", "day", "at")},
    Population(
        {
            "country": Partition("country", ("CH", "DE"), 0, 1, (), None),
            "born": Partition("born", None, 1900, 2030, (), None),
        },
        frozenset({"day"}),
    ),
)

ends: st.SearchStrategy[Any] = st.sampled_from(
    [1990, 2000, 3, -1, "CH", "2026", "2026-11", "2026-11-03", "2026-W14", "x", 2026]
)
written = st.recursive(
    ends,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(
            st.sampled_from(["from", "to", "country", "born", "zzz"]), inner, max_size=2
        ),
    ),
    max_leaves=4,
)
KEYS = ("where", "periods", "groups")


def release(part: dict[str, Any]) -> dict[str, Any]:
    one = {"mechanism": "declared", "attributes": [], "cost": {"day": {"eps": 1}}}
    return {"release": "r", "mechanisms": [{**one, **part}], **part}


@pytest.mark.parametrize("words", [None, WORDS])
@settings(max_examples=examples(400), deadline=None)
@given(part=st.dictionaries(st.sampled_from(KEYS), written, min_size=1, max_size=1))
def test_the_schema_accepts_what_is_read(
    words: Vocabulary | None, part: dict[str, Any]
) -> None:
    described = release(part)
    try:
        parse_release(from_python(described), WORDS)
    except InputError:
        return
    schema = Draft202012Validator(release_schema(words))
    assert schema.is_valid(json.loads(json.dumps(described)))


@pytest.mark.parametrize(
    "part",
    [
        {"where": {}},
        {"where": []},
        {"where": "CH"},
        {"where": {"country": []}},
        {"where": {"country": "FR"}},
        {"where": {"born": 1899}},
        {"where": {"born": {"until": 1950}}},
        {"periods": "2026-11-03T10:00"},
        {"periods": True},
        {"periods": {}},
        {"groups": -1},
        {"groups": "3"},
    ],
)
def test_the_schema_sees_mistakes_in_parts(part: dict[str, Any]) -> None:
    assert not Draft202012Validator(release_schema(WORDS)).is_valid(release(part))
