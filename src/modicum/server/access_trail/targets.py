"""Targets that events are shipped to: a file, syslog, and OTLP logs over HTTP.

Each takes lines of the stored chain, and raises `OSError` if they may not have arrived.
"""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from modicum.core.canonical import decode
from modicum.ledger.log.chain import Record
from modicum.ledger.proof.access_trail import AccessEvent, event_in, line_of
from modicum.server.settings.audit_targets import AuditTarget, TargetKind

if TYPE_CHECKING:
    import httpx2

#: Seconds that one attempt may take.
TIMEOUT: Final = 5.0
#: The facility "log audit" of RFC 5424, and two of its severities.
_FACILITY: Final = 13
_INFO, _WARNING = 6, 4
#: The numbers of these severities in OTLP.
_OTLP: Final = {_INFO: (9, "INFO"), _WARNING: (13, "WARN")}
_NOT_PRINTED: Final = re.compile(r"[^!-~]")


class Target(Protocol):
    """A place that events are sent to."""

    def send(self, records: Sequence[Record]) -> None:
        """Send records in order; raise `OSError` if they may not have arrived."""
        ...

    def close(self) -> None:
        """Close connections."""
        ...


def target_of(given: AuditTarget) -> Target:
    """Return a target; nothing is opened yet."""
    match given.kind:
        case TargetKind.FILE:
            return FileTarget(Path(given.place))
        case TargetKind.OTLP:
            return OtlpTarget(given.place)
        case _:
            return SyslogTarget(given)


class FileTarget:
    """A file of JSON lines, opened anew for each batch, so that it may be rotated.

    Args:
        path: The file; it is made for its owner only.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def send(self, records: Sequence[Record]) -> None:
        """Append lines, and synchronize the file."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(self._path, flags, 0o600)
        with os.fdopen(handle, "rb+", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            lines = b"".join(line_of(one) + b"\n" for one in records)
            if size and os.pread(handle, 1, size - 1) != b"\n":
                lines = b"\n" + lines  # The writer of half a line was killed.
            if file.write(lines) != len(lines):
                raise OSError("the file took a part only")
            os.fsync(handle)

    def close(self) -> None:
        """Do nothing: it is open only while a batch is written."""


class SyslogTarget:
    """Syslog as in RFC 5424; over TCP with the length before each message (RFC 6587).

    It has no acknowledgments: what the system took counts as sent.

    Args:
        given: The target.
    """

    def __init__(self, given: AuditTarget) -> None:
        self._given = given
        self._socket: socket.socket | None = None
        self._host = _NOT_PRINTED.sub("-", socket.gethostname())[:255] or "-"

    def send(self, records: Sequence[Record]) -> None:
        """Send a message for each record."""
        is_stream = self._given.kind is TargetKind.SYSLOG_TCP
        try:
            connected = self._connected()
            if is_stream:
                _refuse_closed(connected)
            for record in records:
                message = self._message(record)
                framed = b"%d %b" % (len(message), message) if is_stream else message
                connected.sendall(framed)
            if is_stream:
                _refuse_closed(connected)
        except OSError:
            self.close()  # All of it is sent again, on a new connection.
            raise

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _connected(self) -> socket.socket:
        if self._socket is None:
            given = self._given
            if given.kind is TargetKind.SYSLOG_TCP:
                self._socket = socket.create_connection(
                    (given.place, given.port), TIMEOUT
                )
                return self._socket
            family, address = _datagram_address(given)
            opened = socket.socket(family, socket.SOCK_DGRAM)
            opened.settimeout(TIMEOUT)
            try:
                opened.connect(address)
            except OSError:
                opened.close()
                raise
            self._socket = opened
        return self._socket

    def _message(self, record: Record) -> bytes:
        event = event_in(record)
        head = (
            f"<{_FACILITY * 8 + _severity(event)}>1 {event.at} {self._host} modicum"
            f" {os.getpid()} {event.kind.value} - "
        )
        return head.encode("ascii") + line_of(record)


class OtlpTarget:
    """A collector of OpenTelemetry logs: OTLP over HTTP, as JSON.

    Args:
        url: The whole URL, such as `https://collector:4318/v1/logs`.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    def send(self, records: Sequence[Record]) -> None:
        """Send a log record for each record; only a success counts."""
        import httpx2

        try:
            answer = self._client.post(self._url, json=otlp_logs(records))
        except httpx2.HTTPError as error:
            # Without its cause, which contains the URL.
            raise OSError(type(error).__name__) from None
        if answer.status_code != 200:
            raise OSError(f"it answered {answer.status_code}")

    def close(self) -> None:
        """Close the connections."""
        client = self.__dict__.pop("_client", None)
        if client is not None:
            client.close()

    @cached_property
    def _client(self) -> httpx2.Client:
        import httpx2

        return httpx2.Client(timeout=TIMEOUT, follow_redirects=False, trust_env=False)


def otlp_logs(records: Sequence[Record]) -> dict[str, Any]:
    """Return the request of an export, in the JSON form of OTLP."""
    return {
        "resourceLogs": [
            {
                "resource": {"attributes": [_attribute("service.name", "modicum")]},
                "scopeLogs": [
                    {
                        "scope": {"name": "modicum.access"},
                        "logRecords": [*map(_log_record, records)],
                    }
                ],
            }
        ]
    }


def _log_record(record: Record) -> dict[str, Any]:
    event = event_in(record)
    number, text = _OTLP[_severity(event)]
    # Exact: a float would lose the microseconds.
    at = datetime.fromisoformat(event.at)
    nanoseconds = int(at.timestamp()) * 10**9 + at.microsecond * 1000
    plain: Any = decode(record.payload)
    found = {f"modicum.{name}": value for name, value in plain["event"].items()}
    return {
        "timeUnixNano": str(nanoseconds),
        "severityNumber": number,
        "severityText": text,
        "eventName": f"modicum.{event.kind.value}",
        "body": {"stringValue": line_of(record).decode()},
        "attributes": [
            _attribute("modicum.seq", record.seq),
            *(_attribute(name, value) for name, value in found.items()),
        ],
    }


def _attribute(name: str, value: object) -> dict[str, Any]:
    if isinstance(value, int):
        return {"key": name, "value": {"intValue": str(value)}}
    text = value if isinstance(value, str) else json.dumps(value)
    return {"key": name, "value": {"stringValue": text}}


def _datagram_address(given: AuditTarget) -> tuple[int, Any]:
    """Return the family and the address of a target that takes datagrams."""
    if given.kind is TargetKind.SYSLOG_LOCAL:
        return socket.AF_UNIX, given.place
    found = socket.getaddrinfo(given.place, given.port, type=socket.SOCK_DGRAM)
    return found[0][0], found[0][4]


def _severity(event: AccessEvent) -> int:
    return _INFO if event.outcome == "done" else _WARNING


def _refuse_closed(connected: socket.socket) -> None:
    """Refuse a connection that the other side has closed."""
    connected.settimeout(0.0)
    try:
        if not connected.recv(4096):
            raise ConnectionResetError("it was closed")
    except BlockingIOError:
        pass
    finally:
        connected.settimeout(TIMEOUT)
