"""A thousand clients for a minute, and restarts under load: nothing is lost.

A plain run has a tenth of the clients, for a tenth of the time. And a flood of texts
that cannot be parsed delays nobody else.
"""

from __future__ import annotations

import asyncio
import random
import resource
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from budget import examples, seed
from samples.crowd import BACK_PRESSURE, Noted, crowd
from samples.ledger_places import LedgerPlace, postgres_place, sqlite_place
from samples.postgres import Cluster
from samples.small import POLICY

import modicum as mo
from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import ALL
from modicum.api.permissions.tokens import TokenTerms
from modicum.server.auth.registry import open_registry
from modicum.storage.factory import open_store

CLIENTS = 100
SECONDS = 6
#: So many identities share the clients: each may ask 6,000 times a minute.
TOKENS = 50
#: Files that may be open: a connection is one, on both sides.
FILES = 8_192


def release(number: int) -> dict[str, Any]:
    """Return a release that costs next to nothing; most are like others."""
    return {
        "audience": "internal",
        "mechanisms": [
            {
                "name": "counts",
                "mechanism": "gaussian",
                "attributes": [("age", "diagnosis", "steps")[number % 3]],
                "sensitivity": {"user": {"l2": 1}},
                "sigma": 50_000 + 500 * (number % 20),
            }
        ],
    }


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LedgerPlace]:
    if request.param == "sqlite":
        yield sqlite_place(tmp_path / "ledger.db")
    else:
        cluster: Cluster = request.getfixturevalue("postgres")
        yield postgres_place(cluster)


