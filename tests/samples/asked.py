"""An organization that asks private queries, and ways to write what it asks."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from modicum.api.local import Workspace
from modicum.core.document import from_python
from modicum.core.yaml_reader import read_document
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_text
from modicum.query.query_file import QueryFile, read_query_file
from modicum.query.table_format import read_tables
from modicum.query.tables import Tables
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock

POLICY = """\
modicum: policy/v1
name: reading
dp: {filter: zcdp-v1}
units:
  user: {id: user_id}
  user-month: {id: user_id, time: {column: read_at, period: month}, within: user}
  user-day: {id: user_id, time: {column: read_at, period: day}, within: user-month}
schema:
  attributes: {page: low, topic: low, amount: high}
policies:
  - {name: day, when: "true", unit: user-day, budget: {rho: 0.05}}
  - {name: month, when: "true", unit: user-month, budget: {rho: 0.75}}
"""
#: The same with rules that know δ, as keys that are told by noise need.
WITH_DELTA = (
    POLICY.replace("zcdp-v1", "combined-v1")
    .replace("{rho: 0.05}", "{eps: 8, delta: 1e-5}")
    .replace("{rho: 0.75}", "{eps: 8, delta: 1e-5}")
)
TABLES = """\
modicum: tables/v1
tables:
  views:
    row_id: view_id
    columns:
      view_id: {type: integer}
      user_id: {type: text}
      read_at: {type: timestamp}
      page: {type: text, attribute: page, values: [help, main]}
      topic: {type: text, attribute: topic}
      amount: {type: number, attribute: amount, step: 0.5, bounds: [0, 8]}
"""
COUNTED = (
    "SELECT DATE_TRUNC('day', read_at) AS day, page, COUNT(*) AS views"
    " FROM views GROUP BY day, page"
)
BY_TOPIC = "SELECT topic, COUNT(*) AS views FROM views GROUP BY topic"


def compiled(text: str = POLICY) -> CompiledPolicy:
    """Return the policy, compiled."""
    return compile_text(text.encode(), "policy.yaml")


def tables(policy: CompiledPolicy, declared: str = TABLES) -> Tables:
    """Return what is declared about the tables."""
    node = read_document(declared.encode(), "tables.yaml")
    return read_tables(node, policy.policy.vocabulary)


def document(
    sql: str = COUNTED,
    *,
    release: str = "views",
    periods: Any = "2026-10",
    heading: Mapping[str, Any] | None = None,
    **query: Any,
) -> dict[str, Any]:
    """Return a query file as plain data."""
    request = {
        "tables": "tables.yaml",
        "sql": sql,
        "bounds": {"user-day": 10, "user-month": 70},
        "noise": "gaussian",
        "loss": {"user-day": {"rho": Fraction("0.03")}},
        **query,
    }
    kept = {name: value for name, value in request.items() if value is not None}
    return {"release": release, "periods": periods, **(heading or {}), "query": kept}


def query(
    sql: str = COUNTED,
    *,
    policy: CompiledPolicy | None = None,
    declared: str = TABLES,
    **more: Any,
) -> QueryFile:
    """Return a query file, read."""
    return read(document(sql, **more), policy=policy, declared=declared)


def read(
    plain: Mapping[str, Any],
    *,
    policy: CompiledPolicy | None = None,
    declared: str = TABLES,
) -> QueryFile:
    """Return a query file that is plain data, read."""
    known = compiled() if policy is None else policy
    found = from_python(plain), tables(known, declared), known.policy.vocabulary
    return read_query_file(*found, known.policy.digest)


def workspace(folder: Path, text: str = POLICY, *, actor: str = "ann") -> Workspace:
    """Return a new ledger under the policy."""
    made = opened(folder, compiled(text), actor=actor)
    made.init()
    return made


def opened(
    folder: Path, policy: CompiledPolicy | None = None, *, actor: str = "ann"
) -> Workspace:
    """Return the ledger of a folder, under a policy or its own."""
    return Workspace(
        SqliteStore(folder / "ledger.db", wait_seconds=20),
        FixedClock("2026-11-01T12:00:00.000000Z"),
        policy=policy,
        actor=actor,
    )
