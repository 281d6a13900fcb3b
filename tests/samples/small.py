"""A small organization for tests, and ways to write its policies and releases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from modicum.api.local import Workspace
from modicum.policy import CompiledPolicy, Rule
from modicum.policy.compiler import compile_text
from modicum.policy.predicates import Facts, holds
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock

NOON = "2026-05-01T12:00:00.000000Z"

POLICY = """
modicum: policy/v1
name: small
dp: {bare_budget: {type: approx-dp, delta: 1e-7}}
units: {user: {id: user_id}}
labels:
  ml: {values: [none, black-box], default: none}
schema:
  categories: {health: high}
  attributes:
    age: [low, {health: weak}]
    diagnosis: [high, {health: member}]
    steps: [medium, {health: strong}]
policies:
  - {name: global, when: "true", unit: user, budget: 2.0}
  - {name: attr, for_each: attribute, unit: user,
     budget: {low: 2.0, medium: 1.5, high: 1.0}}
  - {name: cat, for_each: category, unit: user, budget: {high: 1.2},
     levels: {member: same, strong: {scale: 1.25}, weak: {scale: 1.5}}}
extensions:
  - name: ml
    settings:
      standard: {when: 'm.ml == "none"', budget: same, within: black-box}
      black-box: {when: "true", budget: {map: {1.0: 2, 2.0: 5}, between: linear,
                                         below: proportional, above: last}}
per_release:
  - {name: cap, when: "true", unit: user, budget: {eps: 1.5, delta: 1e-7}}
"""


def compiled(text: str = POLICY) -> CompiledPolicy:
    """Return a compiled policy."""
    return compile_text(text.encode(), "policy.yaml")


def rule_holds(rule: Rule, facts: Facts) -> bool:
    """Return whether a mechanism falls under a rule, without any index."""
    return all(holds(one, facts) for one in (rule.predicate, *rule.settings))


def counts(
    release: str,
    *,
    rho: str | float = "0.001",
    attributes: tuple[str, ...] = ("diagnosis",),
    **more: Any,
) -> dict[str, Any]:
    """Return a release of one Gaussian mechanism with a declared rho."""
    return {
        "release": release,
        **more,
        "mechanisms": [
            {
                "name": "counts",
                "mechanism": "gaussian",
                "attributes": list(attributes),
                "cost": {"user": {"rho": float(rho)}},
            }
        ],
    }


def workspace(
    folder: Path, *, policy: str | None = POLICY, clock: FixedClock | None = None
) -> Workspace:
    """Return a workspace on `ledger.db` in a folder, at noon."""
    return Workspace(
        SqliteStore(folder / "ledger.db", wait_seconds=20),
        clock or FixedClock(NOON),
        policy=None if policy is None else compiled(policy),
        actor="tester",
    )
