"""The JSON Schemas of query and tables files, against what is read and what is refused.

A schema may accept what is refused, never the other way round: an editor that complains
about a good file is switched off.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from samples import asked
from typer.testing import CliRunner

from modicum.api.local.queries.json_schema import query_schema, tables_schema
from modicum.cli.main import app
from modicum.core.document import Entries, Items, Kind, Node, Scalar, from_python
from modicum.core.errors import InputError
from modicum.core.rationals import parse_number
from modicum.core.yaml_reader import read_document
from modicum.query.request_format import QUERY_KEYS
from modicum.query.table_format import read_tables

DOCS = Path(__file__).parents[3] / "docs"
VOCABULARY = asked.compiled().policy.vocabulary
QUERIES = [Draft202012Validator(query_schema(one)) for one in (None, VOCABULARY)]
TABLES = [Draft202012Validator(tables_schema(one)) for one in (None, VOCABULARY)]

FULL = asked.document(
    asked.BY_TOPIC.replace(" AS views", " AS n, MEDIAN(amount) AS half"),
    weights={"n": 2},
    discover={"share": Fraction("0.25"), "delta": Fraction("1e-8")},
    bins=8,
    confidence=Fraction("0.9"),
    salt="guess",
    noise="laplace",
    loss={"user-month": {"eps": 2}},
    heading={"purpose": "to see", "sampling": {"unit": "user", "rate": Fraction(1, 4)}},
)
del FULL["sampling"]  # Keys are not told by noise on a sample.
SAMPLED = asked.document(
    "SELECT COUNT(*) AS n FROM views",
    heading={"sampling": {"unit": "user", "rate": Fraction(1, 4)}},
)
#: Everything that a column may say.
EVERY = """\
modicum: tables/v1
tables:
  views:
    row_id: [view_id, user_id]
    one_per: user_id
    columns:
      view_id: {type: integer, attribute: none}
      user_id: {type: text}
      read_at: {type: timestamp}
      page: {type: text, attribute: page, values: only}
      topic: {type: boolean, attribute: topic, values: [true, false]}
      amount: {type: integer, attribute: amount, bounds: [-5, 8], values: [1, 2]}
