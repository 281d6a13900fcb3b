"""Remarks on queries: what may not be meant, and what would cost less."""

from __future__ import annotations

from typing import Any

import pytest
from samples import asked

from modicum.query.hints import remarks

POLICY = asked.POLICY.replace(
    "policies:",
    "population:\n  partition_by:\n    land: {values: [CH, DE], immutable: [user]}\n"
    "    cohort: {range: [0, 19], immutable: [user-day]}\n    shop: 20\npolicies:",
)
DECLARED = asked.TABLES.replace(
    "      topic:",
    "      land: {type: text, attribute: topic, partition: land, values: [CH, DE]}\n"
    "      cohort: {type: integer, attribute: topic, partition: cohort}\n"
    "      shop: {type: integer, attribute: topic, partition: shop}\n"
    "      topic:",
)
BASE = "SELECT page, COUNT(*) AS views FROM views{} GROUP BY page"


def said(condition: str = "", **heading: Any) -> tuple[str, ...]:
    compiled = asked.compiled(POLICY)
    written = f" WHERE {condition}" if condition else ""
    query = asked.query(
        BASE.format(written), policy=compiled, declared=DECLARED, heading=heading
    )
    return remarks(query, compiled.policy.vocabulary)


@pytest.mark.spec("QRY-14")
@pytest.mark.parametrize(
    "where",
    [
        "page = 'canary'",
        "page <> 'canary'",
        "page IN ('main', 'canary')",
        "NOT (amount < 3 OR page = 'canary')",
        "topic = 'x' AND page = 'canary'",
    ],
)
def test_a_value_that_is_not_declared_is_remarked_and_not_told(where: str) -> None:
    (only,) = said(where)
    assert "`page`" in only
    assert "declared" in only
    assert "canary" not in only


@pytest.mark.parametrize(
    "where",
    [
        "",
        "page = 'main'",
        "page IN ('main', 'help')",
        "topic = 'canary'",
        "page > 'a'",
        "page IS NULL",
        "amount = 3",
    ],
)
def test_nothing_else_is_remarked(where: str) -> None:
    assert said(where) == ()


@pytest.mark.parametrize(
    ("where", "name"),
    [
        ("land = 'CH'", "land"),
        ("land IN ('CH', 'DE')", "land"),
        ("topic = 'x' AND land = 'CH'", "land"),
        ("cohort = 3", "cohort"),
        ("cohort IN (3, 19)", "cohort"),
    ],
)
def test_a_condition_that_could_be_charged_less_is_remarked(
    where: str, name: str
) -> None:
    (only,) = said(where)
    assert f"`where: {{{name}: […]}}`" in only
    assert "CH" not in only
    assert "19" not in only


@pytest.mark.parametrize(
    "where",
    [
        "land <> 'CH'",
        "NOT land = 'CH'",
        "land = 'CH' OR topic = 'x'",
        "land > 'CH'",
        "cohort = 20",  # There is none: `where` would be refused.
        "cohort = -1",
        "shop = 3",  # Nobody stays in one shop: its cells are charged together.
    ],
)
def test_it_is_said_only_where_it_would_be_true_and_accepted(where: str) -> None:
    assert said(where) == ()


def test_who_names_the_part_already_is_not_told_to() -> None:
    assert said("land = 'CH'", where={"land": ["CH"]}) == ()
