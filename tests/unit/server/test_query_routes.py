"""Private queries over HTTP: planned as on a ledger at hand, and nothing is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from samples.served import Served, served
from samples.small import POLICY, compiled, counts

import modicum as mo
from modicum.api.local.evaluation import price_release
from modicum.api.local.queries.actions import plan_of
from modicum.api.local.views.queries import plan_view
from modicum.api.schema.release import FILE_MAX
from modicum.api.schema.shape import plain
from modicum.core.yaml_reader import read_document

TABLES = """\
modicum: tables/v1
tables:
  people:
    one_per: user_id
    columns: {user_id: {type: integer}, age: {type: integer}}
"""


def query(rho: str = "0.001", *, dataset: str = "visits", sql: str = "") -> str:
    sql = sql or "SELECT COUNT(*) AS people FROM people"
    return f"""\
release: q-1
dataset: {dataset}
query:
  sql: "{sql}"
  noise: gaussian
  loss: {{user: {{rho: {rho}}}}}
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "policy.yaml").write_text(POLICY)
    with served(tmp_path / "ledger.db", policy=tmp_path / "policy.yaml") as found:
        yield found


def plan(server: Served, who: str, text: str, tables: str = TABLES) -> Any:
    sent = {"query": text, "tables": tables}
    return server.client.post("/api/v1/queries:plan", json=sent, headers={"X-Who": who})


@pytest.mark.parametrize("rho", ["0.001", "5"])
def test_a_plan_is_that_of_a_ledger_at_hand(
    server: Served, tmp_path: Path, rho: str
) -> None:
    before = server.parts.decider.glance(lambda view: view.state().head)
    found = plan(server, "amir", query(rho)).json()
    (tmp_path / "tables.yaml").write_text(TABLES)
    text = query(rho).replace("query:", "query:\n  tables: tables.yaml")
    (tmp_path / "query.yaml").write_text(text)
    view = mo.open(tmp_path / "ledger.db")
    file = mo.load_query(tmp_path / "query.yaml", view.policy())
    decision = plan_of(view, file)
    expected = plain(plan_view(file, decision.view(decision.explanation())))
    assert found["decision"].pop("text")["headline"]
    # The query file at hand names a tables file, which one that was sent need not.
    for one in (found, expected):
        explanation = one["decision"]["explanation"]
        if explanation is not None:
            explanation["fit"].pop("release")
    assert found == expected
    assert found["allowed"] is (rho == "0.001")
    node = read_document(found["file"].encode(), "release.yaml")
    again = price_release(node, compiled()).content
    assert again == price_release(file.described, compiled()).content
    assert server.parts.decider.glance(lambda view: view.state().head) == before


def test_mistakes_have_places_in_their_file(server: Served) -> None:
    found = plan(server, "amir", query(sql="SELECT COUNT(*) AS n FROM nobody"))
    assert found.status_code == 422
    (problem,) = found.json()["problems"]
    assert (problem["file"], problem["line"]) == ("the query", 4)
    found = plan(server, "amir", query(), TABLES.replace("integer", "whole"))
    assert {one["file"] for one in found.json()["problems"]} == {"the tables file"}
    found = plan(server, "amir", query().replace("release:", "release: ["))
    assert found.status_code == 400


def test_a_query_is_about_its_data_set_only(server: Served) -> None:
    bad = query(sql="SELECT nothing", dataset="labs")
    for text in (query(dataset="labs"), bad):
        assert plan(server, "ann", text).status_code == 403
    assert plan(server, "ann", query()).status_code == 200
    assert plan(server, "root", query()).status_code == 403
    everything = query().replace("dataset: visits\n", "")
    assert plan(server, "ann", everything).status_code == 403


def test_who_spent_is_hidden_from_other_data_sets(server: Served) -> None:
    spent = counts("secret-study", rho="0.02", attributes=("age",), dataset="labs")
    assert server.post("amir", "/releases", spent).json()["decision"] == "allow"
    assert "secret-study" in plan(server, "amir", query("0.5")).text
    mine = plan(server, "ann", query("0.5"))
    assert "secret-study" not in mine.text
    assert "(another data set)" in mine.text
    taken = query().replace("q-1", "secret-study")
    conflict = plan(server, "ann", taken)
    assert conflict.status_code == 409
    assert "reserved" not in conflict.text


def test_what_is_sent_is_bounded(server: Served) -> None:
    long = query() + "#" * FILE_MAX
    assert plan(server, "amir", long).json()["code"] == "MOD005"
    assert plan(server, "amir", query(), TABLES + long).json()["code"] == "MOD005"
    deep = "a: &a [1]\n" + "".join(
        f"{name}: &{name} [{', '.join(['*' + before] * 9)}]\n"
        for before, name in zip("abcdefg", "bcdefgh", strict=True)
    )
    assert plan(server, "amir", deep).json()["code"] == "MOD005"
