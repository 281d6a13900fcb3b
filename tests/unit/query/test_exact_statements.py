"""Statements of exact plans: what is refused, and what is written how."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest
import sqlglot
from msgspec import structs
from samples import watched

from modicum.core.errors import Code, InputError, InvariantError
from modicum.query.model import ColumnRef, Compare, Key, Query
from modicum.query.sql import expressions as sql
from modicum.query.sql.statements import Statement, read_answers, statements
from modicum.query.statistics import Cap, ExactPlan, Secrets, Statistic
from modicum.query.tables import Column, Table, Tables
from modicum.release.parts import Part
from modicum.release.units import Unit

SECRETS = Secrets("ab" * 32, "cd" * 32)
PLAN = watched.plan()
PEOPLE = Table(
    "people",
    {
        "user": Column("user", "text"),
        "_": Column("_", "text"),
        "h": Column("h", "number"),
    },
    ("user",),
    one_per="user",
)


def joined(people: Table = PEOPLE) -> ExactPlan:
    query = structs.replace(PLAN.query, tables=("views", "people"), joined_on="user")
    tables = Tables({"views": watched.VIEWS, "people": people})
    return structs.replace(PLAN, query=query, tables=tables)


def with_query(query: Query) -> ExactPlan:
    return structs.replace(PLAN, query=query)


def keyed(column: str) -> ExactPlan:
    return with_query(
        structs.replace(PLAN.query, keys=(Key("k", ColumnRef("views", column)),))
    )


def with_units(**units: Unit) -> ExactPlan:
    return structs.replace(PLAN, units={**PLAN.units, **units})


REFUSED: dict[str, Callable[[], ExactPlan]] = {
    "no table of the query has the `country` of its rows": lambda: watched.plan(
        part=Part(where=((("country", ("CH",)),),))
    ),
    "no table of the query has the user group of its rows": lambda: watched.plan(
        part=Part(groups=((0, 1),))
    ),
    "no table of the query has the time of its rows": lambda: structs.replace(
        PLAN,
        part=Part(periods=((739921, 739950),)),
        units={"user": PLAN.units["user"]},
        caps=(),
    ),
    "may both have many rows for one `user`": lambda: joined(
        replace(PEOPLE, one_per=None)
    ),
    "tables are joined on texts or on integers": lambda: joined(
        replace(PEOPLE, columns={**PEOPLE.columns, "user": Column("user", "integer")})
    ),
    "key `k` is a `number`": lambda: keyed("amount"),
    "no table of the query has the column `device` of `device`": lambda: (
        structs.replace(
            with_units(device=Unit("device", "device")), caps=(Cap("device", 1),)
        )
    ),
    "no table of the query has the column `at` of `hour`": lambda: structs.replace(
        with_units(hour=Unit("hour", "user", "day", "at")), caps=(Cap("hour", 1),)
    ),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_tables_do_not_tell_is_refused(reason: str) -> None:
    with pytest.raises(InputError) as caught:
        statements(REFUSED[reason](), SECRETS)
    assert reason in caught.value.render()
    assert caught.value.code in {Code.DOES_NOT_FIT, Code.NOT_BOUNDED}


def test_parts_are_told_by_columns_of_their_type() -> None:
    page = replace(watched.VIEWS.columns["page"], partition="country")
    table = replace(watched.VIEWS, columns={**watched.VIEWS.columns, "page": page})
    part = Part(where=((("country", ((0, 3),)),),))
    with pytest.raises(InputError, match="the part of the data uses integers"):
        statements(watched.plan(table, part), SECRETS)


@pytest.mark.parametrize(
    "statistic",
    [
        Statistic("s", "total", ColumnRef("views", "amount"), 0, 2**31),
        Statistic("s", "squares", ColumnRef("views", "amount"), 0, 2**31 - 1, -2),
        Statistic("s", "total", ColumnRef("views", "amount"), 2, 1),
    ],
)
def test_sums_cannot_overflow(statistic: Statistic) -> None:
    with pytest.raises(InvariantError):
        statements(structs.replace(PLAN, statistics=(statistic,)), SECRETS)


@pytest.mark.parametrize("secret", ["", "AB", "'; --", "0x00"])
def test_secrets_are_hex(secret: str) -> None:
    if secret:
        with pytest.raises(InvariantError):
            statements(PLAN, Secrets(secret, "00"))
    else:
        assert statements(PLAN, Secrets("00")).statements


@pytest.mark.parametrize(
    "value", ["it's", 'a"b', "back\\slash\\", "\\'", "${x}", "a\nb", "\u0000", "'; --"]
)
@pytest.mark.parametrize("dialect", ["duckdb", "spark"])
def test_literals_are_one_token(value: str, dialect: str) -> None:
    written = sql.text(value).sql(dialect=dialect)
    tokens = sqlglot.tokenize(written, dialect=dialect)
    assert [(one.token_type.name, one.text) for one in tokens] == [("STRING", value)]


def test_numbers_beyond_floats_are_infinite() -> None:
    assert sql.double(Fraction(10) ** 400).sql() == "CAST('Infinity' AS DOUBLE)"
    assert sql.double(-(Fraction(10) ** 400)).sql() == "CAST('-Infinity' AS DOUBLE)"
    assert sql.double(Fraction(-1, 10**400)).sql() == "CAST('0.0' AS DOUBLE)"


def test_names_of_tables_and_columns_cannot_clash() -> None:
    made = statements(joined(), SECRETS)
    assert dict(made.relations) == {"views": "table_0", "people": "table_1"}
    assert "h" not in made.columns["people"]  # Nothing reads it.


def test_hashes_tell_lists_of_texts_apart() -> None:
    duckdb = pytest.importorskip("duckdb")

    def digest(*texts: str | None) -> str:
        parts = [
            sqlglot.exp.cast(sqlglot.exp.null(), "text")
            if one is None
            else sql.text(one)
            for one in texts
        ]
        query = sqlglot.exp.select(sql.hashed("ab", parts, 64)).sql(dialect="duckdb")
        return str(duckdb.sql(query).fetchall()[0][0])

    assert digest("é", None) == hashlib.sha256("ab:1:é-:".encode()).hexdigest()
    lists = [(), ("",), (None,), ("-:",), ("1:a",), ("a", "b"), ("ab", ""), ("", "ab")]
    assert len({digest(*one) for one in lists}) == len(lists)


def test_answers_are_whole_numbers() -> None:
    made = Statement(sqlglot.exp.select("1"), ("text",), ("s",))
    found = read_answers(made, [("a", 1, 7), (None, 2, 0), ("b", 0, 9)])
    assert found == {"s": {("a",): 7, (None,): 0}}
    with pytest.raises(InvariantError):
        read_answers(made, [("a", 1, 7.5)])


def test_a_condition_on_an_integer_with_a_fraction_is_our_mistake() -> None:
    where = Compare(ColumnRef("views", "view"), "<", Fraction(1, 2))
    with pytest.raises(InvariantError):
        statements(with_query(structs.replace(PLAN.query, where=where)), SECRETS)
