"""Jobs of a served ledger, waited for; and server-sent events, read."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx2

from samples.served import Served

#: Longer than anything here takes on a slow machine.
PATIENCE = 120.0


def finished(server: Served, who: str, answered: httpx2.Response) -> dict[str, Any]:
    """Return a job that was begun, once it is over."""
    assert answered.status_code == 202, answered.text
    place = answered.headers["location"].removeprefix("/api/v1")
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        job: dict[str, Any] = server.get(who, place).json()
        if job["state"] not in ("queued", "running"):
            return job
        time.sleep(0.02)
    raise TimeoutError(place)


def events_of(lines: Iterator[str]) -> Iterator[tuple[str, Any, str | None]]:
    """Yield each event of a stream: its kind, its data, and its id."""
    fields: dict[str, str] = {}
    for line in lines:
        if line.startswith(":"):
            continue
        if line:
            key, _, value = line.partition(": ")
            fields[key] = value
        elif fields:
            yield fields["event"], json.loads(fields["data"]), fields.get("id")
            fields = {}
