"""Counters of a process: requests, decisions, and their durations.

Several processes behind one port combine their counters in a shared folder, so that any
of them reports all (prometheus-client's multiprocess mode).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector

#: Histogram buckets of slow operations, in seconds.
SECONDS: Final = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
#: Length of a policy digest in labels.
VERSION_CHARACTERS: Final = 12


class Counts:
    """Counters and histograms of a process.

    Args:
        shared: The folder that all processes behind one port share; None for a process
            that serves alone. `PROMETHEUS_MULTIPROC_DIR` must have named it before
            prometheus-client was imported.
        ledger: The name of the ledger, as a label; empty for the first one.
    """

    def __init__(self, shared: Path | None = None, ledger: str = "") -> None:
        own = CollectorRegistry()
        self._ledger = ledger
        self._labels = (ledger,) if ledger else ()
        more = ("ledger",) if ledger else ()
        self._own = own
        self._shared = shared
        self._requests = Counter(
            "modicum_http_requests",
            "Requests that were served.",
            ["route", "method", "status", *more],
            registry=own,
        )
        self._seconds = Histogram(
            "modicum_http_seconds",
            "The duration of requests.",
            ["route", "method", *more],
            buckets=SECONDS,
            registry=own,
        )
        self._served: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._decided: dict[tuple[str, str], Counter] = {}
        self._decisions = Counter(
            "modicum_decisions",
            "Submitted releases with a decision, by policy digest.",
            ["decision", "policy_version", *more],
            registry=own,
        )
        self._checks = Histogram(
            "modicum_check_seconds",
            "The duration of release checks.",
            more,
            buckets=SECONDS,
            registry=own,
        )
        self._compiles = Histogram(
            "modicum_compile_seconds",
            "The duration of policy compilation.",
            more,
            buckets=SECONDS,
            registry=own,
        )

    def served(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        key = route, method, status
        if key not in self._served:  # Looking up labels takes longer than counting.
            self._served[key] = (
                self._requests.labels(route, method, str(status), *self._labels),
                self._seconds.labels(route, method, *self._labels),
            )
        requests, durations = self._served[key]
        requests.inc()
        durations.observe(seconds)

    def decided(self, decision: str, policy: str) -> None:
        """Count a submitted release that was decided."""
        key = decision, policy[:VERSION_CHARACTERS]
        if key not in self._decided:
            self._decided[key] = self._decisions.labels(*key, *self._labels)
        self._decided[key].inc()

    def checked(self, seconds: float) -> None:
        """Count a check."""
        self._labeled(self._checks).observe(seconds)

    def compiled(self, seconds: float) -> None:
        """Count a compiled policy, valid or not."""
        self._labeled(self._compiles).observe(seconds)

    def collect(self) -> Iterable[Metric]:
        """Yield the counters of the ledger; with a shared folder, of all processes."""
        found = self._own
        if self._shared is not None:
            found = CollectorRegistry()
            gathering: Any = MultiProcessCollector
            gathering(found, path=str(self._shared))
        for metric in found.collect():
            metric.samples = [
                one
                for one in metric.samples
                if one.labels.get("ledger", "") == self._ledger
            ]
            yield metric

    def _labeled(self, of: Histogram) -> Histogram:
        return of.labels(*self._labels) if self._labels else of
