"""Who may open which page and send which form: what REST says, for every role.

Each page and form has the rights of one operation, whose row in `samples.rights` says
what a person may expect. What REST hides is in no page.
"""

from __future__ import annotations

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


PAGE_ROWS: dict[str, Sent] = {
    "/": Sent("get /rules", at("/")),
    "/requests": Sent("get /requests", at("/requests")),
    "/requests/{release:path}": Sent("get /requests/{release}", request_of),
}

FORM_ROWS: dict[str, Sent] = {
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
