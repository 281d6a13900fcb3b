"""Connections that are cut at any point: each step is taken once, or nobody says so."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from samples.postgres import Cluster
from samples.remote import BEFORE, Cutter, answering, saying
from samples.small import POLICY, counts

import modicum as mo
from modicum.api.local import Workspace
from modicum.client import retry_connection
from modicum.client.workspace import RemoteWorkspace
from modicum.ledger import event_of
from modicum.server.rate_limits import Rates

CUTS = ("before", "half", "after", "torn")


@dataclass
class Cut:
    """A ledger, a way to it, and what cuts that."""

    here: Workspace
    there: RemoteWorkspace
    cutter: Cutter

    def written(self) -> Counter[str]:
        """Return how often each kind of event stands in the log."""
        return Counter(event_of(one, one.seq).body.kind for one in self.here.records())

    def keys(self) -> list[bytes]:
        """Return the keys that were sent, in order."""
        return [
            found[1]
            for one in self.cutter.seen
            if (found := re.search(rb"(?i)\r\nidempotency-key: (\S+)", one))
        ]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry_connection, "WAIT_SECONDS", 0.001)
    monkeypatch.setattr(retry_connection, "WAIT_SECONDS_MAX", 0.01)


@pytest.fixture(params=["sqlite", "postgresql"])
def cut(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cut]:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    ledger: str | Path = tmp_path / "ledger.db"
    if request.param == "postgresql":
        cluster: Cluster = request.getfixturevalue("postgres")
        ledger = cluster.new_ledger()
    with answering(ledger, policy=policy) as url:
        cutter = Cutter(int(url.rpartition(":")[2]))
        try:
            with mo.connect(cutter.url, token=f"{BEFORE}dara") as there:
                yield Cut(mo.open(ledger, actor="dara"), there, cutter)
        finally:
            cutter.close()


def steps(ws: RemoteWorkspace, name: str) -> list[tuple[str, Callable[[], Any]]]:
    """Return what writes, and the event that it writes."""
    return [
        ("release-reserved", lambda: ws.submit(counts(name))),
        ("release-started", lambda: ws.start(name)),
        ("release-posted", lambda: ws.publish(name)),
        ("release-reserved", lambda: ws.submit(counts(f"{name}-v"))),
        ("release-voided", lambda: ws.cancel(f"{name}-v", reason="not needed")),
        ("past-recorded", lambda: ws.backfill(counts(f"{name}-p"))),
    ]


@pytest.mark.parametrize("first", CUTS)
def test_each_step_is_taken_once(cut: Cut, first: str) -> None:
    for number, second in enumerate(("pass", *CUTS)):
        for kind, step in steps(cut.there, f"r-{number}"):
            before, sent = cut.written(), len(cut.keys())
            cut.cutter.plan = [first] if second == "pass" else [first, second]
            expected = len(cut.cutter.plan) + 1
            found = step()
            assert cut.written() - before == Counter({kind: 1})
            keys = cut.keys()[sent:]
            assert len(keys) == expected
            assert len(set(keys)) == 1
            # It hears what was answered the first time, not that it stands already.
            assert getattr(found, "retry", False) is False
    keys = [key for key, _ in itertools.groupby(cut.keys())]
    assert len(keys) == len(set(keys)) == 5 * 6


def test_a_past_release_over_the_limit_is_recorded_once(cut: Cut) -> None:
    cut.cutter.plan = ["after"]
    found = cut.there.backfill(counts("r-1", rho=9))
    assert (found.status, found.retry) == ("recorded", False)
    assert "cap" in found.blocking
    again = cut.there.backfill(counts("r-1", rho=9))
    assert (again.retry, again.blocking) == (True, ())


def test_what_was_decided_counts_where_the_ledger_moved_on(
    cut: Cut, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = retry_connection.Connection.send

    def moved_on(
        self: retry_connection.Connection, request: retry_connection.Request[Any]
    ) -> Any:
        result = ask(self, request)
        if request.path.endswith(":check"):
            result.update(decision="deny", blocking=["all"], over_limit=["all"])
        return result

    monkeypatch.setattr(retry_connection.Connection, "send", moved_on)
    cut.cutter.plan = ["after"]
    found = cut.there.submit(counts("r-1"))
    assert (found.allowed, found.status, found.retry) == (True, "reserved", False)
    assert found.headline == "ALLOW r-1"
    assert cut.written()["release-reserved"] == 1


@pytest.mark.parametrize("how", CUTS)
def test_who_never_hears_is_told_that_nobody_knows(cut: Cut, how: str) -> None:
    cut.cutter.plan = [how] * retry_connection.ATTEMPTS_MAX
    with pytest.raises(mo.UnavailableError) as caught:
        cut.there.submit(counts("lost"))
    problem = caught.value.problems[0]
    assert problem.code.value == "MOD842"
    assert "it is unknown whether it has reserved" in problem.notes[1]
    assert "the same id" in problem.help
    assert len(cut.keys()) == retry_connection.ATTEMPTS_MAX
    assert len(set(cut.keys())) == 1
    reserved = int(how in {"after", "torn"})
    assert cut.written()["release-reserved"] == reserved
    # What it is told to do then leads to one release.
    again = cut.there.submit(counts("lost"))
    assert again.allowed
    assert again.retry is bool(reserved)
    assert cut.written()["release-reserved"] == 1


def test_what_only_looks_is_asked_again_without_a_key(cut: Cut) -> None:
    cut.cutter.plan = ["before", "torn"]
    assert cut.there.check(counts("looked")).allowed
    assert cut.keys() == []
    cut.cutter.plan = ["after"] * retry_connection.ATTEMPTS_MAX
    with pytest.raises(mo.UnavailableError) as caught:
        cut.there.check(counts("looked"))
    assert "nothing was changed" in caught.value.problems[0].notes
    assert cut.written() == Counter({"policy-activated": 1})


def test_a_block_that_cannot_start_reads_nothing(cut: Cut) -> None:
    cut.there.submit(counts("never"))
    use = cut.there.use("never")
    cut.cutter.plan = ["before"] * retry_connection.ATTEMPTS_MAX
    with pytest.raises(mo.UnavailableError), use:
        pytest.fail("the block was entered")
    assert cut.here.standing("never").status.value == "reserved"


def test_who_is_not_there_did_nothing(tmp_path: Path) -> None:
    cutter = Cutter(1)
    cutter.close()
    with (
        mo.connect(cutter.url, token="t") as nobody,
        pytest.raises(mo.UnavailableError) as caught,
    ):
        nobody.submit(counts("lost"))
    assert caught.value.problems[0].notes == (
        f"{retry_connection.ATTEMPTS_MAX} attempts; the last one: it cannot be reached",
        "nothing was changed",
    )


@pytest.mark.parametrize("status", ["502 Bad", "503 Busy", "504 Late"])
def test_what_stands_before_a_server_knows_nothing(status: str) -> None:
    text = f"HTTP/1.1 {status}\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}"
    with saying(text.encode()) as received:
        url = f"http://127.0.0.1:{received[0].decode()}"
        with (
            mo.connect(url, token="t") as there,
            pytest.raises(mo.UnavailableError) as caught,
        ):
            there.submit(counts("lost"))
    assert "it is unknown" in caught.value.problems[0].notes[1]
    assert len(received) == 1 + retry_connection.ATTEMPTS_MAX


def test_who_asks_too_often_waits_as_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry_connection, "WAIT_SECONDS_MAX", 10.0)
    now, waited = [0.0], []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(retry_connection, "sleep", wait)
    (tmp_path / "policy.yaml").write_text(POLICY)
    ledger = tmp_path / "ledger.db"
    rates = Rates(60, clock=lambda: now[0])
    with (
        answering(ledger, policy=tmp_path / "policy.yaml", rates=rates) as url,
        mo.connect(url, token=f"{BEFORE}dara") as there,
    ):
        for number in range(63):
            assert there.submit(counts(f"r-{number}", rho="0.0001")).allowed
        assert waited == [1.0, 1.0, 1.0]  # A bucket of 60, then one each second.
        monkeypatch.setattr(retry_connection, "sleep", waited.append)
        with pytest.raises(mo.UnavailableError) as caught:
            there.submit(counts("more"))
        assert caught.value.code.value == "MOD837"
        with pytest.raises(mo.InputError):
            mo.open(ledger).standing("more")
