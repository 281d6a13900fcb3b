"""Random queries, from what is asked to what is priced and answered."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from budget import examples, seed
from samples import asked as organization
from samples.declared import TABLES
from samples.drawn_queries import Drawer
from samples.exact_oracle import exact_answers

from modicum.api.local.queries.execution import _Run
from modicum.core.document import from_python
from modicum.core.errors import Code, InputError
from modicum.core.rationals import LOSS_UNIT
from modicum.engines.duckdb_engine import DuckdbEngine, DuckdbOptions
from modicum.query.compiler import CompiledQuery, compile_query
from modicum.query.contribution_bounds import UNBOUNDED
from modicum.query.explanation import computed, derivation
from modicum.query.model import AllOf, AnyOf, ColumnRef, Compare, Condition, IsIn, Not
from modicum.query.request import Discovery, Noise, QueryRequest
from modicum.query.results import answers_of
from modicum.query.sql.statements import statements
from modicum.query.statistics import Cap, Secrets
from modicum.release import parse_release, price
from modicum.release.parts import EVERYTHING, Part

POLICY = organization.compiled(
    """\
modicum: policy/v1
name: drawn
dp: {filter: combined-v1, bare_budget: {type: approx-dp, delta: 1e-7}}
units:
  user: {id: user_id}
  user-month: {id: user_id, time: {column: event_time, period: month}, within: user}
  user-week: {id: user_id, time: {column: event_time, period: week}, within: user}
  user-day: {id: user_id, time: {column: event_time, period: day},
             within: [user-month, user-week]}
schema:
  attributes: {page: low, country: low, amount: low, age: low, clicks: low,
               mobile: low}
policies:
  - {name: all, when: "true", unit: user, budget: {eps: 8, delta: 1e-5}}
