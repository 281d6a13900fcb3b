"""No word of a release is ignored: keys, kinds, units, labels, attributes, numbers."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, TypeAlias

import pytest

from modicum.core.errors import Code, InputError, Problem
from modicum.core.yaml_reader import read_document
from modicum.release import Label, Release, Vocabulary, parse_release, price

Path: TypeAlias = "tuple[str | int, ...]"

VOCABULARY = Vocabulary(
    frozenset({"age", "diagnosis"}),
    {
        "ml": Label(("none", "black-box"), "none"),
        "audience": Label(("internal", "public"), "public"),
    },
    ("user", "day"),
    "add-remove",
)

#: A release in which every key of the format occurs.
RELEASE: dict[str, Any] = {
    "release": "2026/r:1@x",
    "ml": "black-box",
    "audience": "internal",
    "purpose": "research",
    "requester": "me",
    "dataset": "claims",
    "released_on": "2026-03-01",
    "evidence": "ticket 7",
    "labeled_by": "officer",
    "query": "sha256:" + 64 * "0",
    "epsilon_choice": "dp by data-independent",
    "mechanisms": [
        {
            "name": "noise",
            "mechanism": "gaussian",
            "attributes": ["age"],
            "ml": "none",
            "sensitivity": {"user": {"l2": 1}, "day": {"l2": 0.5}},
            "sigma": 10,
            "sampling": {"unit": "user", "rate": 0.1, "by": "poisson"},
            "cost": {"user": {"rho": 0.5}},
        },
        {
            "mechanism": "laplace",
            "attributes": [],
            "sensitivity": {"user": {"l1": 1}, "day": {"l1": 1}},
            "scale": 2,
        },
        {
            "mechanism": "randomized-response",
            "attributes": ["diagnosis", "age"],
            "truth": 0.75,
            "values": 3,
            "contribution_bound": {"user": 4, "day": 1},
            "public_frame": True,
        },
        {
            "mechanism": "declared",
            "attributes": ["age"],
            "cost": {"user": {"eps": 1, "delta": 1e-9}, "day": {"mu": 0.5}},
        },
    ],
}


def read(text: str) -> Release:
    release = parse_release(read_document(text.encode(), "release.yaml"), VOCABULARY)
    price(release, VOCABULARY)
    return release


def problems(text: str) -> list[Problem]:
    with pytest.raises(InputError) as caught:
        read(text)
    return list(caught.value.problems)


def mappings(value: Any, path: Path = ()) -> Iterator[Path]:
    if isinstance(value, dict):
        yield path
        for key, item in value.items():
            yield from mappings(item, (*path, key))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from mappings(item, (*path, place))


def with_key(path: Path, key: str, value: object) -> str:
    release = copy.deepcopy(RELEASE)
    mapping: Any = release
    for step in path:
        mapping = mapping[step]
    mapping[key] = value
    return json.dumps(release)


def named(path: Path) -> str:
    return ".".join(map(str, path)) or "top"


PATHS = list(mappings(RELEASE))
VALUES: tuple[Any, ...] = (1, "none", True, None, {"eps": 1}, {"l2": 1}, [], {})


def test_the_release_itself_is_valid() -> None:
    release = read(json.dumps(RELEASE))
    assert [m.name for m in release.mechanisms] == [
        "noise",
        "mechanism-2",
        "mechanism-3",
        "mechanism-4",
    ]
    assert release.mechanisms[2].attributes == ("diagnosis", "age")


@pytest.mark.spec("REL-1")
@pytest.mark.spec("REL-2")
@pytest.mark.parametrize("path", PATHS, ids=named)
def test_an_unknown_key_is_an_error_at_its_place(path: Path) -> None:
    by_unit = path and path[-1] in {"sensitivity", "cost", "contribution_bound"}
    code = Code.UNKNOWN_UNIT if by_unit else Code.UNKNOWN_KEY
    for value in VALUES:
        text = with_key(path, "zzz", value)
        (problem,) = (found for found in problems(text) if found.code is code)
        assert problem.mark is not None
        assert problem.mark.column == text.index('"zzz"') + 1


@pytest.mark.spec("REL-1")
@pytest.mark.parametrize(
    ("path", "key"), [(("mechanisms", place), "noise") for place in range(4)]
)
def test_a_key_of_a_later_version_is_refused_as_such(path: Path, key: str) -> None:
    for value in (1, {"user": 1}, [0.1]):
        text = with_key(path, key, value)
        (problem,) = problems(text)
        assert problem.code is Code.NOT_SUPPORTED
        assert f"`{key}`" in problem.message
        assert problem.notes
        assert problem.mark is not None
        assert problem.mark.source[problem.mark.column - 1 :].startswith(f'"{key}"')


@pytest.mark.spec("REL-1")
@pytest.mark.parametrize("key", ["sigma", "noise"])
def test_a_key_of_mechanisms_on_the_release_itself_is_refused(key: str) -> None:
    (problem,) = problems(with_key((), key, "2026-11"))
    assert problem.code is Code.UNKNOWN_KEY


def changed(old: str, new: str) -> str:
    text = json.dumps(RELEASE)
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.spec("REL-2")
@pytest.mark.parametrize(
    ("old", "new", "code", "label"),
    [
        ('"gaussian"', '"gausian"', Code.UNKNOWN_MECHANISM, "gaussian"),
        ('"gaussian"', '"Gaussian"', Code.UNKNOWN_MECHANISM, "gaussian"),
        ('["age"]', '["agee"]', Code.UNKNOWN_ATTRIBUTE, "age"),
        ('["age"]', '["age", "AGE"]', Code.UNKNOWN_ATTRIBUTE, "age"),
        ('["age"]', '["age "]', Code.UNKNOWN_ATTRIBUTE, "age"),
        ('"black-box"', '"blackbox"', Code.UNKNOWN_LABEL_VALUE, "black-box"),
        ('"ml": "none"', '"ml": "nome"', Code.UNKNOWN_LABEL_VALUE, "none"),
        ('"internal"', '"everybody"', Code.UNKNOWN_LABEL_VALUE, ""),
        ('{"user": {"l2"', '{"usr": {"l2"', Code.UNKNOWN_UNIT, "user"),
        ('{"user": {"rho"', '{"users": {"rho"', Code.UNKNOWN_UNIT, "user"),
        ('{"user": 4', '{"User": 4', Code.UNKNOWN_UNIT, "user"),
    ],
)
def test_a_word_outside_the_vocabulary_is_an_error(
    old: str, new: str, code: Code, label: str
) -> None:
    (problem,) = problems(changed(old, new))
    assert problem.code is code
    assert problem.label == (f'did you mean "{label}"?' if label else "")


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('["age"]', "age", Code.WRONG_TYPE),
        ('["age"]', '["age", "age"]', Code.DUPLICATE_NAME),
        ('["age"]', "[1]", Code.WRONG_TYPE),
        ('["age"]', "null", Code.WRONG_TYPE),
        ('"attributes": ["age"], ', "", Code.MISSING_KEY),
        ('"mechanism": "gaussian", ', "", Code.MISSING_KEY),
        ('"sigma": 10', '"sigma": 0', Code.OUT_OF_RANGE),
        ('"sigma": 10', '"sigma": -1', Code.OUT_OF_RANGE),
        ('"sigma": 10', '"sigma": .nan', Code.OUT_OF_RANGE),
        ('"sigma": 10', '"sigma": .inf', Code.OUT_OF_RANGE),
        ('"sigma": 10', '"sigma": "10"', Code.NOT_A_NUMBER),
        ('"sigma": 10', '"sigma": true', Code.NOT_A_NUMBER),
        ('"sigma": 10', '"sigma": null', Code.NOT_A_NUMBER),
        ('"sigma": 10', '"sigma": [10]', Code.NOT_A_NUMBER),
        ('{"l2": 1}', "1", Code.WRONG_TYPE),
        ('{"l2": 1}', "{}", Code.MISSING_KEY),
        ('{"l2": 1}', '{"l1": 1}', Code.MISSING_KEY),
        ('{"l2": 1}', '{"l2": 0}', Code.OUT_OF_RANGE),
        ('"truth": 0.75', '"truth": 1', Code.OUT_OF_RANGE),
        ('"truth": 0.75', '"truth": 0', Code.OUT_OF_RANGE),
        ('"values": 3', '"values": 1', Code.OUT_OF_RANGE),
        ('"values": 3', '"values": 2.5', Code.OUT_OF_RANGE),
        ('"values": 3', '"values": 1000001', Code.OUT_OF_RANGE),
        ('"user": 4', '"user": 0', Code.OUT_OF_RANGE),
        ('"user": 4', '"user": 1.5', Code.OUT_OF_RANGE),
        ('"user": 4', '"user": 1000001', Code.OUT_OF_RANGE),
        ('"public_frame": true', '"public_frame": "yes"', Code.WRONG_TYPE),
        ('"public_frame": true', '"public_frame": 1', Code.WRONG_TYPE),
        ('"delta": 1e-09', '"delta": 0', Code.OUT_OF_RANGE),
        ('"delta": 1e-09', '"delta": 1', Code.OUT_OF_RANGE),
        ('"delta": 1e-09', '"delta": -0.1', Code.OUT_OF_RANGE),
        ('"delta": 1e-09', '"delta": "1e-9"', Code.NOT_A_NUMBER),
        ('"eps": 1,', '"eps": 0,', Code.OUT_OF_RANGE),
        ('{"mu": 0.5}', "{}", Code.NO_MEASURE),
        ('{"mu": 0.5}', '"unlimited"', Code.WRONG_TYPE),
        ('"2026/r:1@x"', '""', Code.BAD_NAME),
        ('"2026/r:1@x"', '"/r"', Code.BAD_NAME),
        ('"2026/r:1@x"', '"r 1"', Code.BAD_NAME),
        ('"2026/r:1@x"', f'"{"r" * 201}"', Code.BAD_NAME),
        ('"2026/r:1@x"', "5", Code.WRONG_TYPE),
        ('"name": "noise"', '"name": "mechanism-3"', Code.DUPLICATE_NAME),
        ('"name": "noise"', '"name": "a b"', Code.BAD_NAME),
        ('"purpose": "research"', '"purpose": 5', Code.WRONG_TYPE),
        ('"purpose": "research"', '"purpose": "\\u001b[2J"', Code.NOT_TEXT),
        ('"purpose": "research"', f'"purpose": "{"x" * 2001}"', Code.TOO_LARGE),
        ('"2026-03-01"', '"last week"', Code.OUT_OF_RANGE),
    ],
)
def test_a_malformed_value_is_an_error_at_its_place(
    old: str, new: str, code: Code
) -> None:
    start = json.dumps(RELEASE).index(old) + 1
    (problem,) = problems(changed(old, new))
    assert problem.code is code
    assert problem.mark is not None
    column = problem.mark.column
    if code is Code.MISSING_KEY:  # The mapping that misses it begins before.
        assert column <= start
    elif code is Code.DUPLICATE_NAME:  # The second one of that name.
        assert column > start
    else:
        assert start <= column < start + len(new)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('"truth": 0.75', '"truth": 0.3', Code.OUT_OF_RANGE),
        (', "public_frame": true', "", Code.COST_NOT_DERIVABLE),
    ],
)
def test_what_is_wrong_whatever_the_unit_is_reported_once(
    old: str, new: str, code: Code
) -> None:
    found = problems(changed(old, new))
    assert [problem.code for problem in found] == [code]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{}", Code.MISSING_KEY),
        ("[]", Code.WRONG_TYPE),
        ("r-1", Code.WRONG_TYPE),
        ("{release: r}", Code.MISSING_KEY),
        ("{release: r, mechanisms: []}", Code.OUT_OF_RANGE),
        ("{release: r, mechanisms: {}}", Code.WRONG_TYPE),
        ("{release: r, mechanisms: [1]}", Code.WRONG_TYPE),
        ("{release: r, mechanisms: [{}]}", Code.MISSING_KEY),
        ("{mechanisms: [{mechanism: declared, attributes: []}]}", Code.MISSING_KEY),
    ],
)
def test_what_is_no_release_is_refused(text: str, code: Code) -> None:
    assert problems(text)[0].code is code


def test_a_release_has_at_most_a_thousand_mechanisms() -> None:
    cost = {unit: {"eps": 1} for unit in VOCABULARY.units}
    one = {"mechanism": "declared", "attributes": [], "cost": cost}
    most = json.dumps({"release": "r", "mechanisms": [one] * 1000})
    assert len(read(most).mechanisms) == 1000
    (problem,) = problems(json.dumps({"release": "r", "mechanisms": [one] * 1001}))
    assert problem.code is Code.OUT_OF_RANGE


def test_all_mistakes_are_reported_at_once_in_the_order_of_the_text() -> None:
    text = """\
