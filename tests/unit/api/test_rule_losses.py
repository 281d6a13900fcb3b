"""What a view remembers of a ledger is what a new view reads from the log."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from samples.kinds import BODIES
from samples.small import NOON, compiled

from modicum.api import operations
from modicum.api.local import Workspace, balances
from modicum.api.local.entry_index import named_in
from modicum.api.local.handlers import read
from modicum.api.local.history import history_of
from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.rule_history import RuleHistory
from modicum.ledger import (
    GENESIS,
    ChainBreakError,
    Event,
    Record,
    ReleaseStatus,
    event_of,
    seal,
)
from modicum.ledger.log.events import PastRecorded
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock, add_seconds

HOUR = 60 * 60
RESERVED = ReleaseStatus.RESERVED
POLICY = """
modicum: policy/v1
name: moving
dp: {filter: zcdp-v1}
units:
  user: {id: user_id}
  user-month: {id: user_id, time: {column: at, period: month}, within: user}
labels:
  use: {values: [study, product], default: study}
population:
  partition_by:
    country: {values: [CH, DE, FR], immutable: [user, user-month]}
schema: {attributes: {age: low, pay: high}}
policies:
  - {name: all, when: "true", unit: user, budget: {rho: 2}}
  - {name: month, when: "true", unit: user-month, budget: {rho: 0.3}}
  - name: attr
    for_each: attribute
    unit: user
    budget: {low: {rho: 1}, high: {rho: 0.5}}
extensions:
  - name: use
    settings:
      study: {when: 'm.use == "study"', budget: same}
      any: {when: "true", budget: {scale: 1.5}}
"""
WIDER = POLICY.replace("{rho: 0.3}", "{rho: 0.4}").replace(
    "name: moving", "name: wider"
)


def release(name: str, dice: random.Random, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "release": name,
        "use": dice.choice(("study", "product")),
        **more,
        "mechanisms": [
            {
                "name": "counts",
                "mechanism": "gaussian",
                "attributes": dice.choice((["age"], ["pay"], ["age", "pay"])),
                "sensitivity": {"user": {"l2": 1}, "user-month": {"l2": 1}},
                "sigma": dice.randrange(2, 5),
            }
        ],
    }
    if dice.random() < 0.6:
        found["where"] = {"country": dice.choice(("CH", "DE", "FR"))}
    if "periods" not in found and dice.random() < 0.8:
        found["periods"] = f"2026-0{dice.randrange(1, 5)}"
    return found


class Life:
    """A ledger to which something happens.

    Args:
        folder: Where it is.
        seed: What happens.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.dice = random.Random(seed)
        self.number = 0
        self.clock = FixedClock(NOON)
        self.as_("ann", POLICY).init()

    def as_(self, actor: str, policy: str | None = None) -> Workspace:
        store = SqliteStore(self.folder / "ledger.db", wait_seconds=20)
        given = None if policy is None else compiled(policy)
        return Workspace(store, self.clock, policy=given, actor=actor)

    def name(self) -> str:
        self.number += 1
        return f"r-{self.number}"

    def view(self) -> LedgerView:
        return LedgerView(SqliteStore(self.folder / "ledger.db"), self.clock)

    def step(self) -> None:
        ws, dice = self.as_("ann"), self.dice
        held = [one for one, s in ws.state().releases.items() if s.status is RESERVED]
        match dice.randrange(9):
            case 0 | 1 | 2:
                ws.submit(release(self.name(), dice), reserve_seconds=HOUR * 3)
            case 3:
                ws.submit(release(self.name(), dice), publish=True)
            case 4:
                past = release(self.name(), dice)
                past["mechanisms"][0]["sigma"] = dice.choice((1, 3))
                ws.backfill(past)
            case 5 if held:
                ws.governance.annotate("seen", about=dice.choice(held))
                if ws.standing(held[0]).status is RESERVED:
                    ws.cancel(held[0], reason="called off")
            case 6:
                later = dice.choice((HOUR, 30 * HOUR))
                self.clock.time = add_seconds(self.clock.time, later)
            case 7:
                self.correct()
            case 8 if dice.random() < 0.3:
                text = dice.choice((POLICY, WIDER))
                new = compiled(text)
                if ws.policy().policy.digest != new.policy.digest:
                    conflicts = ws.governance.preview_activation(new).open_conflicts
                    over = [one.rule.id for one in conflicts]
                    ws.governance.activate(new, reason="another", accept=over)

    def correct(self) -> None:
        """Record a past release, and correct its periods."""
        name, kept = self.name(), random.Random(self.number)
        first = release(name, kept, periods="2026-01")
        first["mechanisms"][0]["sigma"] = 1
        self.as_("ann").backfill(first)
        first["periods"] = "2026-02"
        why = "as found out later"
        self.as_("ann").governance.redescribe(first, reason=why)
        self.as_("bob").governance.approve(name, reason=why)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("most", [1000, 1])
def test_what_is_remembered_is_what_is_read_anew(
    tmp_path: Path, seed: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(balances, "CHANGES_MAX", most)
    life = Life(tmp_path, seed)
    view, states = life.view(), set[str]()
    kept = changed = 0
    before = view.standings()
    for _ in range(16):
        for _ in range(life.dice.choice((1, 1, 3))):
            life.step()
        new = life.view()
        losses = view.standings()
        assert losses == new.standings()
        for one, then in zip(losses, before, strict=True):
            kept += one is then
            changed += one != then
            assert one is not then or one == then
        before = losses
        page = read(view, operations.RULES, order="tightest")
        assert page == read(new, operations.RULES, order="tightest")
        states |= page.states.keys()
        rule = life.dice.choice(losses).rule.id
        assert view.fullest_cell(rule) == life.view().spenders(rule)
    assert kept > 30
    assert changed > 20
    assert {"ok", "OVER"} <= states or {"ok", "near"} <= states


@pytest.mark.parametrize("seed", range(2))
def test_the_story_of_a_release_is_found_by_its_entries(
    tmp_path: Path, seed: int
) -> None:
    life = Life(tmp_path, seed)
    view, longest = life.view(), 0
    for _ in range(8):
        for _ in range(4):
            life.step()
        state = view.state()
        for name, one in state.releases.items():
            records = [each for each in view.records() if each.seq >= one.seq]
            found = view.story(name, one.seq)
            assert found == history_of(name, records)
            longest = max(longest, len(found))
    assert longest > 2


def test_the_index_misses_no_kind_of_event() -> None:
    named = 0
    for body in BODIES:
        record = seal(Event(NOON, "ann", body), 1, GENESIS)
        about = body.release_id
        if about:
            assert named_in(record) == about, body.kind
            named += 1
    assert named > 10


def test_an_entry_that_was_changed_since_is_no_history(tmp_path: Path) -> None:
    life = Life(tmp_path, 0)
    past = release("r-1", life.dice)
    past["mechanisms"][0]["sigma"] = 3
    life.as_("ann").backfill(past)
    view = life.view()
    rule = view.standings()[0].rule.id

    def changed(after: int, _limit: int | None = None) -> Iterator[Record]:
        for one in life.view().records():
            event = event_of(one, one.seq)
            if one.seq > after and isinstance(event.body, PastRecorded):
                other = replace(event.body.release, content="0" * 64)
                body = replace(event.body, release=other)
                yield seal(replace(event, body=body), one.seq, GENESIS)

    with view._lent() as head_view:
        state = view.state()
        index = RuleHistory(view.policy(), state)
        with pytest.raises(ChainBreakError, match="differs from what was read"):
            index.follow(state, head_view.balances, changed)
    assert view.fullest_cell(rule) == life.view().spenders(rule)
