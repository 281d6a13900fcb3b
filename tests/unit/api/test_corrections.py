"""Past releases are corrected by two people, and charged where they did read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from samples.audited import key
from samples.documents import described_in, keys
from samples.small import NOON, compiled

from modicum.accounting import Loss
from modicum.api.local import Workspace
from modicum.api.local.approvers import approvers_of
from modicum.api.local.backfill import NO_PERIODS
from modicum.api.local.policies.replay import history_of
from modicum.core.errors import (
    ApprovalError,
    Code,
    ConflictError,
    InputError,
    ModicumError,
    StaleError,
)
from modicum.ledger import (
    ChainBreakError,
    Event,
    RecordedRelease,
    audit,
    event_of,
    seal,
)
from modicum.ledger.log.events import PastRedescribed
from modicum.reports.sources import opened_ledger, report_on
from modicum.reports.statement_html import page
from modicum.storage.proofs.verification import Trust
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock

POLICY = """
modicum: policy/v1
name: reading
dp: {filter: zcdp-v1}
units:
  user-month: {id: user_id, time: {column: read_at, period: month}}
  user-day: {id: user_id, time: {column: read_at, period: day}, within: user-month}
schema: {attributes: {page: low, country: low}}
policies:
  - {name: day, when: "true", unit: user-day, budget: {rho: 0.03}}
  - {name: month, when: "true", unit: user-month, budget: {rho: 0.75}}
"""
ASKING = (
    POLICY
    + """
roles: {officer: [olga, pavel, quentin]}
approvals: [{when: 'release.audience == "public"', need: 2, from: [officer],
             requester_may_approve: true}]
