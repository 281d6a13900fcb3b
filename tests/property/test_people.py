"""Requests, approvals and policies in any order, against a plain reading of the log."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.audited_people import People
from oracle.auditor import audit as audit_again
from samples.audited import key
from samples.small import NOON, POLICY, compiled, counts

from modicum.api.local import Workspace
from modicum.api.local.dry_run import TrialStore
from modicum.api.local.evaluation import price_release
from modicum.core.errors import ModicumError
from modicum.ledger import audit
from modicum.ledger.log.codec import release_to_plain
from modicum.policy import CompiledPolicy
from modicum.system.clock import FixedClock

OFFICERS = ("olga", "pavel", "quin")
PEOPLE = ("ann", *OFFICERS)
ASKING = POLICY[: POLICY.index("per_release:")] + (
    "roles: {officer: [olga, pavel, quin]}\n"
    'approvals: [{when: "true", need: 2, from: [officer]}]\n'
    "activation: {need: 1, from: [officer]}\n"
)
#: Who answers for whom, policy by policy.
OWNERS: tuple[dict[str, list[str]], ...] = (
    {"ann": ["olga"]},
    {"ann": ["olga", "pavel"]},
    {},
)
FIRST, SECOND = (key(number).public.hex() for number in (1, 2))
#: Whose keys a policy names, policy by policy.
KEYS: tuple[dict[str, list[str]], ...] = (
    {"quin": [FIRST]},
    {},
    {"quin": [FIRST, SECOND], "pavel": [SECOND]},
)
RELEASES = tuple(
    counts(identifier, rho=rho)
    for identifier in ("r-1", "r-2")
    for rho in ("0.0001", "0.0002")
)


@cache
def policy(number: int) -> CompiledPolicy:
    keys = f"keys: {json.dumps(KEYS[number])}\n" if KEYS[number] else ""
    keys += f"owners: {json.dumps(OWNERS[number])}\n" if OWNERS[number] else ""
    return compiled(ASKING.replace("name: small", f"name: p-{number}") + keys)


@cache
def plain(number: int) -> dict[str, Any]:
    return dict(release_to_plain(price_release(RELEASES[number], policy(0))))


@dataclass
class World:
    """A ledger, and what somebody knows who only reads its rows."""

    store: TrialStore = field(
        default_factory=lambda: TrialStore("a world", lambda _: iter(()), 0)
    )
    people: People = field(default_factory=People)
    active: int = 0
    rows: int = 0

    def of(self, actor: str) -> Workspace:
        given = None if self.rows else policy(0)
        return Workspace(self.store, FixedClock(NOON), policy=given, actor=actor)

    def read(self) -> int:
        """Read what is new, and return how many rows that is."""
        new = list(self.store.read(self.rows))
        for one in new:
            self.people.take(one.seq, json.loads(one.payload)["event"], one.hash)
        self.rows += len(new)
        return len(new)

    # --- what a reader would say --------------------------------------------------

    def stands(self, number: int) -> str | None:
        """Return the content that stands under the id of a release."""
        for event in self.people.events:
            if event["kind"] == "release-reserved":
                one = event["body"]["release"]
                if one["id"] == plain(number)["id"]:
                    return str(one["content"])
        return None

    def refuses(self, by: str, content: str, since: int) -> bool:
        """Return whether the last word of somebody that is heard is a no."""
        last = True
        for event in self.people.events[since:]:
            body = event["body"]
            if event["kind"] != "approval-given" or event["actor"] != by:
                continue
            if body["content"] == content and (
                not body["approves"] or self.may_sign(by, body["key"])
            ):
                last = body["approves"]
        return not last

    def may_sign(self, by: str, signed: str) -> bool:
        pinned = KEYS[self.active].get(by)
        return pinned is None or signed in pinned

    def may_approve(
        self, by: str, signed: str, content: str, requesters: set[str], since: int
    ) -> bool:
        owners = OWNERS[self.active].items()
        own = {actor for actor, people in owners if by in people} | {by}
        return (
            by in OFFICERS
            and self.may_sign(by, signed)
            and (own.isdisjoint(requesters) or self.refuses(by, content, since))
        )


def works(verb: Callable[[], object]) -> bool:
    try:
        verb()
    except ModicumError:
        return False
    return True


signers = st.sampled_from((None, 1, 2))
steps = st.one_of(
    st.tuples(
        st.sampled_from(
            ("request", "withdraw", "reject", "submit", "approve", "by-id")
        ),
        st.sampled_from(PEOPLE),
        st.integers(0, len(RELEASES) - 1),
        signers,
    ),
    st.tuples(
        st.sampled_from(("propose", "agree", "refuse", "activate")),
        st.sampled_from(PEOPLE),
        st.integers(0, len(KEYS) - 1),
        signers,
    ),
)


def said_of_a_release(world: World, step: tuple[str, str, int, int | None]) -> None:
    verb, by, number, signer = step
    office, release = world.of(by).governance, RELEASES[number]
    one, signs = plain(number), None if signer is None else key(signer)
    signed = signs.public.hex() if signs else ""
    pending = world.people.pending().get(one["id"])
    stands = world.stands(number)
    digest = policy(world.active).policy.digest
    same = pending is not None and (
        pending["body"]["release"]["content"] == one["content"]
        and pending["body"]["policy"] == digest
    )
    mine = pending is None or pending["actor"] == by
    new = 1
    match verb:
        case "request":
            may = not stands and (mine or same)
            new = 0 if same else 1
            done = works(lambda: office.request(release, reason="x"))
        case "withdraw":
            may = pending is not None and mine
            done = works(lambda: office.withdraw_request(one["id"], reason="x"))
        case "submit":
            agreed = world.people.agreed_to_release(one, by)
            may = stands == one["content"] or (not stands and agreed is not None)
            new = 0 if stands else 1
            done = works(lambda: world.of(by).submit(release))
        case "reject":
            may = not stands and by in OFFICERS
            done = works(lambda: office.reject(release, reason="x", key=signs))
        case _:
            about: Any = release
            if verb == "by-id":
                about = one["id"]
                one = pending["body"]["release"] if pending is not None else one
            requesters = world.people.requesters(one)
            known = verb == "approve" or (
                pending is not None and pending["body"]["policy"] == digest
            )
            may = (not stands and known) and world.may_approve(
                by, signed, one["content"], requesters, 0
            )
            done = works(lambda: office.approve(about, reason="x", key=signs))
    assert done == may, step
    assert world.read() in ((new, 0) if verb in SAYING else (new,)) if may else True


#: What is said again in the same words adds nothing.
SAYING = ("approve", "by-id", "reject", "agree", "refuse")


def said_of_a_policy(world: World, step: tuple[str, str, int, int | None]) -> None:
    verb, by, number, signer = step
    office, other = world.of(by).governance, policy(number)
    digest, signs = other.policy.digest, None if signer is None else key(signer)
    signed = signs.public.hex() if signs else ""
    if number == world.active:
        return
    proposers = {*world.people.proposers(digest)}
    match verb:
        case "propose":
            may = True
            done = works(lambda: office.propose_policy(other, reason="x"))
        case "agree":
            since = world.people.since
            may = world.may_approve(by, signed, digest, proposers, since)
            about = digest if proposers else other
            done = works(lambda: office.approve_policy(about, reason="x", key=signs))
        case "refuse":
            may = by in OFFICERS
            done = works(lambda: office.reject_policy(other, reason="x", key=signs))
        case _:
            may = world.people.agreed_to_policy(digest, by) is not None
            done = works(lambda: office.activate(other, reason="x"))
            world.active = number if done else world.active
    assert done == may, step
    assert world.read() <= 1


@pytest.mark.spec("LED-21")
@pytest.mark.spec("LED-22")
@pytest.mark.spec("POL-11")
@settings(max_examples=examples(60), deadline=None)
@given(st.lists(steps, max_size=25))
def test_whatever_people_do_is_what_a_reader_of_the_log_would_say(
    taken: list[tuple[str, str, int, int | None]],
) -> None:
    world = World()
    world.of("admin").init()
    world.read()
    for step in taken:
        if step[0] in ("propose", "agree", "refuse", "activate"):
            said_of_a_policy(world, step)
        else:
            said_of_a_release(world, step)
        world.read()
        assert world.people.mistakes == []
    waiting = world.of("reader").governance.requests()
    pending = world.people.pending()
    assert {one.request.release: one.request.by for one in waiting} == {
        identifier: event["actor"] for identifier, event in pending.items()
    }
    for one in waiting:
        if one.current:
            about = release_to_plain(one.release)
            # Whoever submits it does not count; the reader does not, anyway.
            enough = world.people.agreed_to_release(dict(about), "reader") is not None
            assert one.complete == enough
    records = list(world.store.read(0))
    report = audit(records)
    rows = [(one.seq, one.payload, one.hash) for one in records]
    found = audit_again(lambda: rows)
    assert found.mistakes == []
    assert report.signed == found.signed == world.people.signed
