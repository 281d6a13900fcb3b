"""Struck at any statement, a ledger loads, verifies, and counts what was reserved."""

from __future__ import annotations

import multiprocessing
import signal
from pathlib import Path

import pytest
from budget import examples
from samples.crash import NOT_STRUCK, live_and_be_struck
from samples.small import counts, workspace

#: Killed after one statement is almost always killed before the next.
HOWS = ["after", "fails", *(["before"] if examples(1) > 1 else [])]
#: No life of a release takes so many statements.
STATEMENTS_MAX = 300


@pytest.mark.slow
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
            assert told == ["reserved", "started", "posted", "closed"]
        survives(folder, told)
    assert ends.pop() == NOT_STRUCK
    assert set(ends) == {0 if how == "fails" else -signal.SIGKILL}
    assert len(ends) > 15


def end_of(folder: Path, statement: int, how: str, *, keep_open: bool) -> int | None:
    """Let a process live until it is struck, and return its exit code."""
    child = multiprocessing.get_context("fork").Process(
        target=live_and_be_struck,
        args=(folder, statement, how),
        kwargs={"keep_open": keep_open},
    )
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
    reached = {None: 0, "reserved": 1, "started": 2, "posted": 3}
    status = standing.status.value if standing else None
    taken = len([word for word in told if word != "closed"])
    assert taken <= reached[status] <= taken + 1
    # Reserved, started or posted: it counts, and a second one does not fit.
    assert ws.check(counts("r-2", rho="0.015")).allowed == (standing is None)
    # Whoever comes next can go on.
    again = ws.submit(counts("r-1", rho="0.015"))
    assert again.allowed
    assert again.retry == (standing is not None)
