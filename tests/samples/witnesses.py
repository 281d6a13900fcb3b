"""Witnesses of each kind for tests, and a small server for those behind a URL."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from modicum.api.ports.storage import HeadWitness
from modicum.storage.witness.factory import open_witness
from samples.postgres import Cluster

KINDS = ("file", "http", "postgresql")
_NUMBERS = count(1)


class Register(BaseHTTPRequestHandler):
    """Keeps one line for each path, and never a lower entry than before."""

    protocol_version = "HTTP/1.1"
    lines: dict[str, bytes]
    guard: threading.Lock

    def do_GET(self) -> None:
        line = self.lines.get(self.path)
        if line is None:
            self._answer(404)
        else:
            self._answer(200, line)

    def do_PUT(self) -> None:
        new = self.rfile.read(int(self.headers["Content-Length"]))
        with self.guard:
            old = self.lines.get(self.path)
            if self.headers.get("If-None-Match") == "*":
                may = old is None
            else:
                may = old is not None and self.headers.get("If-Match") == _tag(old)
            if may and old is not None:
                may = _seq(old) < _seq(new)
            if may:
                self.lines[self.path] = new
        self._answer(200 if may else 412)

    def log_request(self, *_: Any) -> None:
        pass

    def _answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        if body:
            self.send_header("ETag", _tag(body))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _tag(line: bytes) -> str:
    return f'"{sha256(line).hexdigest()}"'


def _seq(line: bytes) -> int:
    return int(json.loads(line)["claim"]["seq"])


@contextmanager
def register() -> Iterator[str]:
    """Run a server; yield its URL."""
    handler = type("Own", (Register,), {"lines": {}, "guard": threading.Lock()})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(
            target=server.serve_forever, args=(0.01,), daemon=True
        )
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def new_name(kind: str, folder: Path, request: pytest.FixtureRequest) -> str:
    """Return the name of a witness that has no head yet.

    Args:
        kind: Its kind.
        folder: An empty folder, or one with other witnesses.
        request: Gives a server; the test has a fixture `register_url`.
    """
    number = next(_NUMBERS)
    if kind == "file":
        return str(folder / f"head-{number}")
    if kind == "http":
        return f"{request.getfixturevalue('register_url')}/{number}"
    cluster: Cluster = request.getfixturevalue("postgres")
    return cluster.new_ledger()


def opened(name: str) -> HeadWitness:
    """Return a witness, opened anew."""
    found = open_witness(name)
    assert found is not None
    return found
