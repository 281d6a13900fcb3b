"""Jobs in the console: progress, cancellation, and a readable result of each kind."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from samples.jobs import PATIENCE, finished
from samples.served import ALL_SETS, Served, served
from samples.small import POLICY, counts

from modicum.api.permissions.actions import Action, Role
from modicum.api.permissions.identity import Identity
from modicum.api.schema.shape import encode
from modicum.core.errors import Code, InputError, Problem
from modicum.server.resources import Equipment
from modicum.server.service.jobs import Job, Report
from modicum.server.settings.tables import TablesOf

OLGA = Identity("olga", {Role.PRIVACY_OFFICER: ALL_SETS})
HOSTILE = "<script>alert(1)</script>"
YAML = {"Content-Type": "application/yaml"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("jobs")
    (folder / "policy.yaml").write_text(POLICY)
    pq.write_table(pa.table({"age": [30, 31, 60]}), folder / "visits.parquet")
    own = Equipment({"visits": TablesOf({"": str(folder / "visits.parquet")})})
    with served(
        folder / "ledger.db", policy=folder / "policy.yaml", own=own, console=True
    ) as found:
        for number in range(3):
            one = counts(
                f"r-{number}", rho="0.01", attributes=("age",), dataset="visits"
            )
            assert found.post("amir", "/releases", one).json()["decision"] == "allow"
        yield found


def shown(server: Served, who: str, answered: Any) -> str:
    """Return the page of a job that was begun, once it is over."""
    job = finished(server, who, answered)
    assert job["state"] == "done", job
    page = server.page(who, f"/jobs/{job['job']}")
    assert page.status_code == 200
    assert "data-job" not in page.text
    assert 'http-equiv="refresh' not in page.text
    return page.text


def begun(server: Served, work: Any, kind: str = "verify-ledger") -> Job:
    return server.parts.service.jobs.begin(OLGA, Action.READ_LEDGER, kind, work)


def test_a_job_that_runs_shows_its_progress_and_is_cancelled(server: Served) -> None:
    entered, unlocked = threading.Event(), threading.Event()

    def work(report: Report) -> object:
        report(0.25)
        entered.set()
        assert unlocked.wait(PATIENCE)
        report(0.5)
        return {}

    job = begun(server, work)
    assert entered.wait(PATIENCE)
    page = server.page("olga", f"/jobs/{job.id}")
    assert f'data-job="/api/v1/jobs/{job.id}/events"' in page.text
    assert 'max="1" value="0.25"' in page.text
    assert '<noscript><meta http-equiv="refresh" content="2"></noscript>' in page.text
    assert server.page("pavel", f"/jobs/{job.id}").status_code == 404
    assert job.id not in server.page("pavel", "/jobs").text
    assert "running" in server.page("olga", "/jobs").text
    answer = server.fill("olga", f"/jobs/{job.id}/cancel")
    assert answer.headers["location"] == f"/jobs/{job.id}"
    with server.client.stream(
        "GET", f"/api/v1/jobs/{job.id}/events", headers={"X-Who": "olga"}
    ) as events:
        unlocked.set()
        assert '"state":"cancelled"' in "".join(events.iter_text())
    page = server.page("olga", f"/jobs/{job.id}")
    assert "It has no result" in page.text
    assert "<form action=" not in page.text.split("<main")[1]


def test_a_job_that_fails_shows_why(server: Served) -> None:
    def work(_: Report) -> object:
        raise InputError(Problem(Code.UNKNOWN_CHOICE, HOSTILE, help="try <b>again</b>"))

    job = begun(server, work)
    finished_job(server, job)
    page = server.page("olga", f"/jobs/{job.id}").text
    assert "■</span> failed" in page
    assert Code.UNKNOWN_CHOICE.value in page
    assert "&lt;script&gt;" in page
    assert HOSTILE not in page
    assert "try &lt;b&gt;again" in page


def finished_job(server: Served, job: Job) -> None:
    """Wait for the end of a job, by its events."""
    with server.client.stream(
        "GET", f"/api/v1/jobs/{job.id}/events", headers={"X-Who": "olga"}
    ) as events:
        events.read()


def test_unknown_jobs_and_kinds(server: Served) -> None:
    assert server.page("olga", "/jobs/none").status_code == 404
    job = begun(server, lambda _: {"text": HOSTILE}, kind="another")
    finished_job(server, job)
    page = server.page("olga", f"/jobs/{job.id}").text
    assert HOSTILE not in page
    assert "&#34;text&#34;: &#34;&lt;script&gt;" in page
    long = begun(server, lambda _: {"text": "x" * 400_000}, kind="another")
    finished_job(server, long)
    assert len(server.page("olga", f"/jobs/{long.id}").content) < 300_000


def test_a_verification(server: Served) -> None:
    head = server.get("olga", "/ledger/head").json()
    params = {"head": head["head"]}
    page = shown(server, "olga", server.post("olga", "/ledger:verify", params=params))
    assert f"The ledger holds: {head['seq']} entries" in page
    assert f"it is that of entry {head['seq']}" in page
    assert 'href="/ledger"' in page


def test_a_simulation(server: Served) -> None:
    tighter = POLICY.replace("budget: 2.0}", "budget: 1.2}", 1)
    answered = server.client.post(
        "/api/v1/policies:simulate",
        content=tighter,
        headers={"X-Who": "olga", **YAML},
    )
    page = shown(server, "olga", answered)
    assert 'denied now</th><td class="number">1</td>' in page
    assert 'href="/releases/r-2"' in page
    assert 'href="/releases/r-0"' not in page
    assert "Smallest budget that fits" in page
    assert '<td class="number">1.267</td>' in page


def test_a_plan(server: Served) -> None:
    assert server.post("petra", "/rounds", {"round": "q1"}).status_code == 200
    wanted = [
        {**counts("small", rho="0.001", dataset="visits"), "utility": 2},
        {**counts("large", rho="9", dataset="visits"), "utility": 1},
    ]
    page = shown(server, "petra", server.post("petra", "/rounds/q1/plan", wanted))
    assert "accepts 1 of 2 requests" in page
    assert "worth 2 of 3 together" in page
    assert "● accepted" in page
    assert "○ infeasible" in page
    assert 'href="/rounds/q1?job=' in page


def test_a_risk_analysis(server: Served) -> None:
    asked = {
        "dataset": "visits",
        "query": "SELECT SUM(age) FROM visits",
        "bounds": [0, 120],
        "epsilons": [0.1, 1],
        "tau": 0.5,
        "choice": "as-published",
        "groups": ["age < 40", "age >= 40"],
    }
    page = shown(server, "dara", server.post("dara", "/risk/analyses", asked))
    assert "controller of the data only" in page
    assert "SELECT SUM(age) FROM visits" in page
    assert "Chosen epsilon" in page
    assert "age &lt; 40" in page


@pytest.mark.parametrize("denied", [True, False])
def test_a_run_of_a_contract(server: Served, *, denied: bool) -> None:
    reasons = {"reasons": [{"lines": [HOSTILE]}]}
    contract = {
        "contract": "flow/1",
        "stage": "computed",
        "results": ["private"],
        "uses": 3,
        "uses_left": 2,
        "expires_at": "2027-01-01T00:00:00.000000Z",
        "released": 1,
    }
    result = {"denied": {"text": reasons} if denied else None, "contract": contract}
    encode(result)
    job = begun(server, lambda _: result, kind="run-contract")
    finished_job(server, job)
    page = server.page("olga", f"/jobs/{job.id}").text
    assert "2 of 3, until" in page
    assert 'href="/escrow/contracts/flow%2F1"' in page
    assert ("its release was denied" in page) is denied
    assert ("&lt;script&gt;" in page) is denied
    assert HOSTILE not in page
