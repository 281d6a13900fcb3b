"""Several ledgers in one server: each has its own path, rights and records."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from samples.raw_http import eventually
from samples.small import POLICY, counts
from starlette.testclient import TestClient
from typer.testing import CliRunner

import modicum as mo
from modicum.api.permissions.actions import Role
from modicum.api.permissions.tokens import TokenTerms
from modicum.cli.main import app as cli
from modicum.client.credentials import address_of
from modicum.core.errors import Code, InputError
from modicum.server.auth.registry import open_registry
from modicum.server.auth.setup import PublicAddress
from modicum.server.components import Parts
from modicum.server.factory import make_parts
from modicum.server.processes import application
from modicum.server.settings.model import Settings
from modicum.server.settings.reader import load_settings
from modicum.storage.factory import open_store

NAMES = ("main", "health", "ads")
OWN = """\
modicum: server/v1
ledger: {name}.db
api_tokens: true
programs: {{etl: {{privacy-officer: all, platform-engineer: all}}}}
"""
MAIN = (
    OWN
    + """\
public_url: https://dp.example.org
trusted_proxies: [10.1.2.0/24]
allowed_hosts: [testserver]
ledgers:
  health: health.yaml
  ads: ads.yaml
"""
)


@dataclass
class Site:
    """A server of three ledgers.

    Attributes:
        folder: Where all is.
        client: Sends requests.
        parts: The parts of the first ledger.
        tokens: A token for each ledger.
        log: What was logged.
    """

    folder: Path
    client: TestClient
    parts: Parts
    tokens: dict[str, str]
    log: io.StringIO

    def send(
        self, method: str, path: str, *, by: str, host: str = "testserver", **more: Any
    ) -> Any:
        headers = {
            "Authorization": f"Bearer {self.tokens[by]}",
            "Host": host,
            "X-Forwarded-Proto": "https",
            "X-Forwarded-For": "203.0.113.9",
            "Idempotency-Key": f"key-{path}-{by}",
        }
        return self.client.request(method, path, headers=headers, **more)

    def releases(self, name: str) -> set[str]:
        return set(mo.open(self.folder / f"{name}.db").state().releases)


def written(folder: Path) -> Path:
    """Write the settings of three ledgers, and the ledgers; return the first file."""
    (folder / "policy.yaml").write_text(POLICY)
    for name in NAMES:
        text = (MAIN if name == "main" else OWN).format(name=name)
        if name == "ads":
            text += "public_url: https://ads.example.org\n"
        (folder / f"{name}.yaml").write_text(text)
        policy = folder / "policy.yaml"
        mo.open(folder / f"{name}.db", policy=policy, actor="olga").init()
    return folder / "main.yaml"


def token(folder: Path, name: str) -> str:
    store = open_store(folder / f"{name}.db")
    grants = {Role.PRIVACY_OFFICER: frozenset({"*"}), Role.ANALYST: frozenset({"*"})}
    terms = TokenTerms("olga", {**grants, Role.PLATFORM_ENGINEER: frozenset({"*"})})
    issued = open_registry(store).add_token(terms, created_by="root")
    store.close()
    return issued.text


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    settings = load_settings(written(tmp_path))
    log, made = io.StringIO(), []
    monkeypatch.setattr("sys.stderr", log)

    def make() -> Parts:
        made.append(make_parts(settings, PublicAddress("127.0.0.1", 8642, "root")))
        return made[0]

    tokens = {name: token(tmp_path, name) for name in NAMES}
    app = application(make)
    with TestClient(app, client=("10.1.2.3", 1)) as client:
        yield Site(tmp_path, client, made[0], tokens, log)


def below(name: str, path: str) -> str:
    return f"/api/v1{path}" if name == "main" else f"/api/v1/ledgers/{name}{path}"


@pytest.mark.spec("REG-15")
def test_each_ledger_has_its_own_path_rights_and_records(site: Site) -> None:
    for name in NAMES:
        for other in NAMES:
            found = site.send(
                "POST",
                below(name, "/releases"),
                by=other,
                json=counts(f"of-{other}", rho="0.01"),
            )
            assert found.status_code == (200 if name == other else 401)
    for name in NAMES:
        assert site.releases(name) == {f"of-{name}"}
        heads = site.send("GET", below(name, "/ledger/head"), by=name).json()
        assert heads["seq"] == mo.open(site.folder / f"{name}.db").state().seq


@pytest.mark.spec("REG-15")
def test_a_ledger_is_also_found_by_the_host_of_its_public_url(site: Site) -> None:
    for host, name in (("ads.example.org", "ads"), ("dp.example.org", "main")):
        for other in NAMES:
            found = site.send("GET", "/api/v1/me", by=other, host=host)
            assert found.status_code == (200 if name == other else 401)
    assert site.send("GET", "/", by="ads", host="other.example.org").status_code == 400


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/ledgers/none/me",
        "/api/v1/ledgers/health",
        "/api/v1/ledgers/%68ealth/me",
        "/api/v1/ledgers/health%2Fme",
        "/api/v1/ledgers//me",
        "/api/v1/ledgers/health/ledgers/ads/me",
        "/api/v1/ledgers/health/api/v1/me",
        "/api%2Fv1/ledgers/health/me",
        "/ledgers/health/me",
    ],
)
def test_no_other_path_leads_to_a_ledger(site: Site, path: str) -> None:
    for by in NAMES:
        assert site.send("GET", path, by=by).status_code in (401, 404)


def test_places_and_the_description_are_those_of_the_ledger(site: Site) -> None:
    prefix = "/api/v1/ledgers/health"
    found = site.send("POST", f"{prefix}/audit/checkpoints", by="health")
    if found.status_code == 202:
        assert found.headers["Location"].startswith(f"{prefix}/jobs/")
        place = found.headers["Location"]
        assert site.send("GET", place, by="health").status_code == 200
    described = site.send("GET", f"{prefix}/openapi.json", by="health").json()
    own = site.send("GET", "/api/v1/openapi.json", by="main").json()
    paths = {one.replace("/api/v1", prefix, 1) for one in own["paths"]}
    assert set(described["paths"]) == paths
    assert ids(own) == ids(described)


def ids(description: dict[str, Any]) -> list[str]:
    return [
        one["operationId"]
        for item in description["paths"].values()
        for one in item.values()
    ]


def test_metrics_and_logs_name_the_ledger(site: Site) -> None:
    site.send("POST", below("ads", "/releases"), by="ads", json=counts("one"))
    for name in NAMES:
        path = "/metrics" if name == "main" else below(name, "/metrics")
        page = site.send("GET", path, by=name)
        assert page.status_code == 200
        labels = {
            one.labels.get("ledger", "main")
            for family in text_string_to_metric_families(page.text)
            for one in family.samples
            if one.name in ("modicum_http_requests_total", "modicum_decisions_total")
        }
        assert labels <= {name}
    lines = [json.loads(one) for one in site.log.getvalue().splitlines()]
    (line,) = (one for one in lines if one.get("method") == "POST")
    assert (line["ledger"], line["route"]) == ("ads", "/api/v1/releases")


def test_a_server_is_ready_if_all_ledgers_are(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def status(path: str) -> int:
        return site.client.get(path).status_code

    eventually(lambda: status("/readyz") == 200)
    readiness = site.parts.ledgers["ads"].decider.readiness
    behind = replace(readiness.outcome(), codes=(Code.LEDGER_BEHIND,))
    monkeypatch.setattr(readiness, "outcome", lambda: behind)
    answer = site.client.get("/readyz")
    assert (answer.status_code, answer.json()["code"]) == (503, "MOD711")
    assert status("/api/v1/ledgers/ads/readyz") == 503
    assert status("/api/v1/ledgers/health/readyz") == 200
    site.parts.leave()
    assert status("/api/v1/ledgers/health/readyz") == 503


def test_grants_of_each_ledger_are_read_again(site: Site) -> None:
    file = site.folder / "ads.yaml"
    file.write_text(file.read_text() + "people: {ann@example.org: {analyst: all}}\n")
    site.parts.reload_all()
    lines = [json.loads(one) for one in site.log.getvalue().splitlines()]
    read = [one.get("ledger", "main") for one in lines if one["event"] == "grants-read"]
    assert sorted(read) == sorted(NAMES)
    entrance = site.parts.ledgers["ads"].entrance
    assert entrance is not None
    assert "ann@example.org" in entrance.grants.table.names


@pytest.mark.parametrize(
    ("file", "line", "code", "message"),
    [
        ("ads", "workers: 2", Code.KEYS_CONFLICT, "belongs into the settings of the"),
        ("ads", "ledgers: {x: health.yaml}", Code.KEYS_CONFLICT, "`ledgers` belongs"),
        ("ads", "limits: {leave_s: 3}", Code.KEYS_CONFLICT, "`limits` belongs"),
        ("health", "public_url: https://ads.example.org", Code.KEYS_CONFLICT, "same"),
        ("health", "public_url: https://dp.example.org", Code.KEYS_CONFLICT, "same"),
    ],
)
def test_settings_that_contradict_each_other(
    tmp_path: Path, file: str, line: str, code: Code, message: str
) -> None:
    main = written(tmp_path)
    path = tmp_path / f"{file}.yaml"
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(InputError, match=message) as caught:
        load_settings(main)
    assert caught.value.code is code


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ("  ads: ads.yaml", "  Ads: ads.yaml", Code.BAD_NAME),
        ("  ads: ads.yaml", "  ads/x: ads.yaml", Code.BAD_NAME),
        ("  ads: ads.yaml", "  ads: none.yaml", Code.FILE_UNREADABLE),
        ("  ads: ads.yaml", "  ads: health.yaml", Code.KEYS_CONFLICT),
        ("ledger: main.db", "ledger: ./ads.db", Code.KEYS_CONFLICT),
    ],
)
def test_names_and_files_of_ledgers(
    tmp_path: Path, before: str, after: str, code: Code
) -> None:
    main = written(tmp_path)
    main.write_text(main.read_text().replace(before, after))
    with pytest.raises(mo.ModicumError) as caught:
        load_settings(main)
    assert caught.value.code is code


def test_somebody_must_be_recognized(tmp_path: Path) -> None:
    main = written(tmp_path)
    path = tmp_path / "ads.yaml"
    path.write_text(path.read_text().replace("api_tokens: true\n", ""))
    with pytest.raises(InputError, match="nobody can be recognized"):
        load_settings(main)


def test_the_witness_of_the_environment_is_that_of_the_first_ledger(
    tmp_path: Path,
) -> None:
    settings = load_settings(written(tmp_path))
    assert settings.witness is None
    own: dict[str, Settings] = settings.completed
    assert {one.witness for one in own.values()} == {"none"}
    assert [one.console for one in own.values()] == [False, True]


def test_all_ledgers_are_checked(tmp_path: Path) -> None:
    main = written(tmp_path)
    done = CliRunner().invoke(cli, ["serve", "--config", str(main), "--check"])
    assert done.exit_code == 0, done.output
    assert "ledger health" in done.output
    assert "ads.db, 1 entry" in done.output
    (tmp_path / "ads.db").unlink()
    done = CliRunner().invoke(cli, ["serve", "--config", str(main), "--check"])
    assert done.exit_code == 2
    assert "ads.db" in done.output


def test_a_client_of_one_of_several_ledgers() -> None:
    url = "https://dp.example.org/api/v1/ledgers/health"
    assert address_of(url) == address_of(f"{url}/") == url
    with mo.connect(url, token="mdc_x") as ledger:
        client = ledger.connection._client
        assert str(client.base_url) == f"{url}/"
    with pytest.raises(mo.ModicumError):
        address_of(f"{url}/releases")
