"""The pages of the escrow: what waits for whom, what flows, and what is never shown."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from samples.escrows import POLICY, ROWS, SCORE, TABLES, MemoryEquipment, query
from samples.jobs import finished
from samples.served import Served, served

from modicum.api.local.escrow.execution import Tools
from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import ALL, Grants
from modicum.api.schema.escrow import Program
from modicum.console.pages.escrow import CODE_MAX, code_of
from modicum.console.pages.escrow_proposal import proposal_text
from modicum.core.yaml_reader import read_document
from modicum.integrations.loader import Adapters
from modicum.policy.compiler import compile_text
from modicum.server.resources import Equipment

PEOPLE, LABS = frozenset({"people"}), frozenset({"labs"})
WHO: dict[str, Grants] = {
    "olga": {Role.DATA_STEWARD: PEOPLE},
    "pavel": {Role.DATA_STEWARD: PEOPLE},
    "amir": {Role.ANALYST: PEOPLE},
    "lee": {Role.ANALYST: LABS},
    "audra": {Role.AUDITOR: frozenset({ALL})},
}
HOSTILE = '<script>alert("1")</script>'
CONTRACTS = "/escrow/contracts"


class Desk:
    """People at the pages of an escrow.

    Args:
        server: The server.
    """

    def __init__(self, server: Served) -> None:
        self.server = server
        rows = base64.b64encode(ROWS).decode()
        owners: dict[str, list[str]] = {"olga": [], "pavel": []}
        owned = {"owners": owners, "quorum": 2, "bits": 20}
        sent = {"table": TABLES, "rows": rows, **owned}
        answered = server.post("olga", "/escrow/data/people/versions", sent)
        assert answered.status_code == 200, answered.text

    def open(self, who: str, path: str, status: int = 200) -> str:
        answered = self.server.page(who, path)
        assert answered.status_code == status, answered.text
        return html.unescape(answered.text)

    def sent(self, who: str, path: str, **fields: str) -> httpx2.Response:
        """Send a form; the tag is the one that the page shows."""
        page: httpx2.Response = self.server.page(who, path.rsplit("/", 1)[0])
        tag = re.search(r'name="tag" value="([^"]+)"', page.text)
        if tag:
            fields.setdefault("tag", html.unescape(tag[1]))
        return self.server.fill(who, path, **fields)

    def asked(self, name: str, reason: str = "to know", **more: str) -> None:
        fields = {"flow": "query", "contract": name, "reason": reason, "days": "30"}
        fields |= {"query": query(f"r-{name}"), **more}
        answered = self.server.fill("amir", "/escrow/propose", **fields)
        assert answered.status_code == 303, answered.text

    def agree(self, name: str) -> None:
        for who in ("olga", "pavel"):
            path, fields = f"{CONTRACTS}/{name}/vote", {"vote": "approve"}
            answered = self.sent(who, path, reason="it is little", **fields)
            assert answered.status_code == 303, answered.text

    def ran(self, name: str) -> str:
        """Run a contract by its page; return the address that shows the job."""
        answered = self.server.fill("amir", f"{CONTRACTS}/{name}/run")
        assert answered.status_code == 303, answered.text
        place = str(answered.headers["location"])
        job = self.server.get("amir", f"/jobs/{place.rpartition('=')[2]}").json()
        begun = httpx2.Response(202, headers={"location": f"/jobs/{job['job']}"})
        assert finished(self.server, "amir", begun)["state"] == "done"
        return place

    def entries(self) -> int:
        return int(self.server.get("audra", "/ledger/head").json()["seq"])


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    policy = compile_text(POLICY.encode(), "policy.yaml")
    own = Equipment(escrow=Tools(MemoryEquipment(), Adapters()))
    with served(
        tmp_path / "l.db", policy=policy, people=WHO, own=own, console=True
    ) as found:
        yield Desk(found)


def part(page: str, heading: str) -> str:
    """Return what stands below a heading, up to the next of its kind."""
    return page.partition(f"<h2>{heading}</h2>")[2].partition("<h2")[0]


def test_the_inbox_begins_with_what_waits_for_its_reader(desk: Desk) -> None:
    assert "There is no contract that you take part in" in desk.open("olga", "/escrow")
    desk.asked("mine")
    assert "your vote is missing" in part(desk.open("olga", "/escrow"), "Waits for you")
    seen = desk.open("amir", "/escrow")
    assert "Nothing waits for you" in part(seen, "Waits for you")
    assert "mine" in part(seen, "Waits for others")
    desk.agree("mine")
    assert "you may run it" in part(desk.open("amir", "/escrow"), "Waits for you")
    desk.ran("mine")
    assert "mine" in part(desk.open("amir", "/escrow"), "Others")
    filtered = desk.open("amir", "/escrow?flow=task")
    assert "No contract matches" in filtered
    assert "mine" in desk.open("amir", "/escrow?text=PEOPLE&flow=query")


def test_a_contract_of_others_is_on_no_page(desk: Desk) -> None:
    desk.asked("canary-7d31")
    assert "canary" not in desk.open("lee", "/escrow")
    hidden = desk.open("lee", f"{CONTRACTS}/canary-7d31", 404)
    absent = desk.open("lee", f"{CONTRACTS}/absent-7d31", 404)
    trace = re.compile(r"request [0-9a-f]{32}")
    plain = (trace.sub("", one).replace("absent", "canary") for one in (hidden, absent))
    assert len({*plain}) == 1
    assert "people" not in desk.open("lee", "/escrow/data")
    desk.open("lee", "/escrow/data/people", 404)


def test_owners_vote_on_what_they_saw(desk: Desk) -> None:
    desk.asked("mine")
    page, path = f"{CONTRACTS}/mine", f"{CONTRACTS}/mine/vote"
    before = desk.entries()
    stale = desk.sent("olga", path, tag=f'"{"0" * 64}"', vote="approve", reason="why")
    assert (stale.status_code, desk.entries()) == (412, before)
    assert ">why</textarea>" in stale.text
    tag = desk.server.get("amir", page).headers["etag"]
    denied = desk.sent("amir", path, tag=tag, vote="approve", reason="x")
    assert (denied.status_code, desk.entries()) == (403, before)
    assert desk.sent("olga", path, vote="reject", reason="no").status_code == 303
    assert "rejects" in desk.open("olga", page)
    desk.agree("mine")
    votes = desk.server.get("olga", f"{CONTRACTS}/mine").json()["votes"]
    assert [one["approves"] for one in votes] == [False, True, True]
    assert "You have approved it." in desk.open("olga", page)
    assert desk.sent("olga", f"{page}/take-back").status_code == 303
    assert "Rejected, which blocks</dt><dd>olga<" in desk.open("olga", page)
    assert desk.sent("amir", f"{page}/run").status_code == 409
    assert desk.sent("amir", f"{page}/withdraw", reason="over").status_code == 303
    assert "it was withdrawn" in desk.open("olga", page)


def test_answers_are_shown_once_to_their_receiver(desk: Desk) -> None:
    desk.asked("mine")
    desk.agree("mine")
    place = desk.ran("mine")
    assert "It ran. Its results are withheld." in desk.open("amir", place)
    fields = {"flow": "output", "contract": "out", "of": "mine", "reason": "x"}
    assert desk.server.fill("amir", "/escrow/propose", **fields).status_code == 303
    desk.agree("out")
    received = desk.server.fill("amir", f"{CONTRACTS}/out/receive")
    assert received.status_code == 200
    assert received.headers["cache-control"] == "no-store"
    answer = re.compile('north</th><td class="number">[0-9]+</td>')
    assert answer.search(received.text)
    assert not answer.search(desk.open("amir", f"{CONTRACTS}/out"))
    assert "19 of 20 uses left" in desk.open("amir", f"{CONTRACTS}/out")
    for who in ("olga", "audra"):
        refused = desk.server.fill(who, f"{CONTRACTS}/out/receive")
        assert refused.status_code in (403, 409)
        assert not answer.search(refused.text)


def scored(desk: Desk, exact: str = "yes") -> None:
    """Have a program run on exact answers."""
    desk.asked("counts", exact=exact)
    desk.agree("counts")
    desk.ran("counts")
    code = base64.b64encode(SCORE).decode()
    program = f"language: wasm\ncode_base64: {code}\nrange: [0, 1]\n"
    fields = {"flow": "task", "contract": "drift", "of": "counts", "reason": "x"}
    fields |= {"program": program, "seconds": "4"}
    answered = desk.server.fill("amir", "/escrow/propose", **fields)
    assert answered.status_code == 303, answered.text


def test_what_is_not_private_says_so_in_red(desk: Desk) -> None:
    scored(desk)
    assert "Exact answers are computed" in desk.open("olga", f"{CONTRACTS}/drift")
    desk.agree("drift")
    desk.ran("drift")
    asking = desk.open("amir", "/escrow/propose?flow=raw-signal&of=drift")
    assert "This would NOT be differentially private" in asking
    fields = {"flow": "raw-signal", "contract": "raw", "of": "drift", "reason": "x"}
    fields["width"] = "0.05"
    assert desk.server.fill("amir", "/escrow/propose", **fields).status_code == 303
    for who in ("olga", "amir", "audra"):
        page = desk.open(who, f"{CONTRACTS}/raw")
        assert page.index("NOT differentially private") < page.index("<h1>")
        assert "At most <b>5 bits</b>" in page
    assert "not differentially private" in desk.open("audra", "/escrow")
    fields |= {"flow": "signal", "contract": "good"}
    assert desk.server.fill("amir", "/escrow/propose", **fields).status_code == 303
    page = desk.open("olga", f"{CONTRACTS}/good")
    assert "differentially private" not in page


def test_owners_read_code_by_line_and_people_cannot_hide_in_it(desk: Desk) -> None:
    desk.asked("counts", reason=HOSTILE)
    desk.agree("counts")
    desk.ran("counts")
    code = f"# {HOSTILE}\ndef score(tables, arguments, reference):\n    return 0.5\n"
    lines = "".join(f"  {line}\n" for line in code.splitlines())
    program = f"code: |\n{lines}range: [0, 1]\n"
    fields = {"flow": "task", "contract": "own", "of": "counts", "reason": "x"}
    fields |= {"program": program, "seconds": "4"}
    answered = desk.server.fill("amir", "/escrow/propose", **fields)
    assert answered.status_code == 303, answered.text
    for path in ("/escrow", f"{CONTRACTS}/counts"):
        assert HOSTILE not in desk.server.page("olga", path).text
    page = desk.server.page("olga", f"{CONTRACTS}/own").text
    assert HOSTILE not in page
    assert '<span id="line-1"># &lt;script&gt;' in page
    assert 'href="#line-1"' in page or "Passages to check" not in page
    assert "Own code of amir" in page


def test_code_that_is_too_long_for_a_page_says_so() -> None:
    program = Program(
        language="python",
        catalogue=None,
        digest="0" * 64,
        code="0" * 64,
        code_base64="",
        text="<&>\n" * 100_000,
        arguments={},
        range=("0", "1"),
        compares=False,
        tier="bubblewrap",
        seconds=4,
        memory_mib=1,
        remarks=(),
    )
    found = code_of(program)
    assert (found.total, 0 < len(found.lines) < 100_000) == (100_000, True)
    assert sum(len(html.escape(one)) for one in found.lines) <= CODE_MAX


def test_a_version_is_approved_and_shredded_with_a_reason(desk: Desk) -> None:
    again = {"table": TABLES, "rows": base64.b64encode(ROWS).decode()}
    desk.server.post("olga", "/escrow/data/people/versions", again)
    page = desk.open("pavel", "/escrow/data/people")
    assert "waits for owners" in page
    assert "one waits for owners" in desk.open("pavel", "/escrow/data")
    path = "/escrow/data/people/versions/2/vote"
    digest = desk.server.get("pavel", "/escrow/data/people").json()["versions"][1]
    fields = {"tag": f'"{digest["digest"]}"', "vote": "approve", "reason": "checked"}
    assert desk.server.fill("amir", path, **fields).status_code == 403
    assert desk.server.fill("pavel", path, **fields).status_code == 303
    assert "waits for owners" not in desk.open("pavel", "/escrow/data/people")
    path = "/escrow/data/people/versions/1/shred"
    assert desk.server.fill("olga", path, reason="").status_code == 422
    assert desk.server.fill("olga", path, reason="over").status_code == 303
    assert "■ shredded" in desk.open("olga", "/escrow/data/people")


def test_an_epsilon_is_found_without_a_row(desk: Desk) -> None:
    desk.asked("mine")
    fields = {"tau": "0.99", "delta": "1e-6"}
    before = desk.entries()
    found = desk.server.fill("olga", f"{CONTRACTS}/mine/risk", **fields)
    assert found.status_code == 200
    assert "It does not meet the target." in found.text
    assert desk.entries() == before
    refused = desk.server.fill("olga", f"{CONTRACTS}/mine/risk", tau="2")
    assert (refused.status_code, 'value="2"' in refused.text) == (422, True)


def test_what_was_refused_is_still_in_the_form(desk: Desk) -> None:
    fields = {"flow": "query", "contract": "mine", "reason": "x", "query": "odd: 1\n"}
    refused = desk.server.fill("amir", "/escrow/propose", **fields)
    assert refused.status_code == 422
    assert 'role="alert"' in refused.text
    assert ">odd: 1\n</textarea>" in refused.text


def test_a_past_page_changes_nothing(desk: Desk) -> None:
    desk.asked("mine")
    for path in (f"{CONTRACTS}/mine", "/escrow/data/people", "/escrow/propose"):
        page = desk.open("olga", f"{path}?as_of=1")
        assert page.count('method="post"') == 1  # To sign out.
        assert "that is as of now" in page


@pytest.mark.parametrize("text", ["a: 1\nb: [x]\n", "}\n- {\n", "  odd\nmore: 1"])
def test_a_task_file_keeps_its_lines(text: str) -> None:
    fields: dict[str, Any] = {"flow": "task", "contract": 'x"\ny: 1', "program": text}
    found = proposal_text(fields)
    assert [line.strip() for line in found.splitlines()[1:]][: text.count("\n")] == [
        line.strip() for line in text.splitlines()
    ][: text.count("\n")]
    tail = "\n".join(found.splitlines()[len(text.splitlines()) + 1 :])
    read_document(tail.encode(), "proposal")
