"""Who may open which page and send which form: what REST says, for every role.

Each page and form has the rights of one operation, whose row in `samples.rights` says
what a person may expect. What REST hides is in no page.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from samples.rights import (
    ABSENT,
    ASKING,
    DATA_SETS,
    HELPER,
    KEEPER,
    PEOPLE,
    ROWS,
    Case,
    another,
    identity,
    job,
    numbers,
    served_to_all,
)
from samples.served import Served

from modicum.console.pages import load_pages
from modicum.console.registry import FORMS, PAGES

load_pages()

#: What a form answers if its operation is done.
SEE_OTHER = 303


@dataclass(frozen=True)
class Sent:
    """A page that is opened, or a form that is sent.

    Attributes:
        like: The operation whose rights it has, as `get /requests`.
        path: Returns its path.
        fields: Returns the fields of a form.
        fine: What answers may be that are no refusals.
    """

    like: str
    path: Callable[[Case], str]
    fields: Callable[[Case, str], dict[str, str]] = field(
        default=lambda _case, _path: {}
    )
    fine: tuple[int, ...] = (200, SEE_OTHER)

    def expected(self, who: str, data_set: str | None) -> int:
        """Return the status of the operation."""
        method, _, path = self.like.partition(" ")
        return ROWS[method, path].expected(identity(who), data_set)


#: Pages that everybody who is recognized may open; what they show depends on who it is.
ANYBODY = "get /me"


def at(path: str) -> Callable[[Case], str]:
    """Return a path that needs nothing prepared."""
    return lambda _: path


def request_of(case: Case) -> str:
    """Return the path of a request."""
    return f"/requests/{quote(case.requested(), safe='')}"


def release_of(step: str = "", *, started: bool = False) -> Callable[[Case], str]:
    """Return the path of a release, or of a form on its page."""

    def path(case: Case) -> str:
        name = case.started() if started else case.reserved()
        return f"/releases/{quote(name, safe='')}{step}"

    return path


def _text(case: Case, _path: str) -> dict[str, str]:
    return {"do": "submit", "way": "yaml", "text": json.dumps(case.release())}


def _reason(_case: Case, _path: str) -> dict[str, str]:
    return {"reason": "x"}


def _vote(case: Case, path: str) -> dict[str, str]:
    release = path.split("/")[2]
    return {"tag": case.tag(release)["If-Match"], "vote": "reject", "reason": "x"}


def proposal_of(step: str = "") -> Callable[[Case], str]:
    """Return the path of a proposed policy, or of a form on its page."""
    return lambda case: f"/policy/proposals/{case.proposed()}{step}"


def contract_of(step: str = "") -> Callable[[Case], str]:
    """Return the path of a contract, or of a form on its page."""
    return lambda case: f"/escrow/contracts/{case.contract()}{step}"


def _contract_vote(case: Case, path: str) -> dict[str, str]:
    tag = case.contract_tag(path.split("/")[3])["If-Match"]
    return {"tag": tag, "vote": "reject", "reason": "x"}


def _version_vote(case: Case, _path: str) -> dict[str, str]:
    found = case.server.get(KEEPER, f"/escrow/data/{case.kept}").json()
    return {"tag": f'"{found["versions"][0]["digest"]}"', **_reason(case, "")}


def _activation(case: Case, _path: str) -> dict[str, str]:
    return {"tag": case.active()["If-Match"], "text": another(), "reason": "x"}


def _contract(case: Case, _path: str) -> dict[str, str]:
    made = case.query()
    named = {name: made[name] for name in ("flow", "contract", "reason")}
    return {**named, "query": made["queries"][0]}


def _analysis(case: Case, _path: str) -> dict[str, str]:
    return {name: str(one) for name, one in case.analysis().items()}


def _token(case: Case) -> str:
    """Return a token of the helper."""
    return str(case.server.post(HELPER, "/tokens", {}).json()["id"])


PAGE_ROWS: dict[str, Sent] = {
    "/": Sent("get /rules", at("/")),
    "/releases": Sent("get /releases", at("/releases")),
    "/new-release": Sent("get /vocabulary", at("/new-release")),
    "/releases/{release:path}": Sent("get /releases/{release}", release_of()),
    "/requests": Sent("get /requests", at("/requests")),
    "/requests/{release:path}": Sent("get /requests/{release}", request_of),
    "/policy": Sent("get /policies/{digest}", at("/policy")),
    "/policy/edit": Sent("get /policies/{digest}", at("/policy/edit")),
    "/policy/{digest}": Sent("get /policies/{digest}", at("/policy/active")),
    "/policy/proposals/{digest}": Sent(
        "get /policies/proposals/{digest}", proposal_of()
    ),
    "/rules": Sent("get /rules", at("/rules")),
    "/rule-drawing": Sent("get /rule-diagram", at("/rule-drawing")),
    "/rules/{rule:path}": Sent("get /rules/{rule}", at("/rules/global%20@standard")),
    "/rounds": Sent("get /rounds", at("/rounds")),
    "/rounds/{round_id:path}": Sent(
        "get /rounds/{round_id}", at("/rounds/none"), fine=(404,)
    ),
    "/risk": Sent(ANYBODY, at("/risk")),
    "/escrow": Sent("get /escrow/contracts", at("/escrow")),
    "/escrow/propose": Sent(ANYBODY, at("/escrow/propose")),
    "/escrow/contracts/{name:path}": Sent(
        "get /escrow/contracts/{name}", contract_of()
    ),
    "/escrow/data": Sent("get /escrow/data", at("/escrow/data")),
    "/escrow/data/{name}": Sent(
        "get /escrow/data/{name}", lambda case: f"/escrow/data/{case.kept}"
    ),
    "/ledger": Sent("get /ledger/entries", at("/ledger")),
    "/ledger/{seq}": Sent("get /ledger/entries/{seq}", at("/ledger/1")),
    "/ledger/remark": Sent(ANYBODY, at("/ledger/remark")),
    "/audit": Sent("get /ledger/head", at("/audit")),
    "/jobs": Sent("get /jobs", at("/jobs")),
    "/jobs/{job}": Sent("get /jobs/{job}", lambda case: f"/jobs/{job(case)}"),
    "/settings": Sent(ANYBODY, at("/settings")),
}

FORM_ROWS: dict[str, Sent] = {
    "/new-release": Sent("post /releases", at("/new-release"), _text),
    "/releases/{release:path}/start": Sent(
        "post /releases/{release}:start", release_of("/start")
    ),
    "/releases/{release:path}/publish": Sent(
        "post /releases/{release}:post", release_of("/publish", started=True)
    ),
    "/releases/{release:path}/cancel": Sent(
        "post /releases/{release}:void", release_of("/cancel"), _reason
    ),
    "/requests/{release:path}/vote": Sent(
        "post /requests/{release}/approvals",
        lambda case: f"{request_of(case)}/vote",
        _vote,
    ),
    "/requests/{release:path}/take-back": Sent(
        "delete /requests/{release}/approvals",
        lambda case: f"{request_of(case)}/take-back",
        _vote,
    ),
    "/requests/{release:path}/withdraw": Sent(
        "post /requests/{release}:withdraw",
        lambda case: f"{request_of(case)}/withdraw",
        lambda _case, _path: {"reason": "x"},
        fine=(409,),  # It is the helper's.
    ),
    "/policy/edit": Sent(
        "get /policies/{digest}",
        at("/policy/edit"),
        lambda _case, _path: {"text": ASKING, "show": "check"},
    ),
    "/policy/edit/simulate": Sent(
        "post /policies:simulate",
        at("/policy/edit/simulate"),
        lambda _case, _path: {"text": ASKING},
        fine=(SEE_OTHER, 503),  # Too many jobs may be under way.
    ),
    "/policy/edit/propose": Sent(
        "post /policies", at("/policy/edit/propose"), _activation
    ),
    "/policy/edit/activate": Sent(
        "post /policies:activate",
        at("/policy/edit/activate"),
        _activation,
        fine=(403,),  # Nobody has agreed to it.
    ),
    "/policy/proposals/{digest}": Sent(
        "get /policies/proposals/{digest}", proposal_of()
    ),
    "/policy/proposals/{digest}/simulate": Sent(
        "post /policies:simulate",
        proposal_of("/simulate"),
        fine=(SEE_OTHER, 503),
    ),
    "/policy/proposals/{digest}/vote": Sent(
        "post /policies/{digest}/approvals", proposal_of("/vote"), _reason
    ),
    "/policy/proposals/{digest}/take-back": Sent(
        "delete /policies/{digest}/approvals", proposal_of("/take-back")
    ),
    "/policy/proposals/{digest}/activate": Sent(
        "post /policies/{digest}:activate",
        proposal_of("/activate"),
        _activation,
        fine=(403,),
    ),
    "/rounds/open": Sent("post /rounds", at("/rounds/open")),
    "/rounds/{round_id:path}/plan": Sent(
        "post /rounds/{round_id}/plan",
        at("/rounds/none/plan"),
        lambda case, _: {"requests": json.dumps([case.release()])},
        fine=(404, 409),
    ),
    "/rounds/{round_id:path}/commit": Sent(
        ANYBODY,
        at("/rounds/none/commit"),
        lambda _case, _path: {"job": "none", "tag": '"x"'},
        fine=(404,),  # The plan is in a job, which is nobody else's.
    ),
    "/risk/analyses": Sent(
        "post /risk/analyses",
        at("/risk/analyses"),
        _analysis,
        fine=(SEE_OTHER, 429),  # Another one may be under way.
    ),
    "/risk/profile": Sent(
        ANYBODY,
        at("/risk/profile"),
        lambda _case, _path: {
            "profile": "0,120\n1,80",
            "sensitivity": "1",
            "tau": "0.9",
        },
    ),
    "/escrow/propose": Sent("post /escrow/contracts", at("/escrow/propose"), _contract),
    "/escrow/contracts/{name:path}/vote": Sent(
        "post /escrow/contracts/{name}/approvals",
        contract_of("/vote"),
        _contract_vote,
        fine=(409,),  # They own none of its data.
    ),
    "/escrow/contracts/{name:path}/take-back": Sent(
        "delete /escrow/contracts/{name}/approvals",
        contract_of("/take-back"),
        _contract_vote,
        fine=(409,),
    ),
    "/escrow/contracts/{name:path}/withdraw": Sent(
        "post /escrow/contracts/{name}:withdraw", contract_of("/withdraw"), _reason
    ),
    "/escrow/contracts/{name:path}/run": Sent(
        "post /escrow/contracts/{name}:run",
        contract_of("/run"),
        fine=(409,),  # Nobody agreed to it.
    ),
    "/escrow/contracts/{name:path}/receive": Sent(
        "post /escrow/contracts/{name}:receive", contract_of("/receive")
    ),
    "/escrow/contracts/{name:path}/risk": Sent(
        "post /escrow/risk",
        contract_of("/risk"),
        lambda _case, _path: {"tau": "0.9"},
        fine=(200, 404, 422),  # Its contract is hidden, or has no such choice.
    ),
    "/escrow/data/{name}/versions/{n}/vote": Sent(
        "post /escrow/data/{name}/versions/{n}/approvals",
        lambda case: f"/escrow/data/{case.kept}/versions/1/vote",
        _version_vote,
        fine=(404, 409),  # It is hidden, or not theirs.
    ),
    "/escrow/data/{name}/versions/{n}/shred": Sent(
        "post /escrow/data/{name}/versions/{n}:shred",
        lambda case: f"/escrow/data/{case.kept}/versions/1/shred",
        _reason,
        fine=(409,),
    ),
    "/ledger/remark": Sent(
        "post /ledger/remarks",
        at("/ledger/remark"),
        lambda _case, _path: {"remark": "x"},
    ),
    "/ledger/disclosure": Sent(
        "post /ledger/disclosures",
        at("/ledger/disclosure"),
        lambda _case, _path: {
            "disclosure": f"disclosure: d-{next(numbers)}\nwhat: x\n"
            "attributes: [age]\nreason: x\n"
        },
    ),
    "/ledger/verify": Sent(
        "post /ledger:verify", at("/ledger/verify"), fine=(SEE_OTHER, 503)
    ),
    "/audit/checkpoint": Sent("get /ledger/checkpoint", at("/audit/checkpoint")),
    "/audit/receipt": Sent(
        "get /releases/{release}/receipt",
        at("/audit/receipt"),
        lambda case, _path: {"release": case.reserved()},
        fine=(200, 403),  # It is on a page for those who may read the ledger.
    ),
    "/jobs/{job}/cancel": Sent(
        "delete /jobs/{job}", lambda case: f"/jobs/{job(case)}/cancel"
    ),
    "/settings/tokens": Sent(
        "post /tokens", at("/settings/tokens"), lambda _case, _path: {"days": "1"}
    ),
    "/settings/tokens/{token}/revoke": Sent(
        "delete /tokens/{token}",
        lambda case: f"/settings/tokens/{_token(case)}/revoke",
    ),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_to_all(tmp_path_factory.mktemp("console"), console=True) as found:
        yield found


def test_every_page_and_form_has_a_row() -> None:
    assert PAGE_ROWS.keys() == PAGES.keys()
    assert FORM_ROWS.keys() == FORMS.keys()


def asked(server: Served) -> Iterator[tuple[str, str | None]]:
    """Yield who asks, and about which data set."""
    for name in PEOPLE:
        if name not in (HELPER, KEEPER):
            for data_set in DATA_SETS if name not in ABSENT else ("visits",):
                yield name, data_set


@pytest.mark.parametrize("path", PAGE_ROWS)
def test_a_page_opens_to_whom_its_operation_answers(server: Served, path: str) -> None:
    row = PAGE_ROWS[path]
    for name, data_set in asked(server):
        expected = row.expected(name, data_set)
        answered = server.page(name, row.path(Case(server, name, data_set)))
        allowed = row.fine if expected == 200 else (expected,)
        assert answered.status_code in allowed, (name, data_set, answered.text)
        assert answered.headers["content-type"].startswith("text/html")
        if expected == 403:
            assert "MOD832" in answered.text


@pytest.mark.parametrize("path", FORM_ROWS)
def test_a_form_does_for_whom_its_operation_does(server: Served, path: str) -> None:
    row = FORM_ROWS[path]
    for name, data_set in asked(server):
        case = Case(server, name, data_set)
        expected, sent = row.expected(name, data_set), row.path(case)
        fields = row.fields(case, sent)
        before = server.parts.decider.glance(lambda view: view.state().head)
        answered = server.fill(name, sent, **fields)
        allowed = row.fine if expected == 200 else (expected,)
        assert answered.status_code in allowed, (name, data_set, answered.text)
        if answered.status_code != SEE_OTHER:
            assert server.parts.decider.glance(lambda view: view.state().head) == before


#: In all that somebody wrote about data that others may not see.
CANARY = "canary-7f3a"


def test_what_rest_hides_is_in_no_page(tmp_path: Path) -> None:
    # Where nothing else was requested: lists show it on their first page.
    with served_to_all(tmp_path, console=True) as server:
        hides(server)


def hides(server: Served) -> None:
    case = Case(server, HELPER, "labs")
    for kind, public in (("reserved", False), ("requested", True)):
        one = case.release(public=public)
        one |= {"release": f"{CANARY}-{kind}", "purpose": f"{CANARY}-purpose"}
        one["mechanisms"][0]["name"] = f"{CANARY}-mechanism"
        named: Any = {"params": {"reason": f"{CANARY}-reason"}} if public else {}
        assert server.post(HELPER, "/releases", one, **named).status_code in (200, 202)
    contract = {**case.query(), "contract": f"{CANARY}-contract", "reason": CANARY}
    assert server.post(HELPER, "/escrow/contracts", contract).status_code == 200
    owner, other = Case(server, "analyst-all", None), "analyst-visits"
    seen = 0
    for row in PAGE_ROWS.values():
        # As the helper prepares it; what is somebody else's is of the other data set.
        path = row.path(Case(server, other, "visits"))
        seen += CANARY in server.page(owner.who, path).text
        assert CANARY not in server.page(other, path).text, path
        for step in ("search", "text", "release"):
            found = server.page(other, path, params={step: f"{CANARY}-reserved"})
            written = found.text.replace(f"{CANARY}-reserved", "")
            assert CANARY not in written, (path, step)
    assert seen >= 3  # The lists show it to people who may see it.
    for kind in ("releases", "requests", "escrow/contracts"):
        for name in ("reserved", "requested", "contract"):
            found = server.page(other, f"/{kind}/{CANARY}-{name}")
            assert found.status_code in (403, 404)
            assert f"{CANARY}-reason" not in found.text
            assert f"{CANARY}-purpose" not in found.text


@pytest.mark.parametrize("path", [*PAGE_ROWS, *FORM_ROWS])
def test_nobody_gets_in_unrecognized(server: Served, path: str) -> None:
    case = Case(server, HELPER, "visits")
    if path in PAGE_ROWS:
        answered = server.client.get(PAGE_ROWS[path].path(case))
    else:
        answered = server.client.post(FORM_ROWS[path].path(case), data={"key": "k"})
    assert answered.status_code == 401
    assert "Sign in" in answered.text
    assert HELPER not in answered.text