release: r 1
ml: open
zzz: 1
mechanisms:
  - {mechanism: gaussian, attributes: [x, y], sigma: 0, foo: 1}
  - {mechanism: gausian, attributes: []}
"""
    found = [(problem.code, problem.mark) for problem in problems(text)]
    assert [(code, mark.line) for code, mark in found if mark] == [
        (Code.BAD_NAME, 1),
        (Code.UNKNOWN_LABEL_VALUE, 2),
        (Code.UNKNOWN_KEY, 3),
        (Code.UNKNOWN_ATTRIBUTE, 5),
        (Code.UNKNOWN_ATTRIBUTE, 5),
        (Code.OUT_OF_RANGE, 5),
        (Code.UNKNOWN_KEY, 5),
        (Code.UNKNOWN_MECHANISM, 6),
    ]


# --- numbers ---

SPELLINGS = [
    *("1e-7", "1E-7", "1.0e-7", "1.e-7", ".1e-6", "+1e-7", "0.0000001", "1e-07"),
    *("10e-8", "+.1E-6", "100.0E-9"),
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_is_exactly_one_number(spelling: str) -> None:
    tiny = Fraction(1, 10**7)
    text = changed('"sigma": 10', f'"sigma": {spelling}')
    text = text.replace('{"rho": 0.5}', '{"rho": 1e300}')
    assert read(text).mechanisms[0].parameters["sigma"] == tiny
    sensitivity = changed('{"l2": 1}', f'{{"l2": {spelling}}}')
    assert read(sensitivity).mechanisms[0].sensitivity["user"] == tiny
    cost = read(changed('"delta": 1e-09', f'"delta": {spelling}')).mechanisms[3].cost
    assert getattr(cost["user"], "delta", None) == tiny
    block = f"release: r\nmechanisms:\n- mechanism: laplace\n  scale: {spelling}\n"
    block += "  attributes: []\n  sensitivity: {user: {l1: 1}, day: {l1: 1}}\n"
    assert read(block).mechanisms[0].parameters["scale"] == tiny


@pytest.mark.parametrize("spelling", ["0.1", "2.675", "0.30000000000000000000001"])
def test_no_digit_passes_through_a_float(spelling: str) -> None:
    text = changed('"sigma": 10', f'"sigma": {spelling}')
    text = text.replace('{"rho": 0.5}', '{"rho": 1e300}')
    assert read(text).mechanisms[0].parameters["sigma"] == Fraction(spelling)


# --- places ---


@pytest.mark.parametrize(
    ("line", "key"), [("    sigma:\n", "sigma"), ("    cost:\n", "cost")]
)
def test_a_key_with_nothing_behind_it_is_pointed_at(line: str, key: str) -> None:
    text = (
        "release: r\nmechanisms:\n  - mechanism: gaussian\n    attributes: [age]\n"
        f"{line}\n# the end\n"
    )
    (problem,) = (found for found in problems(text) if f"`{key}`" in found.message)
    assert problem.mark is not None
    assert problem.mark.line == 5


def test_a_text_that_is_not_closed_is_pointed_at_where_it_opens() -> None:
    text = 'release: r\npurpose: "research\nmechanisms: []\n# the end\n'
    (problem,) = problems(text)
    assert problem.code is Code.YAML_SYNTAX
    assert problem.mark is not None
    assert (problem.mark.line, problem.mark.column) == (2, 10)


def test_a_bare_number_as_a_cost_is_told_that_it_has_no_measure() -> None:
    (problem,) = problems(changed('{"mu": 0.5}', "0.5"))
    assert "eps" in problem.help + " ".join(problem.notes)
