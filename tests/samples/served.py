"""A server on a free port of this machine, in a thread of the test's own process."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx2
from starlette.requests import Request
from uvicorn import Server

import modicum as mo
from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import ALL, Grants, Identity
from modicum.server.access_trail.record import AccessRecord
from modicum.server.app import build
from modicum.server.auth.authentication import Recognizing
from modicum.server.auth.registry import open_registry
from modicum.server.components import Parts
from modicum.server.connections import Timeouts
from modicum.server.processes import Listening, config_of
from modicum.server.rate_limits import Rates
from modicum.server.resources import Equipment
from modicum.server.settings.audit_targets import AuditTarget, TargetKind
from modicum.server.settings.model import Settings
from modicum.server.telemetry.context import TelemetryContext
from modicum.storage.factory import open_store
from modicum.system.clock import SystemClock

#: Nothing is sent there: the trail is not started.
TARGETS = (AuditTarget(TargetKind.FILE, "/nowhere"),)
#: Says who asks; only servers of tests believe it.
HEADER = "X-Who"

ALL_SETS = frozenset({ALL})
#: The people of the organization that most tests are about.
PEOPLE: Mapping[str, Grants] = {
    "olga": {Role.PRIVACY_OFFICER: ALL_SETS},
    "pavel": {Role.PRIVACY_OFFICER: ALL_SETS},
    "dara": {Role.DATA_STEWARD: ALL_SETS},
    "amir": {Role.ANALYST: ALL_SETS},
    "ann": {Role.ANALYST: frozenset({"visits"})},
    "lee": {Role.ANALYST: frozenset({"labs"})},
    "petra": {Role.PLATFORM_ENGINEER: ALL_SETS},
    "audra": {Role.AUDITOR: ALL_SETS},
    "root": {Role.ADMIN: ALL_SETS},
}


class ByHeader:
    """Believes what a header says.

    Args:
        people: Who there is.
    """

    def __init__(self, people: Mapping[str, Grants]) -> None:
        self._people = people

    async def identify(self, request: Request) -> Identity | None:
        """Return who the header names."""
        name = request.headers.get(HEADER, "")
        if name not in self._people:
            return None
        return Identity(name, self._people[name], via="a header")


@dataclass
class Served:
    """A server that runs, and a client of it.

    Attributes:
        url: Where it is.
        client: Asks it.
        parts: What it is made of.
    """

    url: str
    client: httpx2.Client
    parts: Parts
    _keys: Iterator[int] = field(default_factory=lambda: iter(range(10**9)))

    def get(self, who: str, path: str, **named: Any) -> httpx2.Response:
        """Ask for something."""
        return self.client.get(f"/api/v1{path}", headers={HEADER: who}, **named)

    def page(self, who: str, path: str, **named: Any) -> httpx2.Response:
        """Open a page of the console."""
        return self.client.get(path, headers={HEADER: who}, **named)

    def fill(self, who: str, path: str, **fields: str) -> httpx2.Response:
        """Send a form of the console, under a new key unless one is given."""
        fields.setdefault("key", f"form-{next(self._keys)}")
        return self.client.post(path, data=fields, headers={HEADER: who})

    def post(
        self,
        who: str,
        path: str,
        document: object = None,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        **named: Any,
    ) -> httpx2.Response:
        """Ask for something to be done, under a new key unless one is given."""
        own = {
            HEADER: who,
            "Idempotency-Key": key or f"key-{next(self._keys)}",
            **(headers or {}),
        }
        return self.client.post(f"/api/v1{path}", json=document, headers=own, **named)


@contextmanager
def served(
    ledger: str | Path,
    *,
    policy: Any = None,
    people: Mapping[str, Grants] = PEOPLE,
    rates: Rates | None = None,
    strangers: Rates | None = None,
    watch: TelemetryContext | None = None,
    waits: Timeouts | None = None,
    own: Equipment | None = None,
    console: bool = False,
) -> Iterator[Served]:
    """Serve a ledger; it ends with the block."""
    if policy is not None:
        mo.open(ledger, policy=policy, actor="olga").init()
    decider = mo.open_decider(ledger)
    store = open_store(ledger, keep_open=True)
    registry = open_registry(store, fresh_seconds=0)
    parts = Parts(
        decider,
        registry,
        Recognizing([ByHeader(people)]),
        rates or Rates(),
        watch or TelemetryContext(),
        own or Equipment(),
        # Not imported above: most suites that serve a ledger do not use its pages.
        console=import_module("modicum.console.router").Console() if console else None,
        anonymous_rates=strangers or rates or Rates(),
        access=AccessRecord.of(Settings(audit_to=TARGETS), store, SystemClock()),
    )
    try:
        with (
            running(parts, waits) as url,
            httpx2.Client(base_url=url, timeout=60, verify=False) as client,
        ):
            yield Served(url, client, parts)
    finally:
        parts.service.jobs.close()
        decider.close()
        store.close()


def free_socket() -> socket.socket:
    """Return a socket at a free port of this machine."""
    found = socket.socket(proto=socket.IPPROTO_TCP)
    found.bind(("127.0.0.1", 0))
    return found


@contextmanager
def running(
    parts: Parts,
    waits: Timeouts | None = None,
    data_bytes: int = 0,
    own: socket.socket | None = None,
) -> Iterator[str]:
    """Run a server, at a socket of its own or a free one; yield where it is."""
    made = build(parts, data_bytes=data_bytes)
    config = config_of(lambda: made, Listening(waits=waits or Timeouts()))
    config.lifespan = "off"
    server = Server(config)
    listening = own or free_socket()
    thread = threading.Thread(
        target=server.run, args=([listening],), name="served", daemon=True
    )
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise RuntimeError("the server did not start")
            time.sleep(0.005)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
        listening.close()
