"""The verbs of a workspace, on a real SQLite ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from samples.small import NOON, POLICY, counts, workspace

from modicum.core.errors import (
    Code,
    ConflictError,
    InputError,
    StaleError,
    UsageError,
)
from modicum.ledger import ReleaseStatus
from modicum.system.clock import FixedClock, add_seconds

DAY = 24 * 60 * 60
TIGHTER = POLICY.replace("high: 1.0", "high: 0.9")


@pytest.mark.spec("LED-9")
def test_the_first_submit_activates_the_policy(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    decision = ws.submit(counts("r-1"))
    assert (decision.allowed, decision.status) == (True, "reserved")
    assert decision.expires_at == add_seconds(NOON, DAY)
    state = workspace(tmp_path, policy=None).state()
    assert state.policy is not None
    assert state.policy.text == POLICY
    assert state.seq == 2


@pytest.mark.spec("LED-9")
def test_another_policy_may_check_but_not_submit(tmp_path: Path) -> None:
    workspace(tmp_path).init()
    other = workspace(tmp_path, policy=TIGHTER)
    decision = other.check(counts("r-1"))
    assert decision.allowed
    assert not decision.policy_active
    assert any("not active" in notice for notice in decision.notices)
    with pytest.raises(StaleError) as caught:
        other.submit(counts("r-1"))
    assert caught.value.code is Code.POLICY_STALE
    with pytest.raises(StaleError):
        other.backfill(counts("r-1"))
    with pytest.raises(UsageError) as exists:
        other.init()
    assert exists.value.code is Code.ALREADY_EXISTS
    assert "modicum policy activate" in exists.value.problems[0].help
    assert workspace(tmp_path, policy=None).state().seq == 1


def test_a_policy_that_says_the_same_in_other_words_is_the_same(tmp_path: Path) -> None:
    workspace(tmp_path).init()
    reworded = "# a comment\n" + POLICY.replace("2.0", "2.00").replace("1e-7", "1.0E-7")
    assert workspace(tmp_path, policy=reworded).submit(counts("r-1")).allowed


def test_init_twice_does_nothing_the_second_time(tmp_path: Path) -> None:
    head = workspace(tmp_path).init().head
    assert workspace(tmp_path).init().head == head
    with pytest.raises(UsageError) as caught:
        workspace(tmp_path / "elsewhere", policy=None).init()
    assert caught.value.code is Code.NO_POLICY


@pytest.mark.spec("LED-5")
def test_the_same_release_again_changes_nothing(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    first = ws.submit(counts("r-1", rho="0.015"))
    again = ws.submit(counts("r-1", rho="0.015"))
    assert (again.retry, again.status, again.allowed) == (True, "reserved", True)
    assert again.expires_at == first.expires_at
    assert ws.state().seq == 2
    # It would not fit a second time: a retry is not charged twice.
    assert not ws.check(counts("r-2", rho="0.015")).allowed


@pytest.mark.spec("LED-5")
@pytest.mark.parametrize("verb", ["check", "submit", "backfill"])
def test_the_same_id_with_other_contents_is_a_conflict(
    tmp_path: Path, verb: str
) -> None:
    ws = workspace(tmp_path)
    ws.submit(counts("r-1"))
    head = ws.state().head
    with pytest.raises(ConflictError) as caught:
        getattr(ws, verb)(counts("r-1", rho="0.002"))
    assert caught.value.code is Code.RELEASE_CONFLICT
    assert ws.state().head == head


@pytest.mark.spec("LED-6")
def test_a_denial_is_recorded_spends_nothing_and_may_be_tried_again(
    tmp_path: Path,
) -> None:
    ws = workspace(tmp_path)
    ws.submit(counts("r-1", rho="0.015"))
    denied = ws.submit(counts("r-2", rho="0.015"))
    assert (denied.allowed, denied.status) == (False, "denied")
    assert denied.blocking == (
        "attr:diagnosis @standard",
        "cat:health/member @standard",
    )
    assert ws.state().denials == 1
    assert "r-2" not in ws.state().releases
    assert ws.submit(counts("r-2", rho="0.001")).status == "reserved"


@pytest.mark.spec("LED-4")
def test_reserve_start_post(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    ws.submit(counts("r-1"))
    assert ws.start("r-1").status is ReleaseStatus.STARTED
    assert ws.publish("r-1").status is ReleaseStatus.PUBLISHED
    for verb in (ws.start, ws.publish):
        with pytest.raises(ConflictError):
            verb("r-1")
    with pytest.raises(ConflictError) as caught:
        ws.cancel("r-1", reason="regret")
    assert "stays spent" in caught.value.problems[0].help
    with pytest.raises(InputError):
        ws.start("r-9")


@pytest.mark.spec("LED-4")
def test_a_voided_reservation_gives_its_loss_back_and_retires_its_id(
    tmp_path: Path,
) -> None:
    ws = workspace(tmp_path)
    ws.submit(counts("r-1", rho="0.015"))
    assert not ws.check(counts("r-2", rho="0.015")).allowed
    with pytest.raises(InputError):
        ws.cancel("r-1", reason=" ")
    ws.cancel("r-1", reason="the study was called off")
    assert ws.check(counts("r-2", rho="0.015")).allowed
    for verb in (ws.check, ws.submit):
        with pytest.raises(ConflictError) as caught:
            verb(counts("r-1", rho="0.015"))
        assert caught.value.code is Code.RELEASE_STATE


@pytest.mark.spec("LED-4")
def test_a_reservation_that_is_not_started_expires(tmp_path: Path) -> None:
    clock = FixedClock(NOON)
    ws = workspace(tmp_path, clock=clock)
    ws.submit(counts("r-1", rho="0.015"), reserve_seconds=60)
    clock.time = add_seconds(NOON, 59)
    assert not ws.check(counts("r-2", rho="0.015")).allowed
    clock.time = add_seconds(NOON, 60)
    assert ws.check(counts("r-2", rho="0.015")).allowed
    with pytest.raises(ConflictError):
        ws.check(counts("r-1", rho="0.015"))
    with pytest.raises(ConflictError):
        ws.start("r-1")
    assert ws.state().releases["r-1"].status is ReleaseStatus.EXPIRED
    assert ws.submit(counts("r-2", rho="0.015")).allowed


@pytest.mark.spec("LED-4")
def test_a_started_release_does_not_expire(tmp_path: Path) -> None:
    clock = FixedClock(NOON)
    ws = workspace(tmp_path, clock=clock)
    ws.submit(counts("r-1", rho="0.015"), reserve_seconds=60)
    ws.start("r-1")
    clock.time = add_seconds(NOON, DAY * 365)
    assert not ws.check(counts("r-2", rho="0.015")).allowed


@pytest.mark.parametrize("seconds", [0, -1, 90 * DAY + 1])
def test_a_reservation_has_a_sensible_length(tmp_path: Path, seconds: int) -> None:
    with pytest.raises(InputError):
        workspace(tmp_path).submit(counts("r-1"), reserve_seconds=seconds)
    assert not (tmp_path / "ledger.db").exists()


@pytest.mark.spec("LED-10")
def test_the_past_is_counted_and_never_denied(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    recorded = ws.backfill(counts("old", rho="0.5"))
    assert recorded.status == "recorded"
    assert recorded.allowed
    assert "attr:diagnosis @standard" in recorded.over_limit
    assert "over their limit" in recorded.headline
    assert not ws.check(counts("r-1", rho="0.000001")).allowed
    again = ws.backfill(counts("old", rho="0.5"))
    assert again.retry
    assert ws.state().seq == 2


@pytest.mark.spec("LED-11")
def test_a_malformed_release_leaves_the_ledger_untouched(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    broken = counts("r-1", attributes=("nope",))
    for verb in (ws.check, ws.submit, ws.backfill):
        with pytest.raises(InputError):
            verb(broken)
    assert list(tmp_path.iterdir()) == []
    ws.submit(counts("r-1"))
    before = (tmp_path / "ledger.db").read_bytes()
    for verb in (ws.check, ws.submit, ws.backfill):
        with pytest.raises(InputError):
            verb(counts("r-2", attributes=("nope",)))
    assert (tmp_path / "ledger.db").read_bytes() == before


def test_without_policy_and_ledger_there_is_nothing_to_decide(tmp_path: Path) -> None:
    ws = workspace(tmp_path, policy=None)
    for verb in (ws.check, ws.submit):
        with pytest.raises(UsageError) as caught:
            verb(counts("r-1"))
        assert caught.value.code is Code.LEDGER_MISSING
    with pytest.raises(UsageError):
        workspace(tmp_path).verify()
    with pytest.raises(UsageError):
        workspace(tmp_path).start("r-1")
    assert list(tmp_path.iterdir()) == []


def test_what_no_rule_is_about_is_said_aloud(tmp_path: Path) -> None:
    narrow = POLICY[: POLICY.index("policies:")] + (
        "policies: [{name: d, when: '\"diagnosis\" in m.attributes', unit: user,"
        " budget: 1.0}]\n"
    )
    ws = workspace(tmp_path, policy=narrow + "unmatched: allow\n")
    decision = ws.check(counts("r-1", attributes=("age",)))
    assert decision.allowed
    assert decision.verdict.uncovered == ("counts",)
    assert "nothing limits it" in decision.explain()
    assert "no rule of the policy" in decision.explain()


@pytest.mark.spec("DEC-12")
def test_what_no_rule_limits_is_denied_and_explained(tmp_path: Path) -> None:
    narrow = POLICY[: POLICY.index("policies:")] + (
        "policies:\n"
        "  - {name: d, when: '\"diagnosis\" in m.attributes', unit: user,"
        " budget: 1.0}\n"
        "  - {name: s, when: '\"steps\" in m.attributes', unit: user,"
        " budget: unlimited}\n"
        "per_release: [{name: cap, when: 'true', unit: user, budget: 1.5}]\n"
    )
    ws = workspace(tmp_path, policy=narrow)
    parts = [
        {
            "name": name,
            "mechanism": "declared",
            "attributes": attributes,
            "cost": {"user": {"rho": 0.0001}},
        }
        for name, attributes in (("d", ["diagnosis"]), ("none", []), ("s", ["steps"]))
    ]
    whole = {"release": "r-1", "mechanisms": parts}
    decision = ws.submit(whole)
    assert (decision.allowed, decision.blocking) == (False, ())
    assert decision.verdict.unmatched == ("none", "s")
    assert decision.causes == ("unmatched `none`", "unmatched `s`")
    assert decision.headline == "DENY r-1: no rule limits `none`, `s`"
    view: Any = decision.to_dict(deep=True)
    assert view["decision"] == "deny"
    assert view["blocking"] == []
    assert view["unmatched"] == view["uncovered"] == ["none", "s"]
    assert view["explanation"]["cells"] == []
    assert "no noise helps" in decision.explain()
    assert not decision.largest_fit().found
    assert "unmatched: allow" in decision.largest_fit().explain()
    assert decision.options() == ()
    # What a rule limits is an option, if the others are left out.
    two = {"release": "r-2", "mechanisms": parts[:2]}
    assert [one.kind for one in ws.check(two).options()] == ["mechanism"]
    # The past is counted, whatever it matches; and what is over a limit is said, too.
    past = ws.backfill({"release": "past", "mechanisms": parts})
    assert (past.allowed, past.over_limit) == (True, ())
    too_much = parts[0] | {"cost": {"user": {"rho": 1}}}
    both = ws.submit({"release": "r-3", "mechanisms": [too_much, parts[1]]})
    assert both.blocking == ("cap", "d")
    assert both.headline == (
        "DENY r-3: 2 of 2 matching rules deny; no rule limits `none`"
    )
    assert ws.submit({"release": "r-4", "mechanisms": parts[:1]}).allowed
    assert ws.verify().decisions == 3


@pytest.mark.spec("DEC-2")
def test_a_cap_on_each_release_does_not_limit_one_in_parts(tmp_path: Path) -> None:
    """And rules over history sum the parts as they sum the whole."""
    count = {
        "mechanism": "declared",
        "attributes": [],
        "cost": {"user": {"eps": 0.8}},
    }
    cap = POLICY.replace("budget: {eps: 1.5, delta: 1e-7}", "budget: {eps: 1}")
    ws = workspace(tmp_path, policy=cap)
    whole = ws.check({"release": "whole", "mechanisms": [count, count]})
    assert whole.blocking == ("cap",)
    for name in ("one", "two"):
        assert ws.submit({"release": name, "mechanisms": [count]}).allowed
    of_whole = next(
        one for one in whole.verdict.losses if one.rule.id == "global @standard"
    )
    parts = next(one for one in ws.standings() if one.rule.id == "global @standard")
    assert parts.before == of_whole.together
    third = ws.check({"release": "three", "mechanisms": [count]})
    assert "cap" not in third.blocking
    assert third.blocking


def test_a_ledger_that_two_workspaces_share_is_one_ledger(tmp_path: Path) -> None:
    one, two = workspace(tmp_path), workspace(tmp_path)
    assert one.submit(counts("r-1", rho="0.015")).allowed
    assert not two.submit(counts("r-2", rho="0.015")).allowed
    assert one.submit(counts("r-2", rho="0.001")).allowed
    assert two.submit(counts("r-2", rho="0.001")).retry
    assert one.state().digest() == two.state().digest()


@pytest.mark.spec("LED-10")
@pytest.mark.parametrize("verb", ["post", "backfill"])
def test_a_reservation_that_is_out_is_posted_and_cannot_expire(
    tmp_path: Path, verb: str
) -> None:
    clock = FixedClock(NOON)
    ws = workspace(tmp_path, clock=clock)
    release = counts("r-1", rho="0.015")
    ws.submit(release)
    if verb == "post":
        decision = ws.submit(release, publish=True)
    else:
        decision = ws.backfill(release)
    assert (decision.retry, decision.status) == (True, "published")
    clock.time = add_seconds(NOON, 2 * DAY)
    assert not ws.submit(counts("r-2", rho="0.015")).allowed
    assert ws.submit(release, publish=True).status == "published"


@pytest.mark.spec("LED-10")
def test_a_started_release_that_is_out_is_posted(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    ws.submit(counts("r-1"))
    ws.start("r-1")
    assert ws.submit(counts("r-1")).status == "started"
    assert ws.submit(counts("r-1"), publish=True).status == "published"


@pytest.mark.spec("LED-10")
def test_what_was_given_up_and_happened_all_the_same_is_not_counted_in_silence(
    tmp_path: Path,
) -> None:
    ws = workspace(tmp_path)
    ws.submit(counts("r-1"))
    ws.cancel("r-1", reason="called off")
    with pytest.raises(ConflictError) as caught:
        ws.backfill(counts("r-1"))
    assert "not counted" in caught.value.problems[0].message
    assert "under a new id" in caught.value.problems[0].help
