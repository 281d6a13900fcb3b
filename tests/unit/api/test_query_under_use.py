"""A query that is asked under a reservation that was made for it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from samples import asked

from modicum.api.local import Workspace
from modicum.api.local.reservation_use import Use
from modicum.core.errors import Code, ConflictError, InputError, StaleError, UsageError
from modicum.engines.protocol import Engine
from modicum.integrations.loader import Adapters
from modicum.query.query_file import QueryFile

ROWS = pa.table(
    {
        "view_id": pa.array([1, 2], pa.int64()),
        "user_id": ["a", "b"],
        "read_at": pa.array([0, 0], pa.timestamp("us")),
        "page": ["main", "help"],
        "topic": ["x", "y"],
        "amount": [1.0, 2.0],
    }
)


class Noting(Adapters):
    """Libraries that note which engines are opened."""

    def __init__(self) -> None:
        self.opened: list[tuple[str, Mapping[str, object], str]] = []

    def engine(
        self,
        name: str,
        sources: Mapping[str, object],
        spark_master: str,
        *,
        spills: bool = True,
    ) -> Engine:
        self.opened.append((name, sources, spark_master))
        return super().engine(name, sources, spark_master, spills=spills)


@pytest.fixture
def ledger(tmp_path: Path) -> Workspace:
    """Return a ledger in which the query is reserved."""
    found = asked.workspace(tmp_path)
    assert found.submit(asked.query().described).allowed
    found.adapters = Noting()
    return found


def status(ledger: Workspace) -> str:
    return ledger.standing("views").status.value


def opened(ledger: Workspace) -> list[Any]:
    assert isinstance(ledger.adapters, Noting)
    return ledger.adapters.opened


@pytest.mark.spec("QRY-11")
def test_the_reserved_query_is_answered_and_posted_at_the_end(
    ledger: Workspace,
) -> None:
    with ledger.use("views") as use:
        answers = use.query(asked.query(), ROWS)
        assert status(ledger) == "started"
    assert len(answers.rows) == 62
    assert status(ledger) == "published"
    assert opened(ledger) == [("duckdb", {"views": ROWS}, "local[*]")]


@pytest.mark.spec("QRY-16")
@pytest.mark.parametrize(
    "other",
    [
        {"bounds": {"user-day": 9, "user-month": 70}},
        {"sql": asked.COUNTED.replace("views GROUP", "views WHERE page='x' GROUP")},
        {"confidence": Fraction("0.9")},
        {"release": "another"},
    ],
)
def test_no_other_query_runs_under_it(ledger: Workspace, other: Any) -> None:
    if other.get("release"):
        ledger.submit(asked.query(release="another").described)
    with pytest.raises(ConflictError) as caught, ledger.use("views") as use:
        use.query(asked.query(**other), ROWS)
    assert caught.value.code is Code.RELEASE_CONFLICT
    assert opened(ledger) == []
    assert status(ledger) == "started"


def test_it_runs_once_and_only_inside(ledger: Workspace) -> None:
    use = ledger.use("views")
    query = asked.query()
    with pytest.raises(ConflictError, match="before the block"):
        use.query(query, ROWS)
    with use:
        use.query(query, ROWS)
        with pytest.raises(ConflictError, match="has already run"):
            use.query(query, ROWS)
    with pytest.raises(ConflictError, match="after the block"):
        use.query(query, ROWS)
    assert opened(ledger) != []


def test_a_mechanism_that_was_used_otherwise_is_used_up(ledger: Workspace) -> None:
    with ledger.use("views") as use:
        use.claim("views")
        with pytest.raises(ConflictError, match="has already run"):
            use.query(asked.query(), ROWS)


def test_a_mistake_in_the_data_uses_nothing_up(ledger: Workspace) -> None:
    with ledger.use("views") as use:
        with pytest.raises(InputError, match="has no column `page`"):
            use.query(asked.query(), ROWS.drop_columns("page"))
        with pytest.raises(UsageError, match="does not read the table"):
            use.query(asked.query(), {"other": ROWS})
        assert len(use.query(asked.query(), ROWS).rows) == 62


@pytest.mark.spec("QRY-16")
def test_a_query_of_another_policy_does_not_run(
    ledger: Workspace, tmp_path: Path
) -> None:
    strict = asked.compiled(asked.POLICY.replace("{rho: 0.75}", "{rho: 0.7}"))
    query: QueryFile = asked.query()
    asked.opened(tmp_path).governance.activate(strict, reason="less")
    with (
        pytest.raises(StaleError, match="another policy"),
        Use(asked.opened(tmp_path), "views", ledger.adapters) as use,
    ):
        use.query(query, ROWS)
    assert opened(ledger) == []


def test_a_workspace_without_engines_says_so(ledger: Workspace) -> None:
    ledger.adapters = None
    with pytest.raises(UsageError, match=r"has no engines"):
        ledger.queries.run(asked.query(release="other"), ROWS)
    assert "other" not in ledger.state().releases
