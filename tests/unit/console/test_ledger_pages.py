"""The ledger in the console: entries, filters, the past, remarks and disclosures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from samples.served import Served, served
from samples.small import POLICY, counts

import modicum as mo
from modicum.console.pages import ledger as pages
from modicum.ledger import event_of

HOSTILE = "<img src=x onerror=alert(1)>"
DISCLOSURE = "disclosure: d-1\nwhat: x\nattributes: [age]\nreason: law\n"


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ledger")
    (folder / "policy.yaml").write_text(POLICY)
    return folder / "ledger.db"


@pytest.fixture(scope="module")
def server(ledger: Path) -> Iterator[Served]:
    """Serve a ledger of 22 entries: a policy, two releases, and 19 remarks."""
    with (
        pytest.MonkeyPatch.context() as patch,
        served(ledger, policy=ledger.parent / "policy.yaml", console=True) as found,
    ):
        patch.setattr(pages, "SHOWN", 15)
        denied = counts("r-1", rho="9", dataset="visits")
        assert found.post("amir", "/releases", denied).json()["decision"] == "deny"
        allowed = counts("r-0", rho="0.001", dataset="visits")
        assert found.post("amir", "/releases", allowed).json()["decision"] == "allow"
        for number in range(18):
            remark = {"remark": f"number {number}"}
            assert found.post("olga", "/ledger/remarks", remark).status_code == 200
        hostile = {"remark": HOSTILE, "about": ""}
        assert found.post("dara", "/ledger/remarks", hostile).status_code == 200
        yield found


def shown(page: str) -> list[int]:
    """Return the numbers of the entries on a page."""
    rows = re.findall(r'<th scope="row"><a href="/ledger/(\d+)', page)
    return [int(one) for one in rows]


def test_entries_are_newest_first_page_by_page(server: Served) -> None:
    first = server.page("audra", "/ledger").text
    head = server.get("audra", "/ledger/head").json()
    assert shown(first) == list(range(22, 7, -1))
    assert head["head"] in first
    assert HOSTILE not in first
    assert "&lt;img src=x" in first
    following = re.search(r'rel="next" href="([^"]+)"', first)
    assert following is not None
    second = server.page("audra", following[1].replace("&amp;", "&")).text
    assert shown(second) == list(range(7, 0, -1))
    assert 'rel="next"' not in second


def test_filters_are_those_of_the_api_and_stay_in_the_form(server: Served) -> None:
    page = server.page("audra", "/ledger?kind=release-denied").text
    assert shown(page) == [2]
    assert "denied by" in page
    assert "<option selected>release-denied</option>" in page
    assert shown(server.page("audra", "/ledger?actor=dara").text) == [22]
    assert "No entry matches." in server.page("audra", "/ledger?actor=nobody").text
    odd = server.page("audra", "/ledger?kind=odd")
    assert odd.status_code == 400
    assert "there is no kind of entry `odd`" in odd.text


def test_the_past_is_shown_without_forms(server: Served) -> None:
    page = server.page("audra", "/ledger?as_of=18").text
    assert shown(page) == list(range(18, 3, -1))
    assert 'href="/ledger?as_of=3">Older' in page
    assert "<form" not in page.split("<main")[1]
    assert shown(server.page("audra", "/ledger?as_of=5").text) == [5, 4, 3, 2, 1]
    assert server.page("audra", "/ledger/6?as_of=5").status_code == 404


def test_an_entry_shows_its_exact_bytes_and_its_neighbors(server: Served) -> None:
    entry = server.get("audra", "/ledger/entries/2").json()
    page = server.page("audra", "/ledger/2").text
    assert entry["hash"] in page
    assert server.get("audra", "/ledger/entries/1").json()["hash"] in page
    escaped = entry["payload"].replace("&", "&amp;").replace('"', "&#34;")
    assert f'<pre class="payload">{escaped}</pre>' in page
    assert 'href="/releases/r-1"' not in page  # It was only denied.
    assert 'href="/releases/r-0"' in server.page("audra", "/ledger/3").text
    assert 'rel="prev" href="/ledger/1"' in page
    assert 'rel="next" href="/ledger/3"' in page
    assert 'href="/rules/' in page
    assert "This is the last entry" in server.page("audra", "/ledger/22").text
    assert HOSTILE not in server.page("audra", "/ledger/22").text
    digest = server.get("audra", "/policies").json()["policies"][0]["digest"]
    assert f'href="/policy/{digest}"' in server.page("audra", "/ledger/1").text
    assert server.page("audra", "/ledger/23").status_code == 404
    assert server.page("audra", "/ledger/odd").status_code == 400


@pytest.mark.parametrize("who", ["ann", "amir", "dara", "root"])
@pytest.mark.parametrize("path", ["/ledger", "/ledger/2"])
def test_who_may_not_read_the_ledger_sees_no_entry(
    server: Served, who: str, path: str
) -> None:
    page = server.page(who, path)
    assert page.status_code == 403
    assert "r-1" not in page.text


def test_the_server_verifies_and_shows_the_job(server: Served) -> None:
    head = server.get("olga", "/ledger/head").json()["head"]
    answer = server.fill("olga", "/ledger/verify", head=f" 22:{head.upper()} ")
    assert answer.status_code == 303
    job = server.get("olga", answer.headers["location"])
    assert job.json()["kind"] == "verify-ledger"
    odd = server.fill("olga", "/ledger/verify", head="<odd>")
    assert odd.status_code == 400
    assert 'value="&lt;odd&gt;"' in odd.text
    assert 'class="problem"' in odd.text


def test_remarks_and_disclosures_are_recorded(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    ledger = tmp_path / "ledger.db"
    with served(ledger, policy=tmp_path / "policy.yaml", console=True) as server:

        def kinds() -> list[str]:
            return [
                event_of(one, one.seq).body.kind for one in mo.open(ledger).records()
            ]

        sent = {"remark": "looked at", "about": " "}
        done = server.fill("dara", "/ledger/remark", key="k", **sent)
        assert done.headers["location"] == "/ledger/remark"
        server.fill("dara", "/ledger/remark", key="k", **sent)
        assert kinds() == ["policy-activated", "annotated"]
        refused = server.fill("dara", "/ledger/remark", remark=HOSTILE, about="none")
        assert refused.status_code == 404
        assert 'value="none"' in refused.text
        assert "&lt;img src=x" in refused.text
        done = server.fill("dara", "/ledger/disclosure", disclosure=DISCLOSURE)
        assert done.headers["location"] == "/ledger/remark"
        assert kinds()[2:] == ["disclosure-recorded"]
        wrong = DISCLOSURE.replace("age", "no_such").replace("d-1", "d-2")
        refused = server.fill("dara", "/ledger/disclosure", disclosure=wrong)
        assert refused.status_code == 422
        assert "no_such" in refused.text
        assert "line 3" in refused.text
        page = server.page("audra", "/ledger/remark").text
        assert "Your roles do not allow remarks" in page
        assert server.fill("audra", "/ledger/remark", **sent).status_code == 403
        assert len(kinds()) == 3
