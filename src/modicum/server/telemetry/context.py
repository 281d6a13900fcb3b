"""All telemetry of a server, assembled once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version

from modicum.ops.wiring import metrics_folder
from modicum.server.telemetry.counters import Counts
from modicum.server.telemetry.log import Level, Log, Served
from modicum.server.telemetry.traces import NoTraces, Traces, traces_to


@dataclass
class TelemetryContext:
    """The telemetry of a server. By default it counts, and logs nothing.

    Attributes:
        log: The log.
        traces: The traces.
        counts: The counters.
        note_access: Notes a served request in the access trail; None without one.
    """

    log: Log = field(default_factory=Log)
    traces: Traces = field(default_factory=NoTraces)
    counts: Counts = field(default_factory=Counts)
    note_access: Callable[[Served], None] | None = None


def watching(
    level: Level = Level.INFO, otlp_endpoint: str | None = None, ledger: str = ""
) -> TelemetryContext:
    """Return the telemetry of a serving process by its settings; call it there."""
    return TelemetryContext(
        Log(sys.stderr, level, ledger=ledger),
        traces_to(otlp_endpoint, version("modicum"), ledger),
        Counts(metrics_folder(), ledger),
    )
