"""`submit_many` over HTTP: few requests, or one by one for an older server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from samples.remote import BEFORE, answering
from samples.small import POLICY

import modicum as mo
from modicum.api.local.submit import Submission
from modicum.client import release_batches
from modicum.client.retry_connection import Connection, Request
from modicum.client.workspace import RemoteWorkspace
from modicum.core.errors import Code, ConflictError, ModicumError, UnavailableError
from modicum.server.routes import releases


def release(name: str, sigma: float = 5000) -> dict[str, Any]:
    return {
        "release": name,
        "dataset": "visits",
        "mechanisms": [
            {
                "name": "counts",
                "mechanism": "gaussian",
                "attributes": ["diagnosis"],
                "sensitivity": {"user": {"l2": 1}},
                "sigma": sigma,
            }
        ],
    }


@pytest.fixture(name="sent")
def sent_fixture(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count what is sent about releases, by path."""
    found: Counter[str] = Counter()
    send = Connection.send

    def counted(self: Connection, request: Request[Any]) -> Any:
        if request.path.startswith("/releases"):
            found[request.path] += 1
        return send(self, request)

    monkeypatch.setattr(Connection, "send", counted)
    return found


@pytest.fixture(name="ws")
def ws_fixture(tmp_path: Path) -> Iterator[RemoteWorkspace]:
    (tmp_path / "policy.yaml").write_text(POLICY)
    path = tmp_path / "ledger.db"
    with (
        answering(path, policy=tmp_path / "policy.yaml") as url,
        mo.connect(url, token=f"{BEFORE}ann") as found,
    ):
        yield found


def prepared(ws: RemoteWorkspace, count: int) -> list[Submission]:
    return [ws.prepare(release(f"r-{number}")) for number in range(count)]


def statuses(found: list[Any]) -> list[str]:
    return [
        one.code.value if isinstance(one, ModicumError) else one.status for one in found
    ]


def test_many_are_sent_in_few_requests(
    ws: RemoteWorkspace, sent: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release_batches, "RELEASES_MAX", 4)
    many = [*prepared(ws, 7), ws.prepare(release("r-0", 4000))]
    found = ws.submit_many(many)
    assert statuses(found) == ["reserved"] * 7 + ["MOD703"]
    assert isinstance(found[-1], ConflictError)
    names = [getattr(one, "release", "") for one in found[:-1]]
    assert names == [one.release.id for one in many[:-1]]
    assert sent == {"/releases:batch": 2}
    assert ws.submit_many([]) == []


def test_options_and_sizes_divide_them(
    ws: RemoteWorkspace, sent: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = [ws.prepare(release(f"o-{n}"), publish=True) for n in range(2)]
    found = ws.submit_many([*prepared(ws, 3), *out])
    assert statuses(found) == ["reserved"] * 3 + ["published"] * 2
    assert sent == {"/releases:batch": 2}
    monkeypatch.setattr(release_batches, "BATCH_BYTES_MAX", 10)
    assert statuses(ws.submit_many(prepared(ws, 3))) == ["reserved"] * 3
    assert sent["/releases"] == 3


def test_an_older_server_gets_them_one_by_one(
    tmp_path: Path, sent: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    routes = releases.router.routes
    older = [one for one in routes if not one.path.endswith(":batch")]  # type: ignore[attr-defined]
    assert len(older) == len(routes) - 1
    monkeypatch.setattr(releases.router, "routes", older)
    (tmp_path / "policy.yaml").write_text(POLICY)
    path = tmp_path / "ledger.db"
    with (
        answering(path, policy=tmp_path / "policy.yaml") as url,
        mo.connect(url, token=f"{BEFORE}ann") as ws,
    ):
        assert statuses(ws.submit_many(prepared(ws, 3))) == ["reserved"] * 3
        assert sent == {"/releases:batch": 1, "/releases": 3}


@pytest.mark.parametrize(
    "change",
    [
        lambda reply: reply["answers"].pop(),
        lambda reply: reply.pop("answers"),
        lambda reply: reply["answers"].reverse(),
        lambda reply: reply["answers"][0].update(decision=None),
        lambda reply: reply["answers"].__setitem__(0, 5),
    ],
)
def test_what_does_not_answer_each_is_not_believed(
    ws: RemoteWorkspace,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Any], object],
) -> None:
    many, send = prepared(ws, 2), Connection.send

    def changed(self: Connection, request: Request[Any]) -> Any:
        reply = send(self, request)
        if request.path == "/releases:batch":
            change(reply)
        return reply

    monkeypatch.setattr(Connection, "send", changed)
    with pytest.raises(UnavailableError) as caught:
        ws.submit_many(many)
    assert caught.value.code is Code.NOT_UNDERSTOOD