@pytest.fixture
def tokens(place: LedgerPlace, tmp_path: Path) -> list[str]:
    """Begin a ledger, and return tokens for it; the last one's may check nothing."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    mo.open(place.address, policy=tmp_path / "policy.yaml", actor="olga").init()
    store = open_store(place.address)
    registry = open_registry(store)
    grants = {Role.ANALYST: frozenset({ALL})}
    issued = [
        registry.add_token(TokenTerms(f"a{number}", grants), created_by="olga").text
        for number in range(TOKENS)
    ]
    none = TokenTerms("powerless", {Role.ADMIN: frozenset({ALL})})
    issued.append(registry.add_token(none, created_by="olga").text)
    store.close()
    return issued


class Running:
    """A server in a process of its own, which may be started again.

    Args:
        address: The ledger.
        config: Its settings.
    """

    def __init__(self, address: str, config: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self._command = [
            str(Path(sys.executable).with_name("modicum")),
            *("serve", "--config", str(config), "--ledger", address),
            *("--port", str(self.port)),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; it listens then."""
        self._process = subprocess.Popen(
            self._command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        ends = time.monotonic() + 60
        while time.monotonic() < ends:
            with socket.socket() as trial:
                if trial.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise RuntimeError("the server does not listen")

    def stop(self) -> int:
        """Tell it to end, and return how it did."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(60)

    @property
    def is_up(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """End it at once."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(60)


@contextmanager
def servers(address: str, folder: Path, count: int) -> Iterator[list[Running]]:
    """Run servers of one ledger, each on a port of its own."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
    config = folder / "server.yaml"
    config.write_text("modicum: server/v1\napi_tokens: true\n")
    found = [Running(address, config) for _ in range(count)]
    try:
        for one in found:
            one.start()
        yield found
    finally:
        for one in found:
            one.stop()


def brought_in(address: str) -> Counter[str]:
    """Return how often each release was reserved."""
    found: Counter[str] = Counter()
    for record in mo.open(address).records():
        if b'"release-reserved"' in record.payload:
            event = mo_event(record)
            found[event] += 1
    return found


def mo_event(record: Any) -> str:
    """Return the id of the release that a record reserves."""
    from modicum.ledger import event_of

    body: Any = event_of(record, record.seq).body
    return str(body.release.id)


def judge(noted: Noted, address: str) -> None:
    """Hold what clients heard against the ledger."""
    print(
        f"\n{len(noted.reserved)} reserved, {dict(noted.statuses)},"
        f" {noted.lost} connections lost; p50 {noted.percentile(50):.3f} s,"
        f" p99 {noted.percentile(99):.3f} s"
    )
    assert not noted.unexpected, noted.unexpected[:5]
    assert noted.statuses.keys() <= {200, *BACK_PRESSURE}
    assert noted.reserved
    found = brought_in(address)
    assert set(found) == noted.reserved
    assert set(found.values()) == {1}
    mo.open(address).verify()


@pytest.mark.soak
def test_a_crowd_is_served_or_told_to_wait(
    place: LedgerPlace, tokens: list[str], tmp_path: Path
) -> None:
    with servers(place.address, tmp_path, 1) as (one,):
        noted = asyncio.run(
            crowd(
                [one.port], tokens[:-1], examples(CLIENTS), examples(SECONDS), release
            )
        )
    assert noted.lost == 0
    judge(noted, place.address)


@pytest.mark.soak
def test_two_servers_are_restarted_and_nothing_is_lost(
    place: LedgerPlace, tokens: list[str], tmp_path: Path
) -> None:
    with servers(place.address, tmp_path, 2) as both:
        endings: list[int] = []

        def restart() -> None:
            for one in both:
                time.sleep(examples(SECONDS) / 5)
                endings.append(one.stop())
                one.start()

        restarting = threading.Thread(target=restart)
        restarting.start()
        ports = [one.port for one in both]
        noted = asyncio.run(
            crowd(
                ports, tokens[:-1], examples(CLIENTS) // 2, examples(SECONDS), release
            )
        )
        restarting.join()
    assert endings == [0, 0]
    judge(noted, place.address)


@pytest.mark.spec("REG-7")
def test_a_batch_is_completed_after_kills(
    place: LedgerPlace, tokens: list[str], tmp_path: Path
) -> None:
    """It is repeated under its key until it is answered."""
    rng, names = random.Random(seed()), list[str]()
    with servers(place.address, tmp_path, 1) as (one,):
        for number in range(examples(4)):
            some = [f"b{number}-{n}" for n in range(256)]
            names += some
            killing = threading.Timer(rng.uniform(0, 0.4), one.kill)
            killing.start()
            answers = completed(one, tokens[0], some, killing)
            assert [(each["decision"] or each)["status"] for each in answers] == [
                "reserved"
            ] * len(some)
            assert not any(each["decision"]["retry"] for each in answers)
            killing.join()
            if not one.is_up:  # It was killed after the answer.
                one.start()
    assert brought_in(place.address) == dict.fromkeys(names, 1)
    mo.open(place.address).verify()


def completed(
    one: Running, token: str, names: list[str], killing: threading.Timer
) -> list[Any]:
    """Return the answers about a batch, however often it is to be sent."""
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": names[0]}
    many = [{"release": name, **release(n)} for n, name in enumerate(names)]
    url = f"http://127.0.0.1:{one.port}/api/v1/releases:batch"
    while True:
        try:
            found = httpx2.post(
                url, json={"releases": many}, headers=headers, timeout=60
            )
        except httpx2.TransportError:
            killing.join()
            if not one.is_up:
                one.start()
            continue
        if found.status_code == 200:
            answers: list[Any] = found.json()["answers"]
            return answers
        assert found.status_code == 503, found.text


#: Of a flood: so many texts, each of so many bytes.
FLOOD = ((30, 12_000), (10, 250_000))
#: So many checks of another client are answered, at least, while a flood is parsed: if
#: it stopped decisions, there would be few.
CHECKED_LEAST = 20
#: Checks of which the slowest count; enough for a percentile.
CHECKS = 100


def spoiled(size: int, kind: str) -> bytes:
    """Return a text of many values, whose mistake is at its end."""
    if kind == "yaml":
        line = "  - {name: counts, reads: [age, steps], sigma: 5.0}\n"
        return ("mechanisms:\n" + line * (size // len(line)) + "  - [").encode()
    value = '{"name": "counts", "reads": ["age", "steps"], "sigma": 5.0}, '
    return ('{"mechanisms": [' + value * (size // len(value)) + "[").encode()


def timed_check(client: httpx2.Client, token: str) -> float:
    """Return how long the check of a release takes, in seconds."""
    began = time.perf_counter()
    answered = client.post(
        "/api/v1/releases:check",
        json={"release": "x", **release(0)},
        headers={"Authorization": f"Bearer {token}"},
    )
    assert answered.status_code == 200, answered.text
    return time.perf_counter() - began


def flooded(url: str, token: str) -> Counter[int]:
    """Send the flood, four texts at a time; return the statuses of the answers."""
    texts = [
        (spoiled(size, kind), kind)
        for count, size in FLOOD
        for kind in ("yaml", "json")
        for _ in range(count)
    ]
    with (
        httpx2.Client(base_url=url, timeout=60) as client,
        ThreadPoolExecutor(4) as sending,
    ):

        def send(one: tuple[bytes, str]) -> int:
            content, kind = one
            headers = {
                "Authorization": f"Bearer {token}",
                "Content-Type": f"application/{kind}",
            }
            while True:
                answered = client.post(
                    "/api/v1/releases:check", content=content, headers=headers
                )
                if answered.status_code not in BACK_PRESSURE:
                    return int(answered.status_code)
                time.sleep(0.1)

        return Counter(sending.map(send, texts))


def test_a_flood_of_mistakes_delays_nobody_else(
    place: LedgerPlace, tokens: list[str], tmp_path: Path
) -> None:
    """Others are answered all the while; how quickly is printed, not judged."""
    with servers(place.address, tmp_path, 1) as (one,):
        url = f"http://127.0.0.1:{one.port}"
        with httpx2.Client(base_url=url, timeout=60) as client:
            quiet = sorted(timed_check(client, tokens[0]) for _ in range(CHECKS))
            for token, expected, least in (
                (tokens[-1], {403}, 1),
                (tokens[1], {400, 413}, CHECKED_LEAST),
            ):
                checks, ready = list[float](), list[float]()
                with ThreadPoolExecutor(1) as other:
                    flood = other.submit(flooded, url, token)
                    while not flood.done():
                        checks.append(timed_check(client, tokens[0]))
                        began = time.perf_counter()
                        assert client.get("/readyz").status_code == 200
                        ready.append(time.perf_counter() - began)
                        time.sleep(0.005)
                assert set(flood.result()) == expected
                assert flood.result().total() == 2 * sum(count for count, _ in FLOOD)
                usual = quiet[len(quiet) * 99 // 100]
                print(
                    f"\np99 {usual:.4f} s, in the flood median"
                    f" {statistics.median(checks):.4f} s, p99"
                    f" {sorted(checks)[len(checks) * 99 // 100]:.4f} s of {len(checks)}"
                    f" checks; ready within {max(ready):.4f} s"
                )
                assert len(checks) >= least
