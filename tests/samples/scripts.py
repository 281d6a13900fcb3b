"""A generous policy for scripts that other libraries run, and releases under it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from modicum.api.local import Workspace
from samples.small import workspace

POLICY = """
modicum: policy/v1
name: generous
dp: {bare_budget: {type: approx-dp, delta: 1e-3}}
units: {user: UNIT}
schema:
  categories: {health: high}
  attributes: {age: [low, {health: weak}]}
policies:
  - {name: global, when: "true", unit: user, budget: {eps: 100000, delta: 0.5}}
"""
#: Units of several kinds: what one instance is, and how neighbors differ.
PERSON = "{id: user_id}"
DAY = "{id: user_id, time: {column: seen_on, period: day}}"
SEAT = "{id: seat_id, neighbors: substitute}"
DEVICE = "{id: device_id, neighbors: any-change}"


def generous(folder: Path, unit: str = PERSON) -> Workspace:
    """Return a workspace on `ledger.db` in a folder, under the generous policy."""
    return workspace(folder, policy=POLICY.replace("UNIT", unit))


def declared(cost: Any, kind: str = "declared") -> dict[str, Any]:
    """Return a release `r-1` of one mechanism `visits` with a declared cost."""
    one = {"name": "visits", "mechanism": kind, "attributes": ["age"]}
    return {"release": "r-1", "mechanisms": [{**one, "cost": {"user": cost}}]}
