"""Query files: what they may say, and what is wrong with them."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from samples import asked

from modicum.cli.query_text import release_text
from modicum.core.errors import Code, InputError
from modicum.core.yaml_reader import read_document
from modicum.ops.files.queries import load_query
from modicum.query.query_file import tables_named

VOCABULARY = asked.compiled().policy.vocabulary
TEXT = """\
release: views-2026-10
periods: 2026-10
query:
  tables: sub/tables.yaml
  sql: |
    SELECT page, COUNT(*) AS views
    FROM views GROUP BY page
  bounds: {user-day: 10}
  noise: gaussian
  loss: {user-day: {rho: 0.015}}
"""


def test_a_file_names_its_tables_from_its_own_folder(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "tables.yaml").write_text(asked.TABLES)
    (tmp_path / "views.yaml").write_text(TEXT)
    (tmp_path / "policy.yaml").write_text(asked.POLICY)
    found = load_query(tmp_path / "views.yaml", tmp_path / "policy.yaml")
    assert found.heading.id == "views-2026-10"
    assert found.request.unit == "user-day"
    assert found.confidence == Fraction(19, 20)


def test_the_tables_are_named_before_all_is_read() -> None:
    node = read_document(TEXT.encode(), "views.yaml")
    assert tables_named(node, VOCABULARY).text == "sub/tables.yaml"
    with pytest.raises(InputError):
        tables_named(asked.query().described, VOCABULARY)


def test_all_that_a_file_may_say_is_read() -> None:
    query = asked.query(
        asked.BY_TOPIC.replace(" AS views", " AS n, MEDIAN(amount) AS half"),
        weights={"n": 2},
        discover={"share": Fraction("0.25"), "delta": Fraction("1e-8")},
        bins=8,
        confidence=Fraction("0.9"),
        noise="laplace",
        loss={"user-month": {"eps": 2}},
    )
    given = query.request
    assert given.weights == {"n": 2}
    assert given.discovery is not None
    assert (given.discovery.share, given.discovery.delta) == (
        Fraction(1, 4),
        Fraction(1, 10**8),
    )
    assert (given.bins, given.noise, given.unit, given.loss) == (
        8,
        "laplace",
        "user-month",
        Fraction(2),
    )
    assert query.confidence == Fraction(9, 10)
    assert [(cap.unit, cap.rows) for cap in given.caps] == [
        ("user-day", 10),
        ("user-month", 70),
    ]


@pytest.mark.parametrize(
    ("more", "code", "word"),
    [
        ({"sql": None}, Code.MISSING_KEY, "sql"),
        ({"bounds": None}, Code.NOT_BOUNDED, "add one of"),
        ({"noise": None}, Code.MISSING_KEY, "noise"),
        ({"loss": None}, Code.MISSING_KEY, "loss"),
        ({"extra": 1}, Code.UNKNOWN_KEY, "extra"),
        ({"noise": "uniform"}, Code.OUT_OF_RANGE, "gaussian, laplace"),
        ({"bounds": {"user-dya": 3}}, Code.UNKNOWN_UNIT, "user-day"),
        ({"bounds": {"user-day": 0}}, Code.OUT_OF_RANGE, "1"),
        ({"bounds": {"user-day": 10**7}}, Code.OUT_OF_RANGE, "1000000"),
        ({"loss": {}}, Code.DOES_NOT_FIT, "one privacy unit"),
        ({"loss": {"user": {"rho": 1}, "user-day": {"rho": 1}}}, Code.DOES_NOT_FIT, ""),
        ({"loss": {"user": {"eps": 1}}}, Code.DOES_NOT_FIT, "`rho`"),
        ({"noise": "laplace"}, Code.DOES_NOT_FIT, "`eps`"),
        ({"loss": {"user": {"mu": 1}}}, Code.DOES_NOT_FIT, "eps"),
        ({"loss": {"user": {"rho": 0}}}, Code.OUT_OF_RANGE, ""),
        ({"loss": {"usr": {"rho": 1}}}, Code.UNKNOWN_UNIT, "user"),
        ({"weights": {"n": 1}}, Code.UNKNOWN_NAME, "views"),
        ({"weights": {"views": 0}}, Code.OUT_OF_RANGE, ""),
        ({"discover": {"share": Fraction("0.5")}}, Code.MISSING_KEY, "delta"),
        ({"discover": {"delta": 1}}, Code.OUT_OF_RANGE, ""),
        ({"discover": {"delta": Fraction("1e-9"), "share": 1}}, Code.OUT_OF_RANGE, ""),
        ({"bins": 3}, Code.OUT_OF_RANGE, "power of two"),
        ({"bins": 1}, Code.OUT_OF_RANGE, ""),
        ({"confidence": 1}, Code.OUT_OF_RANGE, ""),
    ],
)
def test_what_is_wrong_is_named(more: dict[str, Any], code: Code, word: str) -> None:
    plain = asked.document()
    plain["query"] |= more
    plain["query"] = {k: v for k, v in plain["query"].items() if v is not None}
    with pytest.raises(InputError) as caught:
        asked.read(plain)
    assert caught.value.code is code, caught.value.render()
    assert word in caught.value.render()


def test_sql_may_be_as_long_as_a_text_of_sql_may_be() -> None:
    values = ", ".join(f"'page {number}'" for number in range(3000))
    sql = f"SELECT COUNT(*) AS n FROM views WHERE page IN ({values})"
    assert 2000 < len(sql) < 2**16
    assert asked.query(sql).request.query.where is not None
    with pytest.raises(InputError) as caught:
        asked.query(sql + " " * 2**16)
    assert caught.value.code is Code.TOO_LARGE


def test_a_mistake_in_the_sql_has_its_place_in_it() -> None:
    with pytest.raises(InputError) as caught:
        asked.query("SELECT page, COUNT(*)\nFROM views GROUP BY pag")
    mark = caught.value.problems[0].mark
    assert mark is not None
    assert str(mark) == "sql:2:21"


def test_a_release_that_has_mechanisms_is_no_query() -> None:
    plain = asked.document()
    with pytest.raises(InputError) as caught:
        asked.read({**plain, "mechanisms": []})
    assert caught.value.code is Code.UNKNOWN_KEY
    del plain["query"]
    with pytest.raises(InputError) as caught:
        asked.read(plain)
    assert caught.value.code is Code.MISSING_KEY


def test_what_no_engine_can_cut_is_refused_at_once() -> None:
    people = """
  people:
    row_id: user_id
    columns:
      user_id: {type: text}
      page: {type: text, attribute: page, values: [help, main]}
"""
    with pytest.raises(InputError, match="read_at"):
        asked.query("SELECT COUNT(*) AS n FROM people", declared=asked.TABLES + people)


def test_the_heading_goes_into_the_release() -> None:
    query = asked.query(release="other", periods="2026-10-02")
    described = json.loads(release_text(query.described))
    assert described["release"] == "other"
    assert described["periods"] == "2026-10-02"
    assert str(described.get("query", "sha256:")).startswith("sha256:")
    assert [one["name"] for one in described["mechanisms"]] == ["views"]
