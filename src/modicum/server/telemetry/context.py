"""All that watches a server, put together once."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from importlib.metadata import version

from modicum.ops.wiring import metrics_folder
from modicum.server.telemetry.counters import Counts
from modicum.server.telemetry.log import Level, Log
from modicum.server.telemetry.traces import NoTraces, Traces, traces_to


@dataclass
class TelemetryContext:
    """What a server tells operators with. By default it counts, and is silent.

    Attributes:
        log: Where lines are written.
        traces: Where spans go.
        counts: What is counted.
    """

    log: Log = field(default_factory=Log)
    traces: Traces = field(default_factory=NoTraces)
    counts: Counts = field(default_factory=Counts)


def watching(
    level: Level = Level.INFO, otlp_endpoint: str | None = None
) -> TelemetryContext:
    """Return what watches a process that serves, as settings say; call it there."""
    return TelemetryContext(
        Log(sys.stderr, level),
        traces_to(otlp_endpoint, version("modicum")),
        Counts(metrics_folder()),
    )
