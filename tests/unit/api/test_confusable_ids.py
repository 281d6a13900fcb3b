"""New ids that look like ids of the ledger are refused; old ones are never compared."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from samples.small import NOON, POLICY, compiled, counts, workspace

from modicum.api.local import Workspace
from modicum.api.local.evaluation import ConfusableIdError
from modicum.core.errors import Code, ConflictError, InputError
from modicum.ledger.log.events import ReleaseReserved
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock

ALIKE = ("R-1", "r-l", "\uff52-1")


@pytest.mark.spec("LED-27")
@pytest.mark.parametrize("again", ALIKE)
def test_a_new_id_that_looks_like_one_of_the_ledger_is_refused(
    tmp_path: Path, again: str
) -> None:
    ws = workspace(tmp_path)
    assert ws.submit(counts("r-1")).allowed
    before = ws.state().seq
    # Whoever reads the log from its beginning, and whoever followed it.
    for one in (ws, workspace(tmp_path)):
        for verb in (one.check, one.submit, one.backfill):
            with pytest.raises(ConflictError) as caught:
                verb(counts(again))
            assert isinstance(caught.value, ConfusableIdError)
            assert caught.value.code is Code.RELEASE_CONFLICT
            assert caught.value.existing == "r-1"
    assert ws.state().seq == before
    assert ws.submit(counts("r-1")).retry
    assert ws.submit(counts("r-2")).allowed


def test_an_id_is_taken_once_canceled_and_not_if_denied(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    ws.submit(counts("r-1"))
    ws.cancel("r-1", reason="x")
    with pytest.raises(ConfusableIdError):
        ws.submit(counts("R-1"))
    assert not ws.submit(counts("big", rho=9)).allowed
    assert ws.submit(counts("Big")).allowed


@pytest.mark.spec("LED-27")
def test_a_ledger_that_has_such_ids_verifies_and_goes_on(tmp_path: Path) -> None:
    """An earlier version brought both in."""
    ws = workspace(tmp_path)
    ws.submit(counts("r-1"))
    release = workspace(tmp_path).prepare(counts("r-l")).release
    digest = ws.policy().policy.digest
    expires = "2026-05-02T12:00:00.000000Z"
    ws.turn(lambda entry: entry.add(ReleaseReserved(release, digest, expires)))
    assert ws.verify().decisions == 2
    assert ws.submit(counts("r-l")).retry
    assert ws.submit(counts("r-1")).retry
    ws.start("r-l")
    ws.publish("r-l")
    assert workspace(tmp_path).verify().entries == ws.state().seq


@pytest.mark.spec("POL-21")
def test_a_policy_with_a_name_that_looks_like_an_old_one_is_not_activated(
    tmp_path: Path,
) -> None:
    ws = workspace(tmp_path)
    ws.submit(counts("r-1"))
    other = compiled(POLICY.replace("    steps: [", "    step5: ["))
    ws.governance.activate(other, reason="it reads otherwise")
    alike = compiled(
        POLICY.replace("    steps: [", "    5tep5: [").replace("age:", "Age:")
    )
    preview = ws.governance.preview_activation(alike)
    found = [one.message for one in preview.problems if "looks like" in one.message]
    assert found == ["`Age` looks like `age` of the active policy"]
    with pytest.raises(InputError):
        ws.governance.activate(alike, reason="x")


APPROVED = (
    POLICY
    + """
roles: {officer: [bob]}
approvals: [{when: "true", need: 1, from: [officer]}]
"""
)


@pytest.mark.spec("LED-27")
def test_a_new_id_that_looks_like_a_requested_one_is_refused(tmp_path: Path) -> None:
    ann, mallory, bob = (
        Workspace(
            SqliteStore(tmp_path / "ledger.db", wait_seconds=20),
            FixedClock(NOON),
            policy=compiled(APPROVED),
            actor=name,
        )
        for name in ("ann", "mallory", "bob")
    )
    ann.init()
    ann.governance.request(counts("r-10"), reason="a count")
    for verb in (mallory.check, partial(mallory.governance.request, reason="a spoof")):
        with pytest.raises(ConfusableIdError, match="r-10"):
            verb(counts("r-lO"))
    assert [one.request.release for one in ann.governance.requests()] == ["r-10"]
    bob.governance.approve("r-10", reason="fine")
    assert ann.submit(counts("r-10")).allowed
