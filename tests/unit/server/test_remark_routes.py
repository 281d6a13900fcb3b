"""Remarks, disclosures, and requests that are not submitted, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from samples.served import Served, served
from samples.shapes import exactly
from samples.small import POLICY, counts

import modicum as mo
from modicum.api.schema.approval import Request, RequestDetails, RequestList
from modicum.api.schema.ledger import Disclosure, Remark
from modicum.ledger import event_of

ASKING = (
    POLICY
    + """
roles: {officer: [olga]}
approvals:
  - {when: 'release.audience == "public"', need: 1, from: [officer]}
"""
)
PUBLIC = counts("r-1", audience="public", dataset="visits")
SHOWN = {"disclosure": "d-1", "what": "x", "attributes": ["age"], "reason": "law"}


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    (tmp_path / "policy.yaml").write_text(ASKING)
    return tmp_path / "ledger.db"


@pytest.fixture
def server(ledger: Path) -> Iterator[Served]:
    with served(ledger, policy=ledger.parent / "policy.yaml") as found:
        yield found


def kinds(ledger: Path) -> list[str]:
    return [event_of(one, one.seq).body.kind for one in mo.open(ledger).records()]


def test_remarks_and_disclosures_are_added_once(server: Served, ledger: Path) -> None:
    remark = {"remark": " looked at ", "about": ""}
    first = server.post("dara", "/ledger/remarks", remark, key="k")
    assert exactly(Remark, first.json()) == Remark(entry=2, about=None)
    again = server.post("dara", "/ledger/remarks", remark, key="k")
    assert again.content == first.content
    shown = server.post("dara", "/ledger/disclosures", SHOWN, key="d")
    assert exactly(Disclosure, shown.json()).disclosure == "d-1"
    assert server.post("dara", "/ledger/disclosures", SHOWN, key="d").json() == (
        shown.json()
    )
    about = {"remark": "of that", "about": "d-1"}
    assert server.post("dara", "/ledger/remarks", about).json()["about"] == "d-1"
    assert kinds(ledger)[1:] == ["annotated", "disclosure-recorded", "annotated"]


@pytest.mark.parametrize(
    ("path", "document", "status"),
    [
        ("/ledger/remarks", {}, 422),
        ("/ledger/remarks", {"remark": " "}, 422),
        ("/ledger/remarks", {"remark": "x", "about": "none"}, 404),
        ("/ledger/remarks", {"remark": "x", "to": "y"}, 422),
        ("/ledger/remarks", {"remark": 1}, 422),
        ("/ledger/remarks", [], 422),
        ("/ledger/disclosures", {}, 422),
        ("/ledger/disclosures", {**SHOWN, "attributes": ["none"]}, 422),
    ],
)
def test_what_says_nothing_is_not_added(
    server: Served, ledger: Path, path: str, document: Any, status: int
) -> None:
    assert server.post("dara", path, document).status_code == status
    assert kinds(ledger) == ["policy-activated"]


def test_who_asks_people_reserves_nothing(server: Served, ledger: Path) -> None:
    query = {"reason": "annual report"}
    alone = counts("r-2", dataset="visits")
    refused = server.post("ann", "/requests", alone, params=query)
    assert (refused.status_code, refused.json()["code"]) == (403, "MOD604")
    assert server.post("ann", "/requests", PUBLIC).status_code == 400  # No reason.
    first = server.post("ann", "/requests", PUBLIC, params=query, key="k")
    assert first.status_code == 200
    assert exactly(Request, first.json()).by == "ann"
    again = server.post("ann", "/requests", PUBLIC, params=query, key="k")
    assert again.content == first.content
    assert kinds(ledger) == ["policy-activated", "release-requested"]
    tag = {"If-Match": server.get("olga", "/requests/r-1").headers["etag"]}
    vote = {"approves": True, "reason": "fine"}
    server.post("olga", "/requests/r-1/approvals", vote, headers=tag)
    # That people agreed reserves nothing, either; nor does to ask once more.
    assert server.post("ann", "/requests", PUBLIC, params=query).json()["repeated"]
    assert "release-reserved" not in kinds(ledger)


def test_what_is_asked_for_is_told_exactly(server: Served) -> None:
    server.post("ann", "/requests", PUBLIC, params={"reason": "x"})
    (brief,) = server.get("dara", "/requests").json()["requests"]
    assert "body" not in brief
    document = server.get("dara", "/requests?recorded=true").json()
    (listed,) = exactly(RequestList, document).requests
    one = server.get("dara", "/requests/r-1?text=true").json()
    exactly(RequestDetails, one)
    assert listed.body == one["body"]
    assert one["decision"]["text"]["headline"].startswith("ALLOW r-1")
    assert server.get("dara", "/requests/r-1").json()["decision"]["losses"] is None
    assert server.get("lee", "/requests?recorded=true").json() == {"requests": []}
