"""Shipping of the access trail: each target gets every event, also what it missed."""

from __future__ import annotations

import json
import re
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from samples.small import NOON, compiled
from samples.stores import sqlite_place

from modicum.api.local import Workspace
from modicum.core.document import from_python
from modicum.core.errors import InputError
from modicum.ledger.log.chain import Record
from modicum.ledger.proof.access_trail import AccessEvent, AccessKind
from modicum.server.access_trail.record import AccessRecord
from modicum.server.access_trail.shipment import BATCH_MAX, Shipment
from modicum.server.settings.audit_targets import (
    AuditTarget,
    TargetKind,
    audit_target,
)
from modicum.server.settings.model import Settings
from modicum.storage.access_table import AccessTable
from modicum.system.clock import FixedClock, SystemClock

CLOCK = FixedClock(NOON)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Any]:
    opened = sqlite_place(tmp_path / "a.db", keep_open=True).open()
    Workspace(opened, CLOCK, policy=compiled(), actor="tester").init()
    yield opened
    opened.close()


@pytest.fixture
def table(store: Any) -> AccessTable:
    return AccessTable(store)


def note(table: AccessTable, count: int = 1) -> None:
    one = AccessEvent(
        NOON, AccessKind.RIGHT, "refused", who="Zoë", parts=("a",), count=3
    )
    table.append(lambda _: ([one] * count, {}))


def seqs(lines: list[bytes]) -> list[int]:
    return [json.loads(one)["seq"] for one in lines]


def given(text: str, folder: Path = Path()) -> AuditTarget:
    return audit_target(from_python(text), "a target", folder)


# --- names of targets ---


def test_targets_are_named_by_one_text(tmp_path: Path) -> None:
    assert given("trail.jsonl", tmp_path).place == str(tmp_path / "trail.jsonl")
    assert given("syslog://log.example.org") == AuditTarget(
        TargetKind.SYSLOG_UDP, "log.example.org", 514
    )
    assert given("syslog+tcp://[::1]:601") == AuditTarget(
        TargetKind.SYSLOG_TCP, "::1", 601
    )
    assert given("syslog:///dev/log") == AuditTarget(
        TargetKind.SYSLOG_LOCAL, "/dev/log"
    )
    url = "https://collector:4318/v1/logs"
    assert given(f"otlp+{url}") == AuditTarget(TargetKind.OTLP, url)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "https://collector/v1/logs",
        "syslog://",
        "syslog://a:canary@host",
        "otlp+https://canary@host/v1/logs",
        "otlp+https://host/v1/logs?key=canary",
        "syslog://host:0",
        "syslog://host:99999",
        "syslog+tcp://host/path",
        "otlp+https:///v1/logs",
        "ftp://host",
    ],
)
def test_what_is_no_target_is_refused_without_its_password(text: str) -> None:
    with pytest.raises(InputError) as caught:
        given(text)
    assert "canary" not in caught.value.problems[0].message


# --- files ---


@pytest.mark.spec("REG-13")
def test_a_file_gets_each_event_once_and_survives_rotation_and_a_torn_line(
    table: AccessTable, tmp_path: Path
) -> None:
    path = tmp_path / "out.jsonl"
    shipment = Shipment(table, given(str(path)), SystemClock())
    note(table, BATCH_MAX + 5)
    assert shipment.ship() == BATCH_MAX + 5
    assert shipment.ship() == 0
    assert seqs(path.read_bytes().splitlines()) == [*range(1, BATCH_MAX + 6)]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.rename(tmp_path / "out.1")
    path.write_bytes(b'{"torn":')
    note(table)
    again = Shipment(table, given(str(path)), SystemClock())
    shipment._end()  # The other one holds the target no longer.
    assert again.ship() == 1
    torn, line = path.read_bytes().splitlines()
    assert torn == b'{"torn":'
    assert seqs([line]) == [BATCH_MAX + 6]


@pytest.mark.spec("REG-13")
def test_what_was_missed_is_sent_later_and_by_one_server_at_a_time(
    table: AccessTable, tmp_path: Path
) -> None:
    folder = tmp_path / "away"
    target = given(str(folder / "out.jsonl"))
    first, second = (Shipment(table, target, SystemClock()) for _ in range(2))
    note(table, 3)
    with pytest.raises(OSError, match="No such file"):
        first.ship()
    assert first.state().behind == 3
    folder.mkdir()
    assert second.ship() == 0  # The first one holds it.
    assert first.ship() == 3
    note(table)
    assert second.ship() == 0
    first._end()
    assert second.ship() == 1
    assert seqs((folder / "out.jsonl").read_bytes().splitlines()) == [1, 2, 3, 4]


