"""The log over HTTP: read whole though connections break, and believed in nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from samples.remote import BEFORE, Cutter, answering
from samples.small import POLICY, counts

import modicum as mo
from modicum.client import retry_connection
from modicum.client.log_view import RemoteLog
from modicum.client.workspace import RemoteWorkspace
from modicum.ledger import Record
from modicum.storage.proofs.bundles import bundle_store
from modicum.storage.proofs.ledger_log import verify_ledger
from modicum.storage.proofs.verification import Trust

#: More than one page of what a server sends at once.
ENTRIES = 1201


class Served:
    """A ledger of some length, and an auditor whose connections are cut."""

    def __init__(self, ledger: Path, url: str) -> None:
        self.ledger = ledger
        self.cutter = Cutter(int(url.rpartition(":")[2]))
        self.audra: RemoteWorkspace = mo.connect(
            self.cutter.url, token=f"{BEFORE}audra"
        )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("audited")
    (folder / "policy.yaml").write_text(POLICY)
    here = mo.open(folder / "ledger.db", policy=folder / "policy.yaml", actor="dara")
    here.init()
    many = [here.prepare(counts(f"r-{n}", rho="1e-9")) for n in range(ENTRIES - 1)]
    assert len(here.submit_many(many)) == ENTRIES - 1
    with answering(folder / "ledger.db") as url:
        found = Served(folder / "ledger.db", url)
        try:
            yield found
        finally:
            found.audra.close()
            found.cutter.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, server: Served) -> None:
    monkeypatch.setattr(retry_connection, "WAIT_SECONDS", 0.001)
    server.cutter.plan = []


def test_a_log_is_read_whole_though_connections_break(server: Served) -> None:
    expected = list(mo.open(server.ledger).records())
    assert len(expected) == ENTRIES
    log = RemoteLog(server.audra.connection)
    for plan in ([], ["pass", "torn", "torn"], ["before", "after", "half", "torn"]):
        for after, limit in ((0, None), (500, None), (37, 3), (ENTRIES, None), (5, 0)):
            server.cutter.plan = list(plan)
            stop = None if limit is None else after + limit
            assert list(log.read(after, limit)) == expected[after:stop]
    some = iter(log.read(0))
    assert [next(some).seq, next(some).seq] == [1, 2]
    del some  # Nobody reads on, and nothing is left open.


def test_a_log_that_never_comes_is_not_waited_for(server: Served) -> None:
    server.cutter.plan = ["pass"] + ["after"] * retry_connection.ATTEMPTS_MAX**2
    with pytest.raises(mo.UnavailableError):
        list(server.audra.records())


@pytest.mark.parametrize("change", ["payload", "hash", "left out", "twice"])
def test_a_log_that_was_changed_is_refused(
    server: Served, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    read = RemoteLog.read

    def lying(self: RemoteLog, after: int, limit: int | None = None) -> Any:
        for one in read(self, after, limit):
            match change if one.seq == 700 else "":
                case "payload":
                    other = one.payload.replace(b"dara", b"dora")
                    assert other != one.payload
                    yield Record(one.seq, other, one.hash)
                case "hash":
                    yield Record(one.seq, one.payload, "0" * 64)
                case "left out":
                    pass
                case "twice":
                    yield from (one, one)
                case _:
                    yield one

    monkeypatch.setattr(RemoteLog, "read", lying)
    with mo.connect(server.cutter.url, token=f"{BEFORE}audra") as audra:
        for work in (audra.state, audra.verify, lambda: audra.as_of(800)):
            with pytest.raises(mo.VerificationError):
                work()


def test_a_bundle_is_kept_once_it_was_verified(server: Served, tmp_path: Path) -> None:
    expected = verify_ledger(server.ledger, Trust())
    server.cutter.plan = ["torn", "after"]
    found = server.audra.audits.export(tmp_path / "a.bundle")
    assert found.to_dict() == expected.to_dict()
    kept = list(bundle_store(tmp_path / "a.bundle").read(0))
    assert kept == list(mo.open(server.ledger).records())
    assert [one.name for one in tmp_path.iterdir()] == ["a.bundle"]


def test_a_bundle_that_does_not_hold_is_not_kept(
    server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unbroken = retry_connection.Connection._unbroken

    def lying(self: Any, found: Any, request: Any) -> Iterator[bytes]:
        text = b"".join(unbroken(self, found, request))
        assert text.count(b'"actor":"dara"') >= 1
        yield text.replace(b'"actor":"dara"', b'"actor":"dora"', 1)

    monkeypatch.setattr(retry_connection.Connection, "_unbroken", lying)
    with pytest.raises(mo.VerificationError):
        server.audra.audits.export(tmp_path / "a.bundle")
    assert list(tmp_path.iterdir()) == []


def test_a_server_verifies_its_own_ledger(server: Served) -> None:
    expected = verify_ledger(server.ledger, Trust())
    seen: list[float] = []
    job = server.audra.audits.start_verification(noted_hash=expected.report.head)
    report = job.wait(seen.append)
    assert report == {**json.loads(json.dumps(expected.to_dict())), "noted": ENTRIES}
    assert (job.standing.state, seen[-1]) == ("done", 1.0)
    assert seen == sorted(seen)
