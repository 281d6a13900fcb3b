"""A server that contradicts itself, or tells of something else, is not believed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from samples.remote import BEFORE, answering
from samples.small import POLICY, counts

import modicum as mo
from modicum.api.schema.approval import ApprovalStatus, Vote
from modicum.api.schema.ledger import Spender
from modicum.client.decoding import approval_states_of, decoded, vote_entries_of
from modicum.client.policies import policy_sent
from modicum.client.retry_connection import Connection, Request
from modicum.client.workspace import RemoteWorkspace
from modicum.core.errors import Code, Mark
from modicum.ledger import ReleaseStatus
from modicum.ledger.decision.approvals import ApprovalState
from modicum.policy.compiler import compile_text

ASKING = (
    POLICY
    + """
roles: {officer: [olga, pavel, inf]}
approvals:
  - {when: 'release.audience == "public"', need: 1, from: [officer]}
activation: {need: 1, from: [officer]}
"""
)
PUBLIC = counts("r-1", audience="public", dataset="visits")


def hearing(**changed: Any) -> dict[str, Any]:
    return {
        "need": 1,
        "from": ["officer"],
        "requester_may_approve": False,
        "given": False,
        "missing": 1,
        "approved_by": [],
        "rejected_by": [],
        "left": ["olga", "inf"],
        "requesters": [],
        **changed,
    }


def states_in(result: dict[str, Any]) -> tuple[ApprovalState, ...]:
    return approval_states_of([decoded(ApprovalStatus, result)])


def test_hearings_are_read() -> None:
    (found,) = states_in(hearing())
    assert (found.given, found.missing, found.left) == (False, 1, ("olga", "inf"))
    (found,) = states_in(hearing(given=True, missing=0, approved_by=["olga"]))
    assert found.given


@pytest.mark.parametrize(
    "changed",
    [
        {"given": True},
        {"missing": 0},
        {"given": True, "missing": 0},
        {"approved_by": ["olga"]},
        {"given": True, "missing": 0, "approved_by": ["olga"], "rejected_by": ["p"]},
        {"left": "olga"},
        {"need": "1"},
    ],
)
def test_hearings_that_contradict_themselves_are_refused(
    changed: dict[str, Any],
) -> None:
    with pytest.raises(mo.UnavailableError):
        states_in(hearing(**changed))


def test_names_stay_names_where_amounts_are_infinite() -> None:
    vote = {
        "entry": 3,
        "at": "2026-05-01T12:00:00.000000Z",
        "by": "inf",
        "content": "0" * 64,
        "approves": True,
        "roles": ["inf"],
        "reason": "inf",
        "key": None,
        "current": True,
    }
    (found,) = vote_entries_of([decoded(Vote, vote)])
    assert (found.by, found.reason, found.roles) == ("inf", "inf", ("inf",))
    spender = {"release": "inf", "coordinate": "rho", "share": None, "undated": False}
    one = decoded(Spender, {**spender, "amount": "inf"})
    assert (one.release, one.amount) == ("inf", math.inf)
    for amount in (None, "infinite", True, [1]):
        with pytest.raises(mo.UnavailableError):
            decoded(Spender, {**spender, "amount": amount})


def test_a_policy_is_told_wrong_in_its_own_file() -> None:
    sent = policy_sent(compile_text(POLICY.encode(), "own.yaml"))
    result = Mark("request", 3, 1, 4)
    assert sent.place(result) == Mark("own.yaml", 3, 1, 4, "name: small")


# --- a server that lies ---------------------------------------------------------------


@pytest.fixture
def olga(tmp_path: Path) -> Iterator[RemoteWorkspace]:
    (tmp_path / "policy.yaml").write_text(ASKING)
    with answering(tmp_path / "l.db", policy=tmp_path / "policy.yaml") as url:
        with mo.connect(url, token=f"{BEFORE}ann") as ann:
            ann.governance.request(PUBLIC, reason="x")
        with mo.connect(url, token=f"{BEFORE}olga") as ws:
            yield ws


def lies(
    monkeypatch: pytest.MonkeyPatch, path: str, change: Callable[[Any], None]
) -> None:
    """Let answers to what is asked at a path be changed on their way."""
    send = Connection.send

    def ask(self: Connection, request: Request[Any]) -> Any:
        result = send(self, request)
        if request.path.endswith(path):
            change(result)
        return result

    monkeypatch.setattr(Connection, "send", ask)


def _other_request(result: dict[str, Any]) -> None:
    result["content"] = "0" * 64


def _other_body(result: dict[str, Any]) -> None:
    result["body"]["id"] = "r-2"


def _denied(result: dict[str, Any]) -> None:
    result["decision"]["decision"] = "deny"


@pytest.mark.parametrize("change", [_other_request, _other_body, _denied])
def test_what_is_not_what_it_says_is_not_agreed_to(
    olga: RemoteWorkspace,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Any], None],
) -> None:
    before = olga.head()
    lies(monkeypatch, "/requests/r-1", change)
    with pytest.raises(mo.UnavailableError):
        olga.governance.approve("r-1", reason="x")
    assert olga.head() == before


@pytest.mark.parametrize(
    ("key", "value"),
    [("approves", False), ("content", "0" * 64), ("id", "r-2"), ("subject", "policy")],
)
def test_another_word_than_was_said_is_not_believed(
    olga: RemoteWorkspace, monkeypatch: pytest.MonkeyPatch, key: str, value: object
) -> None:
    lies(monkeypatch, "/approvals", lambda result: result.update({key: value}))
    with pytest.raises(mo.UnavailableError):
        olga.governance.approve("r-1", reason="x")


def test_other_policies_than_were_sent_are_not_weighed(
    olga: RemoteWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = compile_text(ASKING.replace("name: small", "name: next").encode(), "n")
    assert not olga.governance.preview_activation(other).holds_already
    lies(monkeypatch, ":weigh", lambda result: result["policy"].update(digest="0" * 64))
    with pytest.raises(mo.UnavailableError):
        olga.governance.preview_activation(other)


def test_a_proposal_that_is_another_text_is_not_believed(
    olga: RemoteWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = compile_text(ASKING.replace("name: small", "name: next").encode(), "n")
    olga.governance.propose_policy(other, reason="x")
    digest = other.policy.digest
    assert olga.governance.proposed(digest).policy.digest == digest
    lies(
        monkeypatch,
        "/policies/proposals",
        lambda result: result["proposals"][0].update(text=ASKING),
    )
    with pytest.raises(mo.UnavailableError):
        olga.governance.proposed(digest)
    with pytest.raises(mo.UnavailableError):
        olga.governance.approve_policy(digest, reason="x")


# --- a server that words things otherwise ---------------------------------------------


@pytest.fixture
def dara(tmp_path: Path) -> Iterator[RemoteWorkspace]:
    (tmp_path / "policy.yaml").write_text(POLICY)
    with (
        answering(tmp_path / "l.db", policy=tmp_path / "policy.yaml") as url,
        mo.connect(url, token=f"{BEFORE}dara") as ws,
    ):
        yield ws


def _newer(result: dict[str, Any]) -> None:
    """Change all prose of a decision, and add keys everywhere."""
    result["notices"] = ["worded otherwise", *result["notices"]]
    for one in (result, result["policy"], result["ledger"], *(result["losses"] or ())):
        one["key_of_a_later_version"] = {"x": [1, "inf"]}
    if result["text"] is not None:
        result["text"]["headline"] = "Allowed. All rules hold."
        result["text"]["rest"] = ["  remark: worded otherwise"]
        result["text"]["key_of_a_later_version"] = 1


def _wordless(result: dict[str, Any]) -> None:
    result["text"] = {"lines": ["Prose in a form of a later version"]}


@pytest.mark.parametrize("change", [_newer, _wordless])
def test_prose_of_another_version_changes_no_decision(
    dara: RemoteWorkspace,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Any], None],
) -> None:
    for path in ("/releases", ":check", ":record-past"):
        lies(monkeypatch, path, change)
    assert dara.check(counts("r-2")).allowed
    denied = dara.check(counts("r-9", rho=9))
    assert not denied.allowed
    assert denied.blocking
    assert "DENY r-9" in denied.explain(deep=False)
    found = dara.submit(counts("r-2"))
    assert (found.allowed, found.status) == (True, "reserved")
    assert found.headline.startswith("ALLOW r-2")
    assert dara.start("r-2").status is ReleaseStatus.STARTED
    assert dara.backfill(counts("r-3")).status == "recorded"


#: A rule that does not let a release pass.
DENYING: dict[str, Any] = {
    "rule": "all",
    "unit": "user",
    "stage": "history",
    "cell": None,
    "cells_denying": 1,
    "allowed": False,
    "undated": [],
    "cause": None,
    "unlocked": 1,
    "measure": "rho",
    "before": 0,
    "alone": 2,
    "together": 2,
    "limit": 1,
    "budget": "rho 1",
    "filter": None,
    "approx_dp": None,
    "when": "always",
    "source": [],
}


@pytest.mark.parametrize(
    "change",
    [
        {"decision": "deny"},
        {"blocking": ["all"]},
        {"decision": "allow", "over_limit": ["all"], "blocking": ["all"]},
        {"decision": "perhaps"},
        {"status": "denied"},
        {"status": "canceled"},
        {"release": "r-8"},
        {"losses": [DENYING]},
        {"losses": None},
        {"losses": [{**DENYING, "allowed": True, "together": 10**400}]},
        {"losses": [{**DENYING, "allowed": True, "limit": "NaN"}]},
    ],
)
def test_a_decision_that_contradicts_itself_is_not_believed(
    dara: RemoteWorkspace, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    lies(monkeypatch, "/releases", lambda result: result.update(change))
    with pytest.raises(mo.UnavailableError) as caught:
        dara.submit(counts("r-7"))
    problem = caught.value.problems[0]
    assert problem.code is Code.NOT_UNDERSTOOD
    # It was reserved all the same: that can be found out, and nothing is lost.
    assert "ws.standing(ID)" in problem.help
    assert dara.standing("r-7").status is ReleaseStatus.RESERVED


@pytest.mark.parametrize(
    "day", ["nonsense", "", "20260101", "2026-W01-1", "2026-02-30"]
)
def test_a_day_that_is_none_is_not_believed(
    dara: RemoteWorkspace, monkeypatch: pytest.MonkeyPatch, day: str
) -> None:
    dara.submit(counts("r-7"))
    lies(monkeypatch, "/releases/r-7:start", lambda result: result.update(day=day))
    with pytest.raises(mo.UnavailableError) as caught:
        dara.start("r-7")
    assert caught.value.problems[0].code is Code.NOT_UNDERSTOOD
    assert dara.standing("r-7").status is ReleaseStatus.STARTED


def test_reasons_are_shown_whatever_the_headline_is_like(
    dara: RemoteWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = dara.check(counts("r-9", rho=9)).explain(deep=False)
    lies(monkeypatch, ":check", lambda result: result["text"].update(headline={"x": 1}))
    assert dara.check(counts("r-9", rho=9)).explain(deep=False) == usual


def test_what_stands_is_told_where_its_rule_is_overdrawn_since(
    dara: RemoteWorkspace,
) -> None:
    dara.submit(counts("r-7"))
    dara.backfill(counts("r-8", rho=9))
    for found in (
        dara.submit(counts("r-7")),
        dara.check(counts("r-7")),
        dara.submit(counts("r-7"), publish=True),
    ):
        assert (found.retry, found.blocking) == (True, ())
    assert dara.standing("r-7").status is ReleaseStatus.PUBLISHED
