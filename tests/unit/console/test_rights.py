"""Who may open which page and send which form: what REST says, for every role.

Each page and form has the rights of one operation, whose row in `samples.rights` says
what a person may expect. What REST hides is in no page.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from urllib.parse import quote

import pytest
from samples.rights import (
    ABSENT,
    DATA_SETS,
    HELPER,
    KEEPER,
    PEOPLE,
    ROWS,
    Case,
    identity,
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


def _vote(case: Case, path: str) -> dict[str, str]:
    release = path.split("/")[2]
    return {"tag": case.tag(release)["If-Match"], "vote": "reject", "reason": "x"}


def contract_of(case: Case) -> str:
    """Return the path of a contract."""
    return f"/escrow/contracts/{case.contract()}"


def _vote_contract(case: Case, path: str) -> dict[str, str]:
    tag = case.contract_tag(path.split("/")[3])["If-Match"]
    return {"tag": tag, "vote": "reject", "reason": "x"}


def _vote_data(case: Case, _: str) -> dict[str, str]:
    versions = case.server.get(KEEPER, f"/escrow/data/{case.kept}").json()["versions"]
    return {"tag": f'"{versions[0]["digest"]}"', "vote": "reject", "reason": "x"}


def _proposal(case: Case, _: str) -> dict[str, str]:
    one = case.query()
    return {**one, "query": one.pop("queries")[0]}


def _reason(_case: Case, _path: str) -> dict[str, str]:
    return {"reason": "x"}


def _version(end: str) -> Callable[[Case], str]:
    return lambda case: f"/escrow/data/{case.kept}/versions/1/{end}"


ESCROW_PAGES = {
    "/escrow": Sent("get /escrow/contracts", at("/escrow")),
    "/escrow/contracts/{name:path}": Sent("get /escrow/contracts/{name}", contract_of),
    "/escrow/data": Sent("get /escrow/data", at("/escrow/data")),
    "/escrow/data/{name}": Sent(
        "get /escrow/data/{name}", lambda case: f"/escrow/data/{case.kept}"
    ),
    "/escrow/propose": Sent(ANYBODY, at("/escrow/propose")),
}
ROUND_PAGES = {
    "/rounds": Sent("get /rounds", at("/rounds")),
    "/rounds/{round_id:path}": Sent(
        "get /rounds/{round_id}", at("/rounds/none"), fine=(404,)
    ),
    "/risk": Sent(ANYBODY, at("/risk")),
}
ESCROW_FORMS = {
    "/escrow/propose": Sent("post /escrow/contracts", at("/escrow/propose"), _proposal),
    "/escrow/contracts/{name:path}/vote": Sent(
        "post /escrow/contracts/{name}/approvals",
        lambda case: f"{contract_of(case)}/vote",
        _vote_contract,
        fine=(409,),  # They own none of its data.
    ),
    "/escrow/contracts/{name:path}/take-back": Sent(
        "delete /escrow/contracts/{name}/approvals",
        lambda case: f"{contract_of(case)}/take-back",
        _vote_contract,
        fine=(409,),
    ),
    "/escrow/contracts/{name:path}/withdraw": Sent(
        "post /escrow/contracts/{name}:withdraw",
        lambda case: f"{contract_of(case)}/withdraw",
        _reason,
    ),
    "/escrow/contracts/{name:path}/run": Sent(
        "post /escrow/contracts/{name}:run",
        lambda case: f"{contract_of(case)}/run",
        fine=(409,),  # Nobody agreed to it.
    ),
    "/escrow/contracts/{name:path}/receive": Sent(
        "post /escrow/contracts/{name}:receive",
        lambda case: f"{contract_of(case)}/receive",
    ),
    "/escrow/contracts/{name:path}/risk": Sent(
        "post /escrow/risk",
        lambda case: f"{contract_of(case)}/risk",
        lambda _case, _path: {"tau": "0.9"},
        fine=(404, 422),  # It is hidden, or its noise needs a delta.
    ),
    "/escrow/data/{name}/versions/{n}/vote": Sent(
        "post /escrow/data/{name}/versions/{n}/approvals",
        _version("vote"),
        _vote_data,
        fine=(404, 409),  # It is hidden, or not theirs.
    ),
    "/escrow/data/{name}/versions/{n}/shred": Sent(
        "post /escrow/data/{name}/versions/{n}:shred",
        _version("shred"),
        _reason,
        fine=(409,),
    ),
}
ROUND_FORMS = {
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
        lambda case, _: case.analysis(),
        fine=(SEE_OTHER, 429),  # Another one may be under way.
    ),
    "/risk/profile": Sent(
        ANYBODY,
        at("/risk/profile"),
        lambda _case, _path: {"profile": "1,1", "sensitivity": "1", "tau": "1"},
    ),
}

PAGE_ROWS: dict[str, Sent] = {
    **ESCROW_PAGES,
    **ROUND_PAGES,
    "/": Sent("get /rules", at("/")),
    "/requests": Sent("get /requests", at("/requests")),
    "/requests/{release:path}": Sent("get /requests/{release}", request_of),
}

FORM_ROWS: dict[str, Sent] = {
    **ESCROW_FORMS,
    **ROUND_FORMS,
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
        before = server.parts.decider.head()
        answered = server.fill(name, sent, **fields)
        allowed = row.fine if expected == 200 else (expected,)
        assert answered.status_code in allowed, (name, data_set, answered.text)
        if answered.status_code != SEE_OTHER:
            assert server.parts.decider.head() == before


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
