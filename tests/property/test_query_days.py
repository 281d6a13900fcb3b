"""Answers by days are a query's answers, cut into days; neighbors move them no farther.

A slow computation caps the rows of all days at once, in an order that begins with the
day. Engines see one day at a time, and what caps kept before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from budget import examples, seed
from msgspec import structs
from samples.exact_oracle import exact_answers
from samples.exact_plans import Case, case_of
from samples.spark import spark_or_skip

from modicum.engines.caps import rows as of_caps
from modicum.engines.duckdb_engine import DuckdbEngine, DuckdbOptions
from modicum.engines.spark_engine import SparkEngine
from modicum.engines.sql_engine import SqlEngine
from modicum.query.days import carried_periods
from modicum.query.model import ColumnRef, Key
from modicum.query.statistics import ExactPlan, Secrets
from modicum.release.parts import Part
from modicum.release.units import Unit

ONE_THREAD = DuckdbOptions(threads=1)
FIRST, LAST = date(2024, 12, 29), date(2025, 1, 6)
FIRST_SEED = int(seed()) * 100_000 + 75_000

Found = dict[str, dict[tuple[Any, ...], int]]


def on(part: Part, *days: date) -> Part:
    return replace(part, periods=tuple((one.toordinal(),) * 2 for one in days))


def cases(number: int, first: int) -> Iterator[tuple[Case, list[date]]]:
    """Yield cases by days, and the days that are asked for: some are left out."""
    for place in range(number):
        case, dice = case_of(first + place), Random(first + place)
        plan = case.plan
        query = plan.query
        day = Key("day", ColumnRef("events", "at"), "day")
        plan = structs.replace(
            plan,
            query=structs.replace(query, keys=(day, *query.keys)),
            units={**plan.units, "timed": Unit("timed", "user", "day", "at")},
            sample=None,
            selection=None,
        )
        days = [date.fromordinal(n) for n in range(FIRST.toordinal(), LAST.toordinal())]
        asked = [one for one in days if dice.random() < 0.7]
        yield replace(case, plan=plan), asked


def by_days(
    engine: SqlEngine, plan: ExactPlan, secrets: Secrets, days: Iterable[date]
) -> Found:
    """Return what an engine answers about one day after the other."""
    kept: dict[int, list[tuple[date, pa.Table]]] = {}
    found: Found = {one.name: {} for one in plan.all_statistics}
    for day in days:
        used: dict[int, pa.Table | None] = {}
        for number, since in carried_periods(plan, day).items():
            tables = [one for at, one in kept.get(number, []) if at >= since]
            used[number] = pa.concat_tables(tables) if tables else None
        of_day = structs.replace(plan, part=on(plan.part, day))
        exact, counts = engine.run_day(of_day, secrets, used)
        assert counts.keys() == used.keys()
        for number, table in counts.items():
            kept.setdefault(number, []).append((day, table))
        for name, groups in exact.items():
            assert found[name].keys().isdisjoint(groups)
            found[name] |= groups
    return found


def wanted(case: Case, days: list[date]) -> Found:
    if not days:
        return {one.name: {} for one in case.plan.all_statistics}
    plan = structs.replace(case.plan, part=on(case.plan.part, *days))
    return exact_answers(
        plan, case.data, case.order_key, case.sample_seed, by_days="at"
    )


def agrees(engine: SqlEngine, case: Case, days: list[date]) -> bool:
    """Check one case; return whether a cap of several days took something away."""
    secrets = Secrets(case.order_key, case.sample_seed)
    want = wanted(case, days)
    assert by_days(engine, case.plan, secrets, days) == want, case.seed
    within = structs.replace(
        case.plan,
        caps=tuple(
            cap for cap in case.plan.caps if case.plan.units[cap.unit].period == "day"
        ),
    )
    return want != wanted(replace(case, plan=within), days)


@pytest.mark.spec("QRY-30")
@pytest.mark.parametrize("compiled", [False, True])
def test_duckdb_keeps_day_by_day_what_caps_keep_of_all_days(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = 0
    if compiled:
        monkeypatch.setattr(of_caps, "_COMPILED_ROWS", 0)
    for case, days in cases(examples(24), FIRST_SEED + 1000 * compiled):
        with DuckdbEngine(case.in_memory(), ONE_THREAD) as engine:
            cut += agrees(engine, case, days)
    assert cut >= examples(24) // 8


@pytest.mark.spec("QRY-30")
def test_spark_keeps_day_by_day_what_caps_keep_of_all_days() -> None:
    options = spark_or_skip()
    for case, days in cases(examples(6, plain=3), FIRST_SEED + 2000):
        with SparkEngine(case.in_memory(), options) as engine:
            agrees(engine, case, days[:3])
