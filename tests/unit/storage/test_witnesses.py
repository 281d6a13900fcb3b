"""What every kind of witness promises, tried on each of them."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
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
from modicum.core.errors import Code, UnavailableError, UsageError, VerificationError
from modicum.storage.factory import open_store
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


@pytest.mark.parametrize("name", ["ftp://x.org/head", "https://", "s3://bucket/"])
def test_other_urls_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="neither a path nor a URL"):
        open_witness(name)


def test_none_is_none() -> None:
    assert open_witness(None) is None
    assert open_witness("none") is None


@pytest.mark.spec("LED-31")
def test_a_version_that_is_kept_shows_that_a_bucket_went_back(buckets_url: str) -> None:
    url = "s3://ledgers/heads/kept"
    witness = opened(url)
    assert witness.replace(None, line(3))
    assert witness.replace(line(3), line(8))
    assert not witness.replace(line(8), line(4))  # Nothing lower, whoever puts it.

    def send(method: str, body: bytes | None) -> None:
        headers = {"If-Match": f'"{sha256(line(8)).hexdigest()}"'} if body else {}
        place = f"{buckets_url}/ledgers/heads/kept"
        httpx2.request(method, place, content=body, headers=headers).raise_for_status()

    for method, body in (("PUT", line(4)), ("DELETE", None)):
        send(method, body)
        other = opened(url)
        with pytest.raises(VerificationError, match="had the entry 8") as caught:
            other.latest()
        assert caught.value.code is Code.LEDGER_BEHIND
        other.close()
    witness.close()


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
