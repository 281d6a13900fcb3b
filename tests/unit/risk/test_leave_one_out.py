"""Asking again without each person: exact, whatever ids, keys and names there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from modicum.core.errors import Code, InputError
from modicum.risk.measurement import Risk, rdr

NAN, INF = float("nan"), float("inf")
BIG = 2**60


def moves_of(risk: Risk) -> dict[tuple[float, ...], int]:
    """Return how many people have which moves, in falling order."""
    assert risk.question.obstacle, "it has to be asked again"
    influence = risk.influence
    found: Counter[tuple[float, ...]] = Counter()
    for kind, people in enumerate(influence.people):
        own = influence.moves[influence.starts[kind] : influence.starts[kind + 1]]
        found[tuple(sorted(own.tolist(), reverse=True))] += int(people)
    return dict(found)


def asked(table: pa.Table, sql: str, **more: Any) -> dict[tuple[float, ...], int]:
    return moves_of(rdr(table, sql, sensitivity=1, **more))


# --- numbers --------------------------------------------------------------------------


@pytest.mark.spec("RSK-14")
@pytest.mark.parametrize(
    "values",
    [
        pa.array([BIG, 1, 3]),
        pa.array([2**62, -(2**62), 1]),
        pa.array([2**64 - 1, 7, 0], pa.uint64()),
        pa.array([Decimal(10**37), Decimal(1), Decimal(-3)], pa.decimal128(38, 0)),
        pa.array([Decimal(10**30), Decimal("0.25")], pa.decimal128(38, 2)),
    ],
)
@pytest.mark.parametrize("sql", ["COALESCE(SUM({}), 0)", "SUM({}) + 0", "-SUM({})"])
def test_large_numbers_lose_no_small_moves(values: pa.Array, sql: str) -> None:
    sign = -1 if sql.startswith("-") else 1
    wanted = Counter((sign * float(one),) if one else () for one in values.to_pylist())
    found = asked(pa.table({"x": values}), f"SELECT {sql.format('x')} FROM t")
    assert found == wanted


@pytest.mark.spec("RSK-14")
@pytest.mark.parametrize("aggregate", ["MAX", "MIN"])
def test_the_greatest_of_large_numbers_moves_by_its_lead(aggregate: str) -> None:
    sign = 1 if aggregate == "MAX" else -1
    table = pa.table({"x": [sign * (BIG + 1), sign * BIG]})
    sql = f"SELECT COALESCE({aggregate}(x), 0) FROM t"
    assert asked(table, sql) == {(sign * 1.0,): 1, (): 1}


CENTS = pa.decimal128(20, 2)


@pytest.mark.spec("RSK-13")
@pytest.mark.parametrize(
    ("aggregate", "values", "kind", "moved"),
    [
        ("MAX", [BIG, BIG + 1], pa.int64(), 1),
        ("MIN", [-BIG, -BIG - 1], pa.int64(), -1),
        ("MAX", [2**53, 2**53 + 1, 5], pa.int64(), 1),
        ("MAX", [2**63, 2**63 + 3], pa.uint64(), 3),
        ("MAX", [Decimal("1e15"), Decimal("1e15") + Decimal("0.01")], CENTS, 0.01),
    ],
)
@pytest.mark.parametrize("unit", [None, "u"])
def test_closed_forms_lose_no_lead_of_large_numbers(
    aggregate: str,
    values: list[Any],
    kind: pa.DataType,
    moved: float,
    unit: str | None,
) -> None:
    people = len(values) + 1
    table = pa.table({"x": pa.array([*values, None], kind), "u": range(people)})
    sql = f"SELECT {aggregate}(x) FROM t WHERE u >= 0"
    risk = rdr(table, sql, sensitivity=1, unit=unit)
    assert risk.influence.moves.tolist() == [moved]
    assert risk.people == people


@pytest.mark.parametrize("most", [2**53 - 1, 2**53])
def test_small_numbers_are_not_asked_for_again(most: int) -> None:
    asked_again: list[int] = []
    table = pa.table({"x": [most, 1, 2], "y": [0, 2**60, 0]})
    rdr(
        table,
        "SELECT MAX(x) FROM t WHERE y = 0",
        sensitivity=1,
        progress=lambda done, of: asked_again.append(done),
    )
    assert bool(asked_again) == (most >= 2**53)


@pytest.mark.parametrize("values", [[0.25, 1e300, -3.5], [1e-300, 0.0]])
def test_floats_move_as_before(values: list[float]) -> None:
    wanted = Counter(
        (moved,) if (moved := sum(values) - sum(values[:n] + values[n + 1 :])) else ()
        for n in range(len(values))
    )
    found = asked(pa.table({"x": values}), "SELECT COALESCE(SUM(x), 0) FROM t")
    assert found == wanted


# --- names ----------------------------------------------------------------------------

NAMES = ("modicum_row", "MODICUM_ROW_", "g0", "c0", "who", "people", "number", "data_0")


@pytest.mark.spec("RSK-14")
@pytest.mark.parametrize("name", NAMES)
def test_a_column_may_be_called_as_ours(name: str) -> None:
    columns = {"modicum_row": [1] * 4, name: [1, 1, 2, 3], "x": [10, 20, 30, 40]}
    table = pa.table(columns)
    sql = f"SELECT COALESCE(SUM(x), 0) FROM t WHERE {name} < 3"
    groups = {"low": f"{name} = 1", "dear": "x > 15"}
    risk = rdr(table, sql, sensitivity=1, groups=groups)
    assert moves_of(risk) == {(10,): 1, (20,): 1, (30,): 1, (): 1}
    assert risk.influence.members["low"].sum() == 2
    assert risk.influence.members["dear"].sum() == 3
    by_unit = rdr(table, sql, sensitivity=1, groups=groups, unit=name)
    assert moves_of(by_unit) == {(30,): 2, (): 1}


@pytest.mark.parametrize("name", ["data_0", "data_1", "T", "p", "modicum_persons"])
def test_a_name_that_would_mean_two_things_is_refused(name: str) -> None:
    tables = {
        "t": pa.table({"user": [1, 2], "x": [5, 7]}),
        "p": pa.table({"user": [1, 2], "x": [50, 70]}),
    }
    source = "p" if name == "T" else "t"
    sql = "WITH {0} AS (SELECT * FROM {1} WHERE x > 5) SELECT COUNT(*) FROM {0}"
    with pytest.raises(InputError, match="WITH") as caught:
        rdr(tables, sql.format(name, source), unit="user", sensitivity=1)
    assert caught.value.problems[0].code is Code.NOT_IN_SUBSET
    other = rdr(tables, sql.format("dear", source), unit="user", sensitivity=1)
    assert moves_of(other)[(1,)] == (2 if source == "p" else 1)


# --- ids and keys ---------------------------------------------------------------------

IDS: list[Callable[[int], Any]] = [
    lambda n: [NAN, INF, -INF, 0.1][n],
    lambda n: [0.30000000000000004, 0.3, 5e-324, 1e308][n],
    lambda n: 2**53 + n,
    lambda n: f"it's {n}; --",
    lambda n: f"{n}".encode(),
    lambda n: Decimal(10**20 + n) / 100,
    lambda n: date(2020, 1, 1 + n),
    lambda n: datetime(2020, 1, 1 + n, 2, 3, 4, 5, tzinfo=UTC),
    timedelta,
    lambda n: str(UUID(int=n)),
]


@pytest.mark.spec("RSK-14")
@pytest.mark.parametrize("make", IDS)
def test_rows_are_left_out_whatever_ids_are(
    make: Callable[[int], Any],
) -> None:
    ids = pa.array([make(n) for n in (0, 1, 1, 2, 3)] + [None])
    table = pa.table({"u": ids, "x": [1, 2, 4, 8, 16, 32]})
    found = asked(table, "SELECT COALESCE(SUM(x), 0) FROM t", unit="u")
    assert found == {(1,): 1, (6,): 1, (8,): 1, (16,): 1}


@pytest.mark.parametrize("kind", [pa.float32(), pa.timestamp("ns"), pa.time64("ns")])
def test_ids_that_python_does_not_hold_are_told_apart(kind: pa.DataType) -> None:
    ids = pa.array([1, 2, 2, 3], pa.int64()).cast(kind)
    table = pa.table({"u": ids, "x": [1, 2, 4, 8]})
    found = asked(table, "SELECT COALESCE(SUM(x), 0) FROM t", unit="u")
    assert found == {(1,): 1, (6,): 1, (8,): 1}


KEYS: list[tuple[pa.DataType, Sequence[Any]]] = [
    (pa.float64(), [NAN, 1.5]),
    (pa.float32(), [NAN, INF]),
    (pa.list_(pa.float64()), [[NAN, 1.0], [2.0]]),
    (pa.struct([("a", pa.float64())]), [{"a": NAN}, {"a": None}]),
    (pa.timestamp("ns"), [1, 2]),
    (pa.time64("ns"), [1001, 2002]),
    (pa.string(), ["NaN", None]),
    (pa.float64(), [NAN, None]),
]


@pytest.mark.spec("RSK-14")
@pytest.mark.parametrize(("kind", "values"), KEYS, ids=str)
def test_keys_that_the_engine_takes_for_one_are_one(
    kind: pa.DataType, values: Sequence[Any]
) -> None:
    one, other = values
    table = pa.table(
        {"k": pa.array([one, one, one, other], kind), "u": ["a", "a", "b", "c"]}
    )
    sql = "SELECT k, COUNT(*) * 1 FROM t GROUP BY k"
    assert asked(table, sql, unit="u") == {(2,): 1, (1,): 2}
