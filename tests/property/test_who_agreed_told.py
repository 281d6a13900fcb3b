"""Approvals to what, whatever people do, against a slow look at the log."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.asked_about import AskedAbout
from samples.audited import key
from samples.small import NOON, POLICY, compiled, counts

from modicum.api.local import Workspace
from modicum.api.local.dry_run import TrialStore
from modicum.core.errors import ModicumError
from modicum.ledger import audit
from modicum.policy import CompiledPolicy
from modicum.reports.approval_cases import case_to_dict, vote_to_dict
from modicum.reports.timeline import Timeline
from modicum.system.clock import FixedClock

ASKING = POLICY[: POLICY.index("per_release:")] + (
    "roles: {officer: [olga, pavel, quin]}\n"
    'approvals: [{when: "true", need: 1, from: [officer]}]\n'
    "activation: {need: 1, from: [officer]}\n"
)
FIRST, SECOND = (key(number).public.hex() for number in (1, 2))
#: Whose keys a policy names, policy by policy.
KEYS: tuple[dict[str, list[str]], ...] = (
    {"quin": [FIRST]},
    {},
    {"quin": [FIRST, SECOND], "pavel": [SECOND]},
)
RELEASES = tuple(
    counts(identifier, rho=rho) for identifier in ("a", "b") for rho in ("1e-4", "2e-4")
)
PEOPLE = ("ann", "olga", "pavel", "quin")
VERBS = ("request", "withdraw", "submit", "past", "yes", "no", "propose", "activate")
STEPS = st.tuples(
    st.sampled_from((*VERBS, "agree", "refuse")),
    st.sampled_from(PEOPLE),
    st.integers(0, 3),
    st.sampled_from((None, None, 1, 2)),
)


@cache
def policy(number: int) -> CompiledPolicy:
    keys = f"keys: {json.dumps(KEYS[number])}\n" if KEYS[number] else ""
    return compiled(ASKING.replace("name: small", f"name: p-{number}") + keys)


def done(
    store: TrialStore, step: tuple[str, str, int, int | None], reason: str
) -> None:
    """Do something to a ledger; what it refuses is not done."""
    verb, by, number, signer = step
    office = Workspace(store, FixedClock(NOON), actor=by)
    people, release = office.governance, RELEASES[number]
    other, signs = policy(number % len(KEYS)), signer and key(signer)
    verbs: dict[str, Callable[[], object]] = {
        "request": lambda: people.request(release, reason=reason),
        "withdraw": lambda: people.withdraw_request(release["release"], reason=reason),
        "submit": lambda: office.submit(release),
        "past": lambda: office.backfill(release),
        "yes": lambda: people.approve(release, reason=reason, key=signs or None),
        "no": lambda: people.reject(release, reason=reason, key=signs or None),
        "propose": lambda: people.propose_policy(other, reason=reason),
        "activate": lambda: people.activate(other, reason=reason),
        "agree": lambda: people.approve_policy(other, reason=reason, key=signs or None),
        "refuse": lambda: people.reject_policy(other, reason=reason, key=signs or None),
    }
    with suppress(ModicumError):
        verbs[verb]()


def told(store: TrialStore) -> tuple[Timeline, AskedAbout]:
    """Return what a statement tells of a log that holds, and what a slow look does."""
    story = Timeline()
    audit(story.passing(store.read(0)))
    story.approval_cases.count_pending()
    rows = [(json.loads(one.payload)["event"], one.hash) for one in store.read(0)]
    return story, AskedAbout(rows)


@pytest.mark.spec("AUD-10")
@settings(max_examples=examples(60), deadline=None)
@given(st.lists(STEPS, max_size=25))
def test_a_statement_tells_who_agreed_as_a_slow_look_at_the_log_does(
    taken: list[tuple[str, str, int, int | None]],
) -> None:
    store = TrialStore("a world", lambda _: iter(()), 0)
    Workspace(store, FixedClock(NOON), policy=policy(0), actor="admin").init()
    for number, step in enumerate(taken):
        done(store, step, f"because {number}")
    story, found = told(store)
    assert found.people.mistakes == []
    assert [vote_to_dict(one) for one in story.approval_cases.votes] == found.votes
    shown: list[dict[str, Any]] = [
        case_to_dict(one) for one in story.approval_cases.in_order
    ]
    for one in shown:
        needs = one.pop("needs")
        if one["state"] == "pending":
            assert needs
            assert all(need["given"] for need in needs) == found.enough(one)
        else:
            assert needs == []
    assert shown == found.approval_cases()
    waiting = [one for one in shown if one["state"] in ("pending", "outdated")]
    assert [one.id for one in story.approval_cases.waiting] == [
        one["id"] for one in waiting
    ]


#: A way to each place where something that people are asked about can stand.
WAYS: dict[str, list[tuple[str, str, int, int | None]]] = {
    "pending again": [
        ("request", "ann", 0, None),
        ("withdraw", "ann", 0, None),
        ("request", "ann", 0, None),
    ],
    "pending by another": [
        ("request", "ann", 0, None),
        ("withdraw", "ann", 0, None),
        ("request", "olga", 0, None),
        ("withdraw", "olga", 0, None),
        ("request", "olga", 1, None),
    ],
    "pending": [("request", "ann", 0, None)],
    "withdrawn": [("request", "ann", 0, None), ("withdraw", "ann", 0, None)],
    "replaced": [("request", "ann", 0, None), ("request", "ann", 1, None)],
    "reserved": [
        ("request", "ann", 0, None),
        ("yes", "quin", 0, 1),
        ("submit", "ann", 0, None),
    ],
    "recorded": [("request", "ann", 0, None), ("past", "ann", 0, None)],
    "outdated": [
        ("request", "ann", 0, None),
        ("agree", "olga", 1, 2),
        ("activate", "ann", 1, None),
    ],
    "not requested": [("no", "pavel", 0, None)],
    "lapsed": [
        ("propose", "ann", 2, None),
        ("agree", "olga", 1, None),
        ("activate", "ann", 1, None),
    ],
    "activated": [],
}


@pytest.mark.spec("AUD-10")
@pytest.mark.parametrize("way", WAYS)
def test_each_place_where_a_matter_can_stand_is_told(way: str) -> None:
    state = way.removesuffix(" again").removesuffix(" by another")
    store = TrialStore("a world", lambda _: iter(()), 0)
    Workspace(store, FixedClock(NOON), policy=policy(0), actor="admin").init()
    for step in WAYS[way]:
        done(store, step, "because")
    story, found = told(store)
    assert state in [one.state for one in story.approval_cases.in_order]
    assert state in [one["state"] for one in found.approval_cases()]
    assert len(list(store.read(0))) == 1 + len(WAYS[way]), "each step is taken"
