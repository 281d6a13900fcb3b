"""What every kind of witness promises, tried on each of them."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import httpx2
import pytest
from samples.postgres import Cluster
from samples.small import NOON, compiled
from samples.stores import ROOT
from samples.witnesses import (
    KINDS,
    Register,
    buckets,
    line,
    new_name,
    opened,
    register,
    serving,
)

from modicum.api.local import Workspace
from modicum.api.ports.storage import Store
from modicum.core.errors import Code, UnavailableError, UsageError, VerificationError
from modicum.ledger.proof.claims import WitnessedHead, witnessed_bytes
from modicum.storage.factory import open_store
from modicum.storage.witness import http, s3
from modicum.storage.witness.factory import open_witness
from modicum.storage.witness.store import WitnessedStore
from modicum.system.clock import FixedClock, seconds


@pytest.fixture(scope="module")
def register_url() -> Iterator[str]:
    with register() as url:
        yield url


@pytest.fixture(scope="module")
def buckets_url() -> Iterator[str]:
    with buckets() as url:
        yield url


@pytest.fixture(params=KINDS)
def name(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return new_name(request.param, tmp_path, request)


@pytest.mark.spec("LED-30")
def test_only_the_known_line_is_replaced(name: str) -> None:
    one, other = opened(name), opened(name)
    assert one.latest() is None
    assert not one.replace(line(1), line(2))
    assert one.replace(None, line(1))
    assert not other.replace(None, line(2))
    assert other.latest() == one.latest() == line(1)
    assert other.replace(line(1), line(2))
    assert not one.replace(line(1), line(3))
    assert not one.replace(line(3), line(4))
    assert one.latest() == line(2)
    if one.kind == "s3":  # Any identity that may write could put it.
        assert not one.replace(line(2), line(1))
    for each in (one, other):
        each.close()
    assert one.latest() == line(2)  # It opens what it needs again.
    one.close()


def test_a_name_shows_no_password(name: str) -> None:
    witness = opened(name)
    assert witness.kind in KINDS
    assert not witness.is_beside("postgresql://elsewhere/ledger")
    for url in ("postgresql://a:secret@db/x", "https://a:secret@x.org/l?t=secret"):
        assert "secret" not in opened(url).name
    witness.close()


_RACE = """
import json, sys
sys.path[:0] = sys.argv[3:]
from samples.witnesses import line
from modicum.storage.witness.factory import open_witness
witness, by, won, seen = open_witness(sys.argv[1]), int(sys.argv[2]), 0, 0
for _ in range(40):
    known = witness.latest()
    seq = json.loads(known)["claim"]["seq"] if known else 0
    assert seq >= seen
    seen = seq
    won += witness.replace(known, line(seq + 1, by))
print(won)
"""


@pytest.mark.spec("LED-30")
def test_processes_race_and_it_never_goes_back(name: str) -> None:
    def run(by: int) -> int:
        arguments = (name, str(by), str(ROOT / "tests"), str(ROOT / "src"))
        done = subprocess.run(
            (sys.executable, "-c", _RACE, *arguments),
            check=True,
            capture_output=True,
            text=True,
        )
        return int(done.stdout)

    with ThreadPoolExecutor(3) as pool:
        won = list(pool.map(run, range(3)))
    witness = opened(name)
    found = witness.latest()
    assert found is not None
    assert json.loads(found)["claim"]["seq"] == sum(won)  # No step was lost or doubled.
    assert min(won) >= 0 < sum(won)
    witness.close()


@pytest.mark.spec("LED-30")
def test_threads_race_and_one_of_them_is_first(name: str) -> None:
    witness = opened(name)
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda by: witness.replace(None, line(1, by)), range(8)))
    assert sum(won) == 1
    assert witness.latest() == line(1, won.index(True))
    witness.close()


def closed_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("buckets_url")
def test_one_that_is_away_is_no_empty_one(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = closed_port()
    name = {
        "file": str(tmp_path / "not-mounted" / "head"),
        "http": f"http://127.0.0.1:{port}/head",
        "postgresql": f"postgresql://a:secret@127.0.0.1:{port}/x",
        "s3": "s3://bucket/head",
    }[kind]
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://a:secret@127.0.0.1:{port}")
    witness = opened(name)
    for attempt in (witness.latest, lambda: witness.replace(None, line(1))):
        with pytest.raises(UnavailableError) as caught:
            attempt()
        assert caught.value.code is Code.NOT_WITNESSED
        assert "secret" not in str(caught.value)


def test_a_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "head").mkdir()
    witness = opened(str(tmp_path / "head"))
    with pytest.raises(UnavailableError, match="cannot be used"):
        witness.latest()
    assert witness.is_beside(str(tmp_path / "ledger.db"))


def test_a_database_is_beside_the_ledger_in_it(postgres: Cluster) -> None:
    witness = opened(postgres.new_ledger())
    assert witness.is_beside(postgres.new_ledger())
    assert not witness.is_beside("ledger.db")


@pytest.mark.parametrize(
    "name", ["ftp://x.org/head", "https://", "s3://bucket/", "s3://a:secret@bucket/x"]
)
def test_other_urls_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="neither a path nor a URL") as caught:
        open_witness(name)
    assert "secret" not in str(caught.value)


def test_none_is_none() -> None:
    assert open_witness(None) is None
    assert open_witness("none") is None


class Bare(BaseHTTPRequestHandler):
    """Answers with a status only, as proxies and wrong endpoints do."""

    def do_GET(self) -> None:
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()


@pytest.mark.usefixtures("buckets_url")
def test_what_is_no_answer_of_a_bucket_is_no_empty_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serving(Bare) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", url)
        witness = opened("s3://ledgers/bare")
        for attempt in (witness.latest, witness.kept):
            with pytest.raises(UnavailableError, match="cannot be used"):
                attempt()
        witness.close()


class Endless(BaseHTTPRequestHandler):
    """Answers without end: at once, or a little at a time."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("ETag", '"1"')
        self.end_headers()
        size, pause = (2, 0.01) if self.path == "/drips" else (65_536, 0)
        with suppress(ConnectionError):
            while True:
                self.wfile.write(b"0" * size)
                time.sleep(pause)


