"""Every public name of a workspace: over HTTP with the same arguments, or not at all.

What a workspace has and the other has not is listed here with its reason, and says so
itself when it is called: what to do instead.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from samples.remote import BEFORE, answering
from samples.small import POLICY, counts

import modicum as mo
from modicum.api.local import Workspace
from modicum.api.local.escrow.actions import EscrowActions
from modicum.api.local.governance.actions import Governance
from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.plans.actions import Rounds
from modicum.client.actions import RemoteGovernance
from modicum.client.escrow import RemoteEscrow
from modicum.client.plan_actions import RemoteRounds
from modicum.client.view import RemoteView
from modicum.client.workspace import RemoteWorkspace

#: Each kind of object that a workspace hands out, and what stands for it over HTTP.
PAIRS: list[tuple[type, type]] = [
    (LedgerView, RemoteView),
    (Workspace, RemoteWorkspace),
    (Governance, RemoteGovernance),
    (Rounds, RemoteRounds),
    (EscrowActions, RemoteEscrow),
]

#: What is done where the ledger is, and why.
ELSEWHERE = {
    "turn": "work in the ledger's turn is code, and code is not sent",
    "init": "who makes a ledger has its database",
    "save_snapshot": "the server keeps its own caches",
}

#: What is not there at all over HTTP, and why.
NOT_THERE = {
    "equipment": "a vault and sandboxes are where the data is",
    "own_rows": "owners look at rows where the vault is",
    "check_by": "a server knows who calls",
    **dict.fromkeys(
        (
            "computed",
            "data_sets",
            "fullest_cell",
            "page",
            "past_point",
            "segment_budgets",
            "story",
        ),
        "a server keeps these for its reads",
    ),
    "refuse_jump": "the clock is that of the machine where the ledger is",
}

#: What a server has besides, and a workspace has not.
BESIDES = {
    RemoteView: {
        "active_since",
        "actor",
        "connection",
        "followed",
        "found",
        "head",
        "read_only",
        "read",
    },
    RemoteWorkspace: {"audits", "close", "jobs", "policies"},
    RemoteGovernance: set(),
    RemoteRounds: {"start_plan"},
    RemoteEscrow: set(),
}


def public(kind: type) -> set[str]:
    """Return the public names of a class, and those that it sets for itself."""
    return {name for name in dir(kind) if not name.startswith("_")}


def shape(kind: type, name: str) -> Any:
    """Return how a name is used: what is given to it, or that it is only read."""
    found = inspect.getattr_static(kind, name)
    if not callable(found):
        return "is read"
    return [
        (one.name, one.kind, one.default)
        for one in inspect.signature(found).parameters.values()
    ]


ROWS = [
    pytest.param(here, there, name, id=f"{here.__name__}.{name}")
    for here, there in PAIRS
    for name in sorted(public(here))
]


@pytest.mark.parametrize(("here", "there", "name"), ROWS)
def test_a_name_is_used_in_the_same_way(here: type, there: type, name: str) -> None:
    if name == "adapters":  # Set by each object for itself.
        assert "adapters" in vars(RemoteWorkspace(_nowhere()))
        return
    if name in NOT_THERE:
        assert not hasattr(there, name)
        return
    assert shape(there, name) == shape(here, name)


def _nowhere() -> Any:
    return None


@pytest.mark.parametrize(("here", "there"), PAIRS)
def test_nothing_else_is_there_but_what_is_listed(here: type, there: type) -> None:
    listed = {one for kind in there.__mro__ for one in BESIDES.get(kind, ())}
    assert public(there) - public(here) == listed


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("served")
    (folder / "policy.yaml").write_text(POLICY)
    with answering(folder / "ledger.db", policy=folder / "policy.yaml") as found:
        yield found


@pytest.mark.parametrize("name", sorted(ELSEWHERE))
def test_what_is_done_elsewhere_says_where(url: str, name: str) -> None:
    given = [lambda _: None] if name == "turn" else []
    with mo.connect(url, token=f"{BEFORE}olga") as ws:
        before = ws.head()
        with pytest.raises(mo.UsageError) as caught:
            getattr(ws, name)(*given)
        assert ws.head() == before
    problem = caught.value.problems[0]
    assert problem.code.value == "MOD108"
    assert problem.help


def test_what_was_prepared_elsewhere_is_not_sent(url: str, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    here = mo.open(tmp_path / "own.db", policy=tmp_path / "policy.yaml")
    here.init()
    with mo.connect(url, token=f"{BEFORE}dara") as ws:
        before = ws.head()
        for work in (
            lambda: ws.submit_many([here.prepare(counts("r"))]),
            lambda: ws.check_prepared(here.prepare(counts("r"))),
            lambda: ws.backfill_many([ws.prepare(counts("r"))]),
            lambda: ws.submit_many(
                [ws.prepare(counts("r")), ws.prepare_backfill(counts("p"))]
            ),
            lambda: ws.check_prepared(ws.prepare(counts("r")), actor="olga"),
            lambda: ws.spenders("global @standard", where={"country": ["CH"]}),
        ):
            with pytest.raises(mo.UsageError) as caught:
                work()
            assert caught.value.code.value == "MOD108"
        assert ws.check_prepared(ws.prepare(counts("r")), actor="dara").allowed
        assert ws.head() == before
