"""What a submit over HTTP costs beside one in process; used by `bench/server.py`.

Every way of asking has a process of its own, and all take turns, so that their ratios
are of the same moments. The processor time is that of the process that answers.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

#: So many releases are in one batch.
BATCH = 100
_TICKS = os.sysconf("SC_CLK_TCK")
#: Decides as many releases as each line that it reads holds; prints its CPU seconds.
_DECIDE = """
import json, sys, time
from collections import deque
import modicum as mo
with mo.open_decider(sys.argv[1], actor="local") as decider:
    for line in sys.stdin:
        releases = json.loads(line)
        began, cpu, waiting = time.perf_counter(), time.process_time(), deque()
        for one in releases:
            waiting.append(decider.submit_soon(one))
            if len(waiting) >= int(sys.argv[2]):
                assert waiting.popleft().result().allowed
        while waiting:
            assert waiting.popleft().result().allowed
        spent = time.process_time() - cpu
        print(json.dumps([time.perf_counter() - began, spent]), flush=True)
"""
#: Serves an empty answer with the server's own settings of connections.
_BARE = """
import sys
from uvicorn import Server
from modicum.server.processes import Listening, bound, config_of
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})
listening = Listening(port=0)
own = bound(listening)
config = config_of(lambda: app, listening)
config.lifespan = "off"
print(f"listening on http://127.0.0.1:{own.getsockname()[1]}", file=sys.stderr)
sys.stderr.flush()
Server(config).run([own])
"""


@dataclass(frozen=True, slots=True)
class Ask:
    """A request.

    Attributes:
        method: Its method.
        path: Its path.
        body: Its body.
        releases: How many releases it is about; 1 for none.
    """

    method: str
    path: str
    body: bytes = b""
    releases: int = 1


@dataclass(slots=True)
class Measured:
    """What was measured of one way of asking.

    Attributes:
        rates: Releases a second, in each turn.
        costs: Milliseconds of CPU for each release, in each turn.
        times: Seconds of each request.
    """

    rates: list[float] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def note(self, releases: int, seconds: float, cpu: float) -> None:
        """Note a turn."""
        self.rates.append(releases / seconds)
        self.costs.append(1e3 * cpu / releases)


@contextmanager
def started(command: Sequence[str | Path]) -> Iterator[tuple[int, int]]:
    """Run a server in a process of its own; yield its port and its process id."""
    with subprocess.Popen(  # noqa: S603 - our own command
        command, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("listening on "):
                break
        else:
            raise RuntimeError("the server did not start")
        # It writes a line about each request, and would wait for who reads none.
        threading.Thread(target=process.stderr.read, daemon=True).start()
        try:
            yield int(line.rpartition(":")[2]), process.pid
        finally:
            process.terminate()


@contextmanager
def deciding(ledger: Path, clients: int) -> Iterator[Callable[[Any], list[float]]]:
    """Yield what decides releases in a process; it returns seconds, and CPU seconds."""
    command = [sys.executable, "-c", _DECIDE, str(ledger), str(clients)]
    with subprocess.Popen(  # noqa: S603 - our own command
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        send, receive = process.stdin, process.stdout

        def decide(releases: Any) -> list[float]:
            send.write(json.dumps(releases) + "\n")
            send.flush()
            found: list[float] = json.loads(receive.readline())
            return found

        yield decide
        send.close()


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of a process, all its threads together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


class Crowd:
    """Clients that keep their connections, each with its own token.

    Args:
        port: The port of the server.
        tokens: Their tokens.
    """

    def __init__(self, port: int, tokens: Sequence[str]) -> None:
        self._port = port
        self._tokens = tokens
        self._open: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._keys = count()

    async def connect(self) -> None:
        """Open the connections: a server closes those that are idle for long."""
        for _ in self._tokens:
            pair = await asyncio.open_connection("127.0.0.1", self._port)
            self._open.append(pair)

    async def ask(self, asks: Iterator[Ask], times: list[float]) -> int:
        """Ask everything once; return how many releases that was."""
        clients = zip(self._tokens, self._open, strict=True)
        return sum(
            await asyncio.gather(
                *(self._one(token, *pair, asks, times) for token, pair in clients)
            )
        )

    async def _one(
        self,
        token: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        asks: Iterator[Ask],
        times: list[float],
    ) -> int:
        done = 0
        for one in asks:
            began = time.perf_counter()
            writer.write(
                f"{one.method} {one.path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n"
                f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
                f"Idempotency-Key: {next(self._keys)}\r\n"
                f"Content-Length: {len(one.body)}\r\n\r\n".encode()
                + one.body
            )
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length:")[2].partition(b"\r")[0]
            body = await reader.readexactly(int(length or 0))
            if head.split(b" ", 2)[1] not in (b"200", b"204"):
                raise RuntimeError((head + body).decode()[:800])
            times.append(time.perf_counter() - began)
            done += one.releases
        return done

    async def close(self) -> None:
        """Close all connections."""
        for _, writer in self._open:
            writer.close()
        self._open.clear()


def _asks(releases: Iterator[dict[str, Any]], count: int) -> dict[str, list[Ask]]:
    """Return what is asked in one turn, by the name of its row."""

    def each(path: str) -> list[Ask]:
        bodies = (json.dumps(next(releases)).encode() for _ in range(count))
        return [Ask("POST", f"/api/v1{path}", one) for one in bodies]

    many = ([next(releases) for _ in range(BATCH)] for _ in range(count // BATCH))
    bodies = (json.dumps({"releases": one}).encode() for one in many)
    path = "/api/v1/releases:batch"
    return {
        "submit over HTTP": each("/releases"),
        f"in batches of {BATCH}": [Ask("POST", path, one, BATCH) for one in bodies],
        "check over HTTP": each("/releases:check"),
        "empty authenticated answer": [Ask("GET", "/api/v1/ping")] * count,
    }


def compare_load(
    ledger: Path,
    tokens: Sequence[str],
    releases: Iterator[dict[str, Any]],
    part: int,
    before: Path | None = None,
) -> None:
    """Ask in every way, in turns, and print the table.

    Args:
        ledger: The ledger; every other process decides on a copy.
        tokens: One for each client.
        releases: Makes new releases.
        part: The whole run, or such a part of it.
        before: A working tree of another commit, whose server is asked as well.
    """
    copy, other = ledger.with_name("copy.db"), ledger.with_name("before.db")
    shutil.copyfile(ledger, copy)
    shutil.copyfile(ledger, other)
    turns, size = (15, 2_000) if part == 1 else (3, 400)
    modicum = Path(sys.executable).with_name("modicum")
    found: dict[str, Measured] = {"submit in process": Measured()}
    with ExitStack() as stack, asyncio.Runner() as runner:
        decide = stack.enter_context(deciding(copy, len(tokens)))
        serve: list[str | Path] = [modicum, "serve", "--ledger", ledger, "--port", "0"]
        port, pid = stack.enter_context(started(serve))
        bare_port, bare_pid = stack.enter_context(
            started([sys.executable, "-c", _BARE])
        )
        crowd, bare = Crowd(port, tokens), Crowd(bare_port, tokens)
        served = [(crowd, pid, "")]
        if before is not None:
            elsewhere = ["env", f"PYTHONPATH={before}/src", *serve[:3], other]
            place = started([*elsewhere, "--port", "0"])
            old_port, old_pid = stack.enter_context(place)
            served.append((Crowd(old_port, tokens), old_pid, _BEFORE))
        for turn in range(turns + 1):
            kept = turn > 0  # The first turn fills caches.
            seconds, cpu = decide([next(releases) for _ in range(size)])
            if kept:
                found["submit in process"].note(size, seconds, cpu)
            rows = [
                (one, process, name + suffix, asks)
                for one, process, suffix in served
                for name, asks in _asks(releases, size).items()
            ]
            nothing = [Ask("GET", "/")] * size
            rows.append((bare, bare_pid, "bare ASGI answer", nothing))
            for asking, process, name, asks in rows if turn % 2 else reversed(rows):
                measured = found.setdefault(name, Measured())
                times = measured.times if kept else []
                runner.run(asking.connect())
                cpu, began = cpu_of(process), time.perf_counter()
                done = runner.run(asking.ask(iter(asks), times))
                seconds = time.perf_counter() - began
                if kept:
                    measured.note(done, seconds, cpu_of(process) - cpu)
                runner.run(asking.close())
    _print(found, turns, size, len(tokens))


def _print(found: dict[str, Measured], turns: int, size: int, clients: int) -> None:
    print(f"\n{turns} turns of {size:,} releases, {clients} clients; medians\n")
    print("| | releases/s | server CPU ms each | x in process | p50 ms | p99 ms |")
    print("|---|--:|--:|--:|--:|--:|")
    base = statistics.median(found["submit in process"].costs)
    for name, one in sorted(found.items(), key=_place):
        rate, cost = statistics.median(one.rates), statistics.median(one.costs)
        times = sorted(one.times)
        p50, p99 = (
            f"{1e3 * times[len(times) * percent // 100]:.1f}" if times else ""
            for percent in (50, 99)
        )
        print(
            f"| {name} | {rate:,.0f} | {cost:.3f} | {cost / base:.2f} | {p50} | {p99} |"
        )


def _place(row: tuple[str, Measured]) -> tuple[int, str]:
    return _ORDER.index(row[0].removesuffix(_BEFORE)), row[0]


_BEFORE = ", before"
_ORDER = (
    "submit in process",
    "submit over HTTP",
    f"in batches of {BATCH}",
    "check over HTTP",
    "empty authenticated answer",
    "bare ASGI answer",
)
