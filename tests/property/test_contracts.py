"""Contracts in any order of what people and the platform do, against a plain reading.

What the oracle permits the fold takes, and nothing else: nothing goes out without the
agreement that it takes, and nothing that has it is stuck.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import get_args

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.escrow import Plain, permits
from samples.contracts import Drawer, activation
from samples.stored import to_plain

from modicum.core.errors import ModicumError
from modicum.ledger import State
from modicum.ledger.log import approval_statement, events
from modicum.ledger.log.escrow_events import EscrowBody
from modicum.ledger.log.events import Body, Event
from modicum.ledger.state.escrow import escrow_to_plain

STEPS = 150


def is_judged(body: Body) -> bool:
    about = isinstance(body, events.ApprovalGiven) and body.subject != "plan"
    return about or isinstance(body, EscrowBody | events.DisclosureRecorded)


def live_through(seed: int, seen: Counter[tuple[str, bool]] | None = None) -> State:
    state = State()
    log: list[Plain] = []
    drawer = Drawer(
        random.Random(seed),
        state.escrow,
        lambda contract: state.approvals.get(("contract", contract), ()),
    )
    later = drawer.random.randint(-STEPS // 2, STEPS // 2)  # Then version 5 begins.
    first = Event(drawer.at(), "olga", activation(), 4)
    state.apply(first, "00" * 32)
    now = state.digest()
    for step in range(STEPS):
        drawer.now += drawer.random.random() < 0.08
        by, body = drawer.draw()
        event = Event(drawer.at(), by, body, 5 if step >= later else 4)
        plain = {**to_plain(event), "v": event.version}
        try:
            state.apply(event, f"{step:064x}")
        except ModicumError as refusal:
            assert state.digest() == now  # A refusal changes nothing.
            taken, why = False, str(refusal)
        else:
            taken, why, now = True, "", state.digest()
        if is_judged(body):
            assert taken == permits(log, plain), (seed, step, why, plain)
            if seen is not None:
                seen[str(plain["kind"]), taken] += 1
        if taken:
            log.append(plain)
    return state


@pytest.fixture(autouse=True)
def signatures_are_genuine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signatures have tests of their own; whose key it is matters here."""
    monkeypatch.setattr(approval_statement, "is_genuine", lambda *_: True)
    monkeypatch.setattr(State, "is_present", lambda *_: True)


@pytest.mark.spec("ESC-3")
@pytest.mark.spec("ESC-4")
@pytest.mark.spec("ESC-5")
@pytest.mark.spec("ESC-6")
@pytest.mark.spec("ESC-8")
@pytest.mark.spec("ESC-9")
@settings(max_examples=examples(300, plain=30), deadline=None)
@given(st.integers(0, 2**32))
def test_what_the_contracts_permit_flows_and_nothing_else_does(seed: int) -> None:
    live_through(seed)


def test_what_is_drawn_comes_to_every_end() -> None:
    """If nothing were ever permitted, or nothing refused, the test above is empty."""
    seen: Counter[tuple[str, bool]] = Counter()
    out: Counter[str] = Counter()
    for seed in range(45):
        for flow in live_through(seed, seen).escrow.flows.values():
            out[flow.contract.flow] += bool(flow.released)
    assert min(out["output"], out["signal"]) >= 2, out
    assert out["raw-signal"] >= 1, out
    kinds = {kind.kind for kind in get_args(EscrowBody)}
    for kind in (*kinds, "approval-given", "disclosure-recorded"):
        assert seen[kind, True] >= 3, (kind, seen)
        if kind != "flow-failed":
            assert seen[kind, False] >= 3, (kind, seen)


def test_an_escrow_survives_a_snapshot() -> None:
    state = live_through(7)
    assert state.escrow.flows
    restored = State.restored(state.small_to_plain())
    assert escrow_to_plain(restored.escrow) == escrow_to_plain(state.escrow)
    assert restored.escrow == state.escrow