def test_a_position_that_was_not_stored_repeats_events(
    table: AccessTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.jsonl"
    shipment = Shipment(table, given(str(path)), SystemClock())
    note(table, 2)

    def killed(*_: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(table, "advance", killed)
        with pytest.raises(KeyboardInterrupt):
            shipment.ship()
    assert shipment.ship() == 2
    assert seqs(path.read_bytes().splitlines()) == [1, 2, 1, 2]


# --- syslog ---

_SYSLOG = re.compile(
    rb"<(\d+)>1 (\S+) (\S+) modicum (\d+) ([\w-]+) - (\{.*\})", re.DOTALL
)


def read_message(message: bytes) -> int:
    found = _SYSLOG.fullmatch(message)
    assert found is not None
    assert found[1] == b"108"  # Facility 13, severity 4.
    assert found[2] == NOON.encode()
    assert found[5] == b"right"
    plain = json.loads(found[6])
    assert plain["event"]["who"] == "Zoë"
    return int(plain["seq"])


@pytest.mark.spec("REG-13")
@pytest.mark.parametrize("kind", ["inet", "unix"])
def test_syslog_by_datagrams(table: AccessTable, tmp_path: Path, kind: str) -> None:
    place = tmp_path / "log"
    if kind == "inet":
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        receiver.bind(("127.0.0.1", 0))
        target = given(f"syslog://127.0.0.1:{receiver.getsockname()[1]}")
    else:
        receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        receiver.bind(str(place))
        target = given(f"syslog://{place}")
    with receiver:
        receiver.settimeout(60)
        note(table, 3)
        shipment = Shipment(table, target, SystemClock())
        assert shipment.ship() == 3
        assert [read_message(receiver.recv(9999)) for _ in range(3)] == [1, 2, 3]
        shipment._end()


def read_framed(stream: BinaryIO) -> int:
    length = b""
    while (byte := stream.read(1)) != b" ":
        length += byte
    return read_message(stream.read(int(length)))


@pytest.mark.spec("REG-13")
def test_syslog_over_tcp_counts_octets_and_comes_back(table: AccessTable) -> None:
    note(table, 3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        target = given(f"syslog+tcp://127.0.0.1:{port}")
        shipment = Shipment(table, target, SystemClock())
        assert shipment.ship() == 3
        connection, _ = server.accept()
        with connection.makefile("rb") as stream:
            assert [read_framed(stream) for _ in range(3)] == [1, 2, 3]
        connection.close()  # The receiver is started again.
        note(table, 2)
        with pytest.raises(OSError, match=r"closed|reset|pipe"):
            shipment.ship()
        assert shipment.ship() == 2
        connection, _ = server.accept()
        shipment._end()
        with connection, connection.makefile("rb") as stream:
            assert [read_framed(stream) for _ in range(2)] == [4, 5]


# --- OTLP ---


@contextmanager
def collector(statuses: list[int]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    received: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.headers["Content-Type"] == "application/json"
            status = statuses.pop(0) if statuses else 200
            if status == 200:
                received.append(json.loads(body))
            self.send_response(status)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1/logs", received
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.spec("REG-13")
def test_otlp_counts_only_a_success(table: AccessTable) -> None:
    note(table, 2)
    with collector([503, 302]) as (url, received):
        shipment = Shipment(table, given(f"otlp+{url}"), SystemClock())
        for status in (503, 302):
            with pytest.raises(OSError, match=str(status)):
                shipment.ship()
        assert shipment.ship() == 2
        shipment._end()
    (request,) = received
    (scope,) = request["resourceLogs"][0]["scopeLogs"]
    records = scope["logRecords"]
    assert [json.loads(x["body"]["stringValue"])["seq"] for x in records] == [1, 2]
    (first, _) = records
    attributes = {x["key"]: x["value"] for x in first["attributes"]}
    assert attributes["modicum.who"] == {"stringValue": "Zoë"}
    assert attributes["modicum.seq"] == {"intValue": "1"}
    assert attributes["modicum.parts"] == {"stringValue": '["a"]'}
    assert (first["severityText"], first["eventName"]) == ("WARN", "modicum.right")
    noon = datetime.fromisoformat(NOON).replace(tzinfo=UTC)
    assert first["timeUnixNano"] == f"{int(noon.timestamp())}000000000"


# --- a server ---


def test_a_server_ships_its_start_and_its_end(store: Any, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    away = "syslog+tcp://127.0.0.1:1"
    targets = given(str(path)), given(away)
    record = AccessRecord.of(Settings(audit_to=targets), store, SystemClock())
    record.start()
    record.close()
    found = [json.loads(one) for one in path.read_bytes().splitlines()]
    kinds = [one["event"]["kind"] for one in found]
    assert kinds == ["server-started", "server-stopped"]
    assert record.shipments[0].state().is_reached
    assert not record.shipments[1].state().is_reached
    table = AccessTable(store)
    stored = [*table.read()]
    assert [(x.seq, x.hash) for x in stored] == [(x["seq"], x["hash"]) for x in found]
    assert isinstance(stored[0], Record)
