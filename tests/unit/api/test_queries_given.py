"""What is given for a query and is none: refused with the way to one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from samples import asked

import modicum as mo
from modicum.api.local.queries.actions import Queries
from modicum.core.errors import Code, InputError, Problem

CANARY = "canary-5309"


def problem_of(work: Callable[[], object]) -> Problem:
    with pytest.raises(InputError) as caught:
        work()
    (problem,) = caught.value.problems
    assert problem.code is Code.WRONG_TYPE
    assert CANARY not in caught.value.render()
    return problem


@pytest.mark.parametrize(
    ("given", "told", "remedy"),
    [
        ("query.yaml", "a path", "mo.load_query("),
        (Path("query.yaml"), "a path", "mo.load_query("),
        (f" select '{CANARY}'", "SQL", "mo.sql_query("),
        (asked.document(), "a mapping", "mo.sql_query("),
        (None, "of type NoneType", "mo.load_query("),
        (7, "of type int", "mo.load_query("),
    ],
)
def test_what_is_no_query_is_told_how_it_becomes_one(
    tmp_path: Path, given: Any, told: str, remedy: str
) -> None:
    ledger = asked.workspace(tmp_path)
    nothing: Any = None
    for work in (
        lambda: ledger.queries.plan(given),
        lambda: Queries(ledger, nothing).run_on(given, nothing, nothing, nothing),
        lambda: mo.open(tmp_path / "ledger.db").queries.run(given, data="x.csv"),
    ):
        problem = problem_of(work)
        assert problem.message == f"this is {told}, not a query"
        assert remedy in problem.help


def test_the_way_to_a_query_leads_to_one(tmp_path: Path) -> None:
    ledger = asked.workspace(tmp_path)
    (tmp_path / "tables.yaml").write_text(asked.TABLES)
    query = mo.sql_query(
        "views",
        "SELECT page, COUNT(*) AS n FROM views GROUP BY page",
        tables=tmp_path / "tables.yaml",
        policy=ledger.policy(),
        bounds={"user-day": 3},
        noise="gaussian",
        periods="2026-10",
        loss={"user-day": {"rho": 0.0001}},
    )
    decision = ledger.queries.plan(query)
    assert decision.allowed
    assert decision._repr_html_().startswith("<pre>ALLOW views:")
    assert "&lt;" not in repr(decision)


@pytest.mark.parametrize("policy", [None, 3, "ledger"])
def test_a_policy_is_a_policy(tmp_path: Path, policy: Any) -> None:
    given: Any = asked.workspace(tmp_path) if policy == "ledger" else policy
    for work in (
        lambda: mo.load_query("query.yaml", given),
        lambda: mo.sql_query("a", "SELECT", tables="tables.yaml", policy=given),
    ):
        problem = problem_of(work)
        assert "is read under a policy" in problem.message
        assert "ws.policy()" in problem.help


def test_a_query_file_is_given_by_its_path() -> None:
    given: Any = {"release": CANARY}
    problem = problem_of(lambda: mo.load_query(given, asked.compiled()))
    assert (
        problem.message == "give a query file by its path, got something of type dict"
    )
