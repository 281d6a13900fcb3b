"""What is asked of a release beside budgets, before anything is reserved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from samples.small import POLICY, counts, workspace

from modicum.cli.exits import Exit, exit_for
from modicum.core.errors import ApprovalError, Code, InputError

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
    assert ws.record_past(bounded("r-1", None)).status == "recorded"


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
    for post in (False, True):
        with pytest.raises(ApprovalError) as caught:
            ws.submit(public, post=post)
        assert caught.value.code is Code.NEEDS_APPROVAL
        assert exit_for(caught.value) is Exit.NEEDS_APPROVAL
    assert ws.submit(counts("r-2", audience="internal")).allowed
    assert "r-1" not in ws.state().releases


@pytest.mark.spec("POL-11")
def test_a_denial_comes_before_the_question_who_approves(tmp_path: Path) -> None:
    ws = workspace(tmp_path, policy=APPROVED)
    decision = ws.submit(counts("r-1", rho=5, audience="public"))
    assert not decision.allowed
    assert decision.status == "denied"


@pytest.mark.spec("POL-11")
def test_past_releases_need_nobody(tmp_path: Path) -> None:
    ws = workspace(tmp_path, policy=APPROVED)
    assert ws.record_past(counts("r-1", audience="public")).status == "recorded"
