"""Blocks of rows in the engines: all rows of an id in one, in every table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace
from oracle.blocks import block_of
from samples.spark import spark_or_skip

from modicum.core.document import from_python
from modicum.engines.duckdb_engine import DuckdbEngine
from modicum.engines.spark_engine import SparkEngine
from modicum.policy.compiler import compile_text
from modicum.query.query_file import QueryFile, read_query_file
from modicum.query.statistics import Block, Exact, Secrets
from modicum.query.table_format import read_tables

POLICY = """\
modicum: policy/v1
name: reading
units:
  user: {id: person}
  user-day: {id: person, time: {column: at, period: day}, within: [user]}
schema:
  attributes: {page: low, who: high}
policies:
  - {name: all, when: "true", unit: user, budget: {rho: 100}}
"""
TABLES = {
    "modicum": "tables/v1",
    "tables": {
        "views": {
            "row_id": "view",
            "columns": {
                "view": {"type": "integer"},
                "person": {"type": "text"},
                "who": {"type": "text", "attribute": "who"},
                "at": {"type": "date"},
                "page": {"type": "text", "attribute": "page", "values": ["x", "y"]},
            },
        },
        "people": {
            "row_id": "person",
            "one_per": "person",
            "columns": {
                "person": {"type": "text"},
                "who": {"type": "text", "attribute": "who"},
            },
        },
    },
}
PEOPLE = [f"p{n}" if n % 3 else f"Ünï {n}" for n in range(40)]
OWNERS = [None if n % 50 == 7 else PEOPLE[n % 37] for n in range(200)]
VIEWS = pa.table(
    {
        "view": list(range(200)),
        "person": OWNERS,
        "who": OWNERS,
        "at": pa.array([20000 + n % 5 for n in range(200)], pa.int32()).cast("date32"),
        "page": ["x" if n % 4 else "y" for n in range(200)],
    }
)
NAMES = pa.table({"person": PEOPLE, "who": PEOPLE})
SQL = {
    "views": "SELECT who, COUNT(*) AS n FROM views GROUP BY who",
    "people": "SELECT who, COUNT(*) AS n FROM people GROUP BY who",
    "both": "SELECT people.who, COUNT(*) AS n FROM views JOIN people"
    " ON views.person = people.person GROUP BY people.who",
}
SECRETS = Secrets("ab", "cd", "5eed")


def read(sql: str) -> QueryFile:
    compiled = compile_text(POLICY.encode(), "policy.yaml")
    vocabulary = compiled.policy.vocabulary
    document = {
        "release": "r",
        "query": {
            "sql": sql,
            "bounds": {"user": 1000},
            "noise": "laplace",
            "loss": {"user": {"eps": 1}},
            "discover": {"delta": 0.1},
        },
    }
    tables = read_tables(from_python(TABLES), vocabulary)
    digest = compiled.policy.digest
    return read_query_file(from_python(document), tables, vocabulary, digest)


def counted(engine: Any, query: QueryFile, block: Block | None) -> Mapping[Any, int]:
    plan = replace(query.compiled.plan, block=block)
    found: Mapping[str, Exact] = engine.run(plan, SECRETS)
    return found[plan.statistics[0].name]


def engines(name: str) -> Any:
    rows = {"views": VIEWS, "people": NAMES}
    if name == "duckdb":
        return DuckdbEngine(rows)
    return SparkEngine(rows, spark_or_skip())


@pytest.mark.spec("ESC-10")
@pytest.mark.parametrize(
    ("name", "of"), [("duckdb", 2), ("duckdb", 3), ("duckdb", 7), ("spark", 3)]
)
def test_every_id_is_in_one_block_in_every_table(name: str, of: int) -> None:
    with engines(name) as engine:
        for sql in SQL.values():
            query = read(sql)
            together = Counter[Any]()
            for number in range(of):
                found = counted(engine, query, Block("user", number, of))
                for (person,), rows in found.items():
                    assert block_of("5eed", person, of) == number
                    together[(person,)] += rows
            assert together == Counter(counted(engine, query, None))
            assert len(together) > 30


def test_a_block_leaves_what_caps_do_within_it() -> None:
    """Rows of other blocks decide nothing: without them the answer is the same."""
    query = read(SQL["views"].replace("who", "page"))
    plan = replace(
        query.compiled.plan, caps=(replace(query.compiled.plan.caps[0], rows=2),)
    )
    for number in range(3):
        block = Block("user", number, 3)
        inside = VIEWS.filter(
            pa.array(
                [
                    one is not None and block_of("5eed", one, 3) == number
                    for one in VIEWS["person"].to_pylist()
                ]
            )
        )
        found = []
        for rows in (VIEWS, inside):
            with DuckdbEngine({"views": rows}) as engine:
                found.append(engine.run(replace(plan, block=block), SECRETS))
        assert found[0] == found[1]
        assert sum(found[0][plan.statistics[0].name].values()) > 10
