"""What a release is worth: read exactly, and no part of what is described."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

import modicum as mo
from modicum.core.errors import Code, InputError
from modicum.core.exact import number_text
from modicum.core.yaml_reader import read_document
from modicum.policy.json_schema.of_release import release_schema
from modicum.release import (
    Label,
    Vocabulary,
    content_digest,
    parse_release,
    read_and_price,
)
from modicum.release.utility import UTILITY_MAX, read_utility, stated_utility

WORDS = Vocabulary(frozenset({"age"}), {}, ("user",), "add-remove")
LABELED = Vocabulary(
    frozenset({"age"}),
    {"utility": Label(("low", "high"), "low")},
    ("user",),
    "add-remove",
)
RELEASE: dict[str, Any] = {
    "release": "r-1",
    "mechanisms": [
        {"mechanism": "declared", "attributes": ["age"], "cost": {"user": {"eps": 1}}}
    ],
}
CONTENT = content_digest(read_and_price(RELEASE, WORDS).release)


def with_utility(written: str) -> bytes:
    """Return the release as a file in which the utility is written so."""
    rest = json.dumps(RELEASE)[1:]
    return f'{{"utility": {written}, {rest}'.encode()


def utility_in(text: bytes) -> Fraction:
    node = read_document(text, "release.yaml")
    stated = stated_utility(node, WORDS)
    assert stated is not None
    return read_utility(stated)


@given(
    st.integers(0, UTILITY_MAX * 10**6).map(lambda n: Fraction(n, 10**6))
    | st.sampled_from([Fraction(0), Fraction(UTILITY_MAX), Fraction(1, 10**30)])
)
@settings(max_examples=examples(60), deadline=None)
def test_a_utility_is_exact_and_changes_no_content(utility: Fraction) -> None:
    text = with_utility(number_text(utility))
    assert utility_in(text) == utility
    release = parse_release(read_document(text, "release.yaml"), WORDS)
    assert content_digest(release) == CONTENT
    plain = RELEASE | {"utility": Decimal(number_text(utility))}
    assert content_digest(read_and_price(plain, WORDS).release) == CONTENT
    draft = mo.Release("r-1", mechanisms=RELEASE["mechanisms"], utility=utility)
    assert content_digest(read_and_price(draft, WORDS).release) == CONTENT
    stated = stated_utility(draft, WORDS)
    assert stated is not None
    assert read_utility(stated) == utility


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("-0.001", Code.OUT_OF_RANGE),
        ("1000000000.1", Code.OUT_OF_RANGE),
        ("1e10", Code.OUT_OF_RANGE),
        (".nan", Code.OUT_OF_RANGE),
        (".inf", Code.OUT_OF_RANGE),
        ("1e500", Code.OUT_OF_RANGE),
        ('"3"', Code.NOT_A_NUMBER),
        ("high", Code.NOT_A_NUMBER),
        ("true", Code.NOT_A_NUMBER),
        ("[1]", Code.NOT_A_NUMBER),
        ("{eps: 1}", Code.NOT_A_NUMBER),
        ("null", Code.WRONG_TYPE),
    ],
)
def test_what_is_no_utility_is_refused_at_its_place(written: str, code: Code) -> None:
    node = read_document(with_utility(written), "release.yaml")
    with pytest.raises(InputError) as caught:
        parse_release(node, WORDS)
    (problem,) = caught.value.problems
    assert problem.code is code
    assert problem.mark is not None
    assert "`utility`" in problem.message


@pytest.mark.parametrize("utility", [-1, 10**9 + 1, "3", True, None, [1], float("nan")])
def test_python_values_are_refused_alike(utility: object) -> None:
    with pytest.raises(InputError, match="utility"):
        read_and_price(RELEASE | {"utility": utility}, WORDS)


def test_a_mechanism_has_no_utility() -> None:
    mechanism = RELEASE["mechanisms"][0] | {"utility": 1}
    with pytest.raises(InputError, match="unknown key `utility`"):
        read_and_price(RELEASE | {"mechanisms": [mechanism]}, WORDS)


def test_a_label_of_that_name_is_that_label() -> None:
    labeled = RELEASE | {"utility": "high"}
    assert stated_utility(labeled, LABELED) is None
    assert read_and_price(labeled, LABELED).labels == {"utility": "high"}
    with pytest.raises(InputError):
        read_and_price(RELEASE | {"utility": 3}, LABELED)


def test_a_release_that_states_none() -> None:
    assert stated_utility(RELEASE, WORDS) is None
    assert stated_utility(read_document(b"[]", "f"), WORDS) is None
    draft = mo.Release("r-1", mechanisms=RELEASE["mechanisms"])
    assert stated_utility(draft, WORDS) is None


@pytest.mark.parametrize("vocabulary", [None, WORDS])
def test_the_schema_knows_it(vocabulary: Vocabulary | None) -> None:
    schema = Draft202012Validator(release_schema(vocabulary))
    for good in (0, 2.5, 10**9):
        assert schema.is_valid(RELEASE | {"utility": good})
    assert schema.is_valid({"requests": [RELEASE | {"utility": 7}]})
    for bad in (-1, 10**9 + 1, "3", None):
        assert not schema.is_valid(RELEASE | {"utility": bad})
    labels = Draft202012Validator(release_schema(LABELED))
    assert labels.is_valid(RELEASE | {"utility": "low"})
    assert not labels.is_valid(RELEASE | {"utility": 3})
