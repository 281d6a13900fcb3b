"""Plans on the ledger: made, written, read, committed as a whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import small

from modicum.api.local import Workspace
from modicum.api.local.evaluation import price_release
from modicum.api.local.plans.plan import Outcome, Plan, RequestOutcome, read_plan
from modicum.api.local.plans.requests import Handed, Request, read_request
from modicum.core.document import from_python
from modicum.core.errors import (
    Code,
    ConflictError,
    InputError,
    ModicumError,
    StaleError,
    UsageError,
)
from modicum.core.yaml_reader import read_document
from modicum.planner.ledger_round.plan import ON_LEDGER
from modicum.policy.compiler import compile_text
from modicum.release.utility import UTILITY_MAX
from modicum.system.clock import FixedClock

POLICY = """
modicum: policy/v1
name: rounds
units: {patient: {id: patient_id}}
labels: {team: {values: [a, b], default: a}}
schema: {attributes: {age: low, pay: low}}
roles: {officer: [olga, pavel]}
approvals:
  - {when: 'release.team == "b"', need: 1, from: [officer]}
population:
  groups: {immutable: [patient]}
  partition_by: {region: {values: [north, south], immutable: [patient]}}
rotation: {active: 3, slack: 0.4, retired: first-come}
policies:
  - {name: all, when: "true", unit: patient, budget: {rho: 1}}
per_release:
  - {name: cap, when: '"pay" in m.attributes', unit: patient, budget: {rho: 0.01}}
