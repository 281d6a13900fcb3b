"""What analysts ask: how much of it is read, and that it is answered as SQL means it.

Each query of `samples/analyst_queries` runs without noise, with caps that cut nothing,
and must give what DuckDB answers to the same text. To add one, add an entry, and run
this file: a failure prints what the entry must say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from samples import asked
from samples.analysts import (
    POLICY,
    TABLES,
    AnalystQuery,
    analyst_queries,
    write_rows,
)

from modicum.api.local.queries.execution import noisy_of
from modicum.core.document import from_python
from modicum.core.errors import InputError
from modicum.engines.duckdb_engine import DuckdbEngine, DuckdbOptions
from modicum.engines.factory import SystemSecrets
from modicum.policy import CompiledPolicy
from modicum.query.query_file import QueryFile, read_query_file
from modicum.query.results import answers_of
from modicum.query.tables import Tables

QUERIES = analyst_queries()
#: How many of them are read. Raise it with the reach of the SQL; never lower it.
LOADING = 176
_CLOSE = 1e-6

Group = tuple[object, ...]
#: By group, the numbers of its answers by name.
Answer = dict[Group, dict[str, float | None]]


@dataclass(frozen=True)
class Shop:
    policy: CompiledPolicy
    tables: Tables
    engine: DuckdbEngine
    plain: duckdb.DuckDBPyConnection


class NoNoise:
    """Adds none."""

    def check(self, noise: str, scale: Fraction, sensitivity: Fraction) -> None:
        """Take any."""

    def add(self, noise: str, scale: Fraction, values: Sequence[int]) -> list[int]:
        return list(values)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    paths = write_rows(tmp_path_factory.mktemp("shop"))
    plain = duckdb.connect(":memory:", config={"threads": 1})
    for table, path in paths.items():
        plain.execute(f"CREATE TABLE {table} AS SELECT * FROM '{path}'")
    policy = asked.compiled(POLICY)
    with DuckdbEngine(paths, DuckdbOptions(threads=1)) as engine:
        yield Shop(policy, asked.tables(policy, TABLES), engine, plain)
    plain.close()


def loaded(query: AnalystQuery, shop: Shop) -> QueryFile:
    node, vocabulary = from_python(query.document()), shop.policy.policy.vocabulary
    return read_query_file(node, shop.tables, vocabulary, shop.policy.policy.digest)


# --- two answers to one text ----------------------------------------------------------


def answered(query: QueryFile, shop: Shop) -> Answer:
    """Return the answers of modicum, by group, without noise."""
    noisy = noisy_of(query.compiled, shop.engine, NoNoise(), SystemSecrets())
    found = answers_of(query.compiled, noisy, query.confidence)
    return {
        tuple(map(_key, row.keys)): {
            name: None if one.value is None else float(one.value)
            for name, one in zip(found.aggregates, row.estimates, strict=True)
        }
        for row in found.rows
    }


def plainly(text: str, keys: Sequence[str], shop: Shop) -> Answer:
    """Return the answers of DuckDB, by group."""
    result = shop.plain.execute(text)
    names = [column[0] for column in result.description]
    found: Answer = {}
    for cells in result.fetchall():
        row = dict(zip(names, cells, strict=True))
        group = tuple(_key(row.pop(name)) for name in keys)
        assert group not in found, "groups of an answer differ"
        found[group] = {
            name: None if cell is None else float(cell) for name, cell in row.items()
        }
    return found


def _key(value: object) -> object:
    if isinstance(value, datetime):
        assert value == datetime.combine(value.date(), datetime.min.time())
        return value.date().isoformat()
    return value.isoformat() if isinstance(value, date) else value


def must_agree(query: AnalystQuery, ours: Answer, plain: Answer) -> None:
    """Compare two answers.

    Groups without a row are told as well, with 0 or nothing, and the sum of no value is
    0; a NULL need not be a key; and of keys that are discovered, those of few people
    stay untold. Where the text orders the groups, they are in this order.
    """
    if query.ordered:
        assert [one for one in ours if one in plain] == [*plain]
    for group, numbers in ours.items():
        expected = plain.get(group)
        if expected is None:
            assert not any(numbers.values()), f"{group} has no row"
            continue
        assert numbers.keys() == expected.keys()
        for name, number in numbers.items():
            other = expected[name]
            if number is None or other is None:
                assert not number, f"{name} of {group} is NULL"
                assert other is None, f"{name} of {group} is {other}"
                continue
            allowed = max(query.within, _CLOSE * max(1, abs(other)))
            assert abs(number - other) <= allowed, f"{name} of {group}: {other}"
    missing = [one for one in plain if one not in ours and None not in one]
    if "discover" in query.settings:
        assert len(missing) < len(plain) / 2
    else:
        assert not missing


# --- the battery ----------------------------------------------------------------------


@pytest.mark.parametrize("query", QUERIES, ids=lambda one: one.id)
def test_a_query_is_refused_with_advice_or_means_what_sql_means(
    query: AnalystQuery, shop: Shop
) -> None:
    if query.plain:
        shop.plain.execute(query.sql)  # It is SQL.
    expected = query.never or query.refused
    try:
        ours = loaded(query, shop)
    except InputError as error:
        said = [f"{one.code.value} {one.message} {one.help}" for one in error.problems]
        assert expected, f"it is refused: {said}"
        code, _, fragment = expected.partition(" ")
        assert any(one.startswith(code) and fragment in one for one in said), said
        return
    assert query.never is None, "it is read, and no private SQL should answer it"
    assert query.refused is None, "it is read: mark it as loading, without `refused`"
    keys = [key.name for key in ours.compiled.request.query.keys]
    must_agree(query, answered(ours, shop), plainly(query.sql, keys, shop))


def test_the_battery_tells_how_many_queries_are_read() -> None:
    ids = [one.id for one in QUERIES]
    never = [one for one in QUERIES if one.never]
    loading = [one for one in QUERIES if not (one.never or one.refused)]
    print(f"{len(loading)} of {len(ids)} queries are read", end=": ")
    print(f"{len(loading) / len(ids):.0%}; {len(never)} are out of reach")
    assert len(set(ids)) == len(ids) >= 130
    assert not [one.id for one in never if one.refused]
    assert 0.15 <= len(never) / len(ids) <= 0.25
    assert len(loading) == LOADING, "write the new number into LOADING"


def test_a_wrong_answer_is_noticed() -> None:
    query = AnalystQuery("drawn", "")
    plain: Answer = {("CH",): {"n": 3.0}, (None,): {"n": 1.0}}
    must_agree(query, {("CH",): {"n": 3.0}, ("DE",): {"n": 0.0}}, plain)
    for wrong in (
        {("CH",): {"n": 4.0}},
        {("CH",): {"n": None}},
        {("CH",): {"m": 3.0}},
        {("CH",): {"n": 3.0}, ("DE",): {"n": 1.0}},
        {},
    ):
        with pytest.raises(AssertionError):
            must_agree(query, dict[Any, Any](wrong), plain)
