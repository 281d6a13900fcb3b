"""Caps keep the rows that a slow sort keeps, however rows come and are counted.

Tables are small and difficult: ties, row ids that occur twice, NULLs, texts of any
length, caps of one and of several hundred, ids of two kinds, several months.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from types import MappingProxyType, ModuleType
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from budget import counted, seed
from samples.exact_oracle import row_hash

from modicum.engines.caps import arrays, loops
from modicum.engines.caps import rows as of_caps
from modicum.engines.caps.rows import Caps, Limit, Sketch, kept_of_all, kept_rows
from modicum.query.contribution_bounds import moves
from modicum.query.statistics import Cap
from modicum.release.units import Unit

UNITS = {
    "user": Unit("user", "user"),
    "user-day": Unit("user-day", "user", "day", "day", ("user",)),
    "user-week": Unit("user-week", "user", "week", "day", ("user",)),
    "user-month": Unit("user-month", "user", "month", "day", ("user",)),
    "device": Unit("device", "device", within=("user",)),
}
TEXTS = ["", "a", "é", "12345678", "123456789", "z" * 40]
SCHEMA = pa.schema(
    {
        "user": pa.string(),
        "device": pa.int64(),
        "day": pa.date32(),
        "number": pa.int64(),
        "name": pa.string(),
        "value": pa.int64(),
    }
)


@dataclass
class Case:
    """A table, caps, and what identifies a row."""

    rows: list[dict[str, Any]]
    caps: list[Cap]
    row_id: list[str]
    key: str

    def limits(self) -> list[Limit]:
        return [_limit(cap) for cap in self.caps]

    def over(self, **changes: Any) -> Caps:
        return Caps(self.limits(), self.row_id, changes.get("key", self.key))


def _limit(cap: Cap) -> Limit:
    unit = UNITS[cap.unit]
    return cap.rows, unit.id, unit.column, unit.period


def cases(number: int, first: int) -> Iterator[Case]:
    for place in range(number):
        draw = random.Random(f"{seed()} {first + place}")
        users = [f"user {n}" for n in range(draw.randint(1, 4))]
        begin, span = date(2027, 1, draw.randint(1, 31)), draw.choice([1, 10, 70])
        large = draw.random() < 0.1
        rows = [
            {
                "user": (user := draw.choice(users)),
                "device": users.index(user) * 2 + draw.randrange(2),
                "day": begin + timedelta(draw.randrange(span)),
                "number": draw.choice([None, 0, -1, 2**63 - 1, draw.randrange(9)]),
                "name": draw.choice([None, *TEXTS]),
                "value": draw.choice([None, draw.randrange(4)]),
            }
            for _ in range(draw.randint(800, 1200) if large else draw.randint(0, 25))
        ]
        most = [255, 256, 300] if large else [1, 1, 2, 3, 8]
        chosen = draw.sample(list(UNITS), draw.randint(1, 3))
        row_id = draw.choice([["number"], ["name"], ["name", "number"], []])
        caps = [Cap(unit, draw.choice(most)) for unit in chosen]
        yield Case(rows, caps, row_id, f"{draw.getrandbits(128):032x}")


# --- the oracle -----------------------------------------------------------------------


def place_of(case: Case, row: dict[str, Any]) -> Any:
    ids = [row[name] for name in case.row_id]
    contents = list(row.values())
    return row_hash(case.key, ids or contents), _sortable(ids), _sortable(contents)


def _sortable(values: list[Any]) -> list[Any]:
    texts = [one.encode() if isinstance(one, str) else one for one in values]
    return [(one is None, 0 if one is None else one) for one in texts]


def instance(row: dict[str, Any], unit: str) -> tuple[Any, ...]:
    day, period = row["day"], UNITS[unit].period
    start = {
        None: None,
        "day": day,
        "week": day - timedelta(day.weekday()),
        "month": day.replace(day=1),
    }[period]
    return row[UNITS[unit].id], start


def wanted(
    case: Case,
    rows: list[dict[str, Any]],
    used: Mapping[tuple[Any, ...], int] = MappingProxyType({}),
) -> list[dict[str, Any]]:
    left = sorted(rows, key=lambda row: place_of(case, row))
    for cap in case.caps:
        seen = Counter[tuple[Any, ...]](used)
        before, left = left, []
        for row in before:
            seen[instance(row, cap.unit)] += 1
            if seen[instance(row, cap.unit)] <= cap.rows:
                left.append(row)
    return left


def bag(rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in rows)


# --- the product ----------------------------------------------------------------------


def cut(case: Case, rows: list[dict[str, Any]], draw: random.Random) -> pa.Table:
    """Return the kept rows, of batches of any size, counted in few or many buckets."""
    table = pa.Table.from_pylist(rows, SCHEMA)
    batches = table.to_batches(max_chunksize=draw.choice([1, 3, 1000]))
    caps = case.over()
    if draw.random() < 0.3:
        return pa.Table.from_batches(
            kept_of_all(caps, SCHEMA.names, iter(batches)), SCHEMA
        )
    sketch = Sketch(caps, len(rows))
    for batch in batches:
        sketch.add(batch)
    sketch.close()
    return pa.Table.from_batches(kept_rows(batches, caps, sketch), SCHEMA)


@pytest.fixture(params=["arrays", "loops"])
def tools(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    chosen: ModuleType = {"arrays": arrays, "loops": loops}[request.param]
    monkeypatch.setattr(of_caps, "tools_for", lambda _: chosen)
    # Else there are more buckets than rows, and no two instances meet in one.
    monkeypatch.setattr(of_caps, "_BITS", (3, 3))
    monkeypatch.setattr(of_caps, "_COARSE_BITS", 1)
    monkeypatch.setattr(of_caps, "_BLOCK_BITS", 2)
    monkeypatch.setattr(of_caps, "_SHARE_BITS", (2, 3))
    return str(request.param)


@pytest.mark.spec("QRY-4")
def test_kept_rows_are_those_of_the_order(tools: str) -> None:
    result = Counter[str]()
    for number, case in enumerate(cases(counted(1500, plain=300), 0)):
        want = bag(wanted(case, case.rows))
        draw = random.Random(number)
        shuffled = draw.sample(case.rows, len(case.rows))
        assert bag(cut(case, shuffled, draw).to_pylist()) == want, number
        result["cut"] += want.total() < len(case.rows)
        result["ties"] += len({place_of(case, row)[0] for row in case.rows}) < len(
            case.rows
        )
        result["large"] += max(cap.rows for cap in case.caps) > 254
    assert min(result.values()) > 10, (tools, result)


@pytest.mark.spec("QRY-30")
def test_what_was_kept_before_is_no_longer_left(tools: str) -> None:
    schema = SCHEMA.append(pa.field("used", pa.int64()))
    fewer = 0
    for number, case in enumerate(cases(counted(1000, plain=150), 3 * 10**6)):
        case.caps = case.caps[:1]
        unit, most = case.caps[0].unit, case.caps[0].rows
        draw = random.Random(number)
        used = {
            instance(row, unit): draw.choice([0, 1, draw.randint(0, most), most + 1])
            for row in case.rows
        }
        want = bag(wanted(case, case.rows, used))
        fewer += want != bag(wanted(case, case.rows))
        rows = [{**row, "used": used[instance(row, unit)]} for row in case.rows]
        batches = pa.Table.from_pylist(rows, schema).to_batches(draw.choice([1, 3, 99]))
        row_id = case.row_id or SCHEMA.names
        caps = Caps(case.limits(), row_id, case.key, "used")
        found = pa.Table.from_batches(
            kept_of_all(caps, SCHEMA.names, batches), SCHEMA
        ).to_pylist()
        assert bag(found) == want, number
    assert fewer > 50


@pytest.mark.spec("QRY-4")
def test_kept_rows_are_those_of_windows_for_the_same_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As before, rows are ordered by the first digits of SHA-256 of their ids."""
    digits: dict[tuple[Any, ...], int] = {}

    def order(caps: Caps, rows: pa.Table, _: ModuleType) -> Any:
        found = [digits[tuple(row.values())] for row in rows.to_pylist()]
        return pa.array(found, pa.uint64()).to_numpy().copy()

    monkeypatch.setattr(Caps, "_order", order)
    with duckdb.connect() as connection:
        for number, case in enumerate(cases(counted(1200, plain=200), 10**6)):
            table = pa.Table.from_pylist(case.rows, SCHEMA)
            connection.register("rows", table)
            placed = connection.sql(_placed(case)).to_arrow_table()
            digits.clear()
            for row in placed.to_pylist():
                place = row.pop("place")
                digits[tuple(row.values())] = int(place, 16) << 4
            want = bag(connection.sql(_windows(case)).to_arrow_table().to_pylist())
            found = cut(case, case.rows, random.Random(number)).to_pylist()
            assert bag(found) == want, number


