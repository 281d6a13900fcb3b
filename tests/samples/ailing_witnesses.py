"""Witnesses of each kind that ail, and come back with their data."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from io import BufferedIOBase
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import psycopg
import pytest

from samples.faults import JUMPS, Disk, Fault, Proxy, link_faults, linked
from samples.postgres import Cluster
from samples.witnesses import AWS, Buckets, Register, serving


class Kept(Protocol):
    """A witness as its own machine sees it: no fault hinders it."""

    def line(self) -> bytes | None:
        """Return its line."""

    def swap(self, new: bytes) -> bytes:
        """Replace its line, which nobody replaces meanwhile; return the old one."""


@dataclass
class Place:
    """A witness of a server under test.

    Attributes:
        name: What servers are given.
        kept: What is kept there.
        faults: What can happen to it.
        has_clock: Whether it has a clock of its own.
    """

    name: str
    kept: Kept
    faults: list[Fault]
    has_clock: bool = True


class InFile:
    """A line in a file, whose folder may be elsewhere for a while."""

    def __init__(self, path: Path, elsewhere: Path) -> None:
        self._path = path
        self._elsewhere = elsewhere / path.name

    def line(self) -> bytes | None:
        for path in (self._path, self._elsewhere):
            with suppress(FileNotFoundError):
                return path.read_bytes()
        return None

    def swap(self, new: bytes) -> bytes:
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)  # As a server does: no line is lost.
            old = self._path.read_bytes()
            draft = self._path.with_suffix(".older")
            draft.write_bytes(new)
            draft.replace(self._path)
        finally:
            os.close(folder)
        return old


class InMemory:
    """A line of a stand-in for a register or a bucket."""

    def __init__(self, handler: type[BaseHTTPRequestHandler], path: str) -> None:
        self._handler: Any = handler
        self._path = path

    def line(self) -> bytes | None:
        found: Any = self._handler.lines.get(self._path)
        line: bytes | None = found[-1][1] if isinstance(found, list) else found
        return line

    def swap(self, new: bytes) -> bytes:
        with self._handler.guard:
            lines, path = self._handler.lines, self._path
            old = self.line()
            assert old is not None
            if isinstance(lines[path], list):
                lines[path].append((f"v{len(lines[path])}", new))
            else:
                lines[path] = new
        return old


class InTable:
    """A line in a database."""

    def __init__(self, url: str) -> None:
        self._url, _, ledger = url.partition("&modicum_ledger=")
        self._table = f"modicum_{ledger}_witness.head"

    def line(self) -> bytes | None:
        with psycopg.connect(self._url) as connection:
            name = connection.execute("SELECT to_regclass(%s)", (self._table,))
            if name.fetchone() == (None,):
                return None
            found = connection.execute(f"SELECT line FROM {self._table}".encode())
            row = found.fetchone()
            return bytes(row[0]) if row else None

    def swap(self, new: bytes) -> bytes:
        with psycopg.connect(self._url) as connection:
            old = connection.execute(
                f"SELECT line FROM {self._table} FOR UPDATE".encode()
            ).fetchone()
            connection.execute(f"UPDATE {self._table} SET line = %s".encode(), (new,))
            assert old is not None
            return bytes(old[0])


@dataclass
class Trouble:
    """What ails a stand-in.

    Attributes:
        how: `500`, `500 afterwards`, `drips`, or nothing.
        shift: By how many seconds its clock is wrong.
    """

    how: str = ""
    shift: float = 0.0


class Dripping:
    """What writes a few bytes at a time, for as long as its stand-in drips."""

    def __init__(self, plain: BufferedIOBase, trouble: Trouble) -> None:
        self._plain = plain
        self._trouble = trouble

    def write(self, data: bytes) -> None:
        for begin in range(0, len(data), 16):
            self._plain.write(data[begin : begin + 16])
            if self._trouble.how == "drips":
                time.sleep(0.25)

    def flush(self) -> None:
        self._plain.flush()


def ailing(base: type[Any], trouble: Trouble) -> type[BaseHTTPRequestHandler]:
    """Return a handler like another one, which has some trouble."""

    class Ailing(base):  # type: ignore[misc]
        def parse_request(self) -> bool:
            if not super().parse_request():
                return False
            if trouble.how != "500":
                return True
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._answer(500)
            return False

        def _answer(self, status: int, *more: Any, **named: Any) -> None:
            if trouble.how == "500 afterwards" and self.command == "PUT":
                status = 500
            plain: Any = vars(self)["wfile"]
            if trouble.how == "drips":
                self.wfile = Dripping(plain, trouble)
            super()._answer(status, *more, **named)
            self.wfile = plain

        def handle_one_request(self) -> None:
            self.close_connection = True
            with suppress(ConnectionError):  # Whoever asked went away.
                super().handle_one_request()

        def date_time_string(self, timestamp: float | None = None) -> str:
            now = time.time() if timestamp is None else timestamp
            return str(super().date_time_string(int(now + trouble.shift)))

    return Ailing


@dataclass
class Standing:
    """A stand-in that can be restarted with its data, behind a link.

    Args:
        base: Its handler.

    Attributes:
        trouble: What ails it.
        handler: The same handler, which may be ailing.
        proxy: The link.
    """

    base: type[BaseHTTPRequestHandler]
    trouble: Trouble = field(default_factory=Trouble)

    def __post_init__(self) -> None:
        made = ailing(self.base, self.trouble)
        self.handler = type("Own", (made,), {"lines": {}, "guard": threading.Lock()})
        self.proxy = Proxy(("", 0))
        self._running = ExitStack()
        self.start()

    def start(self) -> None:
        """Start it."""
        url = urlsplit(self._running.enter_context(serving(self.handler, anew=False)))
        assert url.hostname is not None
        assert url.port is not None
        self.proxy.target = url.hostname, url.port

    def stop(self) -> None:
        """Stop it; its data stay."""
        self._running.close()
        self.proxy.cut()

    def close(self) -> None:
        """Stop it, and its link."""
        self.proxy.close()
        self._running.close()

    def faults(self) -> list[Fault]:
        """Return what can happen to it."""

        def ails(how: str) -> Fault:
            return Fault(f"witness {how}", "witness", lambda: ail(how), lambda: ail(""))

        def ail(how: str) -> None:
            self.trouble.how = how

        def shift(seconds: float) -> Fault:
            return Fault(
                "witness's clock jumps", "clock", lambda: jump(seconds), lambda: jump(0)
            )

        def jump(seconds: float) -> None:
            self.trouble.shift = seconds

        restart = Fault("witness restarts", "witness", self.stop, self.start)
        ways = [ails(how) for how in ("500", "500 afterwards", "drips")]
        clocks = [shift(one) for one in JUMPS]
        return [*link_faults("witness link", self.proxy), restart, *ways, *clocks]


@contextmanager
def witness_place(
    kind: str, folder: Path, cluster: Callable[[], Cluster]
) -> Iterator[Place]:
    """Yield a witness of a kind, and what can happen to it.

    Args:
        kind: One of `witnesses.KINDS`.
        folder: An empty folder.
        cluster: Returns a PostgreSQL server that may be restarted.
    """
    if kind == "file":
        disk = Disk(folder / "witness")
        kept, gone = disk.folder / "kept", disk.folder / "gone"
        kept.mkdir()
        missing = Fault(
            "witness's disk gone",
            "witness's disk",
            lambda: kept.rename(gone),
            lambda: gone.rename(kept),
        )
        faults = [missing, *disk.faults("witness")]
        path = kept / "head"
        with closing(disk):
            yield Place(str(path), InFile(path, gone), faults, has_clock=False)
    elif kind == "postgresql":
        server = cluster()
        url = server.new_ledger()
        proxy = Proxy(f"{server.folder}/.s.PGSQL.5432")
        restart = Fault("witness restarts", "witness", server.stop, server.start)
        faults = [*link_faults("witness link", proxy), restart]
        with closing(proxy):
            yield Place(linked(url, proxy), InTable(url), faults)
    else:
        standing = Standing(Register if kind == "http" else Buckets)
        url = f"http://127.0.0.1:{standing.proxy.port}"
        name, at = f"{url}/head", "/head"
        if kind == "s3":
            name, at = "s3://ledgers/head", "/ledgers/head"
        with pytest.MonkeyPatch.context() as patch, closing(standing):
            for key, value in {**AWS, "AWS_ENDPOINT_URL_S3": url}.items():
                patch.setenv(key, value)
            yield Place(name, InMemory(standing.handler, at), standing.faults())
