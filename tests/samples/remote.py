"""A server for tests of `mo.connect`, and what cuts connections to it."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from starlette.requests import Request

import modicum as mo
from modicum.api.local import Clock
from modicum.api.permissions.identity import Grants, Identity
from modicum.server.auth.authentication import Recognizing
from modicum.server.auth.registry import open_registry
from modicum.server.components import Parts
from modicum.server.rate_limits import Rates
from modicum.server.resources import Equipment
from modicum.server.settings.model import Limits
from modicum.storage.factory import open_store
from samples.served import PEOPLE, running

#: What comes before a name in a token; only servers of tests believe it.
BEFORE = "token-of-"


class ByToken:
    """Believes tokens that say whose they are.

    Args:
        people: Who there is.
    """

    def __init__(self, people: Mapping[str, Grants]) -> None:
        self._people = people

    async def identify(self, request: Request) -> Identity | None:
        """Return whom the token names."""
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        name = token.removeprefix(BEFORE)
        if name == token or name not in self._people:
            return None
        return Identity(name, self._people[name], via="a token")


@contextmanager
def answering(
    ledger: str | Path,
    *,
    policy: Any = None,
    rates: Rates | None = None,
    clock: Clock | None = None,
    people: Mapping[str, Grants] = PEOPLE,
    own: Equipment | None = None,
) -> Iterator[str]:
    """Serve a ledger to who has a token; yield where."""
    if policy is not None:
        mo.open(ledger, policy=policy, actor="olga", clock=clock).init()
    decider = mo.open_decider(ledger, clock=clock)
    # What a workspace writes beside the server is to be seen at once here.
    for one in (decider._checker, decider._onlooker):
        one._store._fresh_seconds = -1.0
    store = open_store(ledger, keep_open=True)
    registry = open_registry(store, fresh_seconds=0)
    parts = Parts(
        decider,
        registry,
        Recognizing([ByToken(people)]),
        rates or Rates(),
        own=own or Equipment(),
    )
    try:
        # As much data may be sent as the usual settings allow.
        with running(parts, data_bytes=Limits().data_bytes) as url:
            yield url
    finally:
        parts.service.jobs.close()
        decider.close()
        store.close()


class Cutter:
    """Stands between a client and a server, and cuts connections.

    Args:
        port: Where the server is.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        #: What to do to the next requests, in order; `pass` when there is no more:
        #: `before`: cut before the server hears of it; `half`: let it hear half of
        #: it; `after`: cut once it has answered, and tell nothing; `torn`: tell half of
        #: the answer.
        self.plan: list[str] = []
        #: Requests that do not hold this, in small letters, are passed on.
        self.only = b""
        #: What was sent, request by request.
        self.seen: list[bytes] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop."""
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(10)

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            with client, suppress(OSError):
                client.settimeout(30)
                self._pass_on(client)

    def _pass_on(self, client: socket.socket) -> None:
        """Hand one request on; each has a connection of its own."""
        request = _message(client)
        if not request:
            return
        self.seen.append(request)
        is_meant = self.only in request.lower()
        what = self.plan.pop(0) if self.plan and is_meant else "pass"
        if what == "before":
            return
        with socket.create_connection(("127.0.0.1", self._port), 30) as server:
            alone = request.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
            if what == "half":
                server.sendall(alone[: len(alone) - 10])
                return
            server.sendall(alone)
            answer = b""
            while part := server.recv(65536):
                answer += part
        if what == "pass":
            client.sendall(answer)
        elif what == "torn":
            client.sendall(answer[: len(answer) // 2])


def _message(client: socket.socket) -> bytes:
    """Return a request with its content."""
    found = b""
    while b"\r\n\r\n" not in found:
        part = client.recv(65536)
        if not part:
            return b""
        found += part
    head, _, content = found.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    while len(content) < length:
        content += client.recv(65536)
    return head + b"\r\n\r\n" + content


@contextmanager
def saying(
    answer: bytes, context: ssl.SSLContext | None = None
) -> Iterator[list[bytes]]:
    """Answer whoever asks; yield the port, and then what was asked."""
    listening = socket.create_server(("127.0.0.1", 0))
    received: list[bytes] = [str(listening.getsockname()[1]).encode()]

    def serve() -> None:
        while True:
            try:
                client, _ = listening.accept()
                if context is not None:
                    client = context.wrap_socket(client, server_side=True)
                with client:
                    received.append(client.recv(65536))
                    client.sendall(answer)
            except ssl.SSLError:
                continue
            except OSError:
                if listening.fileno() == -1:
                    return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield received
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(10)
