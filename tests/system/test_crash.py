"""Struck at any statement, a ledger loads, verifies, and counts what was reserved."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from budget import examples
from samples.crash import (
    NOT_STRUCK,
    ask_once_and_be_struck,
    live_and_be_struck,
    once_for,
)
from samples.small import NOON, compiled, counts, workspace

from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock
from modicum.writer.idempotency import IdempotencyKey, Replayed
from modicum.writer.service import Decider

#: Killed after one statement is almost always killed before the next.
HOWS = ["after", "fails", *(["before"] if examples(1) > 1 else [])]
#: No life of a release takes so many statements.
STATEMENTS_MAX = 300


@pytest.mark.soak
@pytest.mark.spec("LED-8")
@pytest.mark.parametrize("keep_open", [False, True], ids=["one-shot", "kept-open"])
@pytest.mark.parametrize("how", HOWS)
def test_struck_at_every_statement(
    tmp_path: Path, how: str, *, keep_open: bool
) -> None:
    ends = []
    for statement in range(1, STATEMENTS_MAX):
        folder = tmp_path / f"{statement}"
        folder.mkdir()
        (folder / "told").touch()
        ends.append(end_of(folder, statement, how, keep_open=keep_open))
        told = (folder / "told").read_text(encoding="utf-8").split()
        if ends[-1] == NOT_STRUCK:
            break
        if how == "fails":  # It was asked once more, and told.
            assert told == ["reserved", "started", "published", "closed"]
        survives(folder, told)
    assert ends.pop() == NOT_STRUCK
    assert set(ends) == {0 if how == "fails" else -signal.SIGKILL}
    assert len(ends) > 15


@pytest.mark.soak
@pytest.mark.spec("REG-1")
@pytest.mark.parametrize("how", HOWS)
def test_struck_at_every_statement_of_a_decider(tmp_path: Path, how: str) -> None:
    ends = []
    for statement in range(1, STATEMENTS_MAX):
        folder = tmp_path / f"{statement}"
        folder.mkdir()
        (folder / "told").touch()
        ends.append(ended(partial(ask_once_and_be_struck, folder, statement, how)))
        if ends[-1] == NOT_STRUCK:
            break
        told = (folder / "told").read_text(encoding="utf-8").split()
        answers_are_kept_with_events(folder, told)
    assert ends.pop() == NOT_STRUCK
    assert set(ends) == {0 if how == "fails" else -signal.SIGKILL}
    assert len(ends) > 15


def answers_are_kept_with_events(folder: Path, told: list[str]) -> None:
    """Assert that an answer is kept if and only if its events are stored."""
    ws = workspace(folder)
    standing = ws.state().releases.get("r-1")
    steps = ["reserved", "started", "published"]
    done = steps[: steps.index(standing.status.value) + 1] if standing else []
    with SqliteStore(folder / "ledger.db").turn() as turn:
        kept = turn.answered([f"tester {name}" for name in steps])
    assert {one.answer.decode() for one in kept.values()} == set(done)
    assert {key.split()[1] for key in kept} == set(done)
    assert len(told) <= len(done) <= len(told) + 1
    if ws.state().seq:
        assert ws.verify().entries == ws.state().seq
    calls: dict[str, Callable[[Decider, IdempotencyKey], object]] = {
        "reserved": lambda d, once: d.submit(counts("r-1"), once=once),
        "started": lambda d, once: d.start("r-1", once=once),
        "published": lambda d, once: d.publish("r-1", once=once),
    }
    store = SqliteStore(folder / "ledger.db", keep_open=True)
    with Decider(store, FixedClock(NOON), policy=compiled(), actor="tester") as decider:
        for name, ask in calls.items():  # Whoever asks again is done with once.
            if name in done:
                with pytest.raises(Replayed) as caught:
                    ask(decider, once_for(name))
                assert caught.value.answer == name.encode()
            else:
                ask(decider, once_for(name))
    state = workspace(folder).state()
    assert state.releases["r-1"].status.value == "published"
    assert state.seq == 4  # The policy, and each step once.


def end_of(folder: Path, statement: int, how: str, *, keep_open: bool) -> int | None:
    """Let a process live until it is struck, and return its exit code."""
    return ended(
        partial(live_and_be_struck, folder, statement, how, keep_open=keep_open)
    )


def ended(life: Callable[[], None]) -> int | None:
    """Let a process live, and return its exit code."""
    child = multiprocessing.get_context("fork").Process(target=life)
    child.start()
    child.join()
    return child.exitcode


def survives(folder: Path, told: list[str]) -> None:
    """Assert that every acknowledged step is there, and counts."""
    ws = workspace(folder)
    state = ws.state()
    if state.seq:
        assert ws.verify().entries == state.seq
    standing = state.releases.get("r-1")
    reached = {None: 0, "reserved": 1, "started": 2, "published": 3}
    status = standing.status.value if standing else None
    taken = len([name for name in told if name != "closed"])
    assert taken <= reached[status] <= taken + 1
    # Reserved, started or published: it counts, and a second one does not fit.
    assert ws.check(counts("r-2", rho="0.015")).allowed == (standing is None)
    # Whoever comes next can go on.
    again = ws.submit(counts("r-1", rho="0.015"))
    assert again.allowed
    assert again.retry == (standing is not None)
