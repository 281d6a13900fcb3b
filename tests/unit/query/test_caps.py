"""Caps that follow from what is declared: one row for each id."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from samples import asked

from modicum.core.errors import Code, InputError
from modicum.engines.duckdb_engine import DuckdbEngine
from modicum.query.query_file import QueryFile
from modicum.query.statistics import Secrets

READERS = """\
  readers:
    row_id: reader_no
    one_per: user_id
    columns:
      reader_no: {type: integer}
      user_id: {type: text}
      page: {type: text, attribute: page, values: [help, main]}
"""
#: The same with a time.
TIMED = READERS.replace(
    "      user_id", "      read_at: {type: timestamp}\n      user_id"
)
DECLARED = asked.TABLES + READERS
BY_PAGE = "SELECT page, COUNT(*) AS readers FROM readers GROUP BY page"
JOINED = "SELECT COUNT(*) AS views FROM views JOIN readers USING (user_id)"
#: A policy in which nothing is larger than a month.
MONTHS = asked.POLICY.replace("  user: {id: user_id}\n", "").replace(
    ", within: user}", "}"
)


def query(sql: str = BY_PAGE, **more: Any) -> QueryFile:
    """Return a query of readers, without bounds unless some are given."""
    declared: dict[str, Any] = {
        "bounds": None,
        "loss": {"user": {"rho": Fraction("0.01")}},
        **more,
    }
    return asked.read(always(sql, **declared), declared=DECLARED)


def always(sql: str, **declared: Any) -> dict[str, Any]:
    """Return a query file that reads all days."""
    plain = asked.document(sql, **declared)
    del plain["periods"]
    return plain


def caps(found: QueryFile) -> dict[str, int]:
    """Return how many rows are kept of each instance of each unit."""
    return {cap.unit: cap.rows for cap in found.compiled.plan.caps}


@pytest.mark.parametrize("bounds", [None, {"user": 5}, {"user": 1}])
def test_a_table_of_people_needs_no_bounds(bounds: dict[str, int] | None) -> None:
    found = query(bounds=bounds)
    assert caps(found) == {"user": 1}
    moved = found.compiled.moves["user"]
    assert (moved.coming, moved.going) == (1, 0)


@pytest.mark.spec("QRY-4")
def test_the_engine_keeps_to_one_row_though_there_are_more() -> None:
    found = query()
    rows = pa.table(
        {
            "reader_no": [1, 2, 3, 4],
            "user_id": ["ann", "ann", "bob", "ann"],
            "page": ["help", "help", "help", "main"],
        }
    )
    engine = DuckdbEngine({"readers": rows})
    try:
        exact = engine.run(found.compiled.plan, Secrets("0a"))["readers"]
    finally:
        engine.close()
    assert sum(exact.values()) == 2


def test_a_table_with_many_rows_has_only_the_bounds_that_are_asked_for() -> None:
    with pytest.raises(InputError) as error:
        query("SELECT page, COUNT(*) AS n FROM views GROUP BY page")
    assert error.value.problems[0].code is Code.NOT_BOUNDED
    joined = query(JOINED, bounds={"user": 7})
    assert caps(joined) == {"user": 7}


@pytest.mark.parametrize(
    ("policy", "bounds", "wanted"),
    [
        (asked.POLICY, {"user-day": 3}, {"user-day": 3, "user": 1}),
        (MONTHS, None, {"user-month": 1}),
        (MONTHS, {"user-day": 3, "user-month": 9}, {"user-day": 3, "user-month": 1}),
    ],
)
def test_the_largest_units_of_the_id_are_meant(
    policy: str, bounds: dict[str, int] | None, wanted: dict[str, int]
) -> None:
    loss = {"user-month": {"rho": Fraction("0.01")}}
    plain = always(BY_PAGE, bounds=bounds, loss=loss)
    declared = asked.TABLES + TIMED
    found = asked.read(plain, policy=asked.compiled(policy), declared=declared)
    assert caps(found) == wanted
