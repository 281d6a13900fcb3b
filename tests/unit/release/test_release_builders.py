"""Describing a release from Python: the words, numbers and errors of a file."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import modicum as mo
from modicum.core.errors import Code, InputError, ModicumError, Problem
from modicum.core.yaml_reader import read_document
from modicum.release import (
    Label,
    Release,
    Vocabulary,
    content_digest,
    parse_release,
    price,
)

VOCABULARY = Vocabulary(
    frozenset({"age", "gps"}),
    {"ml": Label(("none", "black-box"), "none")},
    ("user",),
    "add-remove",
)


def read(draft: mo.Release) -> Release:
    release = parse_release(draft.to_node(), VOCABULARY)
    price(release, VOCABULARY)
    return release


def one(mechanism: dict[str, object], **fields: object) -> mo.Release:
    return mo.Release("r-1", mechanisms=[mechanism], **fields)


def noise(**changed: Any) -> dict[str, object]:
    given = {"attributes": ["age"], "sensitivity": {"user": mo.l2(1)}, "sigma": 10}
    return mo.gaussian(**{**given, **changed})


def from_file(text: str) -> Release:
    return parse_release(read_document(text.encode(), "release.yaml"), VOCABULARY)


@pytest.mark.spec("REL-5")
@pytest.mark.parametrize(
    ("built", "written"),
    [
        (
            noise(discrete=True),
            "{mechanism: discrete-gaussian, attributes: [age],"
            " sensitivity: {user: {l2: 1}}, sigma: 10}",
        ),
        (
            mo.laplace(
                attributes=["age"],
                sensitivity={"user": mo.l1(1)},
                scale=10,
                discrete=True,
            ),
            "{mechanism: discrete-laplace, attributes: [age],"
            " sensitivity: {user: {l1: 1}}, scale: 10}",
        ),
        (
            noise(),
            "{mechanism: gaussian, attributes: [age], sensitivity: {user: {l2: 1}},"
            " sigma: 10}",
        ),
        (
            noise(name="n", ml="black-box", cost={"user": mo.zcdp(0.5)}),
            "{mechanism: gaussian, attributes: [age], sensitivity: {user: {l2: 1}},"
            " sigma: 10, name: n, ml: black-box, cost: {user: {rho: 0.5}}}",
        ),
        (
            mo.laplace(
                attributes=("age", "gps"), sensitivity={"user": mo.l1(0.1)}, scale=2.5
            ),
            "{mechanism: laplace, attributes: [age, gps],"
            " sensitivity: {user: {l1: 0.1}}, scale: 2.5}",
        ),
        (
            mo.randomized_response(
                attributes=[],
                truth=0.54,
                values=3,
                contribution_bound={"user": 2},
                public_frame=True,
            ),
            "{mechanism: randomized-response, attributes: [], truth: 0.54, values: 3,"
            " contribution_bound: {user: 2}, public_frame: true}",
        ),
        (
            mo.declared(attributes=["gps"], cost={"user": mo.pure_dp(1)}),
            "{mechanism: declared, attributes: [gps], cost: {user: {eps: 1}}}",
        ),
        (
            mo.declared(attributes=["gps"], cost={"user": mo.approx_dp(0.1, 1e-9)}),
            "{mechanism: declared, attributes: [gps],"
            " cost: {user: {eps: 0.1, delta: 1e-9}}}",
        ),
        (
            mo.declared(attributes=["gps"], cost={"user": mo.gdp(Decimal("0.3"))}),
            "{mechanism: declared, attributes: [gps], cost: {user: {mu: 0.3}}}",
        ),
    ],
)
def test_a_builder_says_what_a_file_says(
    built: dict[str, object], written: str
) -> None:
    draft = one(built, purpose="research", ml="none")
    text = (
        "release: r-1\npurpose: research\nml: none\nmechanisms:\n  - " + written + "\n"
    )
    described, filed = read(draft), from_file(text)
    assert content_digest(described) == content_digest(filed)
    assert described.mechanisms[0].parameters == filed.mechanisms[0].parameters
    assert price(described, VOCABULARY).mechanisms[0].losses == (
        price(filed, VOCABULARY).mechanisms[0].losses
    )
    text = json.dumps(draft.to_dict(), default=float)
    assert content_digest(from_file(text)) == content_digest(filed)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (0.1, Fraction(1, 10)),
        (1e-7, Fraction(1, 10**7)),
        (2.675, Fraction(2675, 1000)),
        (1e22, Fraction(10**22)),
        (5e-324, Fraction(5, 10**324)),
        (3, Fraction(3)),
        (Decimal("0.1"), Fraction(1, 10)),
        (Decimal("1E-7"), Fraction(1, 10**7)),
        (Decimal("1e-400"), Fraction(1, 10**400)),
        (Fraction(1, 3), Fraction(1, 3)),
        (Fraction(1, 8), Fraction(1, 8)),
        (Fraction(0.1), Fraction(0.1)),
    ],
)
def test_a_number_means_what_it_shows(given: Any, meant: Fraction) -> None:
    release = read(one(noise(sigma=given)))
    assert release.mechanisms[0].parameters["sigma"] == meant


class Odd:
    pass


NO_NUMBERS: list[tuple[object, Code]] = [
    (float("nan"), Code.OUT_OF_RANGE),
    (float("inf"), Code.OUT_OF_RANGE),
    (float("-inf"), Code.OUT_OF_RANGE),
    (Decimal("NaN"), Code.OUT_OF_RANGE),
    (Decimal("sNaN"), Code.OUT_OF_RANGE),
    (Decimal("Infinity"), Code.OUT_OF_RANGE),
    (Decimal("1e-401"), Code.OUT_OF_RANGE),
    (0, Code.OUT_OF_RANGE),
    (-0.0, Code.OUT_OF_RANGE),
    (-1, Code.OUT_OF_RANGE),
    (10**70, Code.OUT_OF_RANGE),
    (10**5000, Code.OUT_OF_RANGE),
    (Fraction(1, 2**20000), Code.OUT_OF_RANGE),
    (Fraction(10**5000, 3), Code.OUT_OF_RANGE),
    (True, Code.NOT_A_NUMBER),
    ("10", Code.NOT_A_NUMBER),
    ("1/3", Code.NOT_A_NUMBER),
    (b"10", Code.WRONG_TYPE),
    ([10], Code.NOT_A_NUMBER),
    ({"value": 10}, Code.NOT_A_NUMBER),
    (Odd(), Code.WRONG_TYPE),
    (1j, Code.WRONG_TYPE),
    ({1}, Code.WRONG_TYPE),
    (float, Code.WRONG_TYPE),
]


def refusal(mechanism: dict[str, object], **fields: object) -> Problem:
    with pytest.raises(InputError) as caught:
        read(one(mechanism, **fields))
    return caught.value.problems[0]


def named(value: object) -> str:
    return f"{type(value).__name__}"


@pytest.mark.parametrize(
    ("value", "code"),
    NO_NUMBERS,
    ids=lambda v: v.name if isinstance(v, Code) else named(v),
)
def test_what_is_no_positive_number_is_refused_without_a_place(
    value: Any, code: Code
) -> None:
    places: list[dict[str, object]] = [
        noise(sigma=value),
        noise(sensitivity={"user": mo.l2(value)}),
        mo.laplace(attributes=[], sensitivity={"user": mo.l1(value)}, scale=1),
        mo.laplace(attributes=[], sensitivity={"user": mo.l1(1)}, scale=value),
        mo.randomized_response(attributes=[], truth=value),
        mo.declared(attributes=[], cost={"user": mo.pure_dp(value)}),
        mo.declared(attributes=[], cost={"user": mo.approx_dp(value, 0.1)}),
        mo.declared(attributes=[], cost={"user": mo.approx_dp(1, value)}),
        mo.declared(attributes=[], cost={"user": mo.zcdp(value)}),
        mo.declared(attributes=[], cost={"user": mo.gdp(value)}),
    ]
    for mechanism in places:
        problem = refusal(mechanism)
        assert problem.code is code
        assert problem.mark is None
        assert problem.render().startswith(f"error[{code.value}]: ")
        assert "-->" not in problem.render()


@pytest.mark.parametrize("value", [1, 1.5, 2, -0.1, 0])
def test_a_probability_from_python_lies_strictly_between_0_and_1(value: float) -> None:
    for mechanism in (
        mo.randomized_response(attributes=[], truth=value),
        mo.declared(attributes=[], cost={"user": mo.approx_dp(1, value)}),
    ):
        assert refusal(mechanism).code is Code.OUT_OF_RANGE


def test_none_leaves_a_key_out_and_what_is_missing_is_missed() -> None:
    assert refusal(noise(sigma=None)).code is Code.COST_MISSING
    assert refusal(noise(sensitivity=None)).code is Code.MISSING_KEY
    assert refusal(noise(sigma=None, sensitivity=None)).code is Code.COST_MISSING
    assert refusal(noise(ml=None)).code is Code.WRONG_TYPE
    assert refusal(noise(), purpose=None).code is Code.WRONG_TYPE


UNFIT: list[tuple[dict[str, Any], Code]] = [
    ({"attributes": "age"}, Code.WRONG_TYPE),
    ({"attributes": b"age"}, Code.WRONG_TYPE),
    ({"attributes": [1]}, Code.WRONG_TYPE),
    ({"attributes": [None]}, Code.WRONG_TYPE),
    ({"attributes": [Odd()]}, Code.WRONG_TYPE),
    ({"attributes": ["x"]}, Code.UNKNOWN_ATTRIBUTE),
    ({"attributes": ["age", "age"]}, Code.DUPLICATE_NAME),
    ({"sensitivity": 1}, Code.WRONG_TYPE),
    ({"sensitivity": {"user": 1}}, Code.WRONG_TYPE),
    ({"sensitivity": {"usr": mo.l2(1)}}, Code.UNKNOWN_UNIT),
    ({"sensitivity": {1: mo.l2(1)}}, Code.WRONG_TYPE),
    ({"sensitivity": {True: mo.l2(1)}}, Code.WRONG_TYPE),
    ({"sensitivity": {("user",): mo.l2(1)}}, Code.WRONG_TYPE),
    ({"sensitivity": {"user": mo.l1(1)}}, Code.MISSING_KEY),
    ({"ml": "open"}, Code.UNKNOWN_LABEL_VALUE),
    ({"ml": True}, Code.WRONG_TYPE),
    ({"cost": {"user": 1}}, Code.NO_MEASURE),
    ({"cost": {1: {}, "1": {}}}, Code.DUPLICATE_KEY),
    ({"cost": {}, "name": "a b"}, Code.BAD_NAME),
    ({"name": 1}, Code.WRONG_TYPE),
    ({"where": {"age": 1}}, Code.UNKNOWN_ATTRIBUTE),
    ({"periods": "2026"}, Code.KEYS_CONFLICT),
    ({"sampling": 0.1}, Code.WRONG_TYPE),
    ({"noise": 0.1}, Code.NOT_SUPPORTED),
    ({"foo": 1}, Code.UNKNOWN_KEY),
    ({"foo": Odd()}, Code.WRONG_TYPE),
]


@pytest.mark.parametrize(("changed", "code"), UNFIT)
def test_what_does_not_fit_is_refused_without_a_place(
    changed: dict[str, Any], code: Code
) -> None:
    problem = refusal(noise(**changed))
    assert problem.code is code
    assert problem.mark is None


@pytest.mark.parametrize("attributes", [None, 5, Odd()])
def test_attributes_that_are_no_list_have_a_code(attributes: Any) -> None:
    with pytest.raises(ModicumError):
        read(one(noise(attributes=attributes)))


@pytest.mark.parametrize(
    "mechanisms",
    [None, 5, Odd(), [None], [5], ["gaussian"], "gaussian", [["a"]], noise()],
)
def test_mechanisms_that_are_none_have_a_code(mechanisms: Any) -> None:
    with pytest.raises(ModicumError):
        read(mo.Release("r-1", mechanisms=mechanisms))


@pytest.mark.parametrize(
    "identifier", [None, 5, True, "", "a b", Odd(), "\ud800", b"r"]
)
def test_an_id_that_is_none_has_a_code(identifier: Any) -> None:
    with pytest.raises(InputError):
        read(mo.Release(identifier, mechanisms=[noise()]))


@pytest.mark.parametrize(
    "text", ["\ud800", "a\udfff", "\x00", "\x1b[2J", "\u202e", "\x85"]
)
def test_a_text_that_no_file_could_hold_is_refused(text: str) -> None:
    """It could not be encoded, or would act on somebody's terminal."""
    assert refusal(noise(), purpose=text).code is Code.NOT_TEXT


