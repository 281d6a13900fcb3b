"""Only who has a role that `opened_by` names opens rounds, and an audit sees to it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from samples import small

from modicum.api.local import Workspace
from modicum.api.local.balances import Entry
from modicum.core.errors import ApprovalError, Code, VerificationError
from modicum.ledger.log.events import Body, GroupActivated, GroupRetired, RoundOpened
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock

HEAD = small.POLICY + "population: {groups: {immutable: [user]}}\n"
ROLES = "roles: {officer: [olga, Pia], planner: [ben, olga], head: [ruth]}\n"
TURNS = HEAD + ROLES + "rotation: {active: 1, opened_by: [planner, head]}\n"
ANYBODY = HEAD + ROLES + "rotation: {active: 1}\n"

As = Callable[[str], Workspace]


@pytest.fixture
def acting(tmp_path: Path) -> As:
    """Return a way to work on one ledger as somebody."""

    def acting(actor: str) -> Workspace:
        store = SqliteStore(tmp_path / "ledger.db", wait_seconds=20)
        return Workspace(store, FixedClock(small.NOON), actor=actor)

    small.workspace(tmp_path, policy=TURNS).init()
    return acting


@pytest.mark.spec("LED-20")
@pytest.mark.parametrize("person", ["ben", "olga", "ruth"])
def test_who_has_one_of_the_roles_opens_rounds(acting: As, person: str) -> None:
    assert acting(person).rounds.open().number == 1
    acting(person).rounds.open()
    assert acting("tester").verify().entries == 6


@pytest.mark.spec("LED-20")
@pytest.mark.parametrize("person", ["tester", "Pia", "Ben", "BEN", "planner", "head"])
def test_nobody_else_does_and_nothing_is_written(acting: As, person: str) -> None:
    acting("ben").rounds.open("first")
    before = acting("ben").state().seq
    for name in ("", "first", "second"):
        with pytest.raises(ApprovalError) as refused:
            acting(person).rounds.open(name)
        (problem,) = refused.value.problems
        assert problem.code is Code.NEEDS_APPROVAL
        assert f"`{person}`" in problem.message
        assert "planner or head" in problem.message
        spelled = any("has `ben`" in note for note in problem.notes)
        assert spelled is (person.casefold() == "ben")
    assert acting("ben").state().seq == before


def test_a_policy_that_names_nobody_lets_anybody(tmp_path: Path) -> None:
    ws = small.workspace(tmp_path, policy=ANYBODY)
    ws.init()
    ws.rounds.open()
    assert ws.verify().entries == 3


def test_without_roles_nobody_has_one(tmp_path: Path) -> None:
    nobody = HEAD + "rotation: {active: 1, opened_by: [planner]}\n"
    ws = small.workspace(tmp_path, policy=nobody)
    ws.init()
    with pytest.raises(ApprovalError):
        ws.rounds.open()


@pytest.mark.spec("LED-20")
def test_the_policy_decides_that_is_active_then(tmp_path: Path, acting: As) -> None:
    acting("ben").rounds.open()
    later = TURNS.replace("[planner, head]", "[officer]")
    acting("ben").governance.activate(small.compiled(later), reason="others")
    with pytest.raises(ApprovalError):
        acting("ben").rounds.open()
    acting("Pia").rounds.open()
    anybody = small.compiled(ANYBODY)
    acting("ben").governance.activate(anybody, reason="all")
    acting("tester").rounds.open()
    again = small.compiled(TURNS)
    acting("tester").governance.activate(again, reason="as before")
    with pytest.raises(ApprovalError):
        acting("tester").rounds.open()
    # What was opened under each policy stands, whoever may open rounds now.
    report = acting("tester").verify()
    assert report.entries == acting("ben").state().seq


def _append(entry: Entry, body: Body) -> None:
    entry.add(body)


@pytest.mark.spec("LED-20")
@pytest.mark.parametrize(
    "body",
    [
        RoundOpened("forged", {}),
        RoundOpened("forged", {"user": 10**6}),
        GroupActivated(3, "third"),
        GroupRetired(2, "third"),
    ],
)
def test_an_audit_finds_what_somebody_else_appended(acting: As, body: Body) -> None:
    for name in ("first", "second"):
        acting("ben").rounds.open(name)
    if not isinstance(body, RoundOpened):
        acting("ben").turn(lambda entry: entry.add(RoundOpened("third", {})))
    assert acting("ben").verify().entries == acting("ben").state().seq

    acting("mallory").turn(partial(_append, body=body))
    with pytest.raises(VerificationError, match="`mallory` opens a round") as found:
        acting("ben").verify()
    assert "without a role that may" in str(found.value)


@pytest.mark.spec("LED-20")
@pytest.mark.parametrize("body", [RoundOpened("x", {}), RoundOpened("x", {"user": 1})])
def test_an_audit_lets_the_same_pass_from_who_may(acting: As, body: Body) -> None:
    acting("ruth").turn(lambda entry: entry.add(body))
    assert acting("tester").verify().entries == 2
