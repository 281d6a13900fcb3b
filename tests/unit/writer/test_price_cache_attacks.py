"""What is left to the writer: nothing slow, nothing of the client's, no silence."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from samples.parted import mechanism, policy
from samples.small import NOON

from modicum.api.local.submit import prepared
from modicum.core.errors import InputError, UnavailableError
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock
from modicum.writer import preparation as clerks
from modicum.writer.service import Decider

#: No test waits longer for a thread; only a test that fails waits so long.
PATIENCE = 20.0
WRITER = "modicum-writer"


@pytest.fixture(name="decider")
def decider_fixture(tmp_path: Path) -> Iterator[Decider]:
    store = SqliteStore(tmp_path / "ledger.db", keep_open=True)
    with Decider(store, FixedClock(NOON), policy=policy()) as found:
        yield found


@pytest.fixture(name="readers")
def readers_fixture(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the threads that read releases from now on."""
    found: list[str] = []

    def noting(*given: Any, **more: Any) -> Any:
        found.append(threading.current_thread().name)
        return prepared(*given, **more)

    monkeypatch.setattr(clerks, "prepared", noting)
    return found


def asked(name: str, **more: Any) -> dict[str, Any]:
    """Return a release that costs little."""
    cost = {unit: {"rho": 0.0001} for unit in ("user", "user-month")}
    return {"release": name, "mechanisms": [mechanism(cost=cost)], **more}


def test_a_part_that_is_new_is_read_by_its_client(
    decider: Decider, readers: list[str]
) -> None:
    """It may take a hundred times as long as all the rest."""
    client = threading.current_thread().name
    for name, more, reader in (
        ("a", {"where": {"country": "CH"}}, client),
        ("b", {"where": {"country": "CH"}}, WRITER),
        ("c", {"where": {"country": "DE"}}, client),
        ("d", {"periods": "2026-02"}, client),
        ("e", {"periods": "2026-02"}, WRITER),
        ("f", {"where": {"country": "DE"}, "purpose": "another"}, WRITER),
    ):
        assert decider.submit(asked(name, **more)).allowed
        assert readers.pop() == reader, name


def test_a_part_that_is_misspelt_is_never_read_by_the_writer(
    decider: Decider, readers: list[str]
) -> None:
    """To look for the nearest of many names takes seconds."""
    decider.submit(asked("a"))
    for _ in range(3):
        with pytest.raises(InputError, match="unknown value"):
            decider.submit(asked("b", where={"country": "Switzerland"}))
    assert WRITER not in readers


class Ending(int):
    """A number that ends whichever thread compares it."""

    def __ge__(self, _: object) -> bool:
        raise SystemExit


def test_a_number_of_a_clients_own_ends_only_the_client(decider: Decider) -> None:
    decider.submit(asked("a"))
    with ThreadPoolExecutor(1) as pool:
        ending = pool.submit(decider.submit, asked("b"), reserve_seconds=Ending(60))
        with pytest.raises(SystemExit):
            ending.result(PATIENCE)
    assert decider.submit(asked("c"), timeout=PATIENCE).status == "reserved"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_writer_that_dies_while_reading_says_so(
    decider: Decider, monkeypatch: pytest.MonkeyPatch
) -> None:
    decider.submit(asked("a"))

    def dying(*given: Any, **more: Any) -> Any:
        if threading.current_thread().name == WRITER:
            raise SystemExit
        return prepared(*given, **more)

    monkeypatch.setattr(clerks, "prepared", dying)
    with pytest.raises(UnavailableError, match="there is no result"):
        decider.submit(asked("b"), timeout=PATIENCE)
    with pytest.raises(UnavailableError, match="its writer failed"):
        decider.submit(asked("c"), timeout=PATIENCE)


@pytest.mark.parametrize("timeout", [math.inf, 1e300, threading.TIMEOUT_MAX])
def test_whoever_waits_for_ever_is_answered(decider: Decider, timeout: float) -> None:
    assert decider.submit(asked("a"), timeout=timeout).status == "reserved"


def test_a_timeout_that_is_none_is_found_before_anything_is_done(
    decider: Decider,
) -> None:
    decider.submit(asked("a"))
    with pytest.raises((TypeError, ValueError)):
        decider.submit(asked("b"), timeout="soon")  # type: ignore[arg-type]
    decider.submit(asked("c"))
    with pytest.raises(InputError):
        decider.standing("b")
