"""Operations that only read: the same from a ledger here, and from a server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from samples.remote import BEFORE, answering
from samples.small import NOON, counts, workspace

import modicum as mo
from modicum.api import operations
from modicum.api.local.handlers import all_reads, read
from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.visibility import OTHERS
from modicum.api.operations import Operation
from modicum.api.schema.shape import plain
from modicum.client.workspace import RemoteWorkspace
from modicum.core.errors import InputError
from modicum.system.clock import FixedClock

GIVEN: dict[Operation[Any], dict[str, Any]] = {
    operations.HEAD: {},
    operations.ENTRY: {"seq": 2},
    operations.POLICIES: {},
    operations.POLICY: {"digest": "active"},
    operations.RULES: {"limit": 2, "unit": "user"},
    operations.RULE: {"rule": "global @standard"},
    operations.RULE_BALANCE: {"rule": "global @standard", "most": 3},
    operations.RULE_ROUNDS: {"rule": "global @standard"},
    operations.RULE_DIAGRAM: {"rule": "global @standard", "steps": 1},
    operations.RELEASES: {"status": ["reserved"], "limit": 1},
    operations.RELEASE: {"release": "r-1", "recorded": True},
    operations.VOCABULARY: {},
    operations.ROUNDS: {},
    operations.ROUND: {"round_id": "spring"},
    operations.PLANS: {},
    operations.PLAN: {"plan": "none"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reads")


@pytest.fixture(scope="module")
def here(folder: Path) -> LedgerView:
    view = workspace(folder)
    view.init()
    view.submit(counts("r-1", dataset="visits"))
    view.submit(counts("r-2", dataset="labs"))
    view.rounds.open("spring")
    return workspace(folder, policy=None)


@pytest.fixture(scope="module")
def url(here: LedgerView, folder: Path) -> Iterator[str]:
    assert here.exists()
    with answering(folder / "ledger.db", clock=FixedClock(NOON)) as url:
        yield url


def there(url: str, who: str) -> RemoteWorkspace:
    return mo.connect(url, token=f"{BEFORE}{who}")


def answer(view: Any, operation: Operation[Any], **given: Any) -> Any:
    try:
        return read(view, operation, **given)
    except InputError as error:
        return error.code, error.problems[0].message


@pytest.mark.parametrize("operation", GIVEN, ids=lambda one: one.path)
def test_an_answer_is_the_same_here_and_over_http(
    here: LedgerView, url: str, operation: Operation[Any]
) -> None:
    given = GIVEN[operation]
    with there(url, "audra") as ws:
        found = answer(ws, operation, **given)
    assert plain(found) == plain(answer(here, operation, **given))
    if operation is not operations.PLAN:
        assert operation.answer is not None
        assert isinstance(found, operation.answer)


def test_each_operation_that_only_reads_is_compared() -> None:
    assert {one.operation for one in all_reads()} == {*GIVEN}


def test_what_is_not_for_the_reader_has_no_name(here: LedgerView, url: str) -> None:
    balance = GIVEN[operations.RULE_BALANCE]
    with there(url, "ann") as ws:
        seen = read(ws, operations.RULE_BALANCE, **balance)
        listed = read(ws, operations.RELEASES)
        hidden = answer(ws, operations.RELEASE, release="r-2")
        none = answer(ws, operations.RELEASE, release="r-9")
    whole = read(here, operations.RULE_BALANCE, **balance)
    assert {one.release for one in whole.spenders} == {"r-1", "r-2"}
    assert {one.release for one in seen.spenders} == {"r-1", OTHERS}
    assert [one.release for one in listed.releases] == ["r-1"]
    assert hidden == (none[0], none[1].replace("r-9", "r-2"))
