"""The page that Prometheus reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
)

from modicum.server.telemetry.ledger_metrics import LedgerFacts, SampledMetrics
from modicum.server.telemetry.trail_state import TrailState
from modicum.writer.readiness import UNKNOWN, Outcome

#: The content type of the page.
MEDIA_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4
#: The time 0.
_NEVER: Final = "1970-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Page:
    """The contents of one page.

    Attributes:
        counted: The counters of processes.
        found: The sample of the ledger; None if there is none yet.
        age: How many seconds ago that was.
        line: How many requests wait for the ledger's turn, in this process.
        ready: Whether this process can decide requests.
        trail: The access trail of this process; None if it has none.
    """

    counted: Iterable[Metric]
    found: SampledMetrics | None
    age: float
    line: int
    ready: Outcome = UNKNOWN
    trail: TrailState | None = None

    def text(self) -> bytes:
        """Return the page, in the text format 0.0.4."""
        return generate_latest(_Collected(self.collect()), escaping="underscores")

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        yield from map(_without_created, self.counted)
        yield GaugeMetricFamily(
            "modicum_line_length",
            "Requests in the process that wait for a ledger turn.",
            self.line,
        )
        yield from _of_readiness(self.ready)
        if self.trail is not None:
            yield from _of_trail(self.trail)
        if self.found is None:
            return
        yield GaugeMetricFamily(
            "modicum_ledger_facts_age_seconds",
            "The time since the ledger was last read.",
            self.age,
        )
        yield GaugeMetricFamily(
            "modicum_ledger_readable",
            "Whether the ledger could be read.",
            int(self.found.is_sound is not None),
        )
        if self.found.is_sound is not None:
            yield GaugeMetricFamily(
                "modicum_ledger_verify_ok",
                "Whether the entries read so far continue the chain and the state.",
                int(self.found.is_sound),
            )
        if self.found.facts is not None:
            yield from _of_ledger(self.found.facts)
            yield from _of_rules(self.found.facts)


class _Collected:
    """Collected metrics, in the form that the writer needs.

    Args:
        found: The metrics.
    """

    def __init__(self, found: Iterable[Metric]) -> None:
        self._found = found

    def collect(self) -> Iterable[Metric]:
        """Return them."""
        return self._found


def _of_readiness(ready: Outcome) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "modicum_ledger_writable",
        "Whether the process can write to the ledger.",
        int(ready.is_writable),
    )
    yield GaugeMetricFamily(
        "modicum_ledger_behind",
        "Whether the ledger lacks or contradicts an entry that is known.",
        int(ready.is_behind),
    )
    yield GaugeMetricFamily(
        "modicum_ledger_last_failure_timestamp_seconds",
        "When a turn or a check of the process last failed; 0 if none did.",
        datetime.fromisoformat(ready.failed_at or _NEVER).timestamp(),
    )


def _of_trail(state: TrailState) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "modicum_access_trail_writable",
        "Whether the process could store the last events of the access trail.",
        int(state.is_written),
    )
    yield GaugeMetricFamily(
        "modicum_access_trail_waiting",
        "Events of the access trail in the process that are not stored yet.",
        state.waiting,
    )
    yield CounterMetricFamily(
        "modicum_access_events_left_out",
        "Refusals that the access trail counts only.",
        state.left_out,
    )
    reached = GaugeMetricFamily(
        "modicum_audit_target_reached",
        "Whether the process could send to a target of the access trail.",
        labels=["target"],
    )
    behind = GaugeMetricFamily(
        "modicum_audit_target_behind",
        "Events that a target of the access trail has not received.",
        labels=["target"],
    )
    for one in state.targets:
        reached.add_metric([one.target], int(one.is_reached))
        behind.add_metric([one.target], one.behind)
    if state.targets:
        yield reached
        yield behind


def _of_ledger(facts: LedgerFacts) -> Iterator[Metric]:
    for name, help_text, value in (
        ("modicum_ledger_entries", "Entries of the ledger.", facts.entries),
        ("modicum_releases_counted", "Releases that count as spent.", facts.counted),
        ("modicum_reservations_open", "Open reservations.", facts.reservations),
        (
            "modicum_reservation_age_seconds",
            "The time of the oldest open reservation.",
            facts.reservation_age,
        ),
        (
            "modicum_requests_pending",
            "Releases and policies that await approval.",
            facts.pending,
        ),
        (
            "modicum_approval_age_seconds",
            "The time of the oldest of them.",
            facts.approval_age,
        ),
        ("modicum_rounds", "Opened planning rounds.", facts.rounds),
        (
            "modicum_ledger_gaps",
            "Lost entries whose losses are not known; nothing is unlocked meanwhile.",
            facts.gaps,
        ),
    ):
        yield GaugeMetricFamily(name, help_text, value)
    yield CounterMetricFamily(
        "modicum_denials", "Denials in the ledger.", facts.denials
    )
    yield CounterMetricFamily(
        "modicum_nondp_disclosures",
        "Disclosures outside differential privacy.",
        facts.disclosures,
    )


def _of_rules(facts: LedgerFacts) -> Iterator[Metric]:
    states = GaugeMetricFamily(
        "modicum_rules", "Rules over history, by status.", labels=["state"]
    )
    for outcome, count in sorted(facts.rules.items()):
        states.add_metric([outcome], count)
    yield states
    full = GaugeMetricFamily(
        "modicum_rule_utilisation_ratio",
        "The used share of the fullest rules: 0 to 1, or 2 if over the limit.",
        labels=["scope", "context", "unit"],
    )
    for one in facts.fullest:
        full.add_metric([one.scope, one.context, one.unit], one.ratio)
    yield full
    unlocked = GaugeMetricFamily(
        "modicum_round_unlocked_ratio",
        "The share of every budget of a unit that the open round unlocks.",
        labels=["unit"],
    )
    for unit, share in sorted(facts.unlocked.items()):
        unlocked.add_metric([unit], share)
    yield unlocked


def _without_created(metric: Metric) -> Metric:
    """Return a metric without the times at which its series began."""
    metric.samples = [
        one for one in metric.samples if not one.name.endswith("_created")
    ]
    return metric
