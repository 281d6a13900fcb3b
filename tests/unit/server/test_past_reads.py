"""`as_of`: what the server says of the past is what a shorter log says of itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from samples.served import PEOPLE, Served, served
from samples.small import NOON, POLICY, compiled, counts, workspace

from modicum.api import operations
from modicum.api.local import Workspace
from modicum.api.local.handlers import all_reads, read_of
from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.past_ledger import EarlierStore
from modicum.api.operations import Operation
from modicum.api.permissions.identity import Identity
from modicum.api.schema.shape import plain
from modicum.core.errors import AccessError, Code, InputError
from modicum.ledger import event_of
from modicum.server.service.threads import RECALLING_EACH
from modicum.storage.factory import open_store
from modicum.system.clock import FixedClock, add_seconds
from modicum.writer import past_views
from modicum.writer.service import Decider

WIDER = POLICY.replace("high: 1.0", "high: 1.1").replace("name: small", "name: wider")
HOUR = 60 * 60
#: So long a test waits for what must come.
PATIENCE = 60

#: What is read, and the parameters.
READS: tuple[tuple[Operation[Any], dict[str, Any]], ...] = (
    (operations.HEAD, {}),
    (operations.ENTRY, {"seq": 3}),
    (operations.POLICIES, {}),
    (operations.POLICY, {"digest": "active"}),
    (operations.RULES, {"order": "tightest"}),
    (operations.RULES, {"limit": 2, "search": "age"}),
    (operations.RULE, {"rule": "global @standard"}),
    (operations.RULE_BALANCE, {"rule": "global @standard"}),
    (operations.RULE_ROUNDS, {"rule": "global @standard"}),
    (operations.RULE_DIAGRAM, {"binding": True}),
    (operations.VOCABULARY, {}),
    (operations.RELEASES, {"order": "newest"}),
    (operations.RELEASES, {"status": ["expired"]}),
    (operations.RELEASE, {"release": "short"}),
    (operations.RELEASE, {"release": "labs"}),
    (operations.RELEASE, {"release": "none"}),
    (operations.ROUNDS, {}),
    (operations.ROUND, {"round_id": "spring"}),
    (operations.PLANS, {}),
    (operations.PLAN, {"plan": "none"}),
)


def happens(ws: Workspace, step: int) -> None:
    """Do something in a ledger, once an hour."""
    match step:
        case 0:
            one = counts("short", rho="0.004", dataset="visits")
            ws.submit(one, reserve_seconds=2 * HOUR)
        case 1:
            one = counts("labs", rho="0.006", dataset="labs")
            ws.submit(one, reserve_seconds=20 * HOUR)
        case 2:
            ws.submit(counts("denied", rho="3", dataset="labs"))
        case 3:
            ws.cancel("labs", reason="called off")
        case 4:
            ws.rounds.open("spring")
        case 5:
            ws.governance.activate(compiled(WIDER), reason="more is needed")
        case _:
            ws.submit(counts("last", rho="0.02", dataset="visits"), publish=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("past")
    for step in range(7):
        clock = FixedClock(add_seconds(NOON, step * HOUR))
        happens(workspace(folder, policy=None if step else POLICY, clock=clock), step)
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Served]:
    with served(folder / "ledger.db") as found:
        yield found


def cut(folder: Path, seq: int, path: Path, at: str = "") -> LedgerView:
    """Return a view of a ledger with only the first entries, at its last time."""
    whole = open_store(folder / "ledger.db")
    kept = [one for one in whole.read(0) if one.seq <= seq]
    whole.close()
    store = open_store(path)
    with store.turn() as turn:
        turn.append(kept)
    return LedgerView(store, FixedClock(at or event_of(kept[-1], seq).at))


def expected(
    view: LedgerView, who: str, operation: Operation[Any], **given: Any
) -> Any:
    """Return what is answered from a view: a document, or a code."""
    identity = Identity(who, PEOPLE[who])
    one = read_of(operation)
    try:
        one.must(identity)
        return plain(one.answer(view, identity, **given))
    except AccessError:
        return 403
    except InputError as error:
        return error.code.value


def answer(server: Served, who: str, operation: Operation[Any], **given: Any) -> Any:
    """Return what a server answers: a document, or a code."""
    ids = {name: given.pop(name) for name in operation.holes}
    answered = server.get(who, operation.address(**ids), params=given)
    if answered.status_code == 200:
        return answered.json()
    return 403 if answered.status_code == 403 else answered.json()["code"]


def test_every_read_is_tried() -> None:
    assert {one.operation for one in all_reads()} == {one for one, _ in READS}


@pytest.mark.parametrize("who", ["olga", "ann", "lee", "root"])
def test_an_entry_says_what_a_shorter_log_says(
    server: Served, folder: Path, tmp_path: Path, who: str
) -> None:
    last = server.get("olga", "/ledger/head").json()["seq"]
    assert last > 7
    told: set[str] = set()
    for seq in range(1, last + 1):
        view = cut(folder, seq, tmp_path / f"{seq}.db")
        for operation, given in READS:
            found = answer(server, who, operation, as_of=seq, **given)
            assert found == expected(view, who, operation, **given), operation.path
            told.add(str(found))
    assert len(told) > (1 if who == "root" else 50) or told == {"403"}


def test_a_time_between_entries_is_the_time_that_counts(
    server: Served, folder: Path, tmp_path: Path
) -> None:
    """A reservation that ran out by then counts no more, though no entry says so."""
    for at in ("2026-05-01T13:30:00.000000Z", "2026-05-01T14:30:00.000000Z"):
        known = server.get("olga", "/ledger/head", params={"as_of": at}).json()["seq"]
        view = cut(folder, known, tmp_path / f"{at}.db", at)
        for operation, given in READS:
            found = answer(server, "olga", operation, as_of=at, **given)
            assert found == expected(view, "olga", operation, **given), operation.path
    # Forth and back at one entry: the clock is that of the question.
    states = [
        server.get("olga", "/releases/short", params={"as_of": at}).json()["status"]
        for at in ("2026-05-01T13:59Z", "2026-05-01T14:01Z", "2026-05-01T13:59Z")
    ]
    assert states == ["reserved", "expired", "reserved"]


def test_pages_of_the_past_go_on(server: Served) -> None:
    at = {"as_of": 4}
    whole = server.get("ann", "/rules", params={"order": "tightest", **at}).json()
    found: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        query = {"order": "tightest", "limit": 3, "cursor": cursor, **at}
        page = server.get("ann", "/rules", params=query).json()
        found += page["rules"]
        cursor = page["next"]
    assert found == whole["rules"]


def test_rights_are_those_of_today(server: Served) -> None:
    """Who may not read the labs now may not by naming a time; nor is it told apart."""
    for seq in range(1, server.get("olga", "/ledger/head").json()["seq"] + 1):
        at = {"as_of": seq}
        listed = server.get("ann", "/releases", params=at).json()["releases"]
        assert "labs" not in {one["release"] for one in listed}
        told = []
        for name in ("labs", "none"):
            answered = server.get("ann", f"/releases/{name}", params=at)
            assert answered.status_code == 404
            told.append(answered.json()["detail"].replace(name, "x"))
        assert told[0] == told[1]
        assert server.get("ann", "/ledger/entries/1", params=at).status_code == 403
        rule = {"rule": "global @standard"}
        history = server.get("ann", "/rules/history", params={**rule, **at})
        assert '"labs"' not in history.text


@pytest.mark.parametrize(
    "point", ["0", "999", "99999999999999999", "tomorrow", "2100-01-01", "2020-01-01"]
)
def test_what_is_no_past_is_refused(server: Served, point: str) -> None:
    for path in ("/rules", "/releases", "/ledger/head"):
        answered = server.get("olga", path, params={"as_of": point})
        assert (answered.status_code, answered.json()["code"]) == (400, "MOD840")
        assert "as_of" in answered.json()["detail"]


def test_few_points_are_kept_and_mistakes_cost_no_replay(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []

    def noted(store: Any, seq: int) -> Any:
        begun.append(seq)
        return EarlierStore(store, seq)

    monkeypatch.setattr(past_views, "EarlierStore", noted)
    with served(folder / "ledger.db") as server:
        for path in ("/rules", "/releases", "/releases/none", "/rules"):
            server.get("olga", path, params={"as_of": 3})
        assert begun == [3]
        for seq in (4, 3, 5, 3, 6):
            server.get("olga", "/rules", params={"as_of": seq})
        assert begun == [3, 4, 5, 6]
        assert past_views.KEPT == 3
        server.get("olga", "/rules", params={"as_of": 3})  # Used last before 6.
        assert begun == [3, 4, 5, 6]
        server.get("olga", "/rules", params={"as_of": 4})
        assert begun == [3, 4, 5, 6, 4]


def test_a_replay_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    started, end = threading.Event(), threading.Event()
    really = Decider.recall

    def slowly(self: Decider, point: int | str, work: Callable[[Any], Any]) -> Any:
        started.set()
        assert end.wait(PATIENCE)
        return really(self, point, work)

    monkeypatch.setattr(Decider, "recall", slowly)
    one = counts("r-1", dataset="visits")
    past = {"as_of": 1}
    with (
        served(tmp_path / "ledger.db", policy=tmp_path / "policy.yaml") as server,
        ThreadPoolExecutor(2 * RECALLING_EACH) as others,
    ):
        line = server.parts.service.threads._recalled._lines
        try:
            waiting = [
                others.submit(server.get, who, "/rules", params=past)
                for who in ("olga", "ann")
                for _ in range(RECALLING_EACH)
            ]
            assert started.wait(PATIENCE)
            while [one.length for one in list(line.values())] != [RECALLING_EACH] * 2:
                assert not any(one.done() for one in waiting)
            refused = server.get("olga", "/rules", params=past)
            assert (refused.status_code, refused.json()["code"]) == (429, "MOD837")
            # What decides, what is quick, and what is slow, of the present.
            assert server.post("ann", "/releases:check", one).status_code == 200
            assert server.post("ann", "/releases", one).status_code == 200
            assert server.post("ann", "/releases/r-1:start").status_code == 200
            assert server.get("olga", "/releases").status_code == 200
            assert server.get("olga", "/rules").status_code == 200
            assert server.post("ann", "/releases:fit", one).status_code == 200
            assert not any(one.done() for one in waiting)
        finally:
            end.set()
        assert {one.result().status_code for one in waiting} == {200}
        assert line == {}


def test_the_description_names_it_for_what_only_reads(server: Served) -> None:
    description = server.client.get("/api/v1/openapi.json").json()
    for one in all_reads():
        path = "/api/v1" + one.operation.path.replace(":path", "").replace(
            ":digest", ""
        )
        taken = description["paths"][path]["get"]["parameters"]
        assert "as_of" in {each["name"] for each in taken}, path
    assert Code.BAD_REQUEST.value == "MOD840"