"""


def as_json(node: Node) -> Any:
    """Return a tree as an editor sees it."""
    match node:
        case Entries(entries=entries):
            return {key.text: as_json(value) for key, value in entries}
        case Items(items=items):
            return [as_json(item) for item in items]
        case Scalar(kind=Kind.NUMBER, text=text):
            number = parse_number(text)
            assert number is not None
            return number.numerator if number.denominator == 1 else float(number)
        case Scalar(kind=Kind.BOOLEAN, text=text):
            return text == "true"
        case Scalar(text=text):
            return text


def seen(document: Any) -> Any:
    return as_json(from_python(document))


def is_read(document: dict[str, Any]) -> bool:
    try:
        asked.read(document)
    except InputError:
        return False
    return True


def blocks(begin: str) -> Iterator[Any]:
    """Yield the YAML of the documentation that begins in some way."""
    for path in sorted(DOCS.rglob("*.md")):
        for block in re.finditer(
            r"^```yaml\n(.*?)^```$", path.read_text(), re.M | re.S
        ):
            if block[1].startswith(begin):
                yield as_json(read_document(block[1].encode(), path.name))


def test_the_schemas_are_schemas() -> None:
    for one in (*QUERIES, *TABLES):
        Draft202012Validator.check_schema(one.schema)
        assert json.loads(json.dumps(one.schema)) == one.schema


@pytest.mark.parametrize("document", [asked.document(), FULL, SAMPLED])
def test_what_is_read_as_a_query_is_accepted(document: dict[str, Any]) -> None:
    assert is_read(document)
    for one in QUERIES:
        assert not list(one.iter_errors(seen(document)))


def test_queries_of_the_documentation_are_accepted() -> None:
    found = [one for one in blocks("release: ") if "query" in one]
    assert len(found) >= 3
    for document in found:
        # Those of an escrow name no tables file: its data sets are their tables.
        asked = {"tables": "tables.yaml", **document["query"]}
        whole = {**document, "query": asked}
        assert not list(QUERIES[0].iter_errors(whole))


def test_tables_of_the_documentation_are_accepted() -> None:
    found = list(blocks("modicum: tables/v1"))
    assert len(found) >= 2
    for document in found:
        assert not list(TABLES[0].iter_errors(document))


@pytest.mark.parametrize("text", [asked.TABLES, EVERY])
def test_what_is_read_as_tables_is_accepted(text: str) -> None:
    node = read_document(text.encode(), "tables.yaml")
    read_tables(node, VOCABULARY)
    for one in TABLES:
        assert not list(one.iter_errors(as_json(node)))


def test_every_key_of_a_query_is_offered() -> None:
    schema: Any = query_schema()
    assert set(schema["properties"]["query"]["properties"]) == QUERY_KEYS | {"tables"}


SLIPS: list[Callable[[dict[str, Any]], object]] = [
    lambda one: one.update(bounds=one["query"].pop("bounds")),
    lambda one: one["query"].update(periods=one.pop("periods")),
    lambda one: one.pop("release"),
    lambda one: one.pop("query"),
    lambda one: one.update(mechanisms=[]),
    lambda one: one["query"].pop("noise"),
    lambda one: one["query"].pop("loss"),
    lambda one: one["query"].update(bound={"user-day": 3}),
    lambda one: one["query"].update(noise="Gaussian"),
    lambda one: one["query"].update(bins=3),
    lambda one: one["query"].update(confidence=95),
    lambda one: one["query"].update(discover=Fraction("1e-8")),
    lambda one: one["query"].update(discover={}),
    lambda one: one["query"].update(loss={}),
    lambda one: one["query"].update(loss={"user-day": {"epsilon": 1}}),
    lambda one: one["query"].update(loss={"user-day": {"rho": 1}, "user": {"rho": 1}}),
    lambda one: one["query"].update(bounds={"user-day": 0}),
    lambda one: one["query"].update(weights={"views": 0}),
]


@pytest.mark.parametrize("slip", SLIPS)
def test_slips_that_a_schema_can_see_it_sees(
    slip: Callable[[dict[str, Any]], object],
) -> None:
    document = copy.deepcopy(asked.document())
    slip(document)
    assert not is_read(document)
    for one in QUERIES:
        # Without a policy, any key that has a name behind it may be a label.
        assert list(one.iter_errors(seen(document)))


def test_a_schema_with_the_words_of_a_policy_knows_them() -> None:
    for key in ("bounds", "loss"):
        document = copy.deepcopy(asked.document())
        value = document["query"][key]
        document["query"][key] = {"usr": value["user-day"]}
        free, knowing = (one.is_valid(seen(document)) for one in QUERIES)
        assert free
        assert not knowing


@pytest.mark.parametrize(
    ("was", "written"),
    [
        ("tables/v1", "policy/v1"),
        ("    columns:", "    colums:"),
        ("row_id: view_id", "row_id: []"),
        ("type: timestamp", "type: datetime"),
        ("bounds: [0, 8]", "bounds: [0]"),
        ("bounds: [0, 8]", "bound: [0, 8]"),
        ("step: 0.5", "step: 0"),
        ("values: [help, main]", "values: []"),
        ("values: [help, main]", "value: [help, main]"),
    ],
)
def test_slips_in_tables_are_seen(was: str, written: str) -> None:
    assert asked.TABLES.count(was) == 1
    changed = asked.TABLES.replace(was, written)
    node = read_document(changed.encode(), "tables.yaml")
    with pytest.raises(InputError):
        read_tables(node, VOCABULARY)
    for one in TABLES:
        assert list(one.iter_errors(as_json(node)))


def test_a_schema_of_tables_knows_the_attributes_of_a_policy() -> None:
    changed = asked.TABLES.replace("attribute: topic", "attribute: topics")
    node = as_json(read_document(changed.encode(), "tables.yaml"))
    assert [one.is_valid(node) for one in TABLES] == [True, False]


def test_the_command_prints_the_schemas(tmp_path: Path) -> None:
    def printed(*args: str) -> Any:
        result = CliRunner().invoke(app, ["query", "schema", *args])
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    (tmp_path / "policy.yaml").write_text(asked.POLICY)
    policy = str(tmp_path / "policy.yaml")
    assert printed() == query_schema()
    assert printed("--tables") == tables_schema()
    assert printed(policy) == query_schema(VOCABULARY)
    assert printed(policy, "--tables") == tables_schema(VOCABULARY)
    assert CliRunner().invoke(app, ["query", "schema", "gone.yaml"]).exit_code == 4
