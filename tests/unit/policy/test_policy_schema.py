"""The JSON Schemas, against everything that the parsers accept or refuse.

A schema may accept what the parser refuses, never the other way round: an editor that
complains about a good file is switched off.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from typer.testing import CliRunner

from modicum.cli.main import app
from modicum.core.document import Entries, Items, Kind, Node, Scalar, to_plain
from modicum.core.errors import Code, InputError
from modicum.core.rationals import parse_number
from modicum.core.yaml_reader import read_document
from modicum.ops.files.documents import load_policy, load_release, releases_of
from modicum.policy import parse_policy
from modicum.policy.document.layout import POLICY
from modicum.policy.json_schema.policy import policy_schema
from modicum.policy.json_schema.release import release_schema
from modicum.release import parse_release, price

ROOT = Path(__file__).parents[3]
GALLERY = ROOT / "tests" / "golden" / "errors"
EXAMPLE = ROOT / "src" / "modicum" / "ops" / "examples" / "acme-health"

#: Mistakes in how a file is built, which a schema should see.
STRUCTURAL = {
    Code.UNKNOWN_KEY,
    Code.MISSING_KEY,
    Code.WRONG_TYPE,
    Code.NOT_A_NUMBER,
    Code.OUT_OF_RANGE,
    Code.BAD_NAME,
    Code.UNKNOWN_VERSION,
    Code.UNKNOWN_CHOICE,
    Code.KEYS_CONFLICT,
    Code.UNKNOWN_MECHANISM,
}

#: Structural mistakes that no schema can see, and why.
BEYOND_A_SCHEMA = {
    "include-unknown-section": "the schema sees the parts one by one",
    "keys-of-nobody": "a name that the file declares",
    "label-named-like-a-key": "keys of releases are not part of the format",
    "label-that-hides-a-check": "keys of releases are not part of the format",
    "map-key-in-quotes": "in JSON every key is in quotes",
    "need-more-people-than-there-are": "people are counted",
    "owner-of-nobody": "a name that the file declares",
    "population-empty-range": "one number is compared with another",
    "rotation-of-nobody": "it depends on other sections",
    "rotation-opened-by-twice": "roles are told apart",
    "rotation-opened-by-unknown-role": "a name that the file declares",
    "rotation-without-groups": "it depends on another section",
    "release-groups-without-groups": "it depends on the policy",
    "release-period-that-never-was": "the schema has no calendar",
    "release-periods-turned-round": "one date is compared with another",
    "release-periods-without-a-timed-unit": "it depends on the policy",
    "release-where-of-a-hidden-attribute": "one list is compared with another",
    "release-training-without-sampling": "the release may have it",
    "release-truth-below-chance": "one number is compared with another",
    "role-unknown": "a name that the file declares",
    "time-detail-of-a-unit-without-time": "a key depends on another section",
    "unit-group-too-small": "the number depends on the period of another unit",
    "was-of-a-range": "one number is compared with another",
    "was-of-an-unknown-value": "a name that the file declares",
    "within-nothing": "a name that the file declares",
}

POLICIES = Draft202012Validator(policy_schema())


def as_json(node: Node) -> Any:
    """Return a tree as an editor sees it: keys are texts, numbers are numbers."""
    match node:
        case Entries(entries=entries):
            return {key.text: as_json(value) for key, value in entries}
        case Items(items=items):
            return [as_json(item) for item in items]
        case Scalar(kind=Kind.NUMBER, text=text):
            number = parse_number(text)
            if number is None:
                return text
            return number.numerator if number.denominator == 1 else float(number)
        case Scalar():
            return to_plain(node)


def texts() -> Iterator[tuple[str, str]]:
    """Yield every text in tests, documentation and examples that may be a policy."""
    for path in sorted((ROOT / "docs").rglob("*.md")):
        found = re.finditer(r"^```yaml\n(.*?)^```$", path.read_text(), re.M | re.S)
        for place, block in enumerate(found):
            yield f"{path.name}-{place}", block[1]
    folders = ("tests", "src", "examples")
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.yaml")):
            yield f"{path.parent.name}/{path.name}", path.read_text(errors="replace")
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for constant in ast.walk(ast.parse(path.read_text())):
            if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
                yield f"{path.name}:{constant.lineno}", constant.value


def accepted() -> Iterator[tuple[str, Node]]:
    """Yield the policies among these that the parser accepts."""
    for where, text in texts():
        if "modicum: policy/" in text:
            try:
                node = read_document(text.encode(), where)
                parse_policy(node, text)
            except InputError:
                continue
            yield where, node


def test_what_the_parser_accepts_the_schema_accepts() -> None:
    found = dict(accepted())
    assert len(found) >= 15
    for where, node in found.items():
        errors = [error.message for error in POLICIES.iter_errors(as_json(node))]
        assert not errors, where


def cases() -> list[str]:
    """Return the gallery without what is inside predicates: texts to a schema."""
    names = (path.parent.name for path in GALLERY.glob("*/expected.txt"))
    return sorted(name for name in names if not name.startswith("cel-"))


def codes(name: str) -> set[Code]:
    text = (GALLERY / name / "expected.txt").read_text()
    return {Code(code) for code in re.findall(r"error\[(MOD\d+)\]", text)}


def seen_by_schema(name: str) -> bool | None:
    """Return whether a schema refuses a case; None if there is nothing to refuse."""
    folder = GALLERY / name
    release, policy = folder / "release.yaml", folder / "policy.yaml"
    try:
        if not release.exists():
            node = read_document(policy.read_bytes(), "policy.yaml")
            return not POLICIES.is_valid(as_json(node))
        own = policy if policy.exists() else GALLERY / "policy.yaml"
        schema = release_schema(load_policy(own).policy.vocabulary)
        node = load_release(release)
    except (InputError, OSError):
        return None
    return not Draft202012Validator(schema).is_valid(as_json(node))


@pytest.mark.parametrize("name", [name for name in cases() if codes(name) & STRUCTURAL])
def test_the_schema_sees_structural_mistakes(name: str) -> None:
    seen = seen_by_schema(name)
    assert seen is not (name in BEYOND_A_SCHEMA) or seen is None


def test_the_schemas_are_schemas() -> None:
    vocabulary = load_policy(EXAMPLE / "policy.yaml").policy.vocabulary
    for schema in (
        policy_schema(),
        policy_schema(part=True),
        release_schema(),
        release_schema(vocabulary),
    ):
        Draft202012Validator.check_schema(schema)
        assert json.loads(json.dumps(schema)) == schema


def test_every_section_has_a_place_in_both_orders() -> None:
    properties = policy_schema()["properties"]
    assert isinstance(properties, dict)
    assert list(properties) == list(POLICY.keys)


def objects(schema: object) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for inner in schema.values():
            yield from objects(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from objects(inner)


def test_no_mapping_of_a_policy_takes_any_key() -> None:
    found = list(objects(policy_schema()))
    assert len(found) > 20
    for schema in found:
        assert schema["additionalProperties"] is False or "propertyNames" in schema


def test_a_part_needs_nothing_and_a_whole_policy_does() -> None:
    part = Draft202012Validator(policy_schema(part=True))
    assert part.is_valid({"labels": {}})
    assert not part.is_valid({"lables": {}})
    assert not POLICIES.is_valid({"labels": {}})
    assert POLICIES.is_valid(
        {"modicum": "policy/v1", "name": "n", "include": "rest.yaml"}
    )


@pytest.mark.parametrize("path", sorted((EXAMPLE / "releases").glob("*.yaml")))
def test_releases_of_the_example_are_accepted(path: Path) -> None:
    vocabulary = load_policy(EXAMPLE / "policy.yaml").policy.vocabulary
    node = load_release(path)
    for release in releases_of(node):
        parse_release(release, vocabulary)
    for schema in (release_schema(), release_schema(vocabulary)):
        Draft202012Validator(schema).validate(as_json(node))


TRAINING = """
release: r
sampling: {unit: patient, rate: 0.1}
mechanisms:
  - {mechanism: dp-sgd, attributes: [], noise-multiplier: 1, steps: 10}
