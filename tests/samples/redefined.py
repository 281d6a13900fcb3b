"""Policies that give names another meaning, and ledgers that they follow in."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from modicum.api.local import Workspace
from modicum.cli.main import app
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock
from samples.small import NOON, compiled

POLICY = """
modicum: policy/v1
name: pageviews
dp: {accountant: zcdp}
units:
  time: {id: uid, time: {column: at, period: day}}
  user: {id: uid}
schema: {attributes: {page: low, town: low}}
policies:
  - {name: short, when: "true", unit: time, budget: {rho: 1}}
  - {name: long, when: "true", unit: user, budget: {rho: 9}}
"""
MONTH = POLICY.replace("period: day", "period: month")
#: Neither the unit nor its rule.
WITHOUT = "\n".join(
    line for line in POLICY.splitlines() if "time:" not in line and "short" not in line
)


def run(*command: str) -> Any:
    return CliRunner().invoke(app, command)


def of(folder: Path, policy: str | None = None, now: str = NOON) -> Workspace:
    return Workspace(
        SqliteStore(folder / "ledger.db", wait_seconds=20),
        FixedClock(now),
        policy=None if policy is None else compiled(policy),
        actor="ann",
    )


def release(
    name: str, units: Iterable[str] = ("time", "user"), attribute: str = "page"
) -> dict[str, Any]:
    mechanism = {
        "name": "views",
        "mechanism": "gaussian",
        "attributes": [attribute],
        "cost": {unit: {"rho": 0.1} for unit in units},
    }
    return {"release": name, "mechanisms": [mechanism]}


def activate(folder: Path, policy: str, *accept: str, now: str = NOON) -> None:
    office = of(folder, now=now).governance
    office.activate(compiled(policy), reason="a change", accept=accept)
