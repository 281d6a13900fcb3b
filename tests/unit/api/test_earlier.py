"""A ledger as it was: every earlier entry, and every time, says what it said then."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from samples.small import NOON, POLICY, compiled, counts, workspace

from modicum.api.local import Workspace
from modicum.api.local.ledger_view import LedgerView
from modicum.core.errors import Code, ConflictError, UsageError
from modicum.ops.wiring import open_workspace
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock, add_seconds

WIDER = POLICY.replace("high: 1.0", "high: 1.1").replace("name: small", "name: wider")
HOUR = 60 * 60


def happens(ws: Workspace, step: int) -> None:
    """Do something in a ledger, once an hour."""
    match step:
        case 0:
            ws.submit(counts("r-1", rho="0.004"), reserve_seconds=2 * HOUR)
        case 1:
            ws.submit(counts("r-2", rho="0.006"), reserve_seconds=20 * HOUR)
        case 2 | 6:
            ws.submit(counts(f"denied-{step}", rho="3"))
        case 3:
            ws.cancel("r-2", reason="called off")
        case 4:
            ws.backfill(counts("old", rho="0.002"))
        case 5:
            ws.submit(counts("r-5", rho="0.003"), publish=True)
        case 7:
            ws.governance.activate(compiled(WIDER), reason="more is needed")
        case _:
            ws.submit(counts("r-8", rho="0.001"))


@pytest.fixture
def lived(tmp_path: Path) -> tuple[Path, list[dict[str, object]]]:
    """Return a ledger's folder, and what it said after each of its entries."""
    said: list[dict[str, object]] = []
    for step in range(9):
        clock = FixedClock(add_seconds(NOON, step * HOUR))
        ws = workspace(tmp_path, policy=None if step else POLICY, clock=clock)
        happens(ws, step)
        again = workspace(copied(tmp_path), policy=None, clock=clock)
        said.append({"seq": ws.state().seq, "at": clock.now(), **everything(again)})
    return tmp_path, said


def copied(folder: Path) -> Path:
    """Return a folder with a copy of a ledger."""
    copy = folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir()
    for file in folder.glob("ledger.db*"):
        shutil.copy(file, copy / file.name)
    return copy


def everything(view: LedgerView) -> dict[str, object]:
    """Return what a ledger says of itself."""
    state = view.state()
    return {
        "digest": state.digest(),
        "policy": view.policy().policy.digest,
        "standings": [(one.rule.id, one.before) for one in view.standings()],
        "asked": view.check(counts("asked", rho="0.008")).to_dict(),
    }


@pytest.mark.spec("LED-3")
def test_every_entry_says_again_what_it_said(
    lived: tuple[Path, list[dict[str, object]]],
) -> None:
    folder, said = lived
    ws = workspace(folder, policy=None, clock=FixedClock(add_seconds(NOON, 10 * HOUR)))
    for one in said:
        seq, at = one["seq"], one["at"]
        assert isinstance(seq, int)
        expected = {key: one[key] for key in one if key not in ("seq", "at")}
        assert everything(ws.as_of(seq)) == expected
        assert everything(ws.as_of(str(at))) == expected
    assert len({str(one["digest"]) for one in said}) == len(said)
    assert len({str(one["policy"]) for one in said}) == 2


def test_a_time_between_entries_is_the_time_that_counts(
    lived: tuple[Path, list[dict[str, object]]],
) -> None:
    """A reservation that ran out by then counts no more, though no entry says so."""
    folder, said = lived
    ws = workspace(folder, policy=None, clock=FixedClock(add_seconds(NOON, 10 * HOUR)))
    seqs = [one["seq"] for one in said]
    assert ws.as_of("2026-05-01T13:59Z").state().seq == seqs[1]
    assert ws.as_of("2026-05-01T13:00:00.000000Z").state().seq == seqs[1]
    assert ws.as_of("2026-05-01T12:59:59.999999Z").state().seq == seqs[0]
    assert ws.as_of("2026-05-01T13:00:00Z").standing("r-1").status.value == "reserved"
    late = ws.as_of("2026-05-01T13:59:59.999999Z")
    assert late.standing("r-1").status.value == "reserved"
    # The day is not over: it is looked at as far as it has come.
    assert ws.as_of("2026-05-01").state().seq == ws.state().seq
    tomorrow = workspace(
        folder, policy=None, clock=FixedClock(add_seconds(NOON, 24 * HOUR))
    )
    whole = tomorrow.as_of("2026-05-01")
    assert whole.state().seq == ws.state().seq


@pytest.mark.parametrize(
    ("point", "said"),
    [
        (0, "there is no entry 0"),
        (99, "there is no entry 99"),
        ("2026-05-01T23:00Z", "is in the future"),
        ("2026-05-02", "is in the future"),
        ("2026-05-01T11:59:59Z", "the ledger starts after"),
        ("2026-04-30", "the ledger starts after"),
        ("2026-02-30", "neither an entry number nor a time"),
        ("2026-05-01T25:00Z", "neither an entry number nor a time"),
        ("2026-05-01T12:00", "neither an entry number nor a time"),
        ("yesterday", "neither an entry number nor a time"),
    ],
)
def test_a_point_that_is_not_in_the_past_is_refused(
    tmp_path: Path, point: int | str, said: str
) -> None:
    ws = workspace(tmp_path)
    ws.init()
    with pytest.raises(UsageError) as caught:
        ws.as_of(point)
    assert caught.value.code is Code.OUT_OF_RANGE
    assert said in caught.value.render()


@pytest.mark.spec("LED-7")
def test_the_past_cannot_be_written_to(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    ws.submit(counts("r-1"))
    before = (tmp_path / "ledger.db").read_bytes()
    view = open_workspace(tmp_path / "ledger.db", as_of=1)
    assert not isinstance(view, Workspace)
    assert view.check(counts("r-1")).status == "checked"
    assert view.check(counts("r-1")).seq == 1
    store = view._store
    assert store.name.endswith("as of entry 1")
    assert store.record(2) is None
    assert [one.seq for one in store.read(0)] == [1]
    assert list(store.read(1)) == []
    assert list(store.read(0, 0)) == []
    with pytest.raises(UsageError) as caught:
        store.turn()
    assert caught.value.code is Code.LEDGER_UNWRITABLE
    # Another policy may be asked about the past, too.
    other = open_workspace(tmp_path / "ledger.db", policy=compiled(WIDER), as_of=2)
    assert other.policy().policy.name == "wider"
    with pytest.raises(ConflictError):
        other.check(counts("r-1", rho="0.7"))
    assert (tmp_path / "ledger.db").read_bytes() == before
    with pytest.raises(UsageError):
        open_workspace(tmp_path / "none.db", as_of=1)
    assert not SqliteStore(tmp_path / "none.db").exists()
