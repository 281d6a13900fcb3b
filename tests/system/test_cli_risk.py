"""`modicum risk`: shown, chosen, charged."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import modicum as mo
import modicum.risk
from modicum.api.local.evaluation import price_release
from modicum.cli.exit_codes import Exit
from modicum.cli.main import app
from modicum.cli.risk_options import in_options
from modicum.core.errors import Code, Problem, UnavailableError, UsageError
from modicum.engines.duckdb_engine import DuckdbEngine
from modicum.ledger.log.recorded_release import RecordedRelease
from modicum.risk.arguments import ArgumentError, argument

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
    data = document(*command, "--eps-select", "0.5", "--release", "first")
    assert data["claim"] == "dp"
    assert statuses() == {"first": "published"}

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
    data = document(
        *("choose", "visits.parquet", "-q", "SELECT AVG(cost) FROM visits"),
        *("--tau", "0.5", "--bounds", "0:60", "--unit", "patient"),
        *("--choice", "private-selection", "--allowance", "20", "--eps-select", "1"),
        *("--charge", "patient", "--attributes", "cost", "--release", "first"),
    )
    assert data["epsilon"] is None
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
    assert "computed separately for each person" in text
    assert "3 people" in text


def test_a_table_without_people_says_so() -> None:
    pq.write_table(pq.read_table("visits.parquet").slice(0, 0), "none.parquet")
    more = ("--tau", "0.5", "--choice", "as-published")
    command = ("rdr", "none.parquet", *COUNT, *more)
    text = run(*command)
    assert "0 people" in text
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


# --- what was, and was not, charged ---------------------------------------------------

PRIVATE = (
    *("--choice", "private-selection", "--allowance", "20", "--eps-select", "0.5"),
    *("--unit", "patient", "--rows-max", "1"),
)


@pytest.mark.spec("RSK-17")
def test_only_what_was_charged_is_said_to_be() -> None:
    assert RUNNER.invoke(app, ["init"]).exit_code == Exit.OK
    shown = run("rdr", "visits.parquet", *COUNT, "--tau", "0.5", *PRIVATE)
    assert "Nothing was charged" in shown
    assert "--release ID --charge UNIT" in shown
    assert "is charged" not in shown
    assert "must be charged" not in shown
    output = run(
        *("choose", "visits.parquet", *COUNT, "--tau", "0.5", *PRIVATE),
        *("--release", "first", "--charge", "patient"),
    )
    assert "The choice itself is charged, as `first`" in output
    assert "must be charged" not in output
    assert statuses() == {"first": "published"}


def test_in_python_nothing_is_charged_and_it_says_so() -> None:
    risk = mo.risk.rdr(
        "visits.parquet", mo.count("cost > 50"), unit="patient", rows_max=1
    )
    choice = risk.choose(0.5, choice="private-selection", allowance=20, eps_select=9)
    (caveat,) = (one for one in choice.caveats if "The choice itself" in one)
    assert "must be charged" in caveat
    assert "--release" in caveat


# --- the release that follows ---------------------------------------------------------


def pasted(*command: str) -> RecordedRelease:
    """Return the release that is printed, as its reader takes and prices it."""
    text = run(*command)
    Path("release.yaml").write_text(text[text.index("release: NAME") :])
    policy = mo.load_policy("policy.yaml")
    return price_release(mo.load_release("release.yaml"), policy)


@pytest.mark.parametrize(
    ("noise", "norm"), [(("laplace",), "l1"), (("gaussian", "--delta", "1e-9"), "l2")]
)
@pytest.mark.parametrize("output", ["SUM(Cost)", "SUM(cost), STDDEV(v.cost)"])
def test_what_is_printed_can_be_pasted(
    output: str, noise: tuple[str, ...], norm: str
) -> None:
    command = (
        *("choose", "visits.parquet", "--tau", "0.8", "--unit", "patient"),
        *("-q", f"SELECT clinic, {output} FROM visits v GROUP BY 1"),
        *("--bounds", "cost=0:60", "--rows-max", "3", "--dimensions", "3"),
        *("--mechanism", *noise),
    )
    wanted = document(*command)["choice"]["charge"]["release"]
    (mechanism,) = pasted(*command).mechanisms
    assert list(mechanism.attributes) == ["clinic", "cost"]
    described = mechanism.description
    assert described["kind"] == noise[0]
    assert described["sensitivity"] == {"patient": wanted[norm]}
    parameter = "scale" if norm == "l1" else "sigma"
    assert described["parameters"] == {parameter: wanted[parameter]}


def test_a_pasted_release_has_the_names_of_the_policy() -> None:
    text = POLICY.replace("patient: {", "client: {").replace("cost: low", "price: low")
    Path("policy.yaml").write_text(text.replace("unit: patient", "unit: client"))
    release = pasted(
        *("choose", "visits.parquet", *COUNT, "--tau", "0.5", "--unit", "patient"),
        *("--rows-max", "1", "--charge", "client", "--attributes", "price=cost"),
    )
    assert list(release.mechanisms[0].attributes) == ["price"]
    assert release.metadata["epsilon_choice"] == "dp by data-independent"


# --- attributes and units -------------------------------------------------------------


@pytest.mark.parametrize(
    ("attributes", "code", "words"),
    [
        ("coost", "MOD117", ("`coost`", 'did you mean "cost"?', "`--attributes`")),
        ("price=coost", "MOD117", ("`coost`", 'did you mean "cost"?')),
        ("clinic", "MOD119", ("`cost`", "`--attributes`")),
        ("price=cost", "MOD117", ("price",)),
    ],
)
def test_attributes_are_those_that_the_query_reads(
    attributes: str, code: str, words: tuple[str, ...]
) -> None:
    assert RUNNER.invoke(app, ["init"]).exit_code == Exit.OK
    command = ["choose", "visits.parquet", *COUNT, "--tau", "0.5", *PRIVATE]
    command += ["--release", "first", "--charge", "patient"]
    found = RUNNER.invoke(app, ["risk", *command, "--attributes", attributes])
    assert found.exit_code in (Exit.USAGE, Exit.INVALID)
    for word in (code, *words):
        assert word in found.output
    assert statuses() == {}
    run(*command, "--attributes", "COST=cost" if attributes == "" else "cost")
    assert statuses() == {"first": "published"}


def test_other_units_are_charged_what_is_given() -> None:
    text = POLICY.replace("{id: patient}", "{id: patient}\n  doctor: {id: doctor}")
    Path("policy.yaml").write_text(text)
    assert RUNNER.invoke(app, ["init"]).exit_code == Exit.OK
    command = ["choose", "visits.parquet", *COUNT, "--tau", "0.5", *PRIVATE]
    command += ["--release", "first", "--charge", "patient"]
    found = run(*command, code=Exit.INVALID)
    assert "MOD501" in found
    assert "`doctor`" in found
    assert "--charge UNIT=EPS" in found
    for wrong in ("doctor", "patient=1", "doctor=", "doctor=0", "doctor=x"):
        run(*command, "--charge", wrong, code=Exit.USAGE)
    run(*command, "--charge", "nurse=1", code=Exit.INVALID)
    assert statuses() == {}
    run(*command, "--charge", "doctor=4")
    shown = RUNNER.invoke(app, ["release", "show", "first", "--json"])
    (mechanism,) = json.loads(shown.stdout)["mechanisms"]
    assert mechanism["cost"]["doctor"]["eps"] in (4, "4")
    assert mechanism["cost"]["patient"]["eps"] in (0.5, "0.5")


# --- mistakes: their exit codes, and remedies in options ------------------------------

SUMS = ("-q", "SELECT SUM(v.Cost) FROM visits v")
GROUPED = ("-q", "SELECT clinic, COUNT(*) FROM visits GROUP BY clinic")
TWO = ("--groups", "cost > 9", "--groups", "cost <= 9")
USAGE, INVALID = Exit.USAGE, Exit.INVALID
RDR, CHOOSE, COMPARE = "rdr", "choose", "compare-groups"
CHARGED = (*PRIVATE, "--release", "first", "--charge", "patient")
#: A command, what is wrong with it, the exit code, and what its message must name.
MISTAKES: dict[str, tuple[str, tuple[str, ...], Exit, tuple[str, ...]]] = {
    "tau above 1": (CHOOSE, ("--tau", "8"), USAGE, ("MOD106", "--tau")),
    "tau in words": (CHOOSE, ("--tau", "half"), USAGE, ("MOD105", "--tau")),
    "a candidate in words": (CHOOSE, ("--epsilons", "1,x"), USAGE, ("--epsilons",)),
    "candidates twice": (CHOOSE, ("--epsilons", "1,1.0"), USAGE, ("--epsilons",)),
    "candidates falling": (CHOOSE, ("--epsilons", "2:1:5"), USAGE, ("--epsilons",)),
    "one candidate": (CHOOSE, ("--epsilons", "1:2:1"), USAGE, ("--epsilons",)),
    "close candidates": (CHOOSE, ("--epsilons", "1:1.001:99"), USAGE, ("--epsilons",)),
    "candidates cut short": (CHOOSE, ("--epsilons", "1:2"), USAGE, ("--epsilons",)),
    "no sensitivity": (CHOOSE, ("--sensitivity", "0"), USAGE, ("--sensitivity",)),
    "no column": (
        CHOOSE,
        ("--unit", "patint"),
        USAGE,
        ("MOD814", "--unit", '"patient'),
    ),
    "rows unbounded": (
        CHOOSE,
        ("--unit", "patient"),
        INVALID,
        ("MOD813", "--rows-max"),
    ),
    "rows of rows": (CHOOSE, ("--rows-max", "2"), INVALID, ("MOD813", "--unit")),
    "rows below 1": (CHOOSE, ("--rows-max", "0"), USAGE, ("--rows-max",)),
    "noise": (CHOOSE, ("--mechanism", "laplac"), USAGE, ("--mechanism", '"laplace"')),
    "no delta": (CHOOSE, ("--mechanism", "gaussian"), INVALID, ("MOD813", "--delta")),
    "delta 2": (
        *(CHOOSE, ("--mechanism", "gaussian", "--delta", "2"), USAGE),
        ("MOD106", "--delta"),
    ),
    "delta unheard": (CHOOSE, ("--delta", "1e-6"), USAGE, ("--delta", "--mechanism")),
    "calibration unheard": (
        *(RDR, ("--calibration", "published"), USAGE),
        ("--calibration", "--mechanism"),
    ),
    "values unbounded": (CHOOSE, SUMS, INVALID, ("MOD813", "--bounds")),
    "bounds turned": (CHOOSE, (*SUMS, "--bounds", "5:3"), USAGE, ("--bounds",)),
    "bounds cut short": (CHOOSE, (*SUMS, "--bounds", "5"), USAGE, ("--bounds",)),
    "bounds of nothing": (
        *(RDR, (*SUMS, "--bounds", "coost=0:9"), USAGE),
        ("MOD814", "`coost`", 'did you mean "cost"?', "--bounds"),
    ),
    "bounds of rows": (RDR, ("--bounds", "cost=0:9"), USAGE, ("MOD814", "--bounds")),
    "bounds of a query in a query": (
        RDR,
        (
            *("-q", "SELECT SUM(c) FROM (SELECT cost AS c FROM visits)"),
            *("--bounds", "c=0:9", "--sensitivity", "9"),
        ),
        USAGE,
        ("MOD119", "--bounds", "--sensitivity"),
    ),
    "bounds twice": (
        *(RDR, (*SUMS, "--bounds", "cost=0:9", "--bounds", "COST=0:8"), USAGE),
        ("MOD116", "--bounds"),
    ),
    "bounds twice for all": (
        *(RDR, (*SUMS, "--bounds", "0:9", "--bounds", "0:8"), USAGE),
        ("--bounds",),
    ),
    "no dimensions": (CHOOSE, GROUPED, INVALID, ("MOD813", "--dimensions")),
    "dimensions from rows": (
        *(RDR, (*GROUPED, "--tau", "0.5"), INVALID),
        ("MOD813", "--dimensions", "--choice"),
    ),
    "a sensitivity from rows": (
        *(RDR, (*SUMS, "--tau", "0.5"), INVALID),
        ("MOD813", "--sensitivity", "--bounds"),
    ),
    "a delta from rows": (
        *(RDR, ("--mechanism", "gaussian", "--tau", "0.5"), INVALID),
        ("MOD813", "--delta"),
    ),
    "choice": (CHOOSE, ("--choice", "privat"), USAGE, ("--choice",)),
    "a choice for the controller": (
        *(CHOOSE, ("--choice", "as-published"), USAGE),
        ("--choice", "data-independent"),
    ),
    "choice to look at": (
        RDR,
        ("--choice", "privat", "--tau", "0.5"),
        USAGE,
        ("--choice",),
    ),
    "no allowance": (
        *(CHOOSE, ("--choice", "private-selection"), USAGE),
        ("MOD103", "--allowance", "--eps-select"),
    ),
    "no public people": (
        *(RDR, ("--choice", "find-and-release", "--tau", "0.5"), USAGE),
        ("MOD103", "--eps-select", "--max-variance", "--people"),
    ),
    "a variance for all tables": (
        *(RDR, ("--tau", "0.5", "--max-variance", "1"), USAGE),
        ("MOD119", "--max-variance", "--choice"),
    ),
    "a variance alone": (RDR, ("--max-variance", "1"), USAGE, ("MOD103", "--tau")),
    "a negative variance": (
        *(RDR, ("--max-variance", "-1", "--choice", "as-published"), USAGE),
        ("MOD106", "--max-variance"),
    ),
    "the selection free": (
        *(CHOOSE, (*CHARGED, "--eps-select", "0"), USAGE),
        ("MOD106", "--eps-select"),
    ),
    "allowance below 0": (CHOOSE, ("--allowance", "-1"), USAGE, ("--allowance",)),
    "uncharged": (CHOOSE, PRIVATE, USAGE, ("--release", "--charge")),
    "charged for nothing": (CHOOSE, ("--release", "first"), USAGE, ("--release",)),
    "no unit of the policy": (
        *(CHOOSE, (*CHARGED, "--charge", "patient=1", "--charge", "patint"), USAGE),
        ("--charge",),
    ),
    "a unit in other words": (
        *(CHOOSE, (*PRIVATE, "--release", "first", "--charge", "patint"), USAGE),
        ("MOD111", 'did you mean "patient"?', "--charge"),
    ),
    "a unit of others": (
        *(CHOOSE, (*CHARGED, "--unit", "clinic"), USAGE),
        ("MOD119", "--charge", "--unit"),
    ),
    "unheard": (RDR, ("--eps-select", "1"), USAGE, ("--eps-select", "--tau")),
    "unheard choice": (RDR, ("--choice", "as-published"), USAGE, ("--choice", "--tau")),
    "unheard allowance": (RDR, ("--allowance", "1"), USAGE, ("--allowance", "--tau")),
    "unheard people": (RDR, ("--people", "1"), USAGE, ("--people", "--tau")),
    "one group": (
        RDR,
        (*TWO[:2], "--tau", "0.5", "--choice", "as-published"),
        USAGE,
        ("MOD106", "--groups"),
    ),
    "statistic": (COMPARE, (*TWO, "--statistic", "p50"), USAGE, ("--statistic",)),
    "statistic to look at": (RDR, ("--statistic", "mean"), USAGE, ("--statistic",)),
    "report": (RDR, ("--report", "no/where.html"), USAGE, ("MOD001", "where.html")),
    "engine": (RDR, ("--engine", "sparc"), USAGE, ("--engine", '"spark"')),
    "indicator": (RDR, ("--indicator", "no"), USAGE, ("--indicator",)),
}


@pytest.mark.parametrize("case", list(MISTAKES))
def test_mistakes_name_the_option_and_leave_as_other_commands_do(case: str) -> None:
    assert RUNNER.invoke(app, ["init"]).exit_code == Exit.OK
    command, more, code, words = MISTAKES[case]
    given = [command, "visits.parquet", *COUNT]
    given += ["--tau", "0.5"] if command == CHOOSE else []
    found = RUNNER.invoke(app, ["risk", *given, *more])
    assert found.exit_code == code, found.output
    shown = " ".join(found.output.replace("│", " ").split())
    for word in words:
        assert word in shown, (word, shown)
    assert "=`" not in shown  # An argument of Python.
    assert statuses() == {}


@pytest.mark.parametrize("name", ["cost", "COST", "v.cost", '"Cost"', "(cost)"])
def test_bounds_are_of_what_sql_would_mean(name: str) -> None:
    found = document("rdr", "visits.parquet", *SUMS, "--bounds", f"{name}=-3:7")
    assert found["sensitivity"] == 7
    assert found["from_rows"] == []
    some = ("-q", "SELECT SUM(cost) FILTER (clinic = 'a') FROM visits AS v")
    found = document("rdr", "visits.parquet", *some, "--bounds", f"{name}=-3:7")
    assert found["sensitivity"] == 7


def test_every_argument_that_a_remedy_names_is_an_option() -> None:
    sources = Path(modicum.risk.__file__).parent
    text = "".join(one.read_text() for one in sources.rglob("*.py"))
    named = {*re.findall(r"\bargument\([\"'](\w+)[\"']\)", text)}
    named |= {*re.findall(r"\bby=[\"'](\w+)[\"']", text)}
    assert {"tau", "rows_max", "max_variance", "charge"} <= named
    shown = "".join(run(command, "--help") for command in (RDR, CHOOSE))
    for name in named:
        problem = Problem(Code.OUT_OF_RANGE, "m", notes=(argument(name),), help="h")
        with pytest.raises(UsageError) as caught, in_options():
            raise ArgumentError(problem)
        (option,) = caught.value.problems[0].notes
        assert f"{option.strip('`')} " in shown, option


def test_what_is_called_as_an_argument_is_not_taken_for_one() -> None:
    table = pa.table({"unit": [1, 2], "tau": [3, 4]})
    pq.write_table(table, "odd.parquet")
    found = document(
        *("rdr", "odd.parquet", "-q", "SELECT SUM(tau) FROM t", "--unit", "taus"),
        code=Exit.USAGE,
    )["error"]
    assert (found["code"], found["label"]) == ("MOD814", 'did you mean "tau"?')
    found = document(
        *("rdr", "odd.parquet", "-q", "SELECT SUM(tau) FROM t", "--bounds", "taus=1:2"),
        code=Exit.USAGE,
    )["error"]
    assert found["help"] == "give `--bounds` of `tau`"
