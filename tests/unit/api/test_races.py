"""What happens between looking and taking the turn, and when the store fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from samples.small import NOON, POLICY, compiled, counts, workspace

from modicum.api.local import Turn, Workspace
from modicum.core.errors import Code, Problem, StaleError, UnavailableError
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock


class Interrupted(SqliteStore):
    """A store in which something happens just before a turn, or goes wrong in it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.before_turn: list[object] = []
        self.fails = False

    @contextmanager
    def turn(self) -> Iterator[Turn]:  # type: ignore[override]
        while self.before_turn:
            self.before_turn.pop()()  # type: ignore[operator]
        with super().turn() as turn:
            yield turn
            if self.fails:
                raise UnavailableError(Problem(Code.LEDGER_UNWRITABLE, "disk full"))


def interrupted(folder: Path) -> tuple[Workspace, Interrupted]:
    store = Interrupted(folder / "ledger.db")
    return Workspace(store, FixedClock(NOON), policy=compiled(), actor="t"), store


@pytest.mark.spec("LED-9")
def test_a_policy_that_became_active_meanwhile_decides(tmp_path: Path) -> None:
    ws, store = interrupted(tmp_path)
    other = workspace(tmp_path, policy=POLICY.replace("name: small", "name: other"))
    store.before_turn.append(other.init)
    with pytest.raises(StaleError):
        ws.submit(counts("r-1"))
    assert other.state().seq == 1


@pytest.mark.spec("DEC-1")
def test_what_was_spent_meanwhile_counts(tmp_path: Path) -> None:
    ws, store = interrupted(tmp_path)
    other = workspace(tmp_path)
    assert ws.check(counts("r-1", rho="0.015")).allowed
    store.before_turn.append(lambda: other.submit(counts("r-0", rho="0.015")))
    assert not ws.submit(counts("r-1", rho="0.015")).allowed


@pytest.mark.spec("LED-8")
def test_what_the_store_refused_did_not_happen(tmp_path: Path) -> None:
    ws, store = interrupted(tmp_path)
    ws.submit(counts("r-1", rho="0.001"))
    store.fails = True
    with pytest.raises(UnavailableError):
        ws.submit(counts("r-2", rho="0.015"))
    with pytest.raises(UnavailableError):
        ws.start("r-1")
    store.fails = False
    assert ws.state().digest() == workspace(tmp_path).state().digest()
    assert ws.state().seq == 2
    assert ws.submit(counts("r-3", rho="0.015")).allowed
    assert ws.verify().entries == 3


@pytest.mark.spec("DEC-3")
def test_a_limit_finer_than_a_ledger_unit_is_shown_as_it_decides(
    tmp_path: Path,
) -> None:
    """Limits are shown rounded down; what passes is never shown above them."""
    fine = POLICY.replace("{low: 2.0,", "{low: 2.00000000000049,")
    ws = workspace(tmp_path, policy=fine)
    row = ws.standings()[2].rule
    assert row.id == "attr:age @standard"
    cap = dict(ws.standings()[2].own_filter.caps)[1]
    release = counts("r-1", rho=f"0.{cap:012}", attributes=("age",), ml="none")
    ws.backfill(release)
    loss = ws.standings()[2]
    from modicum.ledger.decision.amounts import amounts

    assert loss.allowed
    assert amounts(loss).together <= amounts(loss).limit == 2 * 10**12