"""
)
WHY: dict[str, Any] = {"reason": "the job reads one day"}


def views(release: str = "old", **more: Any) -> dict[str, Any]:
    """Return a release of one Gaussian mechanism that costs rho 0.02 per day."""
    mechanism = {
        "name": "views",
        "mechanism": "gaussian",
        "attributes": ["page"],
        "sensitivity": {"user-day": {"l2": 1}},
        "sigma": 5,
    }
    return {"release": release, **more, "mechanisms": [mechanism]}


def person(folder: Path, name: str, policy: str | None = None) -> Workspace:
    """Return a ledger as somebody uses it."""
    return Workspace(
        SqliteStore(folder / "ledger.db", wait_seconds=20),
        FixedClock(NOON),
        policy=None if policy is None else compiled(policy),
        actor=name,
    )


def spent(ws: Workspace, day: str, rule: str = "day") -> float:
    return ws.spenders(rule, periods=day).view(1).spent


def corrected(folder: Path, *, by: tuple[str, str] = ("ann", "bob")) -> Workspace:
    """Return a ledger in which two people corrected a past release."""
    ann = person(folder, by[0], POLICY)
    ann.backfill(views())
    ann.governance.redescribe(views(periods="2026-04-01"), **WHY)
    bob = person(folder, by[1])
    bob.governance.approve("old", **WHY)
    return bob


def code(raised: pytest.ExceptionInfo[ModicumError]) -> Code:
    return raised.value.problems[0].code


@pytest.mark.spec("LED-25")
def test_a_corrected_release_is_charged_to_the_periods_that_it_read(
    tmp_path: Path,
) -> None:
    ann = person(tmp_path, "ann", POLICY)
    ann.backfill(views())
    assert (spent(ann, "2026-04-01"), spent(ann, "2026-04-02")) == (0.02, 0.02)
    assert spent(ann, "2026-04", "month") == pytest.approx(31**2 * 0.02)
    request = ann.governance.redescribe(views(periods="2026-04-01"), **WHY)
    assert request is not None
    assert request.decision.over_limit == ()
    assert spent(ann, "2026-04-02") == 0.02  # Nobody agreed yet.
    bob = person(tmp_path, "bob")
    vote = bob.governance.approve("old", **WHY)
    assert vote.corrected_in == bob.state().seq
    for ws in (ann, bob, person(tmp_path, "cleo")):
        assert (spent(ws, "2026-04-01"), spent(ws, "2026-04-02")) == (0.02, 0)
        assert spent(ws, "2026-04", "month") == 0.02  # Of April, one day is read.
        assert spent(ws, "2026-05", "month") == 0
    assert bob.verify().entries == 4
    (now,) = bob.release_of(bob.standing("old")).mechanisms
    assert now.description["periods"] == [["2026-04-01", "2026-04-01"]]
    assert bob.standing("old").seq == 2
    assert bob.submit(views("next", periods="2026-04-02")).allowed


@pytest.mark.spec("LED-25")
def test_what_was_corrected_is_recorded_again_by_its_new_description(
    tmp_path: Path,
) -> None:
    ws = corrected(tmp_path)
    assert ws.backfill(views(periods="2026-04-01")).retry
    with pytest.raises(ConflictError):
        ws.backfill(views())
    assert ws.governance.redescribe(views(periods="2026-04-01"), **WHY) is None


@pytest.mark.spec("LED-25")
@pytest.mark.parametrize("name", ["ann", "Ann", " ann"])
def test_who_asks_for_a_correction_does_not_approve_it(
    tmp_path: Path, name: str
) -> None:
    ann = person(tmp_path, "ann", POLICY)
    ann.backfill(views())
    ann.governance.redescribe(views(periods="2026-04-01"), **WHY)
    before = ann.state().digest()
    with pytest.raises(ApprovalError) as raised:
        person(tmp_path, name).governance.approve("old", **WHY)
    assert "the requester cannot approve it" in raised.value.render()
    assert person(tmp_path, "bob").state().digest() == before


@pytest.mark.spec("LED-25")
@pytest.mark.spec("POL-11")
def test_who_owns_a_program_does_not_approve_its_correction(tmp_path: Path) -> None:
    owned = POLICY + "roles: {officer: [ada]}\nowners: {service:Job: [ada]}\n"
    job = person(tmp_path, "service:job", owned)
    job.backfill(views())
    job.governance.redescribe(views(periods="2026-04-01"), **WHY)
    with pytest.raises(ApprovalError) as raised:
        person(tmp_path, "Ada").governance.approve("old", **WHY)
    assert "the requester cannot approve it, nor can an owner" in raised.value.render()
    bob = person(tmp_path, "bob")
    bob.governance.approve("old", **WHY)
    forged(bob, lambda body: body, "bob")  # As it was, it holds.
    with pytest.raises(ChainBreakError, match="requested the correction, and approves"):
        forged(bob, lambda body: body, "ADA")


@pytest.mark.spec("LED-25")
def test_those_whom_the_policy_asks_agree_to_a_correction(tmp_path: Path) -> None:
    public = views(audience="public")
    now = {**public, "periods": "2026-04-01"}
    person(tmp_path, "ann", ASKING).backfill(public)
    olga, pavel, quentin = (
        person(tmp_path, name).governance for name in ("olga", "pavel", "quentin")
    )
    request = olga.redescribe(now, **WHY)
    assert request is not None
    assert request.approval_states[0].missing == 2
    with pytest.raises(ApprovalError):  # Though a requester may approve otherwise.
        olga.approve("old", **WHY)
    with pytest.raises(ApprovalError):
        person(tmp_path, "bob").governance.approve("old", **WHY)
    assert not pavel.approve(now, **WHY).corrected_in
    quentin.reject("old", reason="not yet")
    (pending,) = quentin.requests()
    assert not pending.complete
    vote = quentin.approve(now, **WHY)
    ws = person(tmp_path, "cleo")
    assert vote.corrected_in == ws.state().seq
    assert spent(ws, "2026-04-02") == 0
    assert ws.verify().approvals == 3


@pytest.mark.spec("LED-25")
def test_agreement_to_an_earlier_correction_does_not_count_again(
    tmp_path: Path,
) -> None:
    first = views(audience="public", periods="2026-04-01")
    other = {**first, "periods": "2026-04-02"}
    person(tmp_path, "ann", ASKING).backfill(first)
    ann, olga, pavel = (
        person(tmp_path, name).governance for name in ("ann", "olga", "pavel")
    )
    for now in (other, first, other):
        ann.redescribe(now, **WHY)
        assert not olga.approve("old", **WHY).corrected_in
        assert pavel.approve("old", **WHY).corrected_in
    ws = person(tmp_path, "cleo")
    assert (spent(ws, "2026-04-01"), spent(ws, "2026-04-02")) == (0, 0.02)
    assert len(ws.state().redescribed["old"]) == 3
    ws.verify()


@pytest.mark.spec("LED-25")
@pytest.mark.parametrize(
    "change",
    [
        {"mechanism": "discrete-gaussian"},
        {"sigma": 6},
        {"sensitivity": {"user-day": {"l2": 0.5}}},
        {"contribution_bound": {"user-day": 1}},
        {"attributes": ["country"]},
        {"name": "other"},
        {"where": {"region": "north"}},
    ],
)
def test_a_correction_changes_nothing_but_periods(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    policy = POLICY + "population: {partition_by: {region: {values: [north, south]}}}\n"
    ann = person(tmp_path, "ann", policy)
    ann.backfill(views())
    now = views(periods="2026-04-01")
    now["mechanisms"][0].update(change)
    with pytest.raises(InputError) as raised:
        ann.governance.redescribe(now, **WHY)
    assert code(raised) is Code.CORRECTS_MORE
    (key,) = change
    named = key.replace("mechanism", "kind")
    assert f"`{named}`" in str(raised.value)
    with pytest.raises(InputError) as raised:
        ann.governance.redescribe(views(released_on="2026-04-02"), **WHY)
    assert code(raised) is Code.CORRECTS_MORE
    assert ann.state().seq == 2


@pytest.mark.spec("LED-25")
def test_only_what_was_recorded_as_past_is_corrected(tmp_path: Path) -> None:
    ann = person(tmp_path, "ann", POLICY)
    ann.submit(views("asked", periods="2026-04-01"))
    with pytest.raises(ConflictError) as raised:
        ann.governance.redescribe(views("asked", periods="2026-04-02"), **WHY)
    assert code(raised) is Code.NOT_CORRECTABLE
    with pytest.raises(InputError) as unknown:
        ann.governance.redescribe(views("nobody"), **WHY)
    assert code(unknown) is Code.RELEASE_UNKNOWN
    with pytest.raises(InputError):
        ann.governance.redescribe(views(), reason=" ")


@pytest.mark.spec("LED-25")
def test_a_correction_asked_for_under_another_policy_is_asked_for_again(
    tmp_path: Path,
) -> None:
    ann, bob = person(tmp_path, "ann", POLICY), person(tmp_path, "bob")
    ann.backfill(views())
    now = views(periods="2026-04-01")
    ann.governance.redescribe(now, **WHY)
    other = POLICY.replace("0.75", "0.7").replace("name: reading", "name: other")
    bob.governance.activate(compiled(other), reason="less", accept=["month"])
    with pytest.raises(StaleError):
        bob.governance.approve("old", **WHY)
    person(tmp_path, "ann").governance.redescribe(now, **WHY)
    bob.governance.approve("old", **WHY)
    bob.verify()
    assert spent(bob, "2026-05-01") == 0


@pytest.mark.spec("LED-25")
def test_who_took_a_correction_back_does_not_agree_when_others_ask_for_it(
    tmp_path: Path,
) -> None:
    now = views(periods="2026-04-01")
    person(tmp_path, "ann", POLICY).backfill(views())
    ann, bob = (person(tmp_path, name).governance for name in ("ann", "bob"))
    ann.redescribe(now, **WHY)
    bob.withdraw_request("old", reason="ann is away")  # Anybody may.
    bob.redescribe(now, **WHY)
    with pytest.raises(ApprovalError):
        ann.approve("old", **WHY)


@pytest.mark.spec("LED-25")
def test_two_people_correct_a_release_as_often_as_they_must(tmp_path: Path) -> None:
    """Who asked for a correction that was made may agree to it another time."""
    first, second = (views(periods=day) for day in ("2026-04-01", "2026-04-02"))
    person(tmp_path, "ann", POLICY).backfill(first)
    ann, bob = (person(tmp_path, name).governance for name in ("ann", "bob"))
    for asks, agrees, now in (
        (ann, bob, second),
        (bob, ann, first),
        (bob, ann, second),
        (ann, bob, first),
    ):
        asks.redescribe(now, **WHY)
        assert agrees.approve("old", **WHY).corrected_in
    ws = person(tmp_path, "cleo")
    assert (spent(ws, "2026-04-01"), spent(ws, "2026-04-02")) == (0.02, 0)
    ws.verify()


def forged(ws: Workspace, change: Callable[[PastRedescribed], Any], by: str) -> None:
    """Audit a log whose last entry, the correction, is another one."""
    records = list(ws.records())
    last = event_of(records[-1], len(records))
    assert isinstance(last.body, PastRedescribed)
    event = Event(last.at, by, change(last.body))
    records[-1] = seal(event, len(records), records[-2].hash)
    audit(records)


def cheaper(release: RecordedRelease) -> RecordedRelease:
    """Return a release whose mechanism costs nothing."""
    (one,) = release.mechanisms
    free = {unit: Loss((0,) * len(x.coordinates)) for unit, x in one.losses.items()}
    return structs.replace(release, mechanisms=(replace(one, losses=free),))


@pytest.mark.spec("LED-25")
@pytest.mark.parametrize(
    ("change", "by", "why"),
    [
        (lambda body: body, "ann", "requested the correction, and approves it"),
        (lambda body: body, " ANN", "requested the correction, and approves it"),
        (
            lambda body: structs.replace(body, before=cheaper(body.before)),
            "bob",
            "its earlier description differs from the entry",
        ),
        (
            lambda body: structs.replace(body, release=cheaper(body.release)),
            "bob",
            "its description costs",
        ),
        (
            lambda body: structs.replace(body, release=body.before),
            "bob",
            "nobody has requested this correction",
        ),
        (lambda body: structs.replace(body, policy="f" * 64), "bob", "was not active"),
        (
            lambda body: structs.replace(body, approved_by=("eve",)),
            "bob",
            "names approvers who did not approve",
        ),
    ],
)
def test_an_audit_finds_a_correction_that_was_forged(
    tmp_path: Path, change: Callable[[PastRedescribed], Any], by: str, why: str
) -> None:
    ws = corrected(tmp_path)
    forged(ws, lambda body: body, "bob")  # As it was, it holds.
    with pytest.raises(ChainBreakError, match=why):
        forged(ws, change, by)


@pytest.mark.spec("LED-25")
def test_an_audit_finds_a_correction_that_too_few_approved(tmp_path: Path) -> None:
    public = views(audience="public")
    person(tmp_path, "ann", ASKING).backfill(public)
    people = ("ann", "olga", "pavel")
    ann, olga, pavel = (person(tmp_path, name).governance for name in people)
    ann.redescribe({**public, "periods": "2026-04-01"}, **WHY)
    olga.approve("old", **WHY)
    pavel.approve("old", **WHY)
    ws = person(tmp_path, "cleo")
    records = list(ws.records())
    last = event_of(records[-1], len(records))
    assert isinstance(last.body, PastRedescribed)
    event = Event(
        last.at, last.actor, structs.replace(last.body, approved_by=("olga",))
    )
    skipped = records[:-2]  # The second approval is left out.
    skipped.append(seal(event, len(skipped) + 1, skipped[-1].hash))
    with pytest.raises(ChainBreakError, match="was corrected without approval"):
        audit(skipped)


def test_a_statement_lists_corrections_with_who_why_before_and_after(
    tmp_path: Path,
) -> None:
    corrected(tmp_path)
    with opened_ledger(tmp_path / "ledger.db") as source:
        result = report_on(source, Trust())
    plain: Any = result.to_dict()
    (one,) = plain["corrections"]
    assert (one["requested"]["actor"], one["recorded"]["actor"]) == ("ann", "bob")
    assert one["requested"]["reason"] == one["recorded"]["reason"] == WHY["reason"]
    described = {
        path: kind
        for path, kind in described_in("A statement").items()
        if path.startswith("corrections[]")
    }
    assert {*keys([one], described, "corrections")} == {*described}
    assert one["before"] == [{"mechanism": "views", "periods": None}]
    day = ["2026-04-01", "2026-04-01"]
    assert one["now"] == [{"mechanism": "views", "periods": [day]}]
    shown = page(result)
    for text in (
        "Corrections of past releases",
        "views: all of it",
        "views: periods: &quot;2026-04-01",
        "ann, ",
    ):
        assert text in shown
    (*_, case) = result.story.approval_cases.in_order
    assert [step.what for step in case.steps] == ["requested", "corrected"]


def test_a_correction_that_is_withdrawn_changes_nothing(tmp_path: Path) -> None:
    ann = person(tmp_path, "ann", POLICY)
    ann.backfill(views())
    ann.governance.redescribe(views(periods="2026-04-01"), **WHY)
    with pytest.raises(ConflictError) as raised:  # It is hers.
        person(tmp_path, "bob").governance.redescribe(views(periods="2026"), **WHY)
    assert "modicum request withdraw old" in raised.value.render()
    ann.governance.withdraw_request("old", reason="wrong day")
    with pytest.raises(ConflictError):
        person(tmp_path, "bob").governance.approve("old", **WHY)
    assert spent(ann, "2026-05-01") == 0.02
    ann.verify()


def test_history_and_snapshots_know_the_correction(tmp_path: Path) -> None:
    ws = corrected(tmp_path)
    (attempt,) = history_of(ws.records(), NOON).attempts
    assert attempt.release == ws.release_of(ws.standing("old"))
    spenders = ws.spenders("day").spenders
    assert [one.release for one in spenders] == ["old"]
    assert not spenders[0].undated


# --- who is heard -----------------------------------------------------------------

KEY, OTHER = key(1), key(2)


@pytest.mark.spec("LED-25")
@pytest.mark.spec("POL-11")
def test_a_refusal_blocks_a_correction_that_is_asked_for_again(tmp_path: Path) -> None:
    public = views(audience="public")
    now = {**public, "periods": "2026-04-01"}
    people = ("ann", "olga", "pavel", "quentin")
    person(tmp_path, "ann", ASKING).backfill(public)
    ann, olga, pavel, quentin = (person(tmp_path, one).governance for one in people)
    ann.redescribe(now, **WHY)
    quentin.reject("old", reason="it read all of April")
    for _ in range(2):
        assert not olga.approve("old", **WHY).corrected_in
        vote = pavel.approve("old", **WHY)
        assert not vote.corrected_in
        assert vote.approval_states[0].refused == ("quentin",)
        ann.withdraw_request("old", reason="once more")
        ann.redescribe(now, **WHY)
    assert spent(person(tmp_path, "cleo"), "2026-04-02") == 0.02
    assert not quentin.approve("old", **WHY).corrected_in  # It takes that back.
    ann.withdraw_request("old", reason="once more")
    ann.redescribe(now, **WHY)
    olga.approve("old", **WHY)
    assert pavel.approve("old", **WHY).corrected_in
    person(tmp_path, "cleo").verify()


@pytest.mark.spec("LED-25")
def test_a_correction_of_an_earlier_policy_may_be_refused(tmp_path: Path) -> None:
    public = views(audience="public")
    now = {**public, "periods": "2026-04-01"}
    person(tmp_path, "ann", ASKING).backfill(public)
    ann, olga = (person(tmp_path, one).governance for one in ("ann", "olga"))
    ann.redescribe(now, **WHY)
    other = ASKING.replace("name: reading", "name: other")
    olga.activate(compiled(other), reason="a name")
    assert not olga.reject("old", reason="no").approves
    ann.redescribe(now, **WHY)
    (pending,) = ann.requests()
    assert pending.approval_states[0].refused == ("olga",)


@pytest.mark.spec("LED-25")
def test_a_correction_waits_for_somebody_until_it_is_made(tmp_path: Path) -> None:
    ann = person(tmp_path, "ann", POLICY)
    ann.backfill(views())
    ann.governance.redescribe(views(periods="2026-04-01"), **WHY)
    (pending,) = ann.governance.requests()
    assert (pending.corrects, pending.complete) == (True, False)
    assert not approvers_of("old", ann).complete


@pytest.mark.spec("LED-25")
def test_who_approves_a_correction_again_learns_who_made_it(tmp_path: Path) -> None:
    bob = corrected(tmp_path)
    now = views(periods="2026-04-01")
    again = person(tmp_path, "cleo").governance
    vote = again.approve(now, **WHY)
    assert (vote.by, vote.repeated, vote.corrected_in) == ("bob", True, vote.seq)
    assert bob.state().seq == vote.seq
    with pytest.raises(StaleError):
        again.approve(now, **WHY, head="0" * 64)
    with pytest.raises(StaleError):
        again.approve(now, **WHY, content="a" * 64)
    ann = person(tmp_path, "ann")
    ann.backfill(views("other"))
    vote = again.approve(views("other"), **WHY)  # Nobody asked for anything.
    assert (vote.by, vote.repeated, vote.seq) == ("ann", True, 5)
    assert ann.verify().entries == vote.seq


@pytest.mark.spec("POL-16")
@pytest.mark.spec("LED-25")
def test_whose_keys_are_named_signs_a_correction(tmp_path: Path) -> None:
    pinned = (
        POLICY
        + f"""
