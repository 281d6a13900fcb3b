"""Proofs over HTTP: bundles, links from a noted head, lines, and checks of the log."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from samples.jobs import PATIENCE, finished
from samples.remote import BEFORE, ByToken
from samples.served import PEOPLE, ByHeader, Served, served
from samples.shapes import exactly
from samples.small import POLICY

import modicum as mo
from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import Identity
from modicum.api.schema.job import Job
from modicum.api.schema.ledger import Proof, StoredEntry
from modicum.server.auth.authentication import Recognizing, Standing
from modicum.server.event_streams import STREAMS_EACH
from modicum.server.service.ledgers import Entries, EntryQuery, Ledgers
from modicum.server.telemetry.log import Log
from modicum.storage.factory import open_store
from modicum.storage.proofs.bundles import export_bundle, open_bundle, verify_bundle
from modicum.storage.proofs.ledger_log import sign_checkpoint, verify_ledger
from modicum.storage.proofs.signing_keys import Signing, make_key
from modicum.storage.proofs.verification import Trust

pytestmark = pytest.mark.filterwarnings("error")

LINES = {"Accept": "application/x-ndjson"}


def release(name: str) -> dict[str, Any]:
    return {
        "release": name,
        "dataset": "visits",
        "mechanisms": [
            {
                "name": "counts",
                "mechanism": "gaussian",
                "attributes": ["diagnosis"],
                "sensitivity": {"user": {"l2": 1}},
                "sigma": 500,
            }
        ],
    }


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    (tmp_path / "policy.yaml").write_text(POLICY)
    return tmp_path / "ledger.db"


@pytest.fixture
def server(ledger: Path) -> Iterator[Served]:
    with served(ledger, policy=ledger.parent / "policy.yaml") as found:
        for number in range(6):
            found.post("ann", "/releases", release(f"r{number}"))
        yield found


def asked(server: Served, who: str, path: str, headers: dict[str, str]) -> Any:
    return server.client.get(f"/api/v1{path}", headers={"X-Who": who, **headers})


def signed(ledger: Path) -> None:
    """Lay a signed checkpoint beside a ledger."""
    from modicum.ledger.proof.claims import signed_bytes

    key = make_key(ledger.parent / "key")
    store = open_store(ledger)
    found = sign_checkpoint(store, Signing(key, "2026-05-01T12:00:00.000000Z"))
    store.add_checkpoint(signed_bytes(found))


# --- bundles --------------------------------------------------------------------------


def test_a_bundle_is_what_the_command_exports_and_verifies(
    server: Served, ledger: Path
) -> None:
    answered = server.get("audra", "/audit/bundles")
    assert answered.status_code == 200
    own, made = ledger.parent / "own.zip", ledger.parent / "made.zip"
    export_bundle(open_store(ledger), own)
    assert answered.content == own.read_bytes()
    assert 'filename="audit-7.zip"' in answered.headers["content-disposition"]
    made.write_bytes(answered.content)
    with open_bundle(made) as bundle:
        assert verify_bundle(bundle, Trust(), path=made).report.entries == 7


def test_a_bundle_goes_by_the_ledger_and_its_checkpoints(
    server: Served, ledger: Path
) -> None:
    def tag(**headers: str) -> tuple[int, str, bytes]:
        given = {key.replace("_", "-"): value for key, value in headers.items()}
        found = asked(server, "audra", "/audit/bundles", given)
        return found.status_code, found.headers["etag"], found.content

    _, first, content = tag()
    assert tag() == (200, first, content)
    for given in (first, f'"x", {first}', f"W/{first}", "*"):
        assert tag(If_None_Match=given) == (304, first, b"")
    server.post("ann", "/releases", release("more"))
    status, second, longer = tag(If_None_Match=first)
    assert (status, second != first) == (200, True)
    assert len(longer) > len(content)
    signed(ledger)
    status, third, _ = tag(If_None_Match=second)
    assert (status, third in (first, second)) == (200, False)


def test_a_bundle_leaves_nothing_behind(
    server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "drafts").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "drafts"))
    server.get("audra", "/audit/bundles")
    url = f"{server.url}/api/v1/audit/bundles"
    with server.client.stream("GET", url, headers={"X-Who": "audra"}) as answered:
        next(answered.iter_raw(10))  # The rest of it is never taken.
        assert [*(tmp_path / "drafts").iterdir()] == []
    assert [*(tmp_path / "drafts").iterdir()] == []


# --- links ----------------------------------------------------------------------------


def test_links_lead_from_a_noted_head_to_the_head(server: Served) -> None:
    noted = server.get("audra", "/ledger/entries/3").json()
    known, seen = noted["hash"], []
    cursor: str | None = ""
    page: Any = None
    while cursor is not None:
        params = {"seq": 3, "head": noted["hash"], "limit": 2, "cursor": cursor}
        page = server.get("audra", "/ledger/proof", params=params).json()
        exactly(Proof, page)
        assert page["stands"] is True
        for one in page["links"]:
            assert json.loads(one["payload"])["prev"] == known
            known = hashlib.sha256(one["payload"].encode()).hexdigest()
            assert known == one["hash"]
            seen.append(one["seq"])
        cursor = page["next"]
    assert seen == [4, 5, 6, 7]
    assert known == page["ledger"]["head"]
    first = server.get("audra", "/ledger/entries/1").json()["hash"]
    assert page["first"] == first


def test_a_head_of_another_ledger_does_not_stand(server: Served) -> None:
    right = server.get("audra", "/ledger/entries/3").json()["hash"]
    for seq, head in ((3, "0" * 64), (2, right), (3, ""), (99, right)):
        params = {"seq": seq, "head": head}
        document = server.get("audra", "/ledger/proof", params=params).json()
        assert (document["stands"], document["links"]) == (False, [])
    whole = server.get("audra", "/ledger/proof").json()
    assert (whole["stands"], len(whole["links"])) == (True, 7)
    odd = server.get("audra", "/ledger/proof", params={"seq": 1, "head": "x"})
    assert odd.status_code == 400


def test_checkpoints_come_with_the_proof(server: Served, ledger: Path) -> None:
    assert server.get("audra", "/ledger/proof").json()["checkpoints"] == []
    signed(ledger)
    document = server.get("audra", "/ledger/proof").json()
    stored = [json.loads(one) for one in open_store(ledger).checkpoints()]
    assert document["checkpoints"] == stored
    assert len(stored) == 1


# --- lines ----------------------------------------------------------------------------


def test_all_entries_are_sent_line_by_line(
    server: Served, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("modicum.server.routes.ledgers._AT_ONCE", 2)
    answered = asked(server, "audra", "/ledger/entries", LINES)
    assert answered.headers["content-type"].startswith("application/x-ndjson")
    document = [json.loads(line) for line in answered.text.splitlines()]
    records = [*mo.open(ledger).records()]
    assert [one["payload"].encode() for one in document] == [o.payload for o in records]
    for one in document:
        exactly(StoredEntry, one)
        assert one == server.get("audra", f"/ledger/entries/{one['seq']}").json()
    for after in range(8):
        path = f"/ledger/entries?after={after}"
        some = asked(server, "audra", path, LINES).text.splitlines()
        assert [json.loads(line) for line in some] == document[after:]
    page = server.get("audra", "/ledger/entries", params={"after": 5}).json()
    assert [one["seq"] for one in page["entries"]] == [6, 7]


@pytest.mark.parametrize("change", ["revoked", "other rights"])
def test_lines_break_off_with_the_rights_of_who_reads_them(
    server: Served, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("modicum.server.routes.ledgers._AT_ONCE", 2)
    monkeypatch.setattr("modicum.server.auth.authentication.STANDING_SECONDS", 0.0)
    people = dict(PEOPLE)
    server.parts.recognizing = Recognizing([ByHeader(people)])
    really = Ledgers.entries

    async def lost(self: Ledgers, who: Identity, query: EntryQuery) -> Entries:
        found = await really(self, who, query)
        if query.after + query.start == 2:
            people.pop("audra", None)
            if change == "other rights":
                people["audra"] = {Role.AUDITOR: frozenset({"visits"})}
        return found

    monkeypatch.setattr(Ledgers, "entries", lost)
    logged: list[str] = []
    monkeypatch.setattr(Log, "served", lambda _, one, *__: logged.append(one.code))
    monkeypatch.setattr(Log, "failed", lambda *_: logged.append("failed"))
    came: list[bytes] = []
    path, headers = "/api/v1/ledger/entries", {"X-Who": "audra", **LINES}
    with server.client.stream("GET", path, headers=headers) as answered:
        with pytest.raises(httpx2.RemoteProtocolError):
            came.extend(answered.iter_bytes())
        lines = b"".join(came).splitlines()
    assert [json.loads(line)["seq"] for line in lines] == [1, 2, 3, 4]
    # What came is not taken to be whole: the last entry is another one.
    whole = asked(server, "olga", "/ledger/entries", LINES)
    assert answered.headers["etag"] == whole.headers["etag"]
    last = json.loads(whole.text.splitlines()[-1])
    assert whole.headers["etag"] == f'"{last["hash"]}"'
    all_are_closed(server)
    # The log tells why it broke off, and calls it no failure of the server.
    assert "MOD831" in logged, logged
    assert "failed" not in logged


@pytest.mark.parametrize("for_good", [True, False])
def test_who_reads_the_log_from_elsewhere_goes_on_or_is_told(
    server: Served, for_good: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("modicum.server.routes.ledgers._AT_ONCE", 2)
    people = dict(PEOPLE)
    server.parts.recognizing = Recognizing([ByToken(people)])
    broken: list[object] = []

    async def lost(_: object) -> bool:
        broken.append(1)
        if for_good:
            people.pop("audra", None)
        return len(broken) > 1

    monkeypatch.setattr(Standing, "holds", lost)
    with mo.connect(server.url, token=f"{BEFORE}audra") as there:
        if for_good:
            with pytest.raises(mo.AccessError):
                [*there.records()]
        else:
            assert [one.seq for one in there.records()] == [*range(1, 8)]
    assert broken


def test_lines_are_counted_among_streams(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("modicum.server.routes.ledgers._AT_ONCE", 2)
    end, started = threading.Event(), threading.Semaphore(0)
    really = Ledgers.entries

    async def held(self: Ledgers, who: Identity, query: EntryQuery) -> Entries:
        if query.after + query.start and who.name == "audra":
            started.release()
            assert await asyncio.to_thread(end.wait, PATIENCE)
        return await really(self, who, query)

    monkeypatch.setattr(Ledgers, "entries", held)
    with ThreadPoolExecutor(STREAMS_EACH) as others:
        try:
            waiting = [
                others.submit(asked, server, "audra", "/ledger/entries", LINES)
                for _ in range(STREAMS_EACH)
            ]
            for _ in waiting:
                assert started.acquire(timeout=PATIENCE)
            refused = asked(server, "audra", "/ledger/entries", LINES)
            assert (refused.status_code, "retry-after" in refused.headers) == (
                429,
                True,
            )
            other = asked(server, "olga", "/ledger/entries", LINES)
            assert len(other.text.splitlines()) == 7
        finally:
            end.set()
        assert {len(one.result().text.splitlines()) for one in waiting} == {7}
    all_are_closed(server)


def all_are_closed(server: Served) -> None:
    """Wait until the server saw that nobody listens any more."""
    until = time.monotonic() + PATIENCE
    while server.parts.streams._open:
        assert time.monotonic() < until
        time.sleep(0.02)


# --- checks ---------------------------------------------------------------------------


def test_a_ledger_is_verified_as_by_the_command(server: Served, ledger: Path) -> None:
    signed(ledger)
    noted = server.get("audra", "/ledger/entries/3").json()["hash"]
    began = server.post("audra", "/ledger:verify", params={"head": noted})
    job = finished(server, "audra", began)
    exactly(Job, job)
    expected = verify_ledger(ledger, Trust(), noted_hash=noted).to_dict()
    assert job["result"] == json.loads(json.dumps(expected))
    assert (job["result"]["noted"], job["progress"]) == (3, 1.0)


def test_a_ledger_that_was_changed_is_found_out(server: Served, ledger: Path) -> None:
    with sqlite3.connect(ledger) as connection:
        connection.execute("UPDATE events SET hash = ? WHERE seq = 4", ("0" * 64,))
    connection.close()
    job = finished(server, "audra", server.post("audra", "/ledger:verify"))
    exactly(Job, job)
    assert (job["state"], job["result"]) == ("failed", None)
    assert job["problem"]["code"] == "MOD702"


# --- whom it is for -------------------------------------------------------------------


def test_only_those_who_watch_get_proofs(server: Served) -> None:
    for who, status in (("audra", 200), ("olga", 200), ("ann", 403), ("amir", 403)):
        assert server.get(who, "/audit/bundles").status_code == status
        assert server.get(who, "/ledger/proof").status_code == status
        lines = asked(server, who, "/ledger/entries", LINES)
        assert lines.status_code == status
        started = server.post(who, "/ledger:verify")
        assert started.status_code == (202 if status == 200 else 403)
    job = server.get("audra", "/jobs").json()["jobs"][0]["job"]
    for who in ("olga", "root", "ann"):
        assert server.get(who, f"/jobs/{job}").status_code == 404
        assert server.get(who, f"/jobs/{job}/events").status_code == 404
        deleted = server.client.delete(f"/api/v1/jobs/{job}", headers={"X-Who": who})
        assert deleted.status_code == 404
    assert server.get("audra", "/jobs/00000000-" + "0" * 24).status_code == 421
