"""What the ledger says of itself for metrics, as time passes and people speak."""

from __future__ import annotations

from pathlib import Path

from samples.audited import ASKING
from samples.small import compiled, counts

from modicum.api.local import Workspace
from modicum.server.telemetry.ledger_metrics import LedgerFacts, Working, glance
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock

NOON = "2026-05-01T12:00:00.000000Z"
LATER = "2026-05-01T12:30:00.000000Z"
LATE = "2026-05-01T13:00:00.000000Z"
OVER = "2026-05-01T14:00:00.000000Z"


class Ledger:
    """A ledger under a policy that asks people, on a clock of its own."""

    def __init__(self, folder: Path) -> None:
        self.clock = FixedClock(NOON)
        self.working = Working()
        self._path = folder / "ledger.db"
        self.by("olga").init()

    def by(self, actor: str) -> Workspace:
        store = SqliteStore(self._path, wait_seconds=20)
        return Workspace(store, self.clock, policy=compiled(ASKING), actor=actor)

    def facts(self, now: str) -> LedgerFacts:
        self.clock.time = now
        return self.working.out(glance(self.by("prometheus")))


def test_the_oldest_reservation_that_stands_is_told(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    none = ledger.facts(NOON)
    assert (none.reservations, none.reservation_age, none.counted) == (0, 0.0, 0)
    ledger.by("ann").submit(counts("short"), reserve_seconds=5400)
    ledger.clock.time = LATER
    ledger.by("ann").submit(counts("long"), reserve_seconds=86_400)
    ledger.by("ann").submit(counts("begun"))
    ledger.by("ann").start("begun")
    both = ledger.facts(LATE)
    assert (both.reservations, both.reservation_age, both.counted) == (2, 3600.0, 3)
    # What ran out stands no more, whether or not that was written down.
    one = ledger.facts(OVER)
    assert (one.reservations, one.reservation_age, one.counted) == (1, 5400.0, 2)


def test_who_waits_for_people_is_told(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    wanted = counts("press", purpose="press")
    assert ledger.facts(NOON).pending == 0
    ledger.by("ann").governance.request(wanted, reason="for the press")
    waiting = ledger.facts(LATE)
    assert (waiting.pending, waiting.approval_age) == (1, 3600.0)
    ledger.by("olga").governance.approve("press", reason="little is told")
    assert ledger.by("ann").submit(wanted).allowed
    settled = ledger.facts(LATE)
    assert (settled.pending, settled.approval_age) == (0, 0.0)


def test_what_was_worked_out_before_is_what_is_worked_out_now(tmp_path: Path) -> None:
    """It is remembered from look to look, and never out of date."""
    ledger = Ledger(tmp_path)
    result = set()
    for number in range(4):
        for name in ("diagnosis", "age")[: 1 + number % 2]:
            one = counts(f"{name}-{number}", rho=0.002, attributes=(name,))
            ledger.by("ann").submit(one)
        result.add(remembered := ledger.facts(NOON).fullest)
        assert remembered == Working().out(glance(ledger.by("ann"))).fullest
    assert len(result) == 4