roles: {{officer: [olga]}}
keys: {{olga: {KEY.public.hex()}}}
"""
    )
    ann = person(tmp_path, "ann", pinned)
    ann.backfill(views())
    ann.governance.redescribe(views(periods="2026-04-01"), **WHY)
    olga = person(tmp_path, "olga")
    for wrong in (None, OTHER):
        with pytest.raises(ApprovalError) as raised:
            olga.governance.approve("old", **WHY, key=wrong)
        assert code(raised) is Code.NOT_SIGNED
    vote = olga.governance.approve("old", **WHY, key=KEY)
    assert (vote.key, vote.corrected_in) == (KEY.public.hex(), olga.state().seq)
    assert olga.verify().signed == 1
    records = list(olga.records())
    last = event_of(records[-1], len(records))
    skipped = records[:-2]  # The signed word is left out.
    skipped.append(seal(last, len(skipped) + 1, skipped[-1].hash))
    with pytest.raises(ChainBreakError, match="did not sign the correction"):
        audit(skipped)


def test_who_agreed_before_a_correction_was_made_is_asked_as_anybody(
    tmp_path: Path,
) -> None:
    """A statement and the ledger say the same of a correction that comes again."""
    first = views(audience="public", periods="2026-04-01")
    other = {**first, "periods": "2026-04-02"}
    person(tmp_path, "ann", ASKING).backfill(first)
    ann, olga, pavel, quentin = (
        person(tmp_path, one).governance for one in ("ann", "olga", "pavel", "quentin")
    )
    olga.redescribe(other, **WHY)
    pavel.approve("old", **WHY)
    assert quentin.approve("old", **WHY).corrected_in
    ann.redescribe(first, **WHY)
    olga.approve("old", **WHY)
    assert pavel.approve("old", **WHY).corrected_in
    ann.redescribe(other, **WHY)
    states = olga.approve("old", **WHY).approval_states
    assert states[0].agreed == ("olga",)
    with opened_ledger(tmp_path / "ledger.db") as source:
        approval_cases = report_on(source, Trust()).story.approval_cases
    (*_, case) = [one for one in approval_cases.in_order if one.state == "pending"]
    result = [(one.agreed, one.left, one.requesters) for one in case.missing]
    assert result == [(one.agreed, one.left, one.requesters) for one in states]


@pytest.mark.spec("LED-15")
def test_nothing_past_read_rows_of_days_to_come(tmp_path: Path) -> None:
    ann = person(tmp_path, "ann", POLICY)
    for day in ("2026-05-03", "9999-12-31"):
        with pytest.raises(InputError) as raised:
            ann.backfill(views("new", periods=day))
        assert code(raised) is Code.OUT_OF_RANGE
    ann.backfill(views("new", periods=["2026-05-02", "2026-05-03"]))
    ann.backfill(views())
    with pytest.raises(InputError) as raised:
        ann.governance.redescribe(views(periods="2026-05-03"), **WHY)
    assert code(raised) is Code.OUT_OF_RANGE
    assert "recorded on 2026-05-01" in str(raised.value)


def test_a_statement_drops_what_is_assumed_no_more(tmp_path: Path) -> None:
    corrected(tmp_path)
    person(tmp_path, "ann").backfill(views("other"))
    with opened_ledger(tmp_path / "ledger.db") as source:
        releases = report_on(source, Trust()).story.releases
    assert releases["old"].assumptions == ()
    (assumed,) = releases["other"].assumptions
    assert NO_PERIODS in assumed
