"""The life of a release, as the fold allows it."""

from __future__ import annotations

import itertools

import pytest
from samples.life import LATER, NOON, SOONER, body_for, recorded

from modicum.core.errors import Code, ConflictError, InputError
from modicum.ledger import Event, ReleaseStatus, State

STATUSES = ("reserved", "started", "published", "canceled", "expired")
STEPS = STATUSES[1:]

#: What the life of a release allows, written out: from, step, to.
ALLOWED = {
    ("reserved", "started"): "started",
    ("reserved", "canceled"): "canceled",
    ("reserved", "expired"): "expired",
    ("started", "published"): "published",
}


def state_with(status: str) -> State:
    state = State()
    path = {
        "reserved": (),
        "started": ("started",),
        "published": ("started", "published"),
        "canceled": ("canceled",),
        "expired": ("expired",),
    }[status]
    state.apply(Event(NOON, "t", body_for("reserved", expires_at=LATER)), "1" * 64)
    for step in path:
        at = LATER if step == "expired" else NOON
        state.apply(Event(at, "t", body_for(step)), "2" * 64)
    return state


@pytest.mark.spec("LED-4")
@pytest.mark.parametrize(
    ("status", "step"),
    list(itertools.product(STATUSES, STEPS)),
)
def test_only_the_steps_of_a_life_are_allowed(status: str, step: str) -> None:
    state = state_with(status)
    before = state.digest()
    at = LATER if step == "expired" else NOON
    event = Event(at, "t", body_for(step))
    target = ALLOWED.get((status, step))
    if target is None:
        with pytest.raises(ConflictError) as caught:
            state.apply(event, "3" * 64)
        assert caught.value.code is Code.RELEASE_STATE
        assert state.digest() == before  # A failed step leaves no trace.
    else:
        state.apply(event, "3" * 64)
        assert state.releases["r-1"].status is ReleaseStatus(target)


@pytest.mark.spec("LED-4")
def test_a_reservation_expires_when_its_time_is_over_and_not_before() -> None:
    state = state_with("reserved")
    with pytest.raises(ConflictError):
        state.apply(Event(SOONER, "t", body_for("expired")), "3" * 64)
    for step in ("started", "canceled"):
        with pytest.raises(ConflictError):
            state.apply(Event(LATER, "t", body_for(step)), "3" * 64)
    assert state.due(SOONER) == []
    assert state.due(LATER) == ["r-1"]


@pytest.mark.spec("LED-4")
def test_what_counts_is_everything_but_what_was_given_up() -> None:
    counted = {status: state_with(status).releases.counted == 1 for status in STATUSES}
    assert counted == {
        "reserved": True,
        "started": True,
        "published": True,
        "canceled": False,
        "expired": False,
    }


def test_an_id_is_taken_once_and_unknown_ids_are_errors() -> None:
    state = state_with("canceled")
    with pytest.raises(ConflictError) as caught:
        state.apply(Event(NOON, "t", body_for("reserved")), "3" * 64)
    assert caught.value.code is Code.RELEASE_CONFLICT
    with pytest.raises(InputError) as unknown:
        State().apply(Event(NOON, "t", body_for("started")), "3" * 64)
    assert unknown.value.code is Code.RELEASE_UNKNOWN


@pytest.mark.spec("LED-3")
def test_the_digest_tells_states_apart() -> None:
    digests = {state_with(status).digest() for status in STATUSES}
    assert len(digests) == 5
    assert state_with("published").digest() == state_with("published").digest()
    assert recorded() == recorded()
