"""A history of rounds and user groups, under a policy by which they take turns."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from budget import examples, seed
from samples.audited import activated
from samples.small import NOON, POLICY, compiled

from modicum.api.local.evaluation import price_release
from modicum.api.local.policies.replay import History, history_of
from modicum.api.local.policies.what_if import Change, WhatIf, what_if
from modicum.core.document import from_python
from modicum.ledger import GENESIS, Balances, Event, RecordedRelease, decide, seal
from modicum.ledger.log.events import (
    Body,
    GroupActivated,
    GroupRetired,
    PlanCommitted,
    ReleaseDenied,
    ReleaseReserved,
    ReleaseVoided,
    RoundOpened,
)
from modicum.ledger.state.rounds import Planning
from modicum.policy import CompiledPolicy

LATER = "2026-06-01T12:00:00.000000Z"
GROUPED = (
    POLICY.split("policies:")[0]
    + "population: {groups: {immutable: [user]}}\n"
    + "policies:\n"
    + '  - {name: all, when: "true", unit: user, budget: {rho: 1}}\n'
)


def turning(rotation: str = "{active: 4}") -> CompiledPolicy:
    return compiled(f"{GROUPED}rotation: {rotation}\n")


def release(identifier: str, rho: float, *groups: int) -> RecordedRelease:
    described: dict[str, Any] = {
        "release": identifier,
        "mechanisms": [
            {
                "mechanism": "declared",
                "attributes": ["age"],
                "cost": {"user": {"rho": rho}},
            }
        ],
        **({"groups": list(groups)} if groups else {}),
    }
    return price_release(from_python(described), compiled(GROUPED))


def let_in(one: RecordedRelease) -> ReleaseReserved:
    return ReleaseReserved(one, compiled(GROUPED).policy.digest, LATER)


def past(*bodies: Body, policy: str = GROUPED) -> History:
    records = []
    previous = GENESIS
    for seq, body in enumerate((activated(policy), *bodies), 1):
        records.append(seal(Event(NOON, "tester", body), seq, previous))
        previous = records[-1].hash
    return history_of(records, NOON)


def allowed(found: WhatIf) -> dict[str, bool]:
    return {one.attempt.release.id: one.allowed for one in found.replayed}


OPEN = (RoundOpened("one", {}), GroupActivated(1, "one"))


def test_a_history_tells_rounds_and_groups_where_they_stand() -> None:
    plan = PlanCommitted("plan", "one", "0" * 64, ("a",))
    history = past(*OPEN, let_in(release("a", 0.1, 1)), plan, GroupRetired(1, "one"))
    assert history.turns == (*OPEN, GroupRetired(1, "one"))
    assert [type(step).__name__ for step in history.steps] == [
        "RoundOpened",
        "GroupActivated",
        "Attempt",
        "GroupRetired",
    ]


def test_a_release_is_replayed_in_the_round_that_was_open() -> None:
    history = past(
        *OPEN,
        let_in(release("too-early", 0.3, 1)),
        let_in(release("first-quarter", 0.25, 1)),
        RoundOpened("two", {}),
        GroupActivated(2, "two"),
        let_in(release("second-quarter", 0.25, 1)),
        let_in(release("with-a-new-group", 0.01, 1, 2)),
        let_in(release("of-the-new-group", 0.25, 2)),
        let_in(release("of-no-group-yet", 0.001, 3)),
        let_in(release("of-all-groups", 0.001)),
        GroupRetired(1, "two"),
        let_in(release("of-a-retired-group", 0.001, 1)),
    )
    expected = {
        "too-early": False,
        "first-quarter": True,
        "second-quarter": True,
        "with-a-new-group": False,
        "of-the-new-group": True,
        "of-no-group-yet": False,
        "of-all-groups": False,
        "of-a-retired-group": False,
    }
    found = what_if(history, turning())
    assert allowed(found) == expected
    assert found.remarks == ()
    after = what_if(history, turning("{active: 4, retired: first-come}"))
    assert allowed(after) == {**expected, "of-a-retired-group": True}
    assert all(allowed(what_if(history, compiled(GROUPED))).values())
    # What happened is within what it may be in the end.
    assert found.conflicts == ()


def test_what_a_round_unlocks_for_a_unit_counts_too() -> None:
    history = past(
        RoundOpened("one", {"user": 200_000}),
        GroupActivated(1, "one"),
        let_in(release("much", 0.21, 1)),
        let_in(release("little", 0.2, 1)),
    )
    half = {"much": False, "little": True}
    assert allowed(what_if(history, compiled(GROUPED))) == half
    assert allowed(what_if(history, turning("{active: 1}"))) == half
    assert not any(allowed(what_if(history, turning("{active: 2}"))).values())


@pytest.mark.parametrize(
    ("turns", "missing"),
    [
        ((), "no round was opened"),
        ((RoundOpened("one", {}),), "no user group was activated"),
    ],
)
def test_a_log_without_turns_is_remarked(turns: Sequence[Body], missing: str) -> None:
    history = past(*turns, let_in(release("a", 0.001, 1)))
    found = what_if(history, turning())
    assert allowed(found) == {"a": False}
    assert found.remarks == (
        f"`rotation` unlocks nothing, because {missing}: whatever matches a rule of"
        " `user`"
        " is denied",
    )
    assert what_if(history, compiled(GROUPED)).remarks == ()
    assert what_if(past(*OPEN), turning()).remarks == ()


# --- the policy that decided ----------------------------------------------------------


def lived(rng: random.Random, compiled_policy: CompiledPolicy) -> Iterable[Body]:
    """Yield what a ledger under a policy would have written."""
    planning = Planning()
    balances = Balances(compiled_policy, planning=planning)
    held: list[RecordedRelease] = []
    for number in range(30):
        if number % 5 == 0:
            opened = RoundOpened(f"{number}", {})
            planning.open_round(opened)
            yield opened
            begins = GroupActivated(number // 5, f"{number}")
            planning.activate(begins)
            yield begins
            old = [group for group, age in planning.ages().items() if age > 3]
            for group in old:
                ends = GroupRetired(group, f"{number}")
                planning.retire(ends)
                yield ends
        newest = number // 5
        groups = rng.sample(range(max(0, newest - 3), newest + 3), rng.randint(1, 3))
        request = release(f"r-{number}", rng.choice([0.02, 0.1, 0.3]), *sorted(groups))
        verdict = decide(balances, request)
        if not verdict.allowed:
            yield ReleaseDenied(
                request, compiled_policy.policy.digest, verdict.blocking
            )
            continue
        balances.charge(request)
        held.append(request)
        yield ReleaseReserved(request, compiled_policy.policy.digest, LATER)
        if rng.random() < 0.3:
            given_up = held.pop(rng.randrange(len(held)))
            balances.take_back(given_up)
            yield ReleaseVoided(given_up.id, "not needed")


def test_the_policy_that_decided_decides_the_same_again() -> None:
    rng = random.Random(f"lived {seed()}")
    denials = attempts = 0
    for _ in range(examples(12)):
        slack, retired = (
            rng.choice(["0", "0.5", "1"]),
            rng.choice(["closed", "first-come"]),
        )
        policy = turning(f"{{active: 3, slack: {slack}, retired: {retired}}}")
        history = past(*lived(rng, policy), policy=policy.policy.text)
        found = what_if(history, policy)
        assert {one.change for one in found.replayed} == {Change.SAME}
        assert all(one.blocking == one.attempt.blocking for one in found.replayed)
        attempts += len(found.replayed)
        denials += sum(not one.allowed for one in found.replayed)
    assert attempts // 5 < denials < attempts * 9 // 10
