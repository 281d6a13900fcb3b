"""No key is ignored: unknown ones, and those that this version does not implement."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any, TypeAlias

import pytest

from modicum.core.errors import Code, InputError, Problem
from modicum.policy.compiler import compile_text

Path: TypeAlias = "tuple[str | int, ...]"

#: A policy in which every key of the format occurs.
POLICY: dict[str, Any] = {
    "modicum": "policy/v1",
    "name": "keys",
    "dp": {
        "neighbors": "add-remove",
        "filter": "combined-v1",
        "bare_budget": {"type": "approx-dp", "delta": 1e-7},
    },
    "units": {
        "user": {"id": "user_id"},
        "day": {
            "id": "user_id",
            "neighbors": "any-change",
            "time": {"column": "at", "period": "day"},
            "within": ["user"],
            "groups": {"user": 400},
        },
    },
    "labels": {"ml": {"values": ["none", "black-box"], "default": "none"}},
    "schema": {
        "categories": {"health": "high"},
        "attributes": {
            "age": ["low", {"health": "weak"}],
            "gps": "high",
            "zone": ["low", {}, "static"],
        },
    },
    "population": {
        "partition_by": {
            "project": 900,
            "country": {"values": ["CH", "DE"], "immutable": ["user"]},
            "year": {"range": [1900, 2030]},
        },
        "groups": {"immutable": ["user"]},
        "time_detail": {"day": 62},
    },
    "rotation": {
        "active": 12,
        "slack": 0.4,
        "retired": "first-come",
        "opened_by": ["officer"],
    },
    "policies": [
        {"name": "all", "when": "true", "unit": "user", "budget": {"eps": 2}},
        {
            "name": "attr",
            "for_each": "attribute",
            "unit": "user",
            "budget": {"low": 2, "high": {"eps": 1, "delta": 1e-9}},
            "override": {"age": {"eps": 0.5}},
        },
        {
            "name": "cat",
            "for_each": "category",
            "unit": "user",
            "budget": {"high": {"eps": 1, "delta": 1e-9}},
            "levels": {
                "member": "same",
                "strong": {"scale": 2},
                "weak": {"to": {"eps": 1}},
            },
        },
        {
            "name": "sums",
            "for_each": "category",
            "unit": "user",
            "budget": {"high": {"eps": 1}},
            "levels": {"weak": {"add": {"eps": 1}}},
        },
    ],
    "extensions": [
        {
            "name": "ml",
            "settings": {
                "standard": {
                    "when": "m.ml == 'none'",
                    "budget": "same",
                    "within": "black-box",
                },
                "black-box": {
                    "when": "true",
                    "budget": {
                        "map": {1: 2, 3: 4},
                        "between": "linear",
                        "below": "proportional",
                        "above": "last",
                    },
                },
            },
        }
    ],
    "per_release": [
        {"name": "cap", "when": "true", "unit": "user", "budget": {"rho": 1}}
    ],
    "guards": [
        {"name": "bound", "unless": "'day' in m.contribution_bound", "message": "bound"}
    ],
    "approvals": [
        {
            "when": "release.ml == 'none'",
            "need": 2,
            "from": ["officer"],
            "requester_may_approve": False,
        }
    ],
    "disclosed_invariants": ["size"],
}

#: Mappings whose keys are names that the policy makes up.
OPEN: set[Path] = {
    ("units",),
    ("labels",),
    ("schema", "categories"),
    ("schema", "attributes"),
    ("population", "partition_by"),
    ("extensions", 0, "settings"),
}
#: Mappings whose keys are names that the policy made up elsewhere.
NAMES: dict[Path, tuple[Code, object]] = {
    ("units", "day", "groups"): (Code.UNKNOWN_UNIT, 2),
    ("schema", "attributes", "zone", 1): (Code.UNKNOWN_CATEGORY, "member"),
    ("schema", "attributes", "age", 1): (Code.UNKNOWN_CATEGORY, "member"),
    ("population", "time_detail"): (Code.UNKNOWN_UNIT, 2),
    ("policies", 1, "budget"): (Code.UNKNOWN_RISK_LEVEL, {"eps": 1}),
    ("policies", 1, "override"): (Code.UNKNOWN_ATTRIBUTE, {"eps": 1}),
    ("policies", 2, "budget"): (Code.UNKNOWN_RISK_LEVEL, {"eps": 1}),
    ("policies", 2, "levels"): (Code.UNKNOWN_CHOICE, "same"),
    ("policies", 3, "budget"): (Code.UNKNOWN_RISK_LEVEL, {"eps": 1}),
    ("policies", 3, "levels"): (Code.UNKNOWN_CHOICE, "same"),
    ("extensions", 0, "settings", "black-box", "budget", "map"): (Code.NOT_A_NUMBER, 1),
}


def spelled(value: object) -> str:
    """Return YAML flow text; keys that are numbers have no quotes."""
    if isinstance(value, dict):
        pairs = (f"{spelled(key)}: {spelled(item)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(spelled(item) for item in value) + "]"
    return json.dumps(value)


def problems(text: str) -> list[Problem]:
    with pytest.raises(InputError) as caught:
        compile_text(text.encode(), "policy.yaml")
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
    """Return the policy with one key more at the end of one mapping."""
    policy = copy.deepcopy(POLICY)
    mapping: Any = policy
    for step in path:
        mapping = mapping[step]
    mapping[key] = value
    return spelled(policy)


def test_the_policy_itself_is_valid() -> None:
    assert len(compile_text(spelled(POLICY).encode(), "policy.yaml").rules) == 16


def named(path: Path) -> str:
    return ".".join(map(str, path)) or "top"


PATHS = list(mappings(POLICY))
CLOSED = [path for path in PATHS if path not in OPEN and path not in NAMES]
VALUES: list[object] = [1, "low", "same", "member", True, None, {"eps": 1}, [], {}]


@pytest.mark.spec("POL-1")
@pytest.mark.parametrize("path", CLOSED, ids=named)
def test_an_unknown_key_is_an_error_at_its_place(path: Path) -> None:
    for value in VALUES:
        text = with_key(path, "zzz", value)
        found = [p for p in problems(text) if p.code is Code.UNKNOWN_KEY]
        (problem,) = found
        assert "`zzz`" in problem.message
        assert problem.mark is not None
        assert problem.mark.column == text.index('"zzz"') + 1
        assert problem.help.startswith("known keys: ")


@pytest.mark.spec("POL-1")
@pytest.mark.parametrize("path", NAMES, ids=named)
def test_a_key_that_should_name_something_else_is_an_error_at_its_place(
    path: Path,
) -> None:
    code, value = NAMES[path]
    text = with_key(path, "zzz", value)
    found = [one for one in problems(text) if one.code is code]
    assert found
    assert found[0].mark is not None
    assert found[0].mark.column == text.index('"zzz"') + 1


@pytest.mark.parametrize("path", sorted(OPEN, key=str))
def test_a_new_name_needs_a_proper_meaning(path: Path) -> None:
    for value in (1, True, None, [], {"zzz": 1}, [1]):
        if path[-1] == "partition_by" and value == 1 and value is not True:
            continue  # A count is a domain.
        assert problems(with_key(path, "zzz", value))


@pytest.mark.parametrize(
    ("path", "key", "near"),
    [
        ((), "polices", "policies"),
        ((), "extension", "extensions"),
        (("dp",), "neighbours", "neighbors"),
        (("policies", 0), "budgets", "budget"),
        (("extensions", 0, "settings", "standard"), "whithin", "within"),
        (("extensions", 0, "settings", "black-box", "budget"), "betwen", "between"),
    ],
)
def test_the_nearest_known_key_is_suggested(path: Path, key: str, near: str) -> None:
    (problem,) = problems(with_key(path, key, 1))
    assert problem.label == f'did you mean "{near}"?'


@pytest.mark.spec("POL-1")
def test_a_budget_in_renyi_orders_that_no_ledger_keeps_is_refused() -> None:
    text = spelled(POLICY).replace(
        '"budget": {"eps": 2}', '"budget": {"rdp": {7: 0.1}}'
    )
    (problem,) = problems(text)
    assert problem.code is Code.OUT_OF_RANGE


@pytest.mark.spec("POL-1")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"filter": "combined-v1"', '"accountant": "pld"'),
        ('"filter": "combined-v1"', '"accountant": "gdp"'),
    ],
)
def test_a_value_of_a_later_version_is_refused_as_such(old: str, new: str) -> None:
    text = spelled(POLICY).replace(old, new)
    (problem,) = problems(text)
    assert problem.code is Code.NOT_SUPPORTED
    assert problem.mark is not None
    word = new.rstrip("]").split('"')[-2]
    assert problem.mark.column == text.index(f'"{word}"') + 1


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('"neighbors": "add-remove"', '"neighbors": "bounded"', Code.UNKNOWN_CHOICE),
        ('"filter": "combined-v1"', '"filter": "rdp"', Code.UNKNOWN_CHOICE),
        ('"filter": "combined-v1"', '"accountant": "moments"', Code.UNKNOWN_CHOICE),
        (
            '"filter": "combined-v1"',
            '"filter": "basic-v1", "accountant": "basic"',
            Code.KEYS_CONFLICT,
        ),
        (
            '"type": "approx-dp", "delta": 1e-07',
            '"type": "approx-dp"',
            Code.MISSING_KEY,
        ),
        ('"type": "approx-dp"', '"type": "pure-dp"', Code.UNKNOWN_KEY),
        ('"type": "approx-dp"', '"type": "renyi"', Code.UNKNOWN_CHOICE),
        ('{"health": "weak"}]', '{"health": "weak"}, "static", 1]', Code.WRONG_TYPE),
        ('["low", {"health": "weak"}]', "[]", Code.WRONG_TYPE),
        ('["low", {"health": "weak"}]', '["low", "static"]', Code.WRONG_TYPE),
        ('{"health": "weak"}', '{"health": "loose"}', Code.UNKNOWN_CHOICE),
        ('"policy/v1"', '"policy/v2"', Code.UNKNOWN_VERSION),
        ('"policy/v1"', "1", Code.WRONG_TYPE),
        ('"for_each": "attribute"', '"for_each": "label"', Code.UNKNOWN_CHOICE),
        ('"when": "true", "unit"', '"unit"', Code.MISSING_KEY),
        ('"unit": "user", ', "", Code.MISSING_KEY),
        ('"name": "all"', '"name": "attr"', Code.DUPLICATE_NAME),
        ('"name": "cap"', '"name": "attr"', Code.DUPLICATE_NAME),
        ('["none", "black-box"]', '["none", "none"]', Code.DUPLICATE_NAME),
        ('["none", "black-box"]', "[]", Code.MISSING_KEY),
        ('"default": "none"', '"default": "open"', Code.UNKNOWN_LABEL_VALUE),
        (', "default": "none"', "", Code.MISSING_KEY),
        ('"labels": {"ml"', '"labels": {"sigma"', Code.BAD_NAME),
        ('"labels": {"ml"', '"labels": {"m-l"', Code.BAD_NAME),
        ('"name": "keys"', '"name": "-keys"', Code.BAD_NAME),
        ('"name": "keys"', '"name": "k/s"', Code.BAD_NAME),
        ('"name": "keys"', f'"name": "{"k" * 129}"', Code.BAD_NAME),
        ('"name": "keys"', '"name": "e\u0301"', Code.BAD_NAME),
        ('"name": "keys"', '"name": 5', Code.WRONG_TYPE),
        ('"units": {', '"units": {}, "zzz": {', Code.MISSING_KEY),
        ('{"id": "user_id"}', '{"id": 5}', Code.WRONG_TYPE),
        ('{"id": "user_id"}', "{}", Code.MISSING_KEY),
        ('"budget": {"eps": 2}', '"budget": {"delta": 0.1}', None),
        ('"budget": {"eps": 2}', '"budget": {}', Code.NO_MEASURE),
        ('"budget": {"eps": 2}', '"budget": {"eps": 2, "rho": 1}', None),
        ('"budget": {"eps": 2}', '"budget": [2]', Code.WRONG_TYPE),
        ('"budget": {"eps": 2}', '"budget": "none"', Code.NOT_A_NUMBER),
        ('"budget": {"eps": 2}', '"budget": null', Code.NOT_A_NUMBER),
    ],
)
def test_a_malformed_value_has_its_code(old: str, new: str, code: Code | None) -> None:
    text = spelled(POLICY)
    assert old in text
    found = problems(text.replace(old, new, 1))
    assert code is None or code in {problem.code for problem in found}


@pytest.mark.parametrize("key", ["modicum", "name", "units", "schema"])
def test_a_top_level_key_that_is_needed_is_missed(key: str) -> None:
    policy = {name: value for name, value in POLICY.items() if name != key}
    found = problems(spelled(policy))
    assert found[0].code is Code.MISSING_KEY
    assert f"`{key}`" in found[0].message


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ('{"delta": 0.1}', "eps"),
        ('{"eps": 2, "rho": 1}', "rho"),
        ('{"mu": 1, "delta": 0.1}', "delta"),
    ],
)
def test_a_key_of_the_format_in_the_wrong_company_is_not_called_unknown(
    written: str, wanted: str
) -> None:
    text = spelled(POLICY).replace('"budget": {"eps": 2}', f'"budget": {written}')
    (problem,) = problems(text)
    assert "unknown key" not in problem.message
    assert wanted in problem.message + " ".join(problem.notes) + problem.help


#: A key with nothing behind it, on line 4 of a file.
BARE_KEYS = [
    ("units:\n", "units"),
    ("labels:\n", "labels"),
    ("schema:\n", "schema"),
    ("policies:\n", "policies"),
]


@pytest.mark.parametrize(
    ("old", "new", "right"),
    [
        ('"for_each": "attribute"', '"foreach": "attribute"', "for_each"),
        (
            '"when": "true", "unit": "user", "budget": {"eps": 2}',
            '"wen": "true"',
            "when",
        ),
        ('"unit": "user", "budget": {"eps": 2}', '"units": "user"', "unit"),
        ('"settings": ', '"setings": ', "settings"),
        ('"default": "none"', '"defualt": "none"', "default"),
        ('"attributes": ', '"atributes": ', "attributes"),
        ('"schema": ', '"shema": ', "schema"),
    ],
)
def test_a_misspelt_key_that_is_needed_is_found(old: str, new: str, right: str) -> None:
    """To say only that the right one is missing hides what is wrong."""
    text = spelled(POLICY)
    assert old in text
    message = "\n".join(found.render() for found in problems(text.replace(old, new, 1)))
    explained = message.replace(text.replace(old, new, 1)[:60], "")
    word = new.split('"')[-4] if new.count('"') > 3 else new.split('"')[1]
    assert right in explained
    assert f'"{word}"?' in explained or f"`{word}`" in explained


@pytest.mark.parametrize(("line", "key"), BARE_KEYS)
def test_a_key_with_nothing_behind_it_is_pointed_at(line: str, key: str) -> None:
    blocks = {
        "units": "units: {user: {id: user_id}}\n",
        "labels": "labels: {}\n",
        "schema": "schema: {attributes: {}}\n",
        "policies": "policies: [{name: p, when: 'true', unit: user, budget: 1}]\n",
    }
    rest = "".join(block for name, block in blocks.items() if name != key)
    text = f"modicum: policy/v1\nname: x\n# next\n{line}# remark\n{rest}"
    found = [
        p for p in problems(text) if f"`{key}`" in p.message or "list" in p.message
    ]
    assert found[0].mark is not None
    assert found[0].mark.line == 4
