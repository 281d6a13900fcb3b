"""`modicum risk`: shown, chosen, charged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from modicum.cli.exits import Exit
from modicum.cli.main import app
from modicum.core.errors import Code, Problem, UnavailableError
from modicum.shell.engines.duckdb_engine import DuckdbEngine

RUNNER = CliRunner()
COUNT = ("-q", "SELECT COUNT(*) FROM visits WHERE cost > 50")
POLICY = """
modicum: policy/v1
name: hospital
units:
  patient: {id: patient}
schema:
  attributes: {clinic: low, cost: low}
policies:
  - {name: all, when: "true", unit: patient, budget: {eps: 2, delta: 1e-6}}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("MODICUM_LEDGER", "MODICUM_POLICY", "MODICUM_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MODICUM_ACTOR", "ann")
    Path("policy.yaml").write_text(POLICY)
    rows = [
        {"patient": f"p{n}", "clinic": "abc"[n % 3], "cost": float(n % 60)}
        for n in range(600)
    ]
    pq.write_table(pa.Table.from_pylist(rows), "visits.parquet")
    return tmp_path


def run(*command: str, code: int = Exit.OK) -> str:
    found = RUNNER.invoke(app, ["risk", *command])
    assert found.exit_code == code, (command, found.output, found.exception)
    return found.output


def document(*command: str, code: int = Exit.OK) -> Any:
    found = RUNNER.invoke(app, ["risk", *command, "--json"])
    assert found.exit_code == code, (command, found.output, found.exception)
    return json.loads(found.stdout)


def statuses() -> dict[str, str]:
    found = RUNNER.invoke(app, ["release", "list", "--json"])
    known = json.loads(found.stdout)["releases"]
    return {one["release"]: one["status"] for one in known}


def test_rdr_tells_epsilon_claim_and_the_range_of_each_candidate() -> None:
    found = document("rdr", "visits.parquet", *COUNT, "--tau", "0.5")
    assert found["epsilon"] == 1
    assert found["claim"] == "dp"
    assert found["people"] == 600
    assert len(found["candidates"]) == 37
    one = next(row for row in found["candidates"] if row["epsilon"] == 1)
    assert (one["least"], one["greatest"], one["ratio"]) == (1, 2, 0.5)


@pytest.mark.parametrize("choice", ["as-published", "private-selection"])
def test_rdr_chooses_in_each_way(choice: str) -> None:
    more = ("--allowance", "10", "--eps-select", "5")
    found = document(
        "rdr", "visits.parquet", *COUNT, "--tau", "0.5", "--choice", choice, *more
    )
    claims = {
        "as-published": "controller-only advice",
        "private-selection": "controller-only advice",  # Nothing was charged.
    }
    assert found["claim"] == claims[choice]
    assert found["choice"]["method"]


def test_rdr_without_a_preference_claims_nothing() -> None:
    found = document("rdr", "visits.parquet", *COUNT)
    assert found["claim"] == "controller-only advice"
    assert "epsilon" not in found


def test_a_variance_and_the_exact_indicator() -> None:
    command = ("rdr", "visits.parquet", *COUNT, "--choice", "as-published")
    loose = document(*command, "--max-variance", "0.01")
    tight = document(*command, "--max-variance", "0.0001")
    assert tight["epsilon"] < loose["epsilon"]
    exact = document(*command, "--tau", "0.95", "--indicator", "exact")
    published = document(*command, "--tau", "0.95")
    assert published["epsilon"] < exact["epsilon"]


def test_groups_are_compared() -> None:
    groups = ("--groups", "cost > 40", "--groups", "cost <= 40")
    found = document("compare-groups", "visits.parquet", *COUNT, *groups)
    assert found["groups"]["cost > 40"]["people"] == 190
    assert found["groups"]["cost <= 40"]["people"] == 410
    at = {name: one["indicator"]["1"] for name, one in found["groups"].items()}
    assert at == {"cost > 40": 2, "cost <= 40": 1}
    text = run("compare-groups", "visits.parquet", *COUNT, *groups, "--tau", "0.6")
    assert "controller-only advice" in text
    run("compare-groups", "visits.parquet", *COUNT, *groups[:2], code=Exit.USAGE)


@pytest.mark.spec("RSK-17")
def test_a_private_choice_is_charged_before_it_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert RUNNER.invoke(app, ["init"]).exit_code == Exit.OK
    command = [
        *("choose", "visits.parquet", *COUNT, "--tau", "0.5"),
        *("--choice", "private-selection", "--allowance", "20"),
        *("--charge", "patient", "--attributes", "cost"),
    ]
    command += ["--unit", "patient", "--rows-max", "1"]
    told = document(*command, "--eps-select", "0.5", "--release", "first")
    assert told["claim"] == "dp"
    assert statuses() == {"first": "posted"}

    def failing(*_: object) -> None:
        raise UnavailableError(Problem(Code.ENGINE_FAILED, "no rows"))

    monkeypatch.setattr(DuckdbEngine, "_fetch", failing)
    # What is denied reads nothing.
    more = ("--eps-select", "1.9", "--release", "second")
    run(*command, *more, code=Exit.DENIED)
    assert "second" not in statuses()
    # What fails after the start stays spent.
    RUNNER.invoke(app, ["risk", *command, "--eps-select", "0.5", "--release", "third"])
    assert statuses()["third"] == "started"


