"""The escrow over HTTP: whom it is for, what is done once, and what is never told."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from samples.escrows import POLICY, ROWS, SCORE, TABLES, MemoryEquipment, query
from samples.jobs import finished
from samples.served import HEADER, Served, served
from starlette.testclient import TestClient

from modicum.api.local.escrow.execution import Tools
from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import ALL, Grants
from modicum.api.ports.escrow import Sealed
from modicum.integrations.loader import Adapters
from modicum.policy.compiler import compile_text
from modicum.server.app import build
from modicum.server.resources import Equipment

EVERY = frozenset({ALL})
PEOPLE, LABS = frozenset({"people"}), frozenset({"labs"})
WHO: dict[str, Grants] = {
    "olga": {Role.DATA_STEWARD: PEOPLE},
    "pavel": {Role.DATA_STEWARD: PEOPLE},
    "amir": {Role.ANALYST: PEOPLE},
    "rita": {Role.ANALYST: LABS},  # A recipient, of data that she may not ask about.
    "dara": {Role.DATA_STEWARD: LABS},
    "lee": {Role.ANALYST: LABS},
    "eve": {Role.ANALYST: EVERY},
    "petra": {Role.PLATFORM_ENGINEER: EVERY},
    "audra": {Role.AUDITOR: EVERY},
    "root": {Role.ADMIN: EVERY},
}
OWNERS: dict[str, list[str]] = {"olga": [], "pavel": []}
WHY = {"reason": "to know"}
CONTRACTS, DATA = "/escrow/contracts", "/escrow/data"
#: Stands for what is in rows, and is told to nobody.
SECRET = b"canary-7d31"


def sent(rows: bytes = ROWS, table: str = TABLES, **more: object) -> dict[str, Any]:
    """Return a version of a data set, to be sent."""
    return {"table": table, "rows": base64.b64encode(rows).decode(), **more}


def of_labs(text: str, name: str = "labs") -> str:
    return text.replace("people:", f"{name}:").replace("FROM people", f"FROM {name}")


def asked(name: str, text: str = "", **more: object) -> dict[str, Any]:
    """Return a query that is to be asked for."""
    queries = [text or query(f"r-{name}")]
    return {"flow": "query", "contract": name, **WHY, "queries": queries, **more}


class Desk:
    """An escrow on a server, and what people do there."""

    def __init__(self, server: Served, equipment: MemoryEquipment) -> None:
        self.server, self.equipment = server, equipment
        owned: dict[str, Any] = {"owners": OWNERS, "quorum": 2, "bits": 20}
        self.done("olga", f"{DATA}/people/versions", sent(**owned))
        labs = sent(table=of_labs(TABLES), owners={"dara": []})
        self.done("dara", f"{DATA}/labs/versions", labs)

    def done(self, who: str, path: str, form: object = None, **named: Any) -> Any:
        answered = self.server.post(who, path, form, **named)
        assert answered.status_code == 200, answered.text
        return answered.json()

    def agree(self, name: str) -> None:
        for one in OWNERS:
            tag = self.server.get(one, f"{CONTRACTS}/{name}").headers["etag"]
            vote = {"approves": True, **WHY}
            path, headers = f"{CONTRACTS}/{name}/approvals", {"If-Match": tag}
            self.done(one, path, vote, headers=headers)

    def run(self, name: str) -> dict[str, Any]:
        """Return the job that ran what amir asked for."""
        started = self.server.post("amir", f"{CONTRACTS}/{name}:run")
        return finished(self.server, "amir", started)

    def ran(self, form: dict[str, Any]) -> Any:
        self.done("amir", CONTRACTS, form)
        self.agree(form["contract"])
        job = self.run(form["contract"])
        assert job["state"] == "done", job
        return job["result"]

    def goes_out(self, name: str, **more: object) -> None:
        """Have private answers go out."""
        self.ran(asked(f"{name}-q"))
        form = {"flow": "output", "contract": name, **WHY, "query": f"{name}-q"}
        self.done("amir", CONTRACTS, {**form, **more})
        self.agree(name)

    def entries(self) -> int:
        return int(self.server.get("audra", "/ledger/head").json()["seq"])


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    equipment = MemoryEquipment()
    policy = compile_text(POLICY.encode(), "policy.yaml")
    own = Equipment(escrow=Tools(equipment, Adapters()))
    with served(tmp_path / "ledger.db", policy=policy, people=WHO, own=own) as found:
        yield Desk(found, equipment)


def telling(answered: httpx2.Response, name: str) -> tuple[int, str]:
    """Return an answer byte by byte, but for its trace and a name."""
    trace = answered.headers["x-request-id"]
    assert trace in answered.text
    return answered.status_code, answered.text.replace(trace, "").replace(name, "NAME")


# --- whom contracts are for -----------------------------------------------------------

WORD = {"approves": True, **WHY}
KEY = {"reason": "x", "key": "0" * 64}
#: The tag of nothing that is there.
OTHER = f'"{"0" * 64}"'
#: What can be asked of a contract.
CALLS: tuple[Callable[[Served, str, str], httpx2.Response], ...] = (
    lambda to, who, path: to.get(who, path),
    lambda to, who, path: to.get(who, path, params={"recorded": "true"}),
    lambda to, who, path: to.get(who, f"{path}/approvals"),
    lambda to, who, path: to.get(who, f"{path}/statement", params=KEY),
    lambda to, who, path: to.post(who, f"{path}:withdraw", WHY),
    lambda to, who, path: to.post(who, f"{path}:run"),
    lambda to, who, path: to.post(who, f"{path}:receive"),
    lambda to, who, path: to.post(
        who, f"{path}/approvals", WORD, headers={"If-Match": OTHER}
    ),
    lambda to, who, path: to.client.delete(
        f"/api/v1{path}/approvals",
        headers={HEADER: who, "Idempotency-Key": path, "If-Match": OTHER},
    ),
    lambda to, who, path: to.post(
        who, "/escrow/risk", {"contract": path.rsplit("/", 1)[1], "tau": 0.5}
    ),
)


@pytest.mark.parametrize("who", ["lee", "dara", "eve", "rita"])
def test_a_contract_of_others_is_not_there(desk: Desk, who: str) -> None:
    desk.done("amir", CONTRACTS, asked("mine"))
    before = desk.entries()
    for number, call in enumerate(CALLS):
        hidden = call(desk.server, who, f"{CONTRACTS}/mine")
        absent = call(desk.server, who, f"{CONTRACTS}/none")
        assert hidden.status_code == 404, (number, hidden.text)
        assert telling(hidden, "mine") == telling(absent, "none")
    assert desk.entries() == before
    assert desk.server.get(who, CONTRACTS).json() == {"contracts": []}


@pytest.mark.parametrize("who", ["amir", "olga", "pavel", "audra"])
def test_a_contract_is_there_for_whom_it_is(desk: Desk, who: str) -> None:
    desk.done("amir", CONTRACTS, asked("mine"))
    path = f"{CONTRACTS}/mine"
    found = desk.server.get(who, path)
    assert found.json()["contract"] == "mine"
    assert found.headers["etag"] == f'"{found.json()["digest"]}"'
    assert desk.server.get(who, f"{path}/approvals").json()["votes"] == []
    (listed,) = desk.server.get(who, CONTRACTS).json()["contracts"]
    assert listed["stage"] == "2 more must approve for `people`: `olga`, `pavel`"


def test_who_only_looks_on_does_nothing(desk: Desk) -> None:
    desk.done("amir", CONTRACTS, asked("mine"))
    for path, form in ((":withdraw", WHY), (":run", None), (":receive", None)):
        refused = desk.server.post("audra", f"{CONTRACTS}/mine{path}", form)
        assert (refused.status_code, refused.json()["code"]) == (403, "MOD832")


def test_a_recipient_sees_a_contract_whose_data_is_not_theirs(desk: Desk) -> None:
    desk.goes_out("out", to=["rita"])
    assert desk.server.get("rita", f"{CONTRACTS}/out").status_code == 200
    assert desk.server.get("rita", f"{CONTRACTS}/out-q").status_code == 404
    assert desk.server.get("rita", f"{DATA}/people").status_code == 404


def test_who_is_named_in_other_capitals_can_do_without_it(desk: Desk) -> None:
    """What it may tell counts for them, however they are written there."""
    desk.goes_out("out", to=["RITA"])
    assert desk.server.get("rita", f"{CONTRACTS}/out").status_code == 200
    refused = desk.server.post("rita", f"{CONTRACTS}/out:receive")
    assert (refused.status_code, refused.json()["code"]) == (409, "MOD865")
    desk.done("rita", f"{CONTRACTS}/out:withdraw", WHY)
    found = desk.server.get("amir", f"{CONTRACTS}/out").json()
    assert found["stage"] == "it was withdrawn"


def test_who_manages_accounts_has_no_part_in_it(desk: Desk) -> None:
    for path in (CONTRACTS, DATA):
        assert desk.server.get("root", path).status_code == 403


# --- whose data a query reads ---------------------------------------------------------


def test_a_query_is_not_said_to_be_of_data_of_others(desk: Desk) -> None:
    text = f"dataset: labs\n{query('r-1')}"
    refused = desk.server.post("amir", CONTRACTS, asked("c", text))
    assert (refused.status_code, refused.json()["code"]) == (403, "MOD832")
    own = f"dataset: people\n{query('r-1')}"
    desk.done("amir", CONTRACTS, asked("c", own))


def test_data_that_is_hidden_is_as_if_it_were_not_registered(desk: Desk) -> None:
    """`labs` is registered, `labz` is not; whoever may not know hears no difference."""

    def told(name: str) -> list[tuple[int, str]]:
        text = of_labs(query("r-1"), name)
        to = desk.server
        answers = (
            to.get("amir", f"{DATA}/{name}"),
            to.post("amir", CONTRACTS, asked("c", text)),
            to.post("amir", "/escrow/risk", {"file": text, "tau": 0.5, "delta": 1e-6}),
            to.post("amir", f"{DATA}/{name}/versions", sent()),
            to.post("olga", f"{DATA}/{name}/versions", sent()),
            to.post("olga", f"{DATA}/{name}/versions/1:shred", WHY),
        )
        assert all(one.status_code >= 400 for one in answers)
        return [telling(one, name) for one in answers]

    assert told("labs") == told("labz")
    listed = desk.server.get("amir", DATA).json()["data_sets"]
    assert [one["data"] for one in listed] == ["people"]
    assert desk.done("lee", CONTRACTS, asked("c", of_labs(query("r-1"))))


def test_only_owners_change_their_data(desk: Desk) -> None:
    shred = f"{DATA}/people/versions/1:shred"
    assert desk.server.post("amir", shred, WHY).status_code == 403
    assert desk.done("olga", shred, WHY) == {"id": "people", "version": 1}
    assert desk.server.get("amir", f"{DATA}/people").json()["versions"][0]["shredded"]
    for number in ("0", "x"):
        path = f"{DATA}/people/versions/{number}:shred"
        assert desk.server.post("olga", path, WHY).status_code == 400
    path = f"{DATA}/people/versions/7:shred"
    assert desk.server.post("olga", path, WHY).status_code == 404


# --- what is never told ---------------------------------------------------------------

ROW = SECRET.decode()
BAD: tuple[tuple[str, bytes], ...] = (
    ("rows for a body", b"id,name\n1," + SECRET),
    ("no end", b'{"table": "t", "rows": "' + SECRET),
    ("no base64", json.dumps({"table": "t", "rows": f"{ROW}!"}).encode()),
    ("rows in a list", json.dumps({"table": "t", "rows": [ROW]}).encode()),
    ("rows in a mapping", json.dumps({"table": "t", "rows": {ROW: 1}}).encode()),
    ("rows as a key", json.dumps({"table": "t", "rows": "", ROW: 1}).encode()),
    ("rows as media", json.dumps(sent(media=ROW)).encode()),
    ("rows as a key of owners", json.dumps(sent(owners={"a": [ROW]})).encode()),
    ("rows as owners", json.dumps(sent(owners=ROW)).encode()),
    ("rows as a number", json.dumps(sent(owners={}, bits=ROW)).encode()),
    ("not UTF-8", b'{"table": "\xff' + SECRET + b'"}'),
    ("a list", json.dumps([ROW]).encode()),
    ("a text", json.dumps(ROW).encode()),
    ("nothing", b""),
)


def test_what_is_wrong_with_rows_quotes_none(desk: Desk) -> None:
    own = {HEADER: "olga", "Idempotency-Key": "k", "Content-Type": "application/json"}
    path = f"/api/v1{DATA}/people/versions"
    for what, body in BAD:
        refused = desk.server.client.post(path, content=body, headers=own)
        told = (refused.status_code, refused.json()["code"])
        assert told == (400, "MOD840"), (what, refused.text)
        assert ROW not in refused.text, what
        assert base64.b64encode(SECRET).decode()[:12] not in refused.text, what


def test_limits_are_said_with_owners(desk: Desk) -> None:
    for one in ("quorum", "contracts", "bits"):
        form = {**sent(), one: 1}
        refused = desk.server.post("olga", f"{DATA}/people/versions", form)
        assert (refused.status_code, refused.json()["code"]) == (422, "MOD119")


def test_a_body_of_another_kind_is_not_read(desk: Desk) -> None:
    own = {HEADER: "olga", "Idempotency-Key": "k", "Content-Type": "text/csv"}
    path = f"/api/v1{DATA}/people/versions"
    refused = desk.server.client.post(path, content=ROWS, headers=own)
    assert (refused.status_code, refused.json()["code"]) == (415, "MOD839")


# --- once -----------------------------------------------------------------------------


def replayed(desk: Desk, who: str, path: str, form: object, **named: Any) -> None:
    """Send a request twice: it is done once, and heard twice."""
    first = desk.server.post(who, path, form, key="once", **named)
    assert first.status_code == 200, first.text
    before, things = desk.entries(), dict(desk.equipment.vault.things)
    again = desk.server.post(who, path, form, key="once", **named)
    assert again.content == first.content
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers.get("etag") == first.headers.get("etag")
    assert (desk.entries(), desk.equipment.vault.things) == (before, things)


def test_a_version_is_registered_once(desk: Desk) -> None:
    replayed(desk, "olga", f"{DATA}/people/versions", sent())
    versions = desk.server.get("olga", f"{DATA}/people").json()["versions"]
    assert [one["version"] for one in versions] == [1, 2]


def test_rows_are_replaced_when_another_owner_agrees(desk: Desk) -> None:
    desk.done("olga", f"{DATA}/people/versions", sent())
    path, vote = f"{DATA}/people/versions/2/approvals", {"approves": True, **WHY}
    version = desk.server.get("pavel", f"{DATA}/people").json()["versions"][1]
    assert (version["by"], version["agreed"]) == ("olga", False)
    for tag, status in (("0" * 64, 412), (None, 428)):
        headers = {} if tag is None else {"If-Match": f'"{tag}"'}
        assert desk.server.post("pavel", path, vote, headers=headers).status_code == (
            status
        )
    headers = {"If-Match": f'"{version["digest"]}"'}
    assert desk.server.post("amir", path, vote, headers=headers).status_code == 403
    replayed(desk, "pavel", path, vote, headers=headers)
    assert desk.server.get("pavel", f"{DATA}/people").json()["versions"][1]["agreed"]


def test_a_contract_is_asked_for_once(desk: Desk) -> None:
    replayed(desk, "amir", CONTRACTS, asked("mine"))
    path = f"{CONTRACTS}/mine:withdraw"
    replayed_key = desk.server.post("amir", path, WHY, key="once")
    assert replayed_key.json()["code"] == "MOD835"
    assert desk.done("amir", path, WHY)["withdrawn"]


def test_a_word_is_said_once(desk: Desk) -> None:
    desk.done("amir", CONTRACTS, asked("mine"))
    tag = desk.server.get("olga", f"{CONTRACTS}/mine").headers["etag"]
    path, headers = f"{CONTRACTS}/mine/approvals", {"If-Match": tag}
    replayed(desk, "olga", path, WORD, headers=headers)
    assert len(desk.server.get("olga", path).json()["votes"]) == 1


def test_what_writes_needs_a_key(desk: Desk) -> None:
    for who, path, form in (
        ("olga", f"{DATA}/people/versions", sent()),
        ("amir", CONTRACTS, asked("mine")),
    ):
        own = {HEADER: who}
        refused = desk.server.client.post(f"/api/v1{path}", json=form, headers=own)
        assert (refused.status_code, refused.json()["code"]) == (428, "MOD834")


def test_a_word_is_about_what_was_looked_at(desk: Desk) -> None:
    desk.done("amir", CONTRACTS, asked("mine"))
    path = f"{CONTRACTS}/mine/approvals"
    assert desk.server.post("olga", path, WORD).status_code == 428
    other = {"If-Match": OTHER}
    assert desk.server.post("olga", path, WORD, headers=other).status_code == 412


# --- what flows -----------------------------------------------------------------------


def test_a_run_is_a_job_that_tells_what_became_of_it(desk: Desk) -> None:
    result = desk.ran(asked("mine"))
    assert result["denied"] is None
    assert result["contract"]["results"] == ["private"]
    assert result["contract"]["uses_left"] == 0


def test_a_run_that_a_rule_denies_tells_the_decision(desk: Desk) -> None:
    result = desk.ran(asked("much", query("r-much", "2.5")))
    assert result["denied"]["decision"] == "deny"
    assert result["denied"]["blocking"]
    assert result["denied"]["text"]["headline"].startswith("DENY r-much")
    assert result["contract"]["results"] == []


def test_nothing_runs_that_owners_did_not_agree_to(desk: Desk) -> None:
    desk.done("amir", CONTRACTS, asked("mine"))
    refused = desk.server.post("amir", f"{CONTRACTS}/mine:run")
    assert (refused.status_code, refused.json()["code"]) == (409, "MOD865")
    assert desk.server.get("amir", "/jobs").json()["jobs"] == []
    opened = desk.equipment.vault.opened
    assert [one for one in opened if one.startswith("data/")] == []


def test_the_job_of_a_run_is_for_whoever_began_it(desk: Desk) -> None:
    desk.done("amir", CONTRACTS, asked("mine"))
    desk.agree("mine")
    started = desk.server.post("amir", f"{CONTRACTS}/mine:run")
    place = started.headers["location"].removeprefix("/api/v1")
    assert desk.server.get("olga", place).status_code == 404
    finished(desk.server, "amir", started)


def test_who_carries_out_for_others_runs_what_they_may_read(desk: Desk) -> None:
    """An owner runs it; to whoever may carry out but not see, it is not there."""
    desk.done("amir", CONTRACTS, asked("mine"))
    desk.agree("mine")
    assert desk.server.post("petra", f"{CONTRACTS}/mine:run").status_code == 404
    started = desk.server.post("pavel", f"{CONTRACTS}/mine:run")
    assert finished(desk.server, "pavel", started)["state"] == "done"


def test_only_recipients_receive_and_nobody_keeps_it(desk: Desk) -> None:
    desk.goes_out("out", to=["rita"])
    path = f"{CONTRACTS}/out:receive"
    for who in ("amir", "olga", "pavel"):
        refused = desk.server.post(who, path)
        assert (refused.status_code, refused.json()["code"]) == (409, "MOD865"), who
    got = desk.server.post("rita", path)
    assert got.status_code == 200, got.text
    assert got.headers["cache-control"] == "no-store"
    assert got.json()["differentially_private"] is True
    assert [*got.json()["answers"]] == ["r-out-q"]
    left = desk.server.get("rita", f"{CONTRACTS}/out").json()
    assert (left["released"], left["uses_left"]) == (1, 19)


def test_a_task_runs_and_owners_read_its_program(desk: Desk) -> None:
    desk.ran(asked("q", exact=True))
    program = {"code": SCORE.decode(), "range": [0, "1/3"], "arguments": {"a": [1]}}
    form = {"flow": "task", "contract": "t", **WHY, "query": "q", "program": program}
    desk.done("amir", CONTRACTS, form)
    shown = desk.server.get("olga", f"{CONTRACTS}/t").json()["program"]
    assert shown["text"] == SCORE.decode()
    assert (shown["range"], shown["arguments"]) == (["0", "1/3"], {"a": [1]})
    desk.agree("t")
    assert desk.run("t")["state"] == "done"


def test_a_job_that_waits_for_the_sandbox_holds_nobody_up_and_can_be_given_up(
    desk: Desk,
) -> None:
    desk.ran(asked("q", exact=True))
    program = {"code": SCORE.decode(), "range": [0, 1]}
    form = {"flow": "task", "contract": "t", **WHY, "query": "q", "program": program}
    desk.done("amir", CONTRACTS, form)
    desk.agree("t")
    others_have_it, is_waiting = threading.Event(), threading.Event()

    def wait() -> None:
        is_waiting.set()
        assert others_have_it.wait(30)

    desk.equipment.box.before_turn = wait
    jobs = [desk.server.post("amir", f"{CONTRACTS}/t:run") for _ in range(2)]
    assert is_waiting.wait(30)
    assert desk.server.post("amir", f"{CONTRACTS}/t:run").status_code == 503
    desk.ran(asked("other"))  # What needs no sandbox waits for none.
    for started in jobs:
        place, own = started.headers["location"], {HEADER: "amir"}
        given_up = desk.server.client.delete(place, headers=own)
        assert given_up.status_code == 200, given_up.text
    others_have_it.set()
    assert {finished(desk.server, "amir", one)["state"] for one in jobs} == {
        "cancelled"
    }
    left = desk.server.get("amir", f"{CONTRACTS}/t").json()
    assert (left["uses_left"], left["results"]) == (3, [])
    assert desk.equipment.box.given == []


# --- limits ---------------------------------------------------------------------------


def test_data_may_be_larger_than_other_bodies(desk: Desk) -> None:
    """1024 bytes are for all, and 8192 for data and programs."""
    app = build(desk.server.parts, body_bytes=1024, data_bytes=8192)
    with TestClient(app, base_url=desk.server.url) as client:

        def status(path: str, size: int) -> int:
            own = {HEADER: "olga", "Idempotency-Key": f"{path}{size}"}
            own["Content-Type"] = "application/json"
            body = json.dumps(sent()).encode().ljust(size)
            answered = client.post(f"/api/v1{path}", content=body, headers=own)
            return int(answered.status_code)

        data = f"{DATA}/people/versions"
        assert [status(data, size) for size in (8192, 8193)] == [200, 413]
        assert status("/releases:check", 8192) == 413
        assert status("/escrowed", 8192) == 413
        assert status(f"{DATA}/people/versions/1/approvals", 8192) == 413
        assert status("/escrow/risk", 8192) == 413
        assert status(f"{CONTRACTS}/q/approvals", 8192) == 413
        assert status(CONTRACTS, 8192) == 422  # It is read, and no contract.


def test_a_server_without_an_escrow_says_so(tmp_path: Path) -> None:
    policy = compile_text(POLICY.encode(), "policy.yaml")
    with served(tmp_path / "ledger.db", policy=policy, people=WHO) as server:
        for who, path, form in (
            ("olga", f"{DATA}/people/versions", sent(owners=OWNERS)),
            ("olga", f"{DATA}/people/versions/1:shred", WHY),
            ("amir", CONTRACTS, asked("mine")),
            ("amir", f"{CONTRACTS}/mine:run", None),
            ("amir", f"{CONTRACTS}/mine:receive", None),
        ):
            refused = server.post(who, path, form)
            assert (refused.status_code, refused.json()["code"]) == (409, "MOD846")
            assert "`escrow`" in refused.json()["help"]
        assert server.get("amir", CONTRACTS).json() == {"contracts": []}
        assert server.get("amir", DATA).json() == {"data_sets": []}


def test_no_digest_of_rows_lies_beside_the_ledger(desk: Desk, tmp_path: Path) -> None:
    """Who has that, and all rows but one, would find the last one by trying."""
    path, key = f"{DATA}/people/versions", "one-key"
    answered = desk.server.post("olga", path, sent(), key=key)
    assert answered.json()["version"] == 2
    request = answered.request
    url, kind = request.url, request.headers["content-type"]
    parts = (request.method, url.path, url.query.decode(), kind)
    sent_so = b"".join(part.encode() + b"\0" for part in parts) + request.content
    secret = desk.equipment.vault.things["server/digests"]
    kept = b"".join(one.read_bytes() for one in tmp_path.glob("ledger.db*"))
    assert b"one-key" in kept
    assert hashlib.sha256(sent_so).hexdigest().encode() not in kept
    assert hmac.new(secret, sent_so, "sha256").hexdigest().encode() in kept
    assert (len(secret), len(set(secret)) > 16) == (32, True)  # Nobody guesses it.
    again = desk.server.post("olga", path, sent(), key=key)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.json() == answered.json()
    other = desk.server.post("olga", path, sent(ROWS + b"400,north,low\n"), key=key)
    assert other.status_code == 422
    assert sorted(desk.equipment.vault.things) == [
        "data/labs/1",
        "data/people/1",
        "data/people/2",
        "server/digests",
    ]


def test_two_processes_that_make_a_secret_use_one(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = desk.equipment.vault
    vault.gone.clear()
    first = vault.things.pop("server/digests")
    seal = vault.seal

    def later(identifier: str, content: bytes) -> Sealed:
        if identifier == "server/digests":
            vault.things[identifier] = first  # Another process was faster.
        return seal(identifier, content)

    monkeypatch.setattr(vault, "seal", later)
    assert desk.done("olga", f"{DATA}/people/versions", sent())["version"] == 2
    assert vault.things["server/digests"] == first


def test_without_its_secret_the_server_takes_no_rows(desk: Desk) -> None:
    desk.equipment.vault.shred("server/digests")
    before = desk.entries()
    refused = desk.server.post("olga", f"{DATA}/people/versions", sent())
    assert (refused.status_code, refused.json()["code"]) == (503, "MOD852")
    assert desk.entries() == before
    # Whoever may send none does not hear of it.
    assert (
        desk.server.post("amir", f"{DATA}/people/versions", sent()).status_code == 403
    )


def test_a_contract_tells_nothing_of_a_release_of_others(desk: Desk) -> None:
    desk.ran(asked("theirs", query("r-same")))
    told = []
    for name, release in (("mine", "r-same"), ("new", "r-new")):
        text = query(release, "0.4")
        desk.done("amir", CONTRACTS, asked(name, text))
        shown = desk.server.get("amir", f"{CONTRACTS}/{name}").json()
        told.append(shown["queries"][0]["problem"])
    assert told == ["this id cannot be used", None]
    seen = desk.server.get("audra", f"{CONTRACTS}/mine").json()
    assert "r-same" in seen["queries"][0]["problem"]


def test_a_run_names_no_hidden_reservations(tmp_path: Path) -> None:
    text = POLICY + "reservations: {data_sets: {people: {share: 0.25}}}\n"
    policy, equipment = compile_text(text.encode(), "policy.yaml"), MemoryEquipment()
    own = Equipment(escrow=Tools(equipment, Adapters()))
    with served(tmp_path / "ledger.db", policy=policy, people=WHO, own=own) as found:
        desk = Desk(found, equipment)
        hidden = {
            "release": "r-hidden",
            "mechanisms": [
                {
                    "name": "m",
                    "mechanism": "gaussian",
                    "attributes": ["town"],
                    "cost": {"user": {"rho": 0.4}},
                }
            ],
        }
        held = desk.done("eve", "/releases", hidden)
        assert held["status"] == "reserved"
        desk.done("amir", CONTRACTS, asked("c"))
        desk.agree("c")
        before = desk.entries()
        job = desk.run("c")
        assert job["state"] == "failed", job
        told = json.dumps(job)
        assert "MOD847" in told
        assert "reserved and not started: 1 other" in told
        assert "r-hidden" not in told
        assert "eve" not in told
        assert desk.entries() == before
