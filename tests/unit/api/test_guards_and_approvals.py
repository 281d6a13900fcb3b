"""What is asked of a release beside budgets, before anything is reserved."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from samples.small import POLICY, compiled, counts, workspace

from modicum.api.local.evaluation import price_release
from modicum.api.local.policies.test_format import Expected, Outcome, PolicyTest
from modicum.api.local.policies.tests import coverage, run_test
from modicum.cli.exit_codes import Exit, exit_for
from modicum.core.document import from_python
from modicum.core.errors import ApprovalError, Code, InputError
from modicum.ledger.decision.approvals import approvals_required

GUARDED = (
    POLICY
    + """
guards:
  - name: bounded
    unless: '"user" in m.contribution_bound && m.contribution_bound["user"] <= 10'
    message: state how often a user contributes
"""
)
APPROVED = (
    POLICY
    + """
approvals:
  - {when: 'release.audience == "public"', need: 2, from: [officer]}
  - {when: 'release.purpose == "ads"', need: 1, from: [officer, steward],
     requester_may_approve: true}
"""
)


def bounded(release: str, bound: int | None) -> dict[str, Any]:
    described = counts(release)
    if bound is not None:
        described["mechanisms"][0]["contribution_bound"] = {"user": bound}
    return described


@pytest.mark.spec("POL-10")
def test_a_guard_refuses_what_is_badly_described(tmp_path: Path) -> None:
    ws = workspace(tmp_path, policy=GUARDED)
    for release in (bounded("r-1", None), bounded("r-1", 11)):
        for verb in (ws.check, ws.submit):
            with pytest.raises(InputError) as caught:
                verb(release)
            assert caught.value.code is Code.GUARDED
            assert "state how often" in str(caught.value)
    assert not list(tmp_path.iterdir())
    assert ws.submit(bounded("r-1", 10)).allowed


@pytest.mark.spec("POL-10")
def test_what_happened_already_is_counted_however_it_is_described(
    tmp_path: Path,
) -> None:
    ws = workspace(tmp_path, policy=GUARDED)
    assert ws.backfill(bounded("r-1", None)).status == "recorded"


@pytest.mark.spec("POL-11")
def test_a_release_that_needs_approval_is_not_reserved(tmp_path: Path) -> None:
    ws = workspace(tmp_path, policy=APPROVED)
    public = counts("r-1", audience="public", purpose="ads")
    decision = ws.check(public)
    assert decision.allowed
    assert [one.need for one in decision.approvals] == [2, 1]
    assert decision.to_dict()["approvals"] == [
        {"need": 2, "from": ["officer"], "requester_may_approve": False},
        {"need": 1, "from": ["officer", "steward"], "requester_may_approve": True},
    ]
    assert "needs approval by 2 of officer, not the requester" in decision.explain()
    assert "needs approval by 1 of officer or steward\n" in decision.explain() + "\n"
    for publish in (False, True):
        with pytest.raises(ApprovalError) as caught:
            ws.submit(public, publish=publish)
        assert caught.value.code is Code.NEEDS_APPROVAL
        assert exit_for(caught.value) is Exit.NEEDS_APPROVAL
    assert ws.submit(counts("r-2", audience="internal")).allowed
    assert "r-1" not in ws.state().releases


LABELED = (
    POLICY.replace(
        "labels:\n",
        "labels:\n  audience: {values: [internal, faculty, public], default: public}\n",
    )
    + """
approvals:
  - {when: 'release.audience == "public"', need: 2, from: [officer]}
  - {when: 'release.audience != "internal" && release.ml == "black-box"',
     need: 1, from: [officer]}
"""
)


def of_two(release: Mapping[str, str], *own: Mapping[str, str]) -> dict[str, Any]:
    """Return a release of one mechanism for each of some labels."""
    described = {**counts("r-1"), **release}
    (mechanism,) = described["mechanisms"]
    described["mechanisms"] = [
        {**mechanism, "name": f"counts-{number}", **labels}
        for number, labels in enumerate(own)
    ]
    return described


@pytest.mark.spec("POL-11")
def test_a_label_of_a_mechanism_escapes_no_approval(tmp_path: Path) -> None:
    ws = workspace(tmp_path, policy=LABELED)
    release = {"audience": "faculty"}
    assert ws.check(of_two(release, {}, {})).approvals == ()
    hidden = of_two(release, {}, {"audience": "public"})
    assert [one.need for one in ws.check(hidden).approvals] == [2]
    with pytest.raises(ApprovalError):
        ws.submit(hidden)
    # What the release says of itself counts though every mechanism says less.
    louder = of_two({"audience": "public"}, {"audience": "internal"})
    assert [one.need for one in ws.check(louder).approvals] == [2]


labels_given = st.fixed_dictionaries(
    {},
    optional={
        "audience": st.sampled_from(["internal", "faculty", "public"]),
        "ml": st.sampled_from(["none", "black-box"]),
    },
)


@pytest.mark.spec("POL-11")
@settings(max_examples=examples(60), deadline=None)
@given(labels_given, st.lists(labels_given, min_size=1, max_size=2))
def test_an_approval_reads_a_release_as_any_of_its_mechanisms_does(
    release: dict[str, str], own: list[dict[str, str]]
) -> None:
    policy = compiled(LABELED)
    whole = {"audience": "public", "ml": "none", **release}
    readings = [whole, *({**whole, **labels} for labels in own)]
    expected = [2] * any(one["audience"] == "public" for one in readings)
    expected += [1] * any(
        one["audience"] != "internal" and one["ml"] == "black-box" for one in readings
    )
    recorded = price_release(of_two(release, *own), policy)
    assert [one.need for one in approvals_required(recorded, policy.policy)] == expected


@pytest.mark.spec("POL-11")
def test_a_policy_test_touches_what_a_label_of_a_mechanism_needs() -> None:
    policy = compiled(LABELED)
    release = of_two({"audience": "internal"}, {"audience": "public"})
    test = PolicyTest(
        name="hidden",
        history=(),
        release=from_python(release),
        expected=Expected(Outcome.NEEDS_APPROVAL),
        mark=None,
    )
    answer = run_test(test, policy)
    assert answer.passed
    untouched = coverage(policy, [answer]).untouched_approvals
    assert [one.need for one in untouched] == [1]


@pytest.mark.spec("POL-11")
def test_a_denial_comes_before_the_question_who_approves(tmp_path: Path) -> None:
    ws = workspace(tmp_path, policy=APPROVED)
    decision = ws.submit(counts("r-1", rho=5, audience="public"))
    assert not decision.allowed
    assert decision.status == "denied"


@pytest.mark.spec("POL-11")
def test_past_releases_need_nobody(tmp_path: Path) -> None:
    ws = workspace(tmp_path, policy=APPROVED)
    assert ws.backfill(counts("r-1", audience="public")).status == "recorded"
