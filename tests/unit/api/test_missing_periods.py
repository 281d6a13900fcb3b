"""Releases without `periods` are charged to every period: whoever is denied is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from samples.small import workspace

from modicum.api.local.views.ledger import status_view

POLICY = """
modicum: policy/v1
name: reading
dp: {filter: zcdp-v1}
units: {user-day: {id: user_id, time: {column: read_at, period: day}}}
schema: {attributes: {page: low, country: low, born: [low, {}, static]}}
policies:
  - {name: day, when: "true", unit: user-day, budget: {rho: 0.03}}
  - {name: born, when: '"born" in m.attributes', unit: user-day, budget: {rho: 0.02}}
"""
CAUSE = "charged to every period, because `periods` is missing"


def views(release: str, *, rho: float = 0.02, reads: str = "page", **more: Any) -> Any:
    """Return a release of one Gaussian mechanism that reads one attribute."""
    mechanism = {
        "name": "views",
        "mechanism": "gaussian",
        "attributes": [reads],
        "cost": {"user-day": {"rho": rho}},
    }
    return {"release": release, **more, "mechanisms": [mechanism]}


def test_a_release_without_periods_is_told_so_when_denied(tmp_path: Path) -> None:
    ws = workspace(tmp_path, policy=POLICY)
    ws.submit(views("monday", periods="2026-04-27"))
    denied = ws.check(views("asked"))
    lines = denied.explain().splitlines()
    (place,) = [n for n, line in enumerate(lines) if line.startswith("  OVER day ")]
    assert CAUSE in lines[place + 1]
    assert "periods: {from: 2026-05-01, to: 2026-05-01}" in lines[place + 1]
    document: Any = denied.to_dict()
    (loss,) = document["losses"]
    assert loss["undated"] == ["views"]
    assert CAUSE in loss["cause"]


@pytest.mark.parametrize(
    "asked",
    [
        views("asked", periods="2026-04-27"),  # Its periods are named.
        views("asked", reads="born"),  # It reads what is true at all times.
        views("asked", rho=0.04),  # It would be denied in any period.
    ],
)
def test_nothing_is_said_of_periods_where_they_are_not_why(
    tmp_path: Path, asked: Any
) -> None:
    ws = workspace(tmp_path, policy=POLICY)
    ws.submit(views("monday", periods="2026-04-27"))
    denied = ws.check(asked)
    assert not denied.allowed
    assert "`periods` is missing" not in denied.explain()
    document: Any = denied.to_dict()["losses"]
    assert {one["cause"] for one in document} == {None}


def test_a_release_that_is_denied_hears_of_others_without_periods(
    tmp_path: Path,
) -> None:
    ws = workspace(tmp_path, policy=POLICY)
    for n in range(3):
        ws.backfill(views(f"old-{n}", rho=0.01))
    denied = ws.check(views("asked", periods="2026-04-27"))
    text = denied.explain()
    cause = (
        "3 releases are charged to every period, because their `periods` are missing:"
        " old-0, old-1, old-2"
    )
    assert cause in text
    assert text.index(cause) < text.index("spent by")
    assert "modicum release redescribe" in text
    found: Any = denied.to_dict(deep=True)["explanation"]
    assert [one["undated"] for one in found["cells"][0]["spenders"]] == [True] * 3


def test_a_full_cell_names_the_releases_without_periods(tmp_path: Path) -> None:
    ws = workspace(tmp_path, policy=POLICY)
    ws.backfill(views("dated", periods="2026-04-27"))
    ws.backfill(views("old", rho=0.01))
    assert ws.spenders("day").cause == ""  # It is full, and not over.
    ws.backfill(views("born", rho=0.001, reads="born"))
    found = ws.spenders("day")
    assert [one.release for one in found.spenders if one.undated] == ["old"]
    assert "1 release is charged to every period" in found.cause
    assert found.view(10).cause == found.cause


def test_where_rules_stand_names_those_over_in_every_period(tmp_path: Path) -> None:
    ws = workspace(tmp_path, policy=POLICY)
    ws.backfill(views("old-0"))
    ws.backfill(views("old-1", periods="2026-04-27"))
    (day, _) = ws.standings()
    assert not day.allowed
    assert not day.every_period  # Only that day is over.
    ws.backfill(views("old-2"))
    (day, born) = ws.standings()
    assert (day.every_period, born.every_period) == (True, False)
    document: Any = status_view(ws).rules
    assert "over the limit in every period" in document[0].cause
    assert "modicum ledger balance day" in document[0].cause
    assert document[1].cause is None


def test_a_past_release_that_is_over_is_told_why(tmp_path: Path) -> None:
    ws = workspace(tmp_path, policy=POLICY)
    ws.backfill(views("old-0"))
    assert CAUSE in ws.backfill(views("old-1")).explain()


def test_a_release_that_reads_a_static_attribute_says_what_it_is_charged_to(
    tmp_path: Path,
) -> None:
    ws = workspace(tmp_path, policy=POLICY)
    note = (
        "it reads `born`, declared static: it is charged to every day, also to those"
        " that `periods` leaves out"
    )
    asked = views("asked", reads="born", periods="2026-04-27")
    assert note in ws.check(asked).notices
    assert note in ws.submit(asked).notices
    assert note in ws.check(views("two", rho=0.03, reads="born")).notices  # Denied.
    assert note not in ws.check(views("three", periods="2026-04-27")).notices
