"""Joins of which no bound is proven are refused; the others are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from modicum.core.errors import InputError
from modicum.ops.files.queries import load_query
from modicum.query.query_file import QueryFile

UNITS = """
  user: {id: user_id}
  user-day: {id: user_id, time: {column: at, period: day}, within: user}
"""
DEVICE = "  device: {id: device_id, within: user, groups: {user: 3}}\n"
HOUSE = "  household: {id: household_id}\n"
SESSION = (
    "  session: {id: session_id, within: user-day, groups: {user-day: 3, user: 100}}\n"
)
POLICY = """
modicum: policy/v1
name: joins
dp: {{bare_budget: {{type: pure-dp}}}}
units:{units}
schema:
  categories: {{}}
  attributes: {{page: [low, {{}}], income: [low, {{}}, static], mood: [low, {{}}]}}
policies: [{{name: all, when: "true", unit: user, budget: 9}}]
"""
TABLES = """
modicum: tables/v1
tables:
  visits:
    row_id: visit_id
    columns:
      visit_id: {{type: integer}}
      user_id: {{type: text}}
      at: {{type: timestamp}}
      page: {{type: text, values: [a, b]}}
      {visits}
  people:
    row_id: user_id
    one_per: user_id
    columns:
      user_id: {{type: text}}
      income: {{type: integer, bounds: [0, 9]}}
      mood: {{type: text}}
      {people}
"""
QUERY = """
release: r
{heading}
query:
  tables: tables.yaml
  sql: SELECT {what} AS n FROM visits JOIN people USING (user_id) {where}
  bounds: {bounds}
  noise: laplace
  loss: {{user: {{eps: 1}}}}
"""
INCOME = "WHERE income > 3"


def lowered(
    folder: Path,
    *,
    units: str = "",
    columns: tuple[str, str] = ("", ""),
    heading: str = "",
    where: str = "",
    bounds: str = "{user: 10}",
) -> QueryFile:
    """Return a join, lowered under a small policy."""
    (folder / "policy.yaml").write_text(POLICY.format(units=UNITS + units))
    visits, people = columns
    tables = TABLES.format(visits=visits, people=people)
    (folder / "tables.yaml").write_text(tables)
    query = QUERY.format(heading=heading, what="COUNT(*)", where=where, bounds=bounds)
    (folder / "query.yaml").write_text(query)
    return load_query(folder / "query.yaml", folder / "policy.yaml")


@pytest.mark.spec("QRY-6")
def test_a_day_may_change_all_rows_of_its_user(tmp_path: Path) -> None:
    # Of one day five rows are kept; but its row without time is that of all ten.
    found = lowered(tmp_path, bounds="{user-day: 5, user: 10}").compiled
    assert (found.moves["user-day"].coming, found.moves["user-day"].going) == (10, 10)


@pytest.mark.spec("QRY-6")
def test_a_day_has_no_bound_where_its_user_has_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no bound"):
        lowered(tmp_path, bounds="{user-day: 5}")


@pytest.mark.spec("QRY-6")
@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        (
            {"units": HOUSE, "columns": ("", "household_id: {type: text}")},
            "the sensitivity for one `household` has no bound",
        ),
        (
            {
                "units": DEVICE,
                "columns": ("device_id: {type: text}", "device_id: {type: text}"),
                "bounds": "{user: 10, device: 5}",
            },
            "the sensitivity for one `device` has no bound",
        ),
        (
            {
                "units": SESSION,
                "columns": ("session_id: {type: text}", ""),
                "bounds": "{session: 5, user: 1000}",
            },
            "does not follow from that for one `session`",
        ),
        (
            {"heading": "sampling: {unit: user-day, rate: 0.01}"},
            "a join cannot be sampled by `user-day`",
        ),
        ({"heading": "periods: 2026-11"}, "rows of `people` have no time"),
        (
            {"heading": "periods: 2026-11", "where": "WHERE mood = 'x'"},
            "rows of `people` have no time",
        ),
    ],
)
def test_what_is_not_proven_is_refused(
    changed: dict[str, str], wanted: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as caught:
        lowered(tmp_path, **changed)  # type: ignore[arg-type]
    assert wanted in str(caught.value)


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"units": DEVICE, "columns": ("device_id: {type: text}", "")},
        {"heading": "sampling: {unit: user, rate: 0.01}"},
        {"heading": "periods: 2026-11", "where": INCOME},
        {"units": HOUSE, "columns": ("household_id: {type: text}", "")},
    ],
)
def test_what_is_proven_is_not(changed: dict[str, str], tmp_path: Path) -> None:
    assert lowered(tmp_path, **changed).compiled.lines  # type: ignore[arg-type]
