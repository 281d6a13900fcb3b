"""Answers by days are a query's answers, cut into days; neighbors move them no farther.

A slow computation caps the rows of all days at once, in an order that begins with the
day. Engines see one day at a time, and what caps kept before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from budget import examples, seed
from msgspec import structs
from oracle.bounded_queries import Asked, Plan, Row, are_neighbors
from oracle.query_cases import random_plan
from oracle.query_cases import units_of as units_of_plans
from oracle.worst_tables import Told, stories, tables_of
from samples.exact_oracle import exact_answers
from samples.exact_plans import UNITS, Case, Rows, case_of
from samples.spark import spark_or_skip

from modicum.engines.caps import rows as of_caps
from modicum.engines.duckdb_engine import DuckdbEngine, DuckdbOptions
from modicum.engines.spark_engine import SparkEngine
from modicum.engines.sql_engine import SqlEngine
from modicum.query.contribution_bounds import moves
from modicum.query.days import carried_periods
from modicum.query.model import ColumnRef, Key, Query
from modicum.query.statistics import Cap, ExactPlan, Secrets, Statistic
from modicum.query.tables import Column, Table, Tables
from modicum.release.parts import Part
from modicum.release.periods import overlaps
from modicum.release.units import Unit, kinds

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
        caps = plan.caps
        if dice.random() < 0.6:  # In any order, so that later caps take rows away.
            names = dice.sample(["device", "user-week", "user-month", "user"], 3)
            caps = tuple(Cap(name, dice.choice([1, 2, 4, 7, 11])) for name in names)
        tables = plan.tables
        if dice.random() < 0.4:  # Rows are ordered by their contents.
            events = replace(tables.by_name["events"], row_id=())
            by_name = {**tables.by_name, "events": events}
            tables = structs.replace(tables, by_name=by_name)
        plan = structs.replace(
            plan,
            tables=tables,
            query=structs.replace(query, keys=(day, *query.keys)),
            units={**UNITS, "timed": Unit("timed", "user", "day", "at")},
            caps=caps,
            sample=None,
            statistics=tuple(
                structs.replace(one, keys=None) for one in plan.statistics
            ),
            selection=None,
        )
        days = [date.fromordinal(n) for n in range(FIRST.toordinal(), LAST.toordinal())]
        asked = [one for one in days if dice.random() < 0.7]
        if dice.random() < 0.5:
            plan = structs.replace(
                plan, query=structs.replace(plan.query, where=None), part=Part()
            )
        yield replace(case, plan=plan, data=_crowded(case, days, dice)), asked


def _crowded(case: Case, days: list[date], dice: Random) -> dict[str, Rows]:
    """Return the same rows on fewer days."""
    rows: Rows = []
    for row in case.data["events"]:
        at, new = row["at"], dice.choice(days)
        if at is not None and dice.random() < 0.9:
            at = datetime.combine(new, at.time()) if isinstance(at, datetime) else new
        rows.append({**row, "at": at})
    return {**case.data, "events": rows}


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
            agrees(engine, case, days[:2])


# --- neighbors ------------------------------------------------------------------------

WITHIN = {
    "device": ("user",),
    "user-day": ("user-week", "user-month"),
    "user-week": ("user",),
    "user-month": ("user",),
}
VIEWS = Table(
    "views",
    {
        "rank": Column("rank", "integer"),
        "user_id": Column("user_id", "text"),
        "device_id": Column("device_id", "text"),
        "at": Column("at", "date"),
    },
    ("rank",),
)
COLUMNS = [ColumnRef("views", name) for name in VIEWS.columns]
QUERY = Query(
    ("views",),
    None,
    None,
    (Key("day", COLUMNS[3], "day"), Key("rank", COLUMNS[0])),
    (),
)


def units_of(plan: Plan) -> dict[str, Unit]:
    return {
        name: Unit(
            name,
            f"{one.id}_id",
            one.period,
            "at" if one.period else None,
            WITHIN.get(name, ()),
            {},
            one.relation,
        )
        for name, one in plan.units.items()
    }


def kept(plan: Plan, table: Sequence[Row], key: str, days: Sequence[date]) -> set[int]:
    """Return which rows are kept, by rank, if some days are asked for."""
    columns = [[one["rank"], one["user"], one["device"], one["day"]] for one in table]
    kinds = (pa.int64(), pa.string(), pa.string(), pa.date32())
    arrow = pa.table(
        {
            name: pa.array([row[place] for row in columns], kinds[place])
            for place, name in enumerate(VIEWS.columns)
        }
    )
    exact = ExactPlan(
        QUERY,
        Tables({"views": VIEWS}, clocks=frozenset({"at"})),
        on(Part(), *plan.days),
        None,
        tuple(Cap(*cap) for cap in plan.caps),
        (Statistic("n", "rows"),),
        units_of(plan),
    )
    with DuckdbEngine({"views": arrow}, ONE_THREAD) as engine:
        found = by_days(engine, exact, Secrets(key), days)
    return {int(str(rank)) for _, rank in found["n"]}


@pytest.mark.spec("QRY-5")
@pytest.mark.spec("QRY-30")
def test_over_all_days_no_change_moves_more_rows_than_is_priced() -> None:
    dice, reached, pairs = Random(FIRST_SEED), 0, 0
    while pairs < examples(60):
        plan = random_plan(dice)
        if not plan.caps or not 2 <= len(plan.days) <= 4:
            continue
        units = units_of(plan)
        spans = tuple((one.toordinal(),) * 2 for one in plan.days)
        within = overlaps(tuple(dict.fromkeys((*kinds(units), "day"))), spans)
        unit = dice.choice(list(plan.units.values()))
        priced = moves(unit.name, [Cap(*one) for one in plan.caps], units, within)
        many = dice.choice([1, 3])  # Each day alone may fill a cap.
        told = dice.choice([*stories(plan, unit, dice)])
        story = tuple(one for one in told for _ in range(many))
        before, after = tables_of(story)
        if not priced.bounded or not are_neighbors(before, after, unit):
            continue
        key, pairs = f"{dice.getrandbits(128):032x}", pairs + 1
        days = [one for one in plan.days if dice.random() < 0.9]
        old, new = (kept(plan, one, key, days) for one in (before, after))
        come, go = len(new - old), len(old - new)
        if unit.relation != "add-remove" or not any(t.role == "comes" for t in story):
            come, go = max(come, go), min(come, go)
        where = (plan.caps, unit, story)
        assert come <= priced.coming, where
        assert go <= priced.going, where
        reached += come == priced.coming
    assert reached >= examples(60) // 8


@pytest.mark.spec("QRY-31")
def test_a_cap_counts_what_it_keeps_whatever_later_caps_take() -> None:
    """Ann's rows fill up the device, and one of them is left; Bob finds no room."""
    monday, tuesday = date(2027, 2, 1), date(2027, 2, 2)
    plan = Plan(
        units_of_plans(["add-remove"] * 5),
        (("device", 2), ("user", 1)),
        (monday, tuesday),
        "day",
        (),
        Asked("rows"),
    )
    rows = [(monday, "ann"), (monday, "ann"), (tuesday, "bob"), (tuesday, "bob")]
    table, _ = tables_of(tuple(Told("stays", *one, "shared") for one in rows))
    assert len(kept(plan, table, "ab", plan.days)) == 1
    assert len(kept(plan, table[:1] + table[2:], "ab", plan.days)) == 2
