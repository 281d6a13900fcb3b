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
from modicum.core.document import from_python
from modicum.core.errors import Code, InputError
from modicum.core.rationals import number_text
from modicum.core.yaml_reader import read_document
from modicum.policy.json_schema.release import release_schema
from modicum.release import (
    Label,
    Vocabulary,
    content_digest,
    parse_release,
    read_and_price,
)
from modicum.release.utility import (
    DIGITS_MAX,
    UTILITY_MAX,
    exact_utility,
    read_utility,
    stated_utility,
)

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


# --- what a plan can hold -------------------------------------------------------------


@pytest.mark.parametrize(
    "written", ["1e-40", f"0.{'1' * 40}", "1e9", "999999999." + "9" * 40, "0e400"]
)
def test_a_utility_of_so_many_digits_is_exact(written: str) -> None:
    found = utility_in(with_utility(written))
    assert found == Fraction(written)
    assert exact_utility(number_text(found)) == found


@pytest.mark.parametrize(
    "written", ["1e-41", "1e-50", f"0.{'1' * 41}", "1e-400", "0.5e-40"]
)
def test_a_utility_of_more_digits_is_refused_where_it_stands(written: str) -> None:
    node = read_document(with_utility(written), "release.yaml")
    with pytest.raises(InputError) as caught:
        parse_release(node, WORDS)
    (problem,) = caught.value.problems
    assert problem.code is Code.OUT_OF_RANGE
    assert problem.mark is not None
    assert "`utility` must be a number with fewer digits" in problem.message
    assert "at most 40" in problem.notes[0]


@pytest.mark.parametrize(
    "utility",
    [
        Fraction(1, 10**41),
        Fraction(1, 2**41),
        Fraction(1, 2**14_000),
        Fraction(1, 3**90),
        Fraction(10**45, 3 * 10**39 + 1),
        5e-324,
        Decimal("1e-41"),
    ],
)
def test_a_long_number_from_python_is_refused_alike(utility: object) -> None:
    with pytest.raises(InputError, match=r"fewer digits|too many digits"):
        read_and_price(RELEASE | {"utility": utility}, WORDS)


@pytest.mark.parametrize(
    "text",
    ["1/0", "1/00", "", "-1", "1e5", "1.", ".5", "1/2/3", "1.5/2", "\u0661", "1\n"],
)
def test_what_no_plan_holds(text: str) -> None:
    assert exact_utility(text) is None


@given(
    st.fractions(0, UTILITY_MAX)
    | st.floats(0, UTILITY_MAX).map(lambda one: Fraction(str(one)))
    | st.builds(
        Fraction,
        st.integers(0, 10**43),
        st.integers(1, 10**43),
    )
    | st.builds(
        lambda top, twos, fives: Fraction(top, 2**twos * 5**fives),
        st.integers(0, 10**9),
        st.integers(0, 140),
        st.integers(0, 60),
    )
)
@settings(max_examples=examples(300), deadline=None)
def test_what_is_accepted_can_be_written_and_read_again(utility: Fraction) -> None:
    text = number_text(utility)
    # The oracle: the digits of each part, counted.
    parts = text.replace("/", ".").split(".")
    fits = utility <= UTILITY_MAX and all(len(one) <= DIGITS_MAX for one in parts)
    try:
        accepted = read_utility(from_python(utility)) == utility
    except InputError:
        accepted = False
    assert accepted is fits
    assert (exact_utility(text) == utility) or not fits