@pytest.mark.parametrize("path", ["drips", "pours"])
def test_an_answer_without_end_is_not_waited_for(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "_READ_SECONDS", 0.5)
    with serving(Endless) as url:
        witness = opened(f"{url}/{path}")
        with pytest.raises(UnavailableError, match="cannot be used"):
            witness.latest()
        witness.close()


@pytest.mark.usefixtures("buckets_url")
def test_what_boto3_refuses_to_use_is_a_witness_that_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "nowhere")
    with pytest.raises(UnavailableError, match="ValueError"):
        opened("s3://ledgers/wrong").latest()


def ledger_at(store: Store) -> Workspace:
    return Workspace(store, FixedClock(NOON), policy=compiled(), actor="ada")


def head_of(store: Store) -> bytes:
    last = [*store.read(0)][-1]
    first = next(iter(store.read(0)))
    return witnessed_bytes(
        WitnessedHead(first.hash, last.seq, last.hash, at=NOON, key="")
    )


@pytest.mark.spec("LED-31")
@pytest.mark.parametrize("way", ["another history", "deleted", "deleted often"])
def test_versions_that_are_kept_show_that_a_ledger_went_back(
    tmp_path: Path, buckets_url: str, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(s3, "PAGE", 4)
    key = f"ledgers/kept-{way.replace(' ', '-')}"
    path, older = tmp_path / "ledger.db", tmp_path / "older.db"
    store = WitnessedStore(open_store(path), opened(f"s3://{key}"))
    ledger_at(store).init()
    ledger_at(store).governance.annotate("one")
    store.close()
    shutil.copy(path, older)
    for text in ("two", "three"):
        ledger_at(store).governance.annotate(text)
    line = store.witness.latest()
    store.close()
    plain = open_store(older)
    for number in range(5):
        ledger_at(plain).governance.annotate(f"other {number}")
    if way == "another history":
        attacker = opened(f"s3://{key}")
        assert attacker.replace(line, head_of(plain))
        attacker.close()
    for _ in range({"deleted": 1, "deleted often": 9}.get(way, 0)):
        httpx2.delete(f"{buckets_url}/{key}").raise_for_status()
    rolled_back = WitnessedStore(plain, opened(f"s3://{key}"))
    attempts: list[Callable[[], object]] = [
        lambda: next(iter(rolled_back.read(0))),
        lambda: ledger_at(rolled_back).governance.annotate("more"),
    ]
    for attempt in attempts:
        with pytest.raises(VerificationError, match="the known head 4:") as caught:
            attempt()
        assert caught.value.code is Code.LEDGER_BEHIND
    rolled_back.close()
    if way != "another history":  # The ledger itself goes on, and is witnessed anew.
        again = WitnessedStore(open_store(path), opened(f"s3://{key}"))
        ledger_at(again).governance.annotate("four")
        assert again.witness.latest() == head_of(again)
        again.close()


class Late(Register):
    """A register whose clock is ten minutes ahead."""

    def date_time_string(self, timestamp: float | None = None) -> str:
        return super().date_time_string((timestamp or seconds()) + 600)


@pytest.mark.spec("LED-15")
@pytest.mark.parametrize("is_late", [True, False])
def test_a_clock_far_from_the_witness_is_refused(
    tmp_path: Path, *, is_late: bool
) -> None:
    with serving(Late if is_late else Register) as url:
        plain = open_store(tmp_path / "ledger.db")
        store = WitnessedStore(plain, opened(f"{url}/head"))
        ledger = Workspace(store, FixedClock(NOON), policy=compiled(), actor="ada")
        for attempt in (ledger.init, store.refuse_skew):
            if is_late:
                with pytest.raises(UnavailableError, match="clock of this machine"):
                    attempt()
            else:
                attempt()
        assert plain.exists() is not is_late
        store.close()
