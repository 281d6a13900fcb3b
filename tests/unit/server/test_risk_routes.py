"""`/risk/analyses`: for data stewards, of tables that settings name, and no others."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from samples.jobs import PATIENCE, finished
from samples.served import Served, served
from samples.shapes import exactly
from samples.small import POLICY
from typer.testing import CliRunner

from modicum.api.permissions.actions import Role
from modicum.api.schema.job import Job
from modicum.cli.main import app
from modicum.risk.worker.messages import Bounds
from modicum.server.resources import Equipment
from modicum.server.settings.tables import TablesOf

PEOPLE = {
    "dara": {Role.DATA_STEWARD: frozenset({"*"})},
    "vera": {Role.DATA_STEWARD: frozenset({"visits"})},
    "olga": {Role.PRIVACY_OFFICER: frozenset({"*"})},
    "audra": {Role.AUDITOR: frozenset({"*"})},
    "root": {Role.ADMIN: frozenset({"*"})},
    "amir": {Role.ANALYST: frozenset({"*"})},
    "petra": {Role.PLATFORM_ENGINEER: frozenset({"*"})},
}
TOTAL = {"query": "SELECT SUM(age) FROM visits", "bounds": [0, 120]}
#: Asks again for each person.
SLOW = {
    "query": "SELECT COUNT(*) FROM v WHERE age > (SELECT AVG(age) FROM v)",
    "sensitivity": 9,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("risk")
    (found / "policy.yaml").write_text(POLICY)
    rows = {"patient": [1, 1, 2, 3], "age": [30, 31, 60, 90]}
    pq.write_table(pa.table(rows), found / "visits.parquet")
    (found / "people.csv").write_text("patient,city\n1,x\n2,y\n3,x\n")
    pq.write_table(pa.table({"age": list(range(5000))}), found / "many.parquet")
    return found


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Served]:
    visits = str(folder / "visits.parquet")
    both = {"visits": visits, "people": str(folder / "people.csv")}
    own = Equipment(
        {
            "visits": TablesOf({"": visits}),
            "joined": TablesOf(both, "patient"),
            "many": TablesOf({"": str(folder / "many.parquet")}),
            "gone": TablesOf({"": str(folder / "gone.parquet")}),
        },
        Bounds(rows=5000, seconds=600),
    )
    with served(
        folder / "ledger.db", policy=folder / "policy.yaml", people=PEOPLE, own=own
    ) as found:
        yield found


def asked(server: Served, who: str, data_set: str, **more: Any) -> Any:
    return server.post(who, "/risk/analyses", {"dataset": data_set, **more})


def result(server: Served, who: str, data_set: str, **more: Any) -> Any:
    job = finished(server, who, asked(server, who, data_set, **more))
    exactly(Job, job)
    assert job["state"] == "done", job
    return job["result"]


def by_command(*args: object) -> Any:
    done = CliRunner().invoke(app, ["risk", *map(str, args), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_it_finds_what_the_command_finds(server: Served, folder: Path) -> None:
    more = {"epsilons": [0.1, 1], "tau": 0.5, "choice": "as-published"}
    command = (
        *("rdr", folder / "visits.parquet", "--query", TOTAL["query"]),
        *("--bounds", "0:120", "--epsilons", "0.1,1"),
        *("--tau", "0.5", "--choice", "as-published"),
    )
    assert result(server, "vera", "visits", **TOTAL, **more) == by_command(*command)


def test_groups_are_compared_as_the_command_does(server: Served, folder: Path) -> None:
    groups = ["city = 'x'", "city = 'y'"]
    query = "SELECT COUNT(*) FROM visits JOIN people USING (patient)"
    found = result(server, "dara", "joined", query=query, rows_max=2, groups=groups)
    places = [f"visits={folder}/visits.parquet", f"people={folder}/people.csv"]
    args = [arg for one in groups for arg in ("--groups", one)]
    command = ("--query", query, "--unit", "patient", "--rows-max", 2, *args)
    assert found == by_command("compare-groups", *places, *command)


def test_a_data_set_is_there_for_its_stewards_only(server: Served) -> None:
    hidden = asked(server, "vera", "nothing", **TOTAL)
    assert (hidden.status_code, hidden.json()["code"]) == (404, "MOD838")
    for who in PEOPLE.keys() - {"dara", "vera"}:
        for data_set in ("visits", "nothing"):
            answered = asked(server, who, data_set, **TOTAL)
            # The same for whatever there is, and before anything is read.
            document = answered.json()
            assert (answered.status_code, document["code"]) == (403, "MOD832"), who
            assert document["detail"] == f"`{who}` is not authorized to analyze risk"
    assert asked(server, "vera", "many", **TOTAL).status_code == 404
    assert asked(server, "dara", "nothing", **TOTAL).status_code == 404


def test_without_tables_it_is_refused(tmp_path: Path, folder: Path) -> None:
    with served(
        tmp_path / "ledger.db", policy=folder / "policy.yaml", people=PEOPLE
    ) as bare:
        answered = asked(bare, "dara", "visits", **TOTAL)
        assert (answered.status_code, answered.json()["code"]) == (409, "MOD846")
        assert "`tables`" in answered.json()["help"]
        assert asked(bare, "olga", "visits", **TOTAL).status_code == 403


def test_one_is_made_at_a_time_and_can_be_given_up(server: Served) -> None:
    started = asked(server, "dara", "many", **SLOW)
    place = started.headers["location"].removeprefix("/api/v1")
    for who in ("dara", "vera"):
        second = asked(server, who, "visits", **TOTAL)
        assert (second.status_code, second.json()["code"]) == (429, "MOD837")
        assert second.headers["retry-after"]
    until = time.monotonic() + PATIENCE
    while not (job := server.get("dara", place).json())["progress"]:
        assert time.monotonic() < until, job
        time.sleep(0.02)
    assert server.get("vera", place).status_code == 404
    given_up = server.client.delete(f"/api/v1{place}", headers={"X-Who": "dara"})
    assert given_up.status_code == 200
    job = finished(server, "dara", started)
    assert (job["state"], job["result"]) == ("cancelled", None)
    assert result(server, "vera", "visits", **TOTAL)["people"] == 4


@pytest.mark.parametrize(
    ("data_set", "more", "code"),
    [
        ("visits", {"query": "SELECT SUM(agee) FROM v"}, "MOD814"),
        ("visits", {"query": "SELECT age FROM read_parquet('x')"}, "MOD812"),
        ("gone", TOTAL, "MOD817"),
    ],
)
def test_a_mistake_is_the_jobs_problem(
    data_set: str, more: dict[str, Any], code: str, server: Served, folder: Path
) -> None:
    job = finished(server, "dara", asked(server, "dara", data_set, **more))
    assert (job["state"], job["result"]) == ("failed", None)
    assert job["problem"]["status"] == 422
    assert job["problem"]["code"] == code
    assert str(folder) not in json.dumps(job)


def test_a_large_table_is_not_analyzed(folder: Path, tmp_path: Path) -> None:
    tables = {"many": TablesOf({"": str(folder / "many.parquet")})}
    with served(
        tmp_path / "ledger.db",
        policy=folder / "policy.yaml",
        people=PEOPLE,
        own=Equipment(tables, Bounds(rows=4999)),
    ) as small:
        job = finished(small, "dara", asked(small, "dara", "many", **TOTAL))
        assert job["problem"]["code"] == "MOD005"


@pytest.mark.parametrize(
    ("more", "code", "named"),
    [
        ({}, "MOD103", "query"),
        ({"query": "x", "path": "/etc"}, "MOD102", "path"),
        ({"query": "x", "mechanism": "geometric"}, "MOD115", "geometric"),
        ({"query": "x", "delta": 1e-6}, "MOD119", "delta"),
        ({"query": "x", "calibration": "exact"}, "MOD119", "calibration"),
        ({"query": "x", "choice": "as-published"}, "MOD119", "choice"),
        ({"query": "x", "tau": 1, "choice": "private-selection"}, "MOD115", "private"),
        ({"query": "x", "statistic": "max"}, "MOD119", "statistic"),
        ({"query": "x", "groups": ["a"]}, "MOD103", "groups"),
        ({"query": "x", "groups": ["a", "a"]}, "MOD116", "groups"),
        ({"query": "x", "groups": ["a"] * 51}, "MOD005", "groups"),
        ({"query": "x", "epsilons": "0.1"}, "MOD104", "epsilons"),
        ({"query": "x", "epsilons": ["0.1"]}, "MOD105", "epsilon"),
        ({"query": "x", "epsilons": [1] * 1001}, "MOD005", "epsilons"),
        ({"query": "x", "bounds": [1]}, "MOD104", "bounds"),
        ({"query": "x", "bounds": {"age": 3}}, "MOD104", "bounds"),
        ({"query": "x", "bounds": 3}, "MOD104", "bounds"),
        ({"query": "x", "rows_max": 0}, "MOD106", "rows_max"),
        ({"query": "x", "unit": ""}, "MOD107", "unit"),
    ],
)
def test_what_is_not_understood_begins_nothing(
    more: dict[str, Any], code: str, named: str, server: Served
) -> None:
    answered = asked(server, "dara", "visits", **more)
    assert (answered.status_code // 100, answered.json()["code"]) == (4, code)
    assert named in answered.text


def test_nothing_of_it_is_in_the_ledger(server: Served) -> None:
    before = server.get("olga", "/ledger/head").json()
    result(server, "vera", "visits", **TOTAL)
    assert server.get("olga", "/ledger/head").json() == before