def test_endless_values_are_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    inner: dict[str, Any] = {}
    inner["inner"] = inner
    for each in (endless, inner):
        assert refusal(noise(cost=each)).code is Code.TOO_LARGE


anything = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.decimals(),
        st.fractions(),
        st.complex_numbers(),
        st.text(max_size=5),
        st.binary(max_size=3),
        st.dates(),
        st.sampled_from([Odd(), Odd, range(3), 10**400, "age", "user", "l2"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner),
        st.frozensets(st.text(max_size=2), max_size=2),
        st.dictionaries(
            st.sampled_from(["user", "l2", "eps", "rho", 1, None, True, "zzz"]),
            inner,
            max_size=2,
        ),
    ),
    max_leaves=4,
)
WORDS = ("attributes", "sensitivity", "sigma", "cost", "name", "ml", "mechanism", "zzz")


@settings(max_examples=200)
@given(
    st.dictionaries(st.sampled_from(WORDS), anything, max_size=3), anything, anything
)
def test_no_value_of_any_type_crashes_the_reader(
    changed: dict[str, Any], identifier: Any, purpose: Any
) -> None:
    drafts = [
        one(noise(**changed)),
        mo.Release(identifier, mechanisms=[noise()], purpose=purpose),
        mo.Release("r-1", mechanisms=[noise(), purpose]),
    ]
    for draft in drafts:
        try:
            release = read(draft)
        except InputError as error:
            assert error.render().startswith("error[MOD")  # noqa: PT017
        else:
            assert len(content_digest(release)) == 64


def test_a_draft_does_not_change_with_what_it_was_made_of() -> None:
    mechanisms = [noise()]
    draft = mo.Release("r-1", mechanisms=mechanisms, purpose="a")
    before = content_digest(read(draft))
    mechanisms.append(noise())
    draft.to_dict()["purpose"] = "b"
    assert content_digest(read(draft)) == before
    with pytest.raises(AttributeError):
        draft.release = "r-2"  # type: ignore[misc]
