"""What each kind of event declares of itself, and that the others keep to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import get_args

import pytest
from samples.kinds import BODIES

from modicum.ledger import Record, State
from modicum.ledger.log.event_kind import EventBody
from modicum.ledger.log.events import EVENT_VERSION, KINDS, Body, ChargeBody
from modicum.ledger.proof.consistency import Claim
from modicum.ledger.replay.fold import fold

LEDGERS = Path(__file__).parents[2] / "golden" / "ledgers"


def test_every_kind_has_a_name_of_its_own_and_a_version() -> None:
    assert len({kind.kind for kind in KINDS}) == len(KINDS)
    assert {*EventBody.__subclasses__()} == {*KINDS}
    assert all(1 <= kind.since <= EVENT_VERSION for kind in KINDS)
    later = [since for kind in KINDS for since in kind.later.values()]
    assert all(since <= EVENT_VERSION for since in later)


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.kind)
def test_every_kind_says_what_it_is_about(body: Body) -> None:
    assert body.summary
    assert "{" not in body.summary


def test_what_claims_something_under_the_policy_is_audited() -> None:
    assert {kind for kind in KINDS if kind.claims} == {*get_args(Claim)}


def test_what_moves_balances_is_known() -> None:
    moving = {kind for kind in KINDS if kind.moves == "balances"}
    assert moving == {*get_args(ChargeBody)}


def records(path: Path) -> Iterator[Record]:
    name = f"file:{path}?mode=ro&immutable=1"
    with closing(sqlite3.connect(name, uri=True)) as connection:
        rows = connection.execute("SELECT seq, payload, hash FROM events ORDER BY seq")
        yield from (Record(*row) for row in rows)


@pytest.mark.parametrize("path", sorted(LEDGERS.glob("*.db")), ids=lambda one: one.name)
def test_nothing_else_moves_them(path: Path) -> None:
    state, changes = State(), 0
    for record in records(path):
        event, change = fold(state, record)
        assert change is None or event.body.moves == "balances"
        changes += change is not None
    assert changes