"""
LABELED = """
release: r
mechanisms:
  - {mechanism: exponential, attributes: [], eps: low, cost: {patient: {eps: 1}}}
"""


@pytest.mark.parametrize("text", [TRAINING, LABELED])
def test_what_looks_like_less_than_the_parser_needs_is_accepted(text: str) -> None:
    """A sample of the whole release; a label that has the name of a parameter."""
    policy = (EXAMPLE / "policy.yaml").read_text()
    policy = policy.replace(
        "labels:\n", "labels:\n  eps: {values: [low], default: low}\n"
    )
    vocabulary = parse_policy(
        read_document(policy.encode(), "p.yaml"), policy
    ).vocabulary
    node = read_document(text.encode(), "r.yaml")
    priced = price(parse_release(node, vocabulary), vocabulary)
    assert priced.mechanisms[0].losses
    assert Draft202012Validator(release_schema(vocabulary)).is_valid(as_json(node))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("release:", "relase:"),
        ("mechanism: ", "mechanism: x"),
        ("attributes:", "attribute:"),
        ("audience: ", "audience: x"),
        ("sigma: ", "sigma: -"),
        ("{patient: ", "{doctor: "),
    ],
)
def test_a_schema_with_the_words_of_a_policy_knows_them(old: str, new: str) -> None:
    text = (EXAMPLE / "releases" / "01-prevalence-by-region.yaml").read_text()
    vocabulary = load_policy(EXAMPLE / "policy.yaml").policy.vocabulary
    validator = Draft202012Validator(release_schema(vocabulary))
    assert validator.is_valid(as_json(read_document(text.encode(), "r.yaml")))
    assert old in text
    changed = text.replace(old, new, 1)
    assert not validator.is_valid(as_json(read_document(changed.encode(), "r.yaml")))


def test_the_commands_print_the_schemas() -> None:
    def printed(*words: str) -> Any:
        result = CliRunner().invoke(app, ["policy", "schema", *words])
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    policy = str(EXAMPLE / "policy.yaml")
    vocabulary = load_policy(policy).policy.vocabulary
    assert printed() == policy_schema()
    assert printed("--part") == policy_schema(part=True)
    assert printed("--release") == release_schema()
    assert printed("--release", policy) == release_schema(vocabulary)


@pytest.mark.parametrize("words", [["x.yaml"], ["--release", "--part"]])
def test_words_that_do_not_fit_together_are_refused(words: list[str]) -> None:
    assert CliRunner().invoke(app, ["policy", "schema", *words]).exit_code == 2