"""


def workspace(folder: Path, rounds: int = 3) -> Workspace:
    found = small.workspace(folder, policy=POLICY)
    found.init()
    for _ in range(rounds):
        found.rounds.open()
    return found


def described(
    name: str, rho: str, *, utility: float = 1, attribute: str = "age", **more: Any
) -> dict[str, Any]:
    cost = {"patient": {"rho": float(rho)}}
    one = {"name": "m", "mechanism": "gaussian", "attributes": [attribute]}
    return {
        "release": name,
        "utility": utility,
        "groups": {"from": 1, "to": 3},
        **more,
        "mechanisms": [{**one, "cost": cost}],
    }


def requests(*releases: dict[str, Any]) -> list[Request]:
    compiled = compile_text(POLICY.encode(), "policy.yaml")
    return [
        read_request(Handed(one["release"], None, partial(from_python, one)), compiled)
        for one in releases
    ]


def four() -> list[Request]:
    """Return requests of which the ledger has room for some: 7/15 of rho 1."""
    return requests(
        described("big", "0.4", utility=5),
        described("small", "0.2", utility=4),
        described("other", "0.25", utility=4),
        described("later", "0.1", utility=9, groups=[9]),
    )


def code(error: pytest.ExceptionInfo[ModicumError]) -> Code:
    return error.value.problems[0].code


def outcomes(plan: Plan) -> dict[str, Outcome]:
    return {one.release: one.outcome for one in plan.outcomes}


@pytest.mark.spec("PLAN-12")
@pytest.mark.parametrize("solver", ON_LEDGER)
def test_a_plan_is_reserved_as_it_was_made(tmp_path: Path, solver: str) -> None:
    ws = workspace(tmp_path)
    before = ws.state().seq
    plan = ws.rounds.plan(four(), solver=solver)
    assert ws.state().seq == before  # Nothing is written.
    assert outcomes(plan)["later"] is Outcome.LEFT_OUT
    done = ws.rounds.commit(plan)
    assert done.releases == plan.accepted
    assert {ws.standing(one).status.value for one in plan.accepted} == {"reserved"}
    assert [one.id for one in ws.rounds.committed()] == [plan.id]
    assert ws.rounds.committed_plan(plan.id).content == plan.content
    present = ws.rounds.present()
    assert present is not None
    assert present.plans == (plan.id,)
    report = ws.verify()
    assert (report.entries, report.decisions) == (done.seq, len(plan.accepted))


def test_the_better_plan_is_found(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    worth = {name: ws.rounds.plan(four(), solver=name).utility for name in ON_LEDGER}
    assert worth["fcfs"] == 5
    assert worth["ilp"] == worth["dpk"] == 8
    assert all(one.possible == 22 for one in [ws.rounds.plan(four())])


@pytest.mark.spec("PLAN-12")
def test_each_request_that_is_not_accepted_is_told_why(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    ws.submit({**described("there", "0.01")})
    plan = ws.rounds.plan(
        [
            *four(),
            *requests(
                described("there", "0.01"),
                described("b", "0.001", team="b", requester="ann"),
                described("rich", "0.02", attribute="pay"),
            ),
        ]
    )
    assert plan.accepted == ("small", "other")
    assert plan.why_not("small") == ()
    assert plan.why_not("big") == (
        "all (group 1 to 3): needs rho 0.4, of 0.4567 0.006667 are left; taken by"
        " other, small",
    )
    assert plan.why_not("later")[1:] == (
        "all (group 9): nothing is unlocked: group 9 has not started",
        "wait, or name only groups that are open:  groups: {from: 1, to: 3}",
    )
    assert plan.why_not("there") == ("it is already reserved",)
    assert plan.why_not("b") == (
        "1 of officer must approve it first:  modicum release approve FILE",
    )
    assert (
        plan.why_not("rich")[1] == "cap (group 1 to 3): rho 0.02 in total, limit 0.01"
    )
    with pytest.raises(InputError) as unknown:
        plan.why_not("nobody")
    assert code(unknown) is Code.PLAN_UNKNOWN


@pytest.mark.spec("PLAN-13")
def test_who_asks_cannot_agree_by_a_plan_of_others(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    olga = Workspace(ws._store, ws._clock, policy=None, actor="olga")
    silent = described("b", "0.1", team="b")
    olga.governance.approve(silent, reason="mine")
    plan = ws.rounds.plan(requests(silent))
    assert plan.accepted == ()
    assert "has no `requester`: add  requester: NAME" in plan.why_not("b")[0]
    own = described("c", "0.1", team="b", requester="olga")
    with pytest.raises(ModicumError):
        olga.governance.approve(own, reason="mine")
    assert ws.rounds.plan(requests(own)).accepted == ()


def test_who_agreed_and_plans_is_told_why_that_does_not_count(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    wanted = described("b", "0.1", team="b", requester="ann")
    olga = Workspace(ws._store, ws._clock, policy=None, actor="olga")
    olga.governance.approve(wanted, reason="needed")
    assert olga.rounds.plan(requests(wanted)).why_not("b") == (
        "1 of officer must approve it first:  modicum release approve FILE",
        "`olga` approved it, but requests it by planning it: somebody else must"
        " plan, or approve",
    )
    pavel = Workspace(ws._store, ws._clock, policy=None, actor="pavel")
    assert pavel.rounds.plan(requests(wanted)).accepted == ("b",)
    # Who plans it did not agree by that.
    other = described("c", "0.1", team="b", requester="ann")
    assert pavel.rounds.plan(requests(other)).why_not("c") == (
        "1 of officer must approve it first:  modicum release approve FILE",
    )


def test_who_was_approved_is_planned_and_named(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    wanted = described("b", "0.1", team="b", requester="ann")
    olga = Workspace(ws._store, ws._clock, policy=None, actor="olga")
    olga.governance.approve(wanted, reason="needed")
    plan = ws.rounds.plan(requests(wanted))
    ws.rounds.commit(plan)
    assert plan.accepted == ("b",)
    assert ws.verify().decisions == 1


def written(plan: Plan) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(plan.to_dict()))
    return found


def test_a_plan_that_was_written_is_read_again(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    plan = ws.rounds.plan(four())
    again = read_plan(written(plan))
    assert again == plan
    assert again.id == plan.id
    assert ws.rounds.commit(again).releases == plan.accepted


UTILITIES = st.fractions(0, UTILITY_MAX) | st.builds(
    lambda digits, places: Fraction(digits, 10**places),
    st.integers(0, 10**42),
    st.integers(0, 60),
)


@given(st.lists(UTILITIES, min_size=1, max_size=4))
@settings(max_examples=examples(60), deadline=None)
def test_whatever_utility_is_accepted_is_read_again(utilities: list[Fraction]) -> None:
    asked = []
    for place, one in enumerate(utilities):
        release = described(f"r-{place}", "0.1") | {"utility": one}
        with suppress(InputError):
            asked += requests(release)
    plan = Plan(
        round="round-1",
        policy="0" * 64,
        seq=3,
        head="0" * 64,
        solver="greedy",
        remark="-",
        accepted=(),
        outcomes=tuple(
            RequestOutcome(
                one.release.id, "0" * 64, one.utility, Outcome.LEFT_OUT, ("no",)
            )
            for one in asked
        ),
    )
    assert read_plan(written(plan)) == plan
    assert read_plan(plan.to_dict()) == plan


@pytest.mark.spec("PLAN-12")
@pytest.mark.parametrize(
    "change",
    [
        lambda plan: plan["requests"][1].update(utility="1000"),
        lambda plan: plan["requests"][0].update(outcome="accepted"),
        lambda plan: plan["accepted"].append("big"),
        lambda plan: plan["accepted"].reverse(),
        lambda plan: plan["accepted"].clear(),
        lambda plan: plan["ledger"].update(seq=8),
        lambda plan: plan.update(content="0" * 64),
        lambda plan: plan.update(plan="plan-000000000000"),
        lambda plan: plan.update(round="round-2"),
        lambda plan: plan["requests"].append(plan["requests"][1]),
    ],
)
def test_a_plan_that_was_changed_is_refused(tmp_path: Path, change: Any) -> None:
    plan = written(workspace(tmp_path).rounds.plan(four()))
    change(plan)
    with pytest.raises(ConflictError) as refused:
        read_plan(plan)
    assert code(refused) is Code.PLAN_REFUSED


@pytest.mark.parametrize("key", ["round", "requests", "accepted", "ledger", "policy"])
def test_a_plan_without_all_its_parts_is_none(tmp_path: Path, key: str) -> None:
    plan = written(workspace(tmp_path).rounds.plan(four()))
    del plan[key]
    with pytest.raises(InputError) as refused:
        read_plan(plan)
    assert code(refused) is Code.MISSING_KEY


def forged(plan: Plan, **changed: Any) -> Plan:
    """Return a plan that somebody wrote themselves, with a content that is right."""
    from dataclasses import replace

    return replace(plan, **changed)


def asked_anew(plan: Plan, release: str, **changed: Any) -> Sequence[Any]:
    from dataclasses import replace

    return tuple(
        replace(one, **changed) if one.release == release else one
        for one in plan.outcomes
    )


@pytest.mark.spec("PLAN-13")
def test_a_forged_plan_reserves_nothing(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    plan = ws.rounds.plan(four())
    text = {one.release: one.text for one in plan.outcomes}["small"]
    greedy = requests(described("big", "0.4", utility=5))[0]
    over = asked_anew(plan, "big", outcome=Outcome.ACCEPTED, text=greedy.text())
    cases = {
        "denied by all": forged(
            plan, accepted=("small", "other", "big"), outcomes=over
        ),
        "its loss has changed": forged(
            plan, outcomes=asked_anew(plan, "small", text=text.replace("0.2", "0.02"))
        ),
        "it cannot be read": forged(plan, outcomes=asked_anew(plan, "small", text="{")),
    }
    before = ws.state().digest()
    for why, one in cases.items():
        with pytest.raises(ConflictError, match=why) as refused:
            ws.rounds.commit(one)
        assert code(refused) is Code.PLAN_REFUSED
        assert ws.state().digest() == before
    ws.rounds.commit(plan)


@pytest.mark.spec("PLAN-13")
def test_a_plan_holds_for_the_entry_that_it_was_made_on(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    plan = ws.rounds.plan(four())
    ws.submit(described("tiny", "0.001"))
    with pytest.raises(StaleError) as stale:
        ws.rounds.commit(plan)
    assert code(stale) is Code.PLAN_STALE
    plan = ws.rounds.plan(four())
    ws.rounds.commit(plan)
    seq = ws.state().seq
    again = ws.rounds.commit(plan)  # Whoever is not sure may try again.
    assert (again.plan, again.releases) == (plan.id, plan.accepted)
    assert ws.state().seq == seq
    assert [one.id for one in ws.rounds.committed()] == [plan.id]


def test_a_plan_of_another_policy_or_round_is_stale(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    plan = ws.rounds.plan(four())
    for one, why in (
        (forged(plan, policy="0" * 64), "the active policy has changed"),
        (forged(plan, round="round-2"), "the round `round-3` is open"),
        (forged(plan, head="0" * 64), "the remaining budget may have changed"),
        (forged(plan, seq=plan.seq - 1), "the remaining budget may have changed"),
    ):
        with pytest.raises(StaleError) as stale:
            ws.rounds.commit(one)
        assert why in stale.value.problems[0].notes[0]
    active = Workspace(ws._store, ws._clock, policy=None, actor="tester")
    text = POLICY.replace("age: low", "years: low").replace("default: a", "default: b")
    successor = compile_text(text.encode(), "policy.yaml")
    active.governance.activate(successor, reason="other words")
    with pytest.raises(StaleError):
        active.rounds.commit(plan)


def test_a_forged_plan_needs_the_same_people(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    (wanted,) = requests(described("b", "0.1", team="b", requester="ann"))
    plan = ws.rounds.plan([wanted])
    assert plan.accepted == ()
    eager = asked_anew(plan, "b", outcome=Outcome.ACCEPTED, text=wanted.text(), why=())
    with pytest.raises(ConflictError, match="must approve it first"):
        ws.rounds.commit(forged(plan, accepted=("b",), outcomes=eager))


def test_guards_look_at_a_forged_plan(tmp_path: Path) -> None:
    guard = "guards: [{name: named, unless: 'm.name == \"m\"', message: call it m}]\n"
    ws = small.workspace(tmp_path, policy=POLICY + guard)
    ws.init()
    ws.rounds.open()
    plan = ws.rounds.plan(requests(described("one", "0.1", groups=[1])))
    (asked,) = plan.outcomes
    text = asked.text.replace("name: m", "name: x")
    node = read_document(text.encode(), "one.yaml")
    other = price_release(node, small.compiled(POLICY + guard), guarded=False)
    unnamed = asked_anew(plan, "one", text=text, content=other.content)
    with pytest.raises(ConflictError, match="call it m"):
        ws.rounds.commit(forged(plan, outcomes=unnamed))
    assert ws.rounds.commit(plan).releases == ("one",)


def test_a_forged_plan_reserves_nothing_twice(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    there = described("there", "0.01")
    ws.submit(there)
    plan = ws.rounds.plan(requests(there))
    text = requests(there)[0].text()
    eager = asked_anew(plan, "there", outcome=Outcome.ACCEPTED, text=text, why=())
    with pytest.raises(ConflictError, match="it is already reserved"):
        ws.rounds.commit(forged(plan, accepted=("there",), outcomes=eager))
    other = requests(described("there", "0.02"))
    assert ws.rounds.plan(other).why_not("there") == (
        "it is already reserved as another one",
    )


@pytest.mark.spec("LED-21")
def test_a_plan_takes_no_id_that_somebody_else_asks_for(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    ann, olga = (
        Workspace(ws._store, ws._clock, policy=None, actor=name)
        for name in ("ann", "olga")
    )
    wanted = described("b", "0.1", team="b", requester="ann")
    ann.governance.request(wanted, reason="for the report")
    (other,) = requests(described("b", "0.05"))
    plan = ws.rounds.plan([other])
    assert plan.why_not("b") == (
        "somebody else requested another release with this id",
    )
    eager = asked_anew(plan, "b", outcome=Outcome.ACCEPTED, text=other.text(), why=())
    with pytest.raises(ConflictError, match="somebody else requested") as refused:
        ws.rounds.commit(forged(plan, accepted=("b",), outcomes=eager))
    assert code(refused) is Code.PLAN_REFUSED
    # Who asks may plan another one; and everybody what is asked for.
    assert ann.rounds.plan([other]).accepted == ("b",)
    olga.governance.approve(wanted, reason="fine")
    ws.rounds.commit(ws.rounds.plan(requests(wanted)))
    assert ws.governance.requests() == ()


@pytest.mark.spec("PLAN-13")
def test_what_ran_out_meanwhile_only_makes_room(tmp_path: Path) -> None:
    clock = FixedClock(small.NOON)
    ws = small.workspace(tmp_path, policy=POLICY, clock=clock)
    ws.init()
    ws.rounds.open()
    ws.submit(described("short", "0.2", groups=[1]), reserve_seconds=60)
    wanted = requests(described("new", "0.2", groups=[1]))
    plan = ws.rounds.plan(wanted)
    clock.time = clock.after(clock.time, 120)
    done = ws.rounds.commit(plan)
    assert ws.standing("short").status.value == "expired"
    assert done.releases == ("new",)


def test_without_a_round_there_is_no_plan(tmp_path: Path) -> None:
    ws = workspace(tmp_path, rounds=0)
    with pytest.raises(UsageError) as missing:
        ws.rounds.plan(four())
    assert code(missing) is Code.ROUND_MISSING
    with pytest.raises(InputError) as unknown:
        workspace(tmp_path).rounds.plan(four(), solver="magic")
    assert code(unknown) is Code.UNKNOWN_CHOICE


def test_worth_is_exact_or_rounded_alike(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    third, more = Fraction(1, 3), Fraction(10**9)
    tiny = Fraction(10**9 - 1, 10**9)  # In whole numbers beyond 64 bits.
    from dataclasses import replace

    low, high = requests(described("low", "0.3"), described("high", "0.3"))
    for worth in (third, more, tiny * 10**8 + Fraction(1, 3**30)):
        pair = [replace(low, utility=worth), replace(high, utility=worth * 2)]
        plan = ws.rounds.plan(pair, solver="ilp")
        assert plan.accepted == ("high",)
        assert read_plan(written(plan)).utility == worth * 2


def test_an_empty_batch_makes_an_empty_plan(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    plan = ws.rounds.plan([])
    assert plan.accepted == ()
    seq = ws.state().seq
    assert ws.rounds.commit(plan).releases == ()
    assert ws.state().seq == seq
    assert ws.rounds.committed() == ()
