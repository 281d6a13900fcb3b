"""How long a run takes is not a program's to choose."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from samples.sandboxed import python, sandbox, told_in

from modicum.api.ports.escrow import Limits
from modicum.core.errors import UnavailableError
from modicum.escrow.programs import Table
from modicum.sandbox import deadline, slots
from modicum.sandbox.slots import Slots

SHORT = Limits(seconds=1.0, memory_bytes=2**20, processes=4)
#: How much later than its time a run may be told, on a busy machine.
SLACK_SECONDS = 0.5


@pytest.fixture(autouse=True)
def _own_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "folder", lambda: tmp_path / "turns")


class Lingering:
    """A run that tells its score in time, and ends when it is let go."""

    def __init__(self) -> None:
        self.may_end = threading.Event()

    @contextmanager
    def run(self, _: float, __: int | None) -> Iterator[float]:
        yield 0.5
        self.may_end.wait()


def test_a_run_that_does_not_end_is_told_in_time_and_keeps_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deadline, "WAIT_SECONDS", 0.1)
    one, lingering = Slots(None, 1), Lingering()
    started = time.monotonic()
    assert told_in(one, SHORT, lingering.run) == 0.5
    assert 1.0 <= time.monotonic() - started < 1.0 + SLACK_SECONDS
    for taken in (one, Slots(None, 1)):  # Also to whoever else is on this machine.
        with pytest.raises(UnavailableError, match="waited for other programs"):
            taken.take()
    lingering.may_end.set()
    monkeypatch.setattr(deadline, "WAIT_SECONDS", 30.0)
    one.free(one.take())


def test_a_run_whose_end_fails_keeps_its_place_for_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deadline, "WAIT_SECONDS", 0.1)

    @contextmanager
    def failing(_: float, __: int | None) -> Iterator[float]:
        yield 0.5
        raise OSError

    one = Slots(None, 1)
    assert told_in(one, SHORT, failing) == 0.5
    with pytest.raises(UnavailableError):
        one.take()


def test_a_score_that_comes_too_late_is_none() -> None:
    @contextmanager
    def late(end_at: float, _: int | None) -> Iterator[float]:
        time.sleep(end_at - time.monotonic() + 0.6)
        yield 0.5

    started = time.monotonic()
    assert told_in(Slots(None, 1), SHORT, late) is None
    assert 1.0 <= time.monotonic() - started < 1.0 + SLACK_SECONDS


# Shared mappings of nobody's file are files of the kernel's own, which it takes apart
# one by one; private ones must do no harm either.
CODE = """\
import ctypes, time

def score(tables, arguments, reference):
    (table,) = tables.values()
    library = ctypes.CDLL(None)
    library.mmap.restype = ctypes.c_void_p
    if table["rows"][0][0] > 100:
        for _ in range(60000):
            for kind in (0x21, 0x22):
                place = library.mmap(None, ctypes.c_size_t(4096), 3, kind, -1, 0)
                if place not in (None, 2**64 - 1):
                    ctypes.memset(place, 1, 4096)
        time.sleep(99)
    return 0.5
"""


def test_a_run_takes_as_long_whatever_it_was_given() -> None:
    box, limits = sandbox(), Limits(4.0, 2**29)
    for exact, expected in ((50, 0.5), (150, None), (150, None)):
        with box.turn():  # It waits until nothing of the last run is there any more.
            pass
        started = time.monotonic()
        table = Table(("people",), ((exact,),))
        assert box.score(python(CODE), {"q": table}, None, limits) == expected
        took = time.monotonic() - started
        assert limits.seconds <= took < limits.seconds + 2 * SLACK_SECONDS
