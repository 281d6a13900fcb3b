"""Engines look rows up, and compute rows of an id, as a row-by-row computation does.

Public tables have no row for some values, and several for others; ids have no rows, or
many; and tables that are computed are read, joined, and looked up in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from budget import examples, seed
from samples.exact_oracle import exact_answers
from samples.exact_plans import Case
from samples.relation_plans import looking_up, per_id, unions
from samples.spark import spark_or_skip

from modicum.engines.duckdb_engine import DuckdbEngine, DuckdbOptions
from modicum.engines.spark_engine import SparkEngine
from modicum.query.statistics import Secrets

ONE_THREAD = DuckdbOptions(threads=1)
FIRST = int(seed()) * 100_000
KINDS = {"lookups": looking_up, "rows of an id": per_id, "unions": unions}


def wanted(case: Case) -> dict[str, dict[tuple[object, ...], int]]:
    return exact_answers(case.plan, case.data, case.order_key, case.sample_seed)


@pytest.mark.spec("QRY-13")
@pytest.mark.spec("QRY-20")
@pytest.mark.spec("QRY-21")
@pytest.mark.parametrize("kind", KINDS)
def test_duckdb_agrees(kind: str) -> None:
    made: Callable[[int], Case] = KINDS[kind]
    result = Counter[str]()
    for number in range(examples(300)):
        case = made(FIRST + number)
        want, query = wanted(case), case.plan.query
        with DuckdbEngine(case.in_memory(), ONE_THREAD) as engine:
            secrets = Secrets(case.order_key, case.sample_seed)
            assert engine.run(case.plan, secrets) == want, case.seed
        if any(want.values()):
            result["some"] += 1
            result["looked up"] += bool(query.lookups)
            result["computed"] += bool(query.inner)
            result["several"] += len(query.lookups) + len(query.tables) > 1
    assert result["some"] > examples(300) // 6, result
    assert result["looked up"] or kind == "unions", result
    assert result["computed"] == (result["some"] if kind != "lookups" else 0)
    assert result["several"], result


@pytest.mark.spec("QRY-13")
@pytest.mark.parametrize("kind", KINDS)
def test_spark_agrees(kind: str) -> None:
    options = spark_or_skip()
    for number in range(examples(30, plain=8)):
        case = KINDS[kind](FIRST + number)
        with SparkEngine(case.in_memory(), options) as engine:
            secrets = Secrets(case.order_key, case.sample_seed)
            assert engine.run(case.plan, secrets) == wanted(case), case.seed
