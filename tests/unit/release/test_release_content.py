"""The content digest, and labels: what counts as the same release."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import modicum as mo
from modicum.core.document import from_python
from modicum.core.yaml_reader import read_document
from modicum.release import (
    Label,
    PricedRelease,
    Release,
    Vocabulary,
    content_digest,
    parse_release,
    price,
)

Written: TypeAlias = dict[str, Any]

ATTRIBUTES = ("age", "clinic", "diagnosis", "gps")
LABELS = {"ml": ("none", "black-box"), "audience": ("public", "internal")}
UNITS = ("user", "day")
VOCABULARY = Vocabulary(
    frozenset(ATTRIBUTES),
    {name: Label(values, values[0]) for name, values in LABELS.items()},
    UNITS,
    "add-remove",
)


def read(text: str) -> Release:
    node = read_document(text.encode(), "release.yaml")
    return parse_release(node, VOCABULARY)


def digest(text: str) -> str:
    return content_digest(read(text))


# --- generated releases ---

numbers = st.integers(1, 10**6).map(lambda n: Decimal(n) / 1000)
words = st.text(
    st.characters(
        codec="utf-8", exclude_categories=["Cc", "Cs", "Cf", "Zl", "Zp", "Cn"]
    ),
    max_size=12,
)
names = st.from_regex(r"[a-z][a-z0-9_.+-]{0,8}", fullmatch=True)


def by_unit(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(dict.fromkeys(UNITS, values))


def one_key(key: str) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({key: numbers})


labels = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(values) for name, values in LABELS.items()}
)
costs = by_unit(
    st.one_of(
        *(one_key(key) for key in ("eps", "rho", "mu")),
        st.fixed_dictionaries(
            {
                "eps": numbers,
                "delta": st.sampled_from([Decimal("1e-7"), Decimal("0.5")]),
            }
        ),
    )
)
kinds: dict[str, st.SearchStrategy[Any]] = {
    "gaussian": st.fixed_dictionaries(
        {"sigma": numbers, "sensitivity": by_unit(one_key("l2"))}
    ),
    "laplace": st.fixed_dictionaries(
        {"scale": numbers, "sensitivity": by_unit(one_key("l1"))}
    ),
    "randomized-response": st.fixed_dictionaries(
        {
            "truth": st.integers(501, 999).map(lambda n: Decimal(n) / 1000),
            "contribution_bound": by_unit(st.integers(1, 9)),
            "public_frame": st.just(True),
        },
        optional={"values": st.integers(2, 9)},
    ),
    "declared": st.fixed_dictionaries({"cost": costs}),
}


@st.composite
def mechanisms(draw: st.DrawFn, number: int) -> Written:
    kind = draw(st.sampled_from(sorted(kinds)))
    found = {
        "mechanism": kind,
        "attributes": draw(st.lists(st.sampled_from(ATTRIBUTES), unique=True)),
        **draw(kinds[kind]),
        **draw(labels),
    }
    if draw(st.booleans()):
        found["name"] = f"{draw(names)}{number}"
    return found


@st.composite
def releases(draw: st.DrawFn) -> Written:
    texts = st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("purpose", "requester", "dataset"), words)
    )
    return {
        "release": draw(names),
        **draw(labels),
        **draw(texts),
        "mechanisms": [
            draw(mechanisms(number)) for number in range(draw(st.integers(1, 3)))
        ],
    }


def as_json(value: Any, *, indent: int | None = None) -> str:
    return json.dumps(value, default=float, indent=indent, ensure_ascii=indent is None)


def as_yaml(draw: st.DrawFn, value: Any, indent: int) -> str:
    """Return block YAML with other quotes and other spellings of the numbers."""
    if isinstance(value, dict):
        lines = [
            f"{' ' * indent}{key}: {as_yaml(draw, item, indent + 2)}"
            for key, item in draw(st.permutations(list(value.items())))
        ]
        return "\n" + "\n".join(lines) if lines else "{}"
    if isinstance(value, list):
        lines = [f"{' ' * indent}- {as_yaml(draw, v, indent + 2)}" for v in value]
        return "\n" + "\n".join(lines) if lines else "[]"
    if isinstance(value, bool):
        return draw(st.sampled_from([str(value), str(value).lower()]))
    if isinstance(value, int | Decimal):
        forms = (f"{value}", f"{value:f}", f"{value:e}", f"+{value}", f"{value:f}0e0")
        return str(draw(st.sampled_from(forms if "." in forms[1] else forms[:4])))
    text: str = value
    if "'" in text or draw(st.booleans()):
        return json.dumps(text)
    return f"'{text}'"


def as_builders(release: Written) -> mo.Release:
    build: dict[str, Any] = {
        "gaussian": mo.gaussian,
        "laplace": mo.laplace,
        "randomized-response": mo.randomized_response,
        "declared": mo.declared,
    }
    described = []
    for mechanism in deepcopy(release["mechanisms"]):
        kind = mechanism.pop("mechanism")
        described.append(build[kind](**mechanism))
    rest = {k: v for k, v in release.items() if k not in {"release", "mechanisms"}}
    return mo.Release(release["release"], mechanisms=described, **rest)


@pytest.mark.spec("REL-5")
@settings(max_examples=60)
@given(st.data())
def test_yaml_json_and_python_say_the_same(data: st.DataObject) -> None:
    release = data.draw(releases())

    @st.composite
    def yaml(draw: st.DrawFn) -> str:
        return as_yaml(draw, release, 0)

    expected = content_digest(parse_release(from_python(release), VOCABULARY))
    assert digest(as_json(release)) == expected
    assert digest(as_json(release, indent=2)) == expected
    assert digest(data.draw(yaml())) == expected
    draft = as_builders(release)
    assert content_digest(parse_release(draft.to_node(), VOCABULARY)) == expected
    floats = json.loads(as_json(release))
    assert content_digest(parse_release(from_python(floats), VOCABULARY)) == expected


def changes(release: Written) -> Iterator[Written]:
    """Yield the release with one of its leaves changed, or left out."""
    yield {**release, "release": release["release"] + "x"}
    for key in ("purpose", "requester", "dataset"):
        if key in release:
            yield {**release, key: release[key] + "."}
            yield {k: v for k, v in release.items() if k != key}
        else:
            yield {**release, key: "x"}
    for place, mechanism in enumerate(release["mechanisms"]):
        for other in changed_mechanisms(mechanism):
            described = list(release["mechanisms"])
            described[place] = other
            yield {**release, "mechanisms": described}
    if len(release["mechanisms"]) > 1:
        named = [
            {"name": f"m{place}", **mechanism}
            for place, mechanism in enumerate(release["mechanisms"])
        ]
        yield {**release, "mechanisms": named[::-1]}


def changed_mechanisms(mechanism: Written) -> Iterator[Written]:
    yield {**mechanism, "name": "renamed"}
    for attribute in ATTRIBUTES:
        if attribute not in mechanism["attributes"]:
            yield {**mechanism, "attributes": [*mechanism["attributes"], attribute]}
    if mechanism["attributes"]:
        yield {**mechanism, "attributes": mechanism["attributes"][1:]}
    for key in ("sigma", "scale"):
        if key in mechanism:
            yield {**mechanism, key: mechanism[key] + Decimal("1e-12")}
    if "public_frame" in mechanism:
        yield {k: v for k, v in mechanism.items() if k != "public_frame"}
    for group in ("sensitivity", "contribution_bound", "cost"):
        for unit, value in mechanism.get(group, {}).items():
            other: Any = value + 1 if isinstance(value, int) else None
            if isinstance(value, dict):
                key = "eps" if "eps" in value else next(iter(value))
                other = {**value, key: value[key] * 2}
            yield {**mechanism, group: {**mechanism[group], unit: other}}
            rest = {k: v for k, v in mechanism[group].items() if k != unit}
            yield {**mechanism, group: rest}


@pytest.mark.spec("REL-5")
@settings(max_examples=40)
@given(releases())
def test_every_change_is_another_content(release: Written) -> None:
    described = [release, *changes(release)]
    digests = [
        content_digest(parse_release(from_python(one), VOCABULARY)) for one in described
    ]
    assert len(set(digests)) == len(digests)


@pytest.mark.spec("REL-5")
def test_labels_in_force_make_a_difference_and_where_they_are_written_does_not() -> (
    None
):
    base = {"mechanism": "declared", "attributes": [], "cost": {"user": {"eps": 1}}}

    def content(of_release: Written, of_mechanism: Written) -> str:
        release = {
            "release": "r",
            **of_release,
            "mechanisms": [{**base, **of_mechanism}],
        }
        return content_digest(parse_release(from_python(release), VOCABULARY))

    black_box = {"ml": "black-box"}
    assert len({content({}, {}), content({}, black_box), content(black_box, {})}) == 3
    assert content(black_box, {}) == content(black_box, black_box)
    assert content(black_box, {"ml": "none"}) != content(black_box, {})


@pytest.mark.spec("REL-5")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("[age, gps]", "[gps, age]"),  # Attributes are a set.
        ("[age, gps]", "\n    - age\n    - gps"),
    ],
)
def test_the_order_of_attributes_says_nothing(one: str, other: str) -> None:
    text = "release: r\nmechanisms:\n  - mechanism: declared\n    attributes: {}\n"
    assert digest(text.format(one)) == digest(text.format(other))


# --- labels ---


def priced(of_release: Written, *of_mechanisms: Written) -> PricedRelease:
    described = [
        {
            "mechanism": "declared",
            "attributes": [],
            "cost": {unit: {"eps": 1} for unit in UNITS},
            **own,
        }
        for own in of_mechanisms
    ]
    release = {"release": "r", **of_release, "mechanisms": described}
    return price(parse_release(from_python(release), VOCABULARY), VOCABULARY)


@pytest.mark.spec("REL-6")
@pytest.mark.parametrize(
    ("of_release", "of_mechanism", "whole", "one"),
    [
        ({}, {}, "none public", "none public"),
        ({"ml": "black-box"}, {}, "black-box public", "black-box public"),
        ({}, {"ml": "black-box"}, "none public", "black-box public"),
        ({"ml": "black-box"}, {"ml": "none"}, "black-box public", "none public"),
        (
            {"audience": "internal"},
            {"ml": "black-box"},
            "none internal",
            "black-box internal",
        ),
    ],
)
def test_labels_are_inherited_overridden_and_completed(
    of_release: Written, of_mechanism: Written, whole: str, one: str
) -> None:
    found = priced(of_release, of_mechanism)
    assert dict(found.labels) == dict(zip(LABELS, whole.split(), strict=True))
    assert dict(found.mechanisms[0].labels) == dict(
        zip(LABELS, one.split(), strict=True)
    )


@pytest.mark.spec("REL-6")
def test_a_label_of_one_mechanism_does_not_reach_another() -> None:
    found = priced({}, {"ml": "black-box"}, {}, {"audience": "internal"})
    assert [dict(m.labels) for m in found.mechanisms] == [
        {"ml": "black-box", "audience": "public"},
        {"ml": "none", "audience": "public"},
        {"ml": "none", "audience": "internal"},
    ]


def test_a_label_named_like_open_text_is_a_label() -> None:
    release = priced({"audience": "internal"}, {}).release
    assert dict(release.labels) == {"audience": "internal"}
    assert dict(release.metadata) == {}
    free = Vocabulary(frozenset(), {}, (), "add-remove")
    text = (
        '{"release": "r", "audience": "all", "mechanisms": [{"mechanism": "declared", '
    )
    node = read_document((text + '"attributes": []}]}').encode(), "x")
    assert dict(parse_release(node, free).metadata) == {"audience": "all"}


def test_exact_numbers_survive_in_the_content() -> None:
    """Fractions from Python have no decimal text, and differ all the same."""

    def content(rho: Fraction) -> str:
        mechanism = mo.declared(attributes=[], cost={"user": mo.zcdp(rho)})
        draft = mo.Release("r", mechanisms=[mechanism])
        return content_digest(parse_release(draft.to_node(), VOCABULARY))

    third = Fraction(1, 3)
    assert content(third) == content(Fraction(2, 6))
    assert content(third) != content(Fraction("0.333333333333333333333333333333"))