def _placed(case: Case) -> str:
    parts = "".join(
        f" || coalesce(length({name}::text) || ':' || {name}::text, '-:')"
        for name in case.row_id or SCHEMA.names
    )
    return f"SELECT *, sha256('{case.key}:'{parts})[:12] AS place FROM rows"


def _windows(case: Case) -> str:
    rows = f"({_placed(case)})"
    by = ", ".join(
        f"{name} NULLS LAST" for name in ("place", *case.row_id, *SCHEMA.names)
    )
    for cap in case.caps:
        unit = UNITS[cap.unit]
        period = f", date_trunc('{unit.period}', day)" if unit.period else ""
        rows = (
            f"(FROM {rows} QUALIFY row_number() OVER"
            f" (PARTITION BY {unit.id}{period} ORDER BY {by}) <= {cap.rows})"
        )
    return f"SELECT {', '.join(SCHEMA.names)} FROM {rows}"


@pytest.mark.spec("QRY-5")
def test_what_moves_is_within_what_is_priced() -> None:
    result = Counter[str]()
    for number, case in enumerate(cases(counted(1200, plain=120), 2 * 10**6)):
        if not case.rows:
            continue
        draw = random.Random(number)
        row = draw.choice(case.rows)
        before = bag(cut(case, case.rows, draw).to_pylist())
        for unit in UNITS:
            gone = instance(row, unit)
            left = [one for one in case.rows if instance(one, unit) != gone]
            after = bag(cut(case, left, draw).to_pylist())
            priced = moves(unit, case.caps, UNITS)
            coming, going = (before - after).total(), (after - before).total()
            assert coming <= priced.coming, (number, unit)
            assert going <= priced.going, (number, unit)
            result["tight"] += coming == priced.coming
            result["pushed"] += going > 0
    assert min(result["tight"], result["pushed"]) > 50, result


