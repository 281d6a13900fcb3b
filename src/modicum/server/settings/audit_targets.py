"""Targets of the access trail, as settings and `--audit-to` name them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, unique
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from modicum.core.document import Node
from modicum.core.errors import Code
from modicum.core.reader import fail, line

#: The port of syslog.
SYSLOG_PORT: Final = 514
_HELP: Final = (
    "write a file, syslog://HOST:PORT (UDP), syslog+tcp://HOST:PORT, syslog:///dev/log,"
    " or otlp+https://HOST:PORT/v1/logs; without user and password"
)


@unique
class TargetKind(Enum):
    """The kind of a target."""

    FILE = "file"
    SYSLOG_UDP = "syslog-udp"
    SYSLOG_TCP = "syslog-tcp"
    SYSLOG_LOCAL = "syslog-local"
    OTLP = "otlp"


@dataclass(frozen=True, slots=True)
class AuditTarget:
    """A target of the access trail.

    Attributes:
        kind: Its kind.
        place: A path, a host or a URL.
        port: The port of a host.
    """

    kind: TargetKind
    place: str
    port: int = 0

    @property
    def name(self) -> str:
        """The name by which its position in the trail is stored."""
        return f"{self.kind.value} {self.place}" + f":{self.port}" * bool(self.port)


def audit_target(node: Node, what: str, folder: Path) -> AuditTarget:
    """Return a target; a path is relative to a folder."""
    given = line(node, what)
    if not given:
        raise fail(Code.BAD_NAME, f"{what} is empty", node, help=_HELP)
    if "://" not in given:
        return AuditTarget(TargetKind.FILE, str(folder / given))
    try:
        parts = urlsplit(given)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _not_a_target(node, what) from None
    if "@" in parts.netloc or parts.query or parts.fragment or port == 0:
        raise _not_a_target(node, what)
    if parts.scheme in ("otlp+http", "otlp+https") and host:
        return AuditTarget(TargetKind.OTLP, given.removeprefix("otlp+"))
    if parts.scheme == "syslog" and not parts.netloc and parts.path.startswith("/"):
        return AuditTarget(TargetKind.SYSLOG_LOCAL, parts.path)
    if parts.scheme in ("syslog", "syslog+tcp") and host and parts.path in ("", "/"):
        is_stream = parts.scheme == "syslog+tcp"
        kind = TargetKind.SYSLOG_TCP if is_stream else TargetKind.SYSLOG_UDP
        return AuditTarget(kind, host, port or SYSLOG_PORT)
    raise _not_a_target(node, what)


def _not_a_target(node: Node, what: str) -> Exception:
    # Its text is not shown: it may contain a password.
    return fail(Code.BAD_NAME, f"{what} is not a target", node, help=_HELP)
