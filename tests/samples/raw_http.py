"""Connections of a test's own, byte by byte, and servers that they go to."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from starlette.types import ASGIApp
from uvicorn import Server

from modicum.server.connections import Connections, Timeouts, patient
from modicum.server.processes import Listening, config_of

#: Only a failure takes so long.
PATIENCE = 180.0


@contextmanager
def listening(
    app: ASGIApp, *, waits: Timeouts | None = None, most: int | None = None
) -> Iterator[tuple[Server, str]]:
    """Run a server of an application; yield it, and where it is."""
    waits = waits or Timeouts()
    config = config_of(lambda: app, Listening(waits=waits, drain_seconds=1))
    config.lifespan = "off"
    if most is not None:
        config.http = patient(Connections(most, waits))
    server = Server(config)
    own = socket.socket(proto=socket.IPPROTO_TCP)
    own.bind(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([own],), daemon=True)
    thread.start()
    try:
        eventually(lambda: server.started or not thread.is_alive())
        yield server, f"http://127.0.0.1:{own.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
        own.close()


def connect(url: str) -> socket.socket:
    """Return a connection to a server."""
    place = urlsplit(url)
    assert place.hostname is not None
    assert place.port is not None
    return socket.create_connection((place.hostname, place.port), timeout=PATIENCE)


def head(method: str, path: str, *lines: str, version: str = "1.1") -> bytes:
    """Return the head of a request."""
    return "\r\n".join(
        [f"{method} {path} HTTP/{version}", "Host: 127.0.0.1", *lines, "", ""]
    ).encode()


def heard(own: socket.socket) -> bytes:
    """Return all that comes until the server closes the connection."""
    found = bytearray()
    try:
        while piece := own.recv(65536):
            found += piece
    except ConnectionResetError:
        pass
    return bytes(found)


def heard_until(own: socket.socket, end: bytes) -> bytes:
    """Return what comes until something was heard; all of it, if it never comes."""
    found = bytearray()
    while end not in found and (piece := own.recv(65536)):
        found += piece
    return bytes(found)


def statuses(answers: bytes) -> list[int]:
    """Return the statuses of answers, in the order in which they came."""
    parts = answers.split(b"HTTP/1.1 ")[1:]
    return [int(one[:3]) for one in parts]


def eventually(true: Callable[[], bool]) -> None:
    """Wait for what must happen."""
    ends = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < ends
        time.sleep(0.01)
