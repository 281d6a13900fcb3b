"""A clock that jumps: nothing is written and nothing expires, until somebody agrees."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest
from samples.postgres import Cluster
from samples.raw_http import eventually
from samples.served import PEOPLE, ByHeader, running
from samples.small import POLICY, counts
from samples.stores import append, numbered

import modicum as mo
from modicum.core.errors import Code, UnavailableError
from modicum.ledger import ReleaseStatus
from modicum.server.auth.authentication import Recognizing
from modicum.server.auth.registry import open_registry
from modicum.server.components import Parts
from modicum.server.telemetry.context import TelemetryContext
from modicum.server.telemetry.log import Log
from modicum.storage.factory import open_store
from modicum.storage.postgres_store import PostgresStore
from modicum.system import clock as clocks
from modicum.system.clock import SystemClock, add_seconds
from modicum.writer.service import Decider

NOW = SystemClock().now
HOUR, DAY, YEAR = timedelta(hours=1), timedelta(days=1), timedelta(days=365)


class Machine:
    """A machine with a clock that can be set, and one that cannot.

    Attributes:
        wall: The time of day.
        elapsed: How many seconds went by.
    """

    def __init__(self) -> None:
        self.wall = datetime(2026, 5, 1, 12, tzinfo=UTC)
        self.elapsed = 100.0

    def clock(self) -> SystemClock:
        """Return the clock of a process that begins now."""
        return SystemClock(self._seconds, lambda: self.elapsed)

    def _seconds(self) -> float:
        return self.wall.timestamp()

    def goes_by(self, time: timedelta) -> None:
        self.wall += time
        self.elapsed += time.total_seconds()


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def ledger(tmp_path: Path, machine: Machine) -> Path:
    (tmp_path / "policy.yaml").write_text(POLICY)
    path = tmp_path / "ledger.db"
    policy = tmp_path / "policy.yaml"
    mo.open(path, policy=policy, actor="olga", clock=machine.clock()).init()
    return path


@pytest.fixture
def decider(ledger: Path, machine: Machine) -> Iterator[Decider]:
    with mo.open_decider(ledger, clock=machine.clock()) as found:
        assert found.submit(counts("one", rho="0.01")).status == "reserved"
        yield found


def refused(decider: Decider) -> None:
    with pytest.raises(UnavailableError, match="clock of this machine") as caught:
        decider.submit(counts("two"))
    assert caught.value.code is Code.CLOCK_JUMPED
    with pytest.raises(UnavailableError):
        decider.must_be_sound()


def status(decider: Decider) -> ReleaseStatus:
    return decider.glance(lambda view: view.standing("one")).status


@pytest.mark.spec("LED-15")
def test_a_jump_writes_nothing_and_lets_nothing_expire(
    decider: Decider, machine: Machine, ledger: Path
) -> None:
    before = decider.glance(lambda view: view.state().head)
    machine.goes_by(HOUR)
    machine.wall += YEAR
    refused(decider)
    assert decider.glance(lambda view: view.state().head) == before
    assert status(decider) is ReleaseStatus.RESERVED
    machine.wall -= YEAR  # The operator sets the clock right.
    decider.must_be_sound()
    assert decider.submit(counts("two")).allowed
    assert status(decider) is ReleaseStatus.RESERVED


@pytest.mark.spec("LED-15")
def test_after_an_operator_confirms_the_clock_the_server_goes_on(
    decider: Decider, machine: Machine, ledger: Path
) -> None:
    machine.wall += YEAR
    refused(decider)
    operator = mo.open(ledger, actor="petra", clock=machine.clock())
    operator.governance.annotate("the clock is right: the machine had none before")
    decider.must_be_sound()
    assert decider.submit(counts("two")).allowed
    assert status(decider) is ReleaseStatus.EXPIRED
    machine.goes_by(7 * DAY)
    assert decider.submit(counts("three")).allowed
    machine.wall += YEAR
    refused(decider)


@pytest.mark.spec("LED-15")
def test_a_confirmed_clock_holds_however_late_the_server_looks(
    decider: Decider, machine: Machine, ledger: Path
) -> None:
    machine.wall += YEAR
    refused(decider)
    operator = mo.open(ledger, actor="petra", clock=machine.clock())
    operator.governance.annotate("the clock is right")
    machine.goes_by(timedelta(minutes=5))
    decider.must_be_sound()  # A server looks by itself.
    machine.goes_by(7 * DAY)
    assert decider.submit(counts("two")).allowed


@pytest.mark.spec("LED-15")
def test_time_without_a_look_excuses_no_jump(
    decider: Decider, machine: Machine, ledger: Path
) -> None:
    machine.goes_by(30 * DAY)
    other = mo.open(ledger, actor="petra", clock=machine.clock())
    assert other.submit(counts("two"), reserve_seconds=5 * 86_400).allowed
    machine.goes_by(timedelta(minutes=1))
    machine.wall += 29 * DAY
    refused(decider)
    assert other.state().releases["two"].status is ReleaseStatus.RESERVED
    # The entry is of its time if it is new enough to this process.
    operator = mo.open(ledger, actor="petra", clock=machine.clock())
    operator.governance.annotate("the clock is right")
    assert decider.submit(counts("three")).allowed


@pytest.mark.spec("LED-15")
@pytest.mark.parametrize("gap", [HOUR, 7 * DAY, 400 * DAY])
def test_a_quiet_ledger_is_no_jump(
    decider: Decider, machine: Machine, gap: timedelta
) -> None:
    for number in range(3):
        machine.goes_by(gap)
        decider.must_be_sound()
        assert decider.submit(counts(f"more-{number}")).allowed
    expected = ReleaseStatus.RESERVED if gap == HOUR else ReleaseStatus.EXPIRED
    assert status(decider) is expected


@pytest.mark.spec("LED-15")
@pytest.mark.parametrize(("seconds", "jumps"), [(300, False), (301, True)])
def test_a_clock_may_be_corrected_by_minutes(
    decider: Decider, machine: Machine, seconds: int, jumps: bool
) -> None:
    machine.goes_by(3 * DAY)
    machine.wall += timedelta(seconds=seconds)
    if jumps:
        refused(decider)
    else:
        assert decider.submit(counts("two")).allowed


@pytest.mark.spec("LED-15")
def test_a_clock_that_goes_back_and_forth_is_no_jump(
    decider: Decider, machine: Machine
) -> None:
    machine.wall -= YEAR
    assert decider.submit(counts("two")).allowed
    machine.goes_by(2 * HOUR)
    assert decider.submit(counts("three")).allowed
    machine.wall += YEAR
    assert decider.submit(counts("four")).allowed
    assert status(decider) is ReleaseStatus.RESERVED


@pytest.mark.spec("LED-15")
def test_a_machine_that_begins_in_the_past_waits_for_its_clock(
    ledger: Path, machine: Machine
) -> None:
    right = machine.wall
    machine.wall = datetime(2020, 1, 1, tzinfo=UTC)
    with mo.open_decider(ledger, clock=machine.clock()) as decider:
        assert decider.submit(counts("one")).allowed
        machine.elapsed += 60
        machine.wall = right + timedelta(seconds=61)
        assert decider.submit(counts("two")).allowed


@pytest.mark.spec("LED-15")
def test_time_goes_by_while_a_machine_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    times = {time.CLOCK_BOOTTIME: 9.0, time.CLOCK_MONOTONIC: 5.0}
    monkeypatch.setattr(time, "clock_gettime", times.__getitem__)
    assert clocks._elapsed() == 9.0
    monkeypatch.delattr(time, "CLOCK_BOOTTIME")
    assert clocks._elapsed() == 5.0


def test_a_server_with_a_wrong_clock_is_not_ready(
    ledger: Path, machine: Machine, tmp_path: Path
) -> None:
    store = open_store(ledger, keep_open=True)
    with (tmp_path / "log").open("w") as log:
        parts = Parts(
            mo.open_decider(ledger, clock=machine.clock()),
            open_registry(store),
            Recognizing([ByHeader(PEOPLE)]),
            watch=TelemetryContext(Log(log)),
        )
        with running(parts) as url:

            def ready() -> int:
                return httpx2.get(f"{url}/readyz").status_code

            assert ready() == 200
            machine.wall += YEAR
            eventually(lambda: ready() == 503)  # It looks by itself.
            headers = {"X-Who": "amir", "Idempotency-Key": "key-1"}
            release = counts("one")
            api = f"{url}/api/v1/releases"
            found = httpx2.post(api, json=release, headers=headers)
            assert (found.status_code, found.json()["code"]) == (503, "MOD710")
            machine.wall -= YEAR
            eventually(lambda: ready() == 200)
        parts.decider.close()
        store.close()
    (line,) = (
        one for one in (tmp_path / "log").read_text().splitlines() if "not-ready" in one
    )
    assert '"code":"MOD710"' in line
    assert '"level":"error"' in line


# --- PostgreSQL has a clock of its own ---


@pytest.mark.spec("LED-15")
@pytest.mark.parametrize(("apart", "refuses"), [(0, False), (280, False), (320, True)])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_machine_far_from_the_clock_of_the_database_writes_nothing(
    postgres: Cluster, apart: int, refuses: bool, sign: int
) -> None:
    url = postgres.new_ledger()
    append(PostgresStore(url), numbered(1, 1))
    store = PostgresStore(url, wall=lambda: add_seconds(NOW(), sign * apart))
    if refuses:
        attempts: list[Callable[[], object]] = [
            lambda: append(store, numbered(2, 2)),
            store.refuse_skew,
        ]
        for attempt in attempts:
            with pytest.raises(UnavailableError, match="the clock of this") as caught:
                attempt()
            assert caught.value.code is Code.CLOCK_JUMPED
    else:
        append(store, numbered(2, 2))
        store.refuse_skew()
    assert len(list(store.read(0))) == (1 if refuses else 2)
    store.close()


@pytest.mark.spec("LED-15")
def test_a_server_far_from_the_clock_of_its_database_is_not_ready(
    postgres: Cluster, tmp_path: Path
) -> None:
    url, away = postgres.new_ledger(), [0]
    (tmp_path / "policy.yaml").write_text(POLICY)
    mo.open(url, policy=tmp_path / "policy.yaml", actor="olga").init()
    store = PostgresStore(url, wall=lambda: add_seconds(NOW(), away[0]))
    with Decider(store, SystemClock()) as decider:
        decider.must_be_sound()
        away[0] = 7200
        refused(decider)
        away[0] = 0
        decider.must_be_sound()
        assert decider.submit(counts("one")).allowed
