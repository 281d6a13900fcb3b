"""A snapshot is all of the state, or it is nothing."""

from __future__ import annotations

import hashlib

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from samples.life import LATER, NOON, recorded
from samples.small import compiled

from modicum.ledger import Balances, Event, LossChange, State
from modicum.ledger.log.events import (
    Annotated,
    ApprovalGiven,
    Body,
    DisclosureRecorded,
    GroupActivated,
    GroupRetired,
    PastRecorded,
    PlanCommitted,
    PolicyActivated,
    ReleaseDenied,
    ReleasePosted,
    ReleaseReserved,
    ReleaseStarted,
    ReleaseVoided,
    RoundOpened,
)
from modicum.ledger.replay import snapshot
from modicum.ledger.replay.snapshot import Snapshot, read_snapshot, write_snapshot
from modicum.release import EVERYTHING

SHA = "d" * 64
BODIES: tuple[Body, ...] = (
    PolicyActivated(SHA, "small", "text é", "why", ("global",)),
    ReleaseReserved(recorded("open"), SHA, LATER),
    ReleaseReserved(recorded("published"), SHA, LATER),
    ReleaseStarted("published"),
    ReleasePosted("published"),
    ReleaseReserved(recorded("canceled"), SHA, LATER),
    ReleaseVoided("canceled", "why"),
    PastRecorded(recorded("past"), SHA, ("assumed",)),
    ReleaseDenied(recorded("denied"), SHA, ("global",)),
    ApprovalGiven("release", "x", SHA, approves=True, roles=("officer",), reason=""),
    ApprovalGiven("release", "x", SHA, approves=False, roles=("officer",), reason=""),
    Annotated("", "a remark"),
    DisclosureRecorded("leak", "a table", ("age",), EVERYTHING, "law", {}),
    RoundOpened("one", {"user": 10}),
    GroupActivated(1, "one"),
    GroupActivated(2, "one"),
    GroupRetired(1, "one"),
    PlanCommitted("plan", "one", SHA, ("open", "other")),
)


def folded(bodies: tuple[Body, ...] = BODIES) -> State:
    state = State()
    for number, body in enumerate(bodies, 1):
        state.apply(Event(NOON, "tester", body), f"{number:064}")
    return state


def charged() -> Balances:
    balances = Balances(compiled())
    balances.charge(recorded("open"), 5)
    return balances


WHOLE = write_snapshot(Snapshot(folded(), "p" * 64, charged().dump()))


@pytest.mark.spec("LED-16")
@pytest.mark.parametrize("length", range(len(BODIES) + 1))
def test_a_snapshot_holds_the_whole_state(length: int) -> None:
    state = folded(BODIES[:length])
    found = read_snapshot(write_snapshot(Snapshot(state)))
    assert found is not None
    again = found.state
    assert (found.policy, found.balances) == ("", None)
    assert again.digest() == state.digest()
    assert (again.open, again.planning) == (state.open, state.planning)
    assert (again.approvals, again.policies) == (state.approvals, state.policies)
    assert list(again.releases.values()) == list(state.releases.values())
    assert again.due(LATER) == state.due(LATER)
    # And it goes on as the other does.
    for body in BODIES[length:]:
        event = Event(NOON, "tester", body)
        assert again.apply(event, "e" * 64) == state.apply(event, "e" * 64)
    assert again.digest() == state.digest()


@pytest.mark.spec("LED-16")
def test_balances_come_back_as_they_were() -> None:
    found = read_snapshot(WHOLE)
    assert found is not None
    assert found.policy == "p" * 64
    assert found.balances == charged().dump()
    restored = Balances.restored(compiled(), found.balances)
    assert restored.dump() == charged().dump()


@pytest.mark.spec("LED-16")
@settings(max_examples=examples(300), deadline=None)
@given(data=st.data())
def test_a_snapshot_with_any_bit_flipped_or_cut_off_is_none(
    data: st.DataObject,
) -> None:
    place = data.draw(st.integers(0, len(WHOLE) * 8 - 1))
    flipped = bytearray(WHOLE)
    flipped[place // 8] ^= 1 << (place % 8)
    assert read_snapshot(bytes(flipped)) is None
    assert read_snapshot(WHOLE[: place // 8]) is None
    assert read_snapshot(WHOLE + b"\0") is None


@pytest.mark.spec("LED-16")
@pytest.mark.parametrize("version", ["FOLD_VERSION", "EVENT_VERSION", "GRID_VERSION"])
def test_a_snapshot_of_another_version_is_none(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_snapshot(WHOLE) is not None
    monkeypatch.setattr(snapshot, version, "another")
    assert read_snapshot(WHOLE) is None


@pytest.mark.spec("LED-16")
def test_a_snapshot_of_another_package_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "_package_version", lambda: "another")
    assert read_snapshot(WHOLE) is None


@pytest.mark.spec("LED-16")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"denials":1', b'"denialz":1'),
        (b'"columns":', b'"columnz":'),
        (b'"open":[{', b'"open":[['),
        (b'"expiries":{', b'"expiries":1'),
        (b"modicum-snapshot", b"modicum-snapshop"),
    ],
)
def test_a_snapshot_that_was_made_wrong_is_none(old: bytes, new: bytes) -> None:
    body = WHOLE[:-32].replace(old, new, 1)
    assert body != WHOLE[:-32]
    assert read_snapshot(body + hashlib.sha256(body).digest()) is None


def test_what_an_event_changes_is_told_once() -> None:
    state, changes = State(), list[LossChange]()
    for number, body in enumerate(BODIES, 1):
        change = state.apply(Event(NOON, "tester", body), f"{number:064}")
        if change is not None:
            changes.append(change)
    result = [(one.release.id, one.seq, one.taken_back) for one in changes]
    assert result == [
        ("open", 2, False),
        ("published", 3, False),
        ("canceled", 6, False),
        ("canceled", 6, True),
        ("past", 8, False),
    ]
    assert list(state.open) == ["open"]