@pytest.mark.spec("RSK-17")
@pytest.mark.parametrize(
    "more",
    [
        ("--tau", "8"),
        ("--rows-max", "0"),
        ("-q", "SELECT COUNT(*) FROM visits WHERE coast > 3"),
        ("-q", "SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM visits)"),
        ("-q", "SELECT SUM(cost) FROM visits"),
        ("-q", "SELECT clinic, COUNT(*) FROM visits GROUP BY clinic"),
        ("--unit", "clinic"),
        ("--charge", "doctor"),
        ("--eps-select", "0"),
        ("--epsilons", "1,1"),
    ],
)
def test_what_can_be_refused_spends_nothing(more: tuple[str, ...]) -> None:
    assert RUNNER.invoke(app, ["init"]).exit_code == Exit.OK
    command = [
        *("choose", "visits.parquet", *COUNT, "--tau", "0.5"),
        *("--choice", "private-selection", "--allowance", "20", "--rows-max", "1"),
        *("--charge", "patient", "--attributes", "cost", "--unit", "patient"),
        *("--eps-select", "0.5", "--release", "first"),
    ]
    found = RUNNER.invoke(app, ["risk", *command, *more])
    assert found.exit_code in (Exit.USAGE, Exit.INVALID), found.output
    assert statuses() == {}


@pytest.mark.spec("RSK-18")
@pytest.mark.parametrize("relation", ["substitute", "any-change"])
@pytest.mark.parametrize("place", ["of the unit", "of the policy"])
def test_no_choice_is_charged_to_a_unit_of_another_relation(
    relation: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = {
        "of the unit": ("{id: patient}", f"{{id: patient, neighbors: {relation}}}"),
        "of the policy": (
            "name: hospital",
            f"name: hospital\ndp: {{neighbors: {relation}}}",
        ),
    }[place]
    Path("policy.yaml").write_text(POLICY.replace(old, new))
    assert RUNNER.invoke(app, ["init"]).exit_code == Exit.OK

    def failing(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(DuckdbEngine, "_fetch", failing)
    found = document(
        *("choose", "visits.parquet", *COUNT, "--tau", "0.5", "--rows-max", "1"),
        *("--choice", "private-selection", "--allowance", "20", "--eps-select", "0.5"),
        *("--charge", "patient", "--attributes", "cost", "--unit", "patient"),
        *("--release", "first"),
        code=Exit.INVALID,
    )["error"]
    assert found["code"] == "MOD503"
    assert relation in found["message"]
    assert "add-remove" in found["help"]
    assert statuses() == {}


@pytest.mark.spec("RSK-18")
def test_results_name_the_relation() -> None:
    rdr = ("rdr", "visits.parquet", *COUNT)
    choose = ("choose", "visits.parquet", *COUNT, "--tau", "0.5")
    assert document(*rdr)["relation"] == "add-remove"
    assert document(*choose)["choice"]["relation"] == "add-remove"
    for command in (rdr, choose):
        notes = [one for one in run(*command).splitlines() if one.startswith("note:")]
        assert any("add-remove" in one for one in notes)


def test_averages_are_not_chosen_privately_and_cost_nothing() -> None:
    assert RUNNER.invoke(app, ["init"]).exit_code == Exit.OK
    told = document(
        *("choose", "visits.parquet", "-q", "SELECT AVG(cost) FROM visits"),
        *("--tau", "0.5", "--bounds", "0:60", "--unit", "patient"),
        *("--choice", "private-selection", "--allowance", "20", "--eps-select", "1"),
        *("--charge", "patient", "--attributes", "cost", "--release", "first"),
    )
    assert told["epsilon"] is None
    assert statuses() == {}


@pytest.mark.parametrize(
    "more",
    [
        (
            *("--choice", "private-selection", "--allowance", "3"),
            *("--eps-select", "1"),
        ),
        ("--bounds", "3"),
        ("--epsilons", "1:2"),
        ("--mechanism", "cauchy"),
        ("--calibration", "some"),
    ],
)
def test_what_is_missing_is_a_matter_of_usage(more: tuple[str, ...]) -> None:
    run("choose", "visits.parquet", *COUNT, "--tau", "0.5", *more, code=Exit.USAGE)


def test_mistakes_in_the_query_are_told_with_a_code() -> None:
    command = ("rdr", "visits.parquet", "-q", "SELECT SUM(coast) FROM visits")
    found = document(*command, code=Exit.INVALID)["error"]
    assert found["code"] == "MOD814"


def test_queries_without_closed_forms_are_asked_again() -> None:
    text = run(
        *("rdr", "visits.parquet", "--unit", "clinic", "--sensitivity", "60"),
        *("-q", "SELECT QUANTILE_CONT(cost, 0.9) FROM visits", "--epsilons", "1"),
    )
    assert "asked again for each person" in text
    assert "3 people" in text


def test_a_table_without_people_says_so() -> None:
    pq.write_table(pq.read_table("visits.parquet").slice(0, 0), "none.parquet")
    more = ("--tau", "0.5", "--choice", "as-published")
    command = ("rdr", "none.parquet", *COUNT, *more)
    text = run(*command)
    assert "nobody" in text
    assert "nan" not in text
    assert "passes" not in text
    found = document(*command)
    assert found["epsilon"] is None
    assert {row["passes"] for row in found["choice"]["rows"]} == {None}
    assert {row["greatest"] for row in found["candidates"]} == {None}


def test_several_tables_have_names() -> None:
    people = pa.table({"patient": ["p1", "p2"], "age": [40, 60]})
    pq.write_table(people, "people.parquet")
    sql = "SELECT AVG(age) FROM visits JOIN people USING (patient)"
    command = ("rdr", "visits=visits.parquet", "people=people.parquet", "-q", sql)
    found = document(*command, "--unit", "patient", "--bounds", "0:120")
    assert found["people"] == 600
    run("rdr", "visits.parquet", "people.parquet", "-q", sql, code=Exit.USAGE)