"""
)
VOCABULARY = POLICY.policy.vocabulary
START = int.from_bytes(seed().encode(), "big") * 1_000_000
FIRST = date(2026, 2, 26).toordinal()
PERIODS = {"from": "2026-02-26", "to": "2026-03-04"}
PART = Part(None, ((FIRST, FIRST + 6),), None)


def asked_of(dice: random.Random) -> tuple[QueryRequest, dict[str, Any]]:
    """Return a random query with bounds, noise and loss, and its heading."""
    query = Drawer(dice).query()
    noise: Noise = dice.choice(["gaussian", "laplace"])
    names = dice.sample(["user", "user-month", "user-week", "user-day"], 3)
    caps = tuple(Cap(name, dice.choice([1, 2, 7, 10**6])) for name in names[:-1])
    dated = dice.random() < 0.85
    asked = QueryRequest(
        query,
        TABLES,
        caps,
        noise,
        dice.choice(names),
        Fraction(dice.choice(["0.001", "0.7", "30"])),
        discovery=Discovery(Fraction(1, 3), Fraction(dice.choice(["1e-3", "1e-12"])))
        if dice.random() < 0.8
        else None,
        bins=dice.choice([2, 16, 256]),
        part=PART if dated else EVERYTHING,
    )
    return asked, {"periods": PERIODS} if dated else {}


def lowered_of(
    dice: random.Random,
) -> tuple[CompiledQuery, dict[str, Any]] | InputError:
    asked, heading = asked_of(dice)
    try:
        lowered = compile_query(asked, VOCABULARY)
        statements(lowered.plan, Lots().draw())
    except InputError as error:
        return error
    return lowered, heading


@pytest.mark.spec("QRY-9")
def test_what_is_described_is_read_and_priced_as_it_is_told() -> None:
    seen = Counter[str]()
    for number in range(examples(120)):
        found = lowered_of(random.Random(START + number))
        if isinstance(found, InputError):
            assert found.code in {Code.NOT_BOUNDED, Code.DOES_NOT_FIT}, number
            seen["refused"] += 1
            continue
        lowered, heading = found
        result = lowered.mechanisms()
        node = from_python({"release": "drawn", **heading, "mechanisms": result})
        if not all(one.bounded for one in lowered.moves.values()):
            # Every unit of a policy is priced; bounds do not always reach all.
            seen["unbounded"] += 1
            continue
        release = price(parse_release(node, VOCABULARY), VOCABULARY)
        losses = {one.mechanism.name: one.losses for one in release.mechanisms}
        sources = {one.mechanism.name: one.sources for one in release.mechanisms}
        at = 1 if lowered.request.noise == "gaussian" else 0
        spent = Fraction(0)
        for line in lowered.lines:
            for unit, loss in computed(lowered, line).items():
                units = losses[line.statistic.name][unit].coordinates[at]
                assert units - loss * LOSS_UNIT < 2, (number, unit)
                # Several changes of another unit may prove less: "3 x user-month".
                if sources[line.statistic.name][unit] == "computed":
                    infinite = units == 2**62
                    assert infinite or units >= loss * LOSS_UNIT, (number, unit)
                    seen["computed"] += 1
                spent += loss if unit == lowered.request.unit else 0
        if lowered.selection is not None:
            for unit, eps in lowered.selection.eps.items():
                units = losses[lowered.selection.name][unit].coordinates[0]
                assert units - eps * LOSS_UNIT < 2, (number, unit)
            spent += lowered.request.loss * Fraction(1, 3)
            seen["keys"] += 1
        assert (
            lowered.request.loss * Fraction(999, 1000) < spent <= lowered.request.loss
        )
        assert derivation(lowered)
        seen["priced"] += 1
    assert seen["priced"] > examples(120) // 4, seen
    assert min(seen["keys"], seen["refused"]) > examples(120) // 50, seen


# --- answers without noise ------------------------------------------------------------


class Silence:
    """A sampler that adds nothing."""

    def check(self, noise: str, scale: Fraction, sensitivity: Fraction) -> None:
        """Take everything."""

    def add(self, _noise: str, _scale: Fraction, values: Sequence[int]) -> list[int]:
        return list(values)


class Lots:
    """Secrets that are no secret."""

    def draw(self) -> Secrets:
        return Secrets("ab", "cd")


def rows_of(dice: random.Random) -> dict[str, list[dict[str, Any]]]:
    """Return rows of all tables, in the days that are read and around them."""
    pages = ["help", "main", "it's", None]
    moment = datetime.combine(date.fromordinal(FIRST - 1), datetime.min.time())

    def row(number: int) -> dict[str, Any]:
        at = moment + timedelta(hours=dice.randrange(24 * 9), seconds=7)
        return {
            "view_id": number,
            "order_id": number,
            "user_id": f"u{dice.randrange(6)}",
            "event_time": at,
            "event_date": at.date(),
            "page": dice.choice(pages),
            "country": dice.choice(["CH", "DE", "AT", None]),
            "amount": dice.choice([None, -1.0, 0.0, 0.125, 7.5, 499.99, 1e9]),
            "age": dice.choice([None, 0, 17, 64, 120, 300]),
            "clicks": dice.choice([None, 0, 1, -7, 40]),
            "mobile": dice.choice([None, True, False]),
            "select": dice.choice(pages),
            "region": dice.choice(["CH", "FR", None]),
        }

    return {
        name: [
            {column: one[column] for column in table.columns}
            for one in map(row, range(dice.choice([0, 9, 60])))
        ]
        for name, table in TABLES.by_name.items()
        if name in {"views", "users", "orders", "people"}
    }


_FORMS = {
    "text": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}


def in_memory(data: dict[str, list[dict[str, Any]]]) -> dict[str, object]:
    return {
        name: pa.table(
            {
                column.name: pa.array(
                    [row[column.name] for row in rows], _FORMS[column.type]
                )
                for column in TABLES.by_name[name].columns.values()
            }
        )
        for name, rows in data.items()
    }


def plain(condition: Condition | None) -> bool:
    """Tell whether a condition has no number that engines hold in fewer bits."""
    match condition:
        case Not(inner=inner):
            return plain(inner)
        case AllOf(parts=parts) | AnyOf(parts=parts):
            return all(map(plain, parts))
        case Compare(value=value):
            return not isinstance(value, Fraction)
        case IsIn(values=values):
            return not any(isinstance(one, Fraction) for one in values)
        case _:
            return True


@pytest.mark.spec("QRY-3")
def test_without_noise_answers_are_those_of_the_rows() -> None:
    seen = Counter[str]()
    number = -1
    while seen["run"] < examples(20):
        number += 1
        dice = random.Random(START + 7_000_000 + number)
        found = lowered_of(dice)
        if isinstance(found, InputError) or found[0].groups > 500:
            continue
        lowered, _ = found
        if not plain(lowered.request.query.where) or lowered.groups == UNBOUNDED:
            continue
        data = rows_of(dice)
        sources = in_memory(data)
        with DuckdbEngine(sources, DuckdbOptions(threads=1)) as engine:
            engine.check(lowered.plan)
            noisy = _Run(lowered, engine, Silence(), Lots()).noisy()
        result = answers_of(lowered, noisy, Fraction(19, 20))
        exact = exact_answers(lowered.plan, data, "ab", "cd")
        assert len(result.rows) == lowered.groups
        for place, one in enumerate(lowered.request.query.aggregates):
            for row in result.rows:
                wanted = value_of(lowered, one.name, exact, row.keys)
                if wanted is None:
                    continue
                value = row.estimates[place].value
                assert value is None or value == wanted, (number, one)
                seen["compared"] += value is not None
        seen["run"] += 1
    assert seen["compared"] > 30, seen


def value_of(
    lowered: CompiledQuery, name: str, exact: dict[str, Any], group: tuple[Any, ...]
) -> Fraction | None:
    """Return what an aggregate is, of counts and sums only."""
    line = next(line for line in lowered.lines if name in line.serves)
    one = next(one for one in lowered.request.query.aggregates if one.name == name)
    if one.function not in {"count", "count-distinct", "sum"}:
        return None
    number = Fraction(exact[line.statistic.name].get(group, 0))
    if one.function == "sum":
        assert isinstance(one.value, ColumnRef)
        declared = TABLES.by_name[one.value.table].columns[one.value.column]
        return number * declared.step
    return number