def test_loops_and_arrays_are_the_same() -> None:
    draw = random.Random(seed())
    texts = [draw.randbytes(draw.randrange(30)) for _ in range(500)]
    starts = pa.array(texts, pa.large_binary()).buffers()[1]
    ends = memoryview(starts).cast("q")[: len(texts) + 1]
    data = pa.array(list(b"".join(texts)), pa.uint8()).to_numpy()
    begins = pa.array(list(ends), pa.int64()).to_numpy()
    first = arrays.text_hashes(begins, data)
    assert (first == loops.text_hashes(begins, data)).all()
    assert len(set(first.tolist())) == len(set(texts))
    numbers = pa.array([0, -1, 2**63 - 1, *range(497)], pa.int64()).to_numpy()
    key = first[0]
    pairs = arrays.pair_hashes(key, first, numbers)
    assert (pairs == loops.pair_hashes(key, first, numbers)).all()
    states = first.copy(), first.copy()
    arrays.mix(states[0], numbers)
    loops.mix(states[1], numbers)
    assert (states[0] == states[1]).all()


@pytest.mark.parametrize("tools", [arrays, loops])
def test_integers_have_the_same_place_in_any_type(tools: ModuleType) -> None:
    """An engine may return a product of integers as a decimal."""
    numbers = [0, 1, -1, 2**63 - 1, -(2**63), 10**25, -(10**25), None, 7]
    array = pa.array(
        [None if one is None else Decimal(one) for one in numbers], pa.decimal128(38)
    )
    words = of_caps._words(array, tools).tolist()
    assert words[:7] == [one % 2**64 for one in numbers[:7] if one is not None]
    assert words[7] == of_caps._words(pa.array([None], pa.int64()), tools)[0]
    assert of_caps._words(array[3:], tools).tolist() == words[3:]


def test_no_rows_at_all() -> None:
    caps = Caps([(1, "user", None, None)], [], "ab" * 16)
    assert list(kept_of_all(caps, [], [])) == []
    empty = pa.Table.from_pylist([], SCHEMA)
    assert not caps.kept(empty).any()
