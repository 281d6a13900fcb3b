"""Moves by leave-one-out: the query over the tables without each person, one by one.

It is slow, and correct for whatever the engine can compute: for queries without a
closed form, and as the reference for those with one.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, TypeAlias

import numpy as np
from sqlglot import exp, parse_one

from modicum.core.errors import Code, InputError, Problem
from modicum.risk.influence.statement import PeopleGroup
from modicum.risk.outputs import unread
from modicum.risk.profile import Influence
from modicum.risk.question import Question

#: The relation of persons: each has a `number`, from 1.
PERSONS: Final = "modicum_persons"
#: And a table whose rows have numbers, where each row is a person.
ROWS: Final = "modicum_rows"

_NAN: Final = ("NaN",)
_Key: TypeAlias = tuple[Hashable, ...]
_Number: TypeAlias = int | float | Fraction
#: By group, its numbers; whole and decimal ones are exact.
Answer: TypeAlias = dict[_Key, tuple[_Number, ...]]


def row_column(columns: Iterable[str]) -> str:
    """Return the name of the column that numbers rows.

    Args:
        columns: Names that it must not have.
    """
    name, taken = "modicum_row", {one.lower() for one in columns}
    while name in taken:
        name += "_"
    return name


def numbered(relation: str, row: str) -> str:
    """Return the statement of a relation whose rows have numbers, from 1."""
    return f"SELECT *, ROW_NUMBER() OVER (ORDER BY 1) AS {row} FROM {relation}"


def must_have_own_names(question: Question, relations: Mapping[str, str]) -> None:
    """Refuse a query in which a name would be ambiguous.

    Args:
        question: The query.
        relations: By table, the engine's relation.

    Raises:
        InputError: If it defines a name that a table has, here or in the engine.
    """
    taken = {*relations, *relations.values(), PERSONS, ROWS}
    for one in question.select.find_all(exp.CTE):
        if one.alias_or_name.lower() in {name.lower() for name in taken}:
            raise unread(
                f"`{one.alias_or_name[:60]}` after WITH is also the name of a table",
                "give it a different name",
            )


def everybody(
    question: Question,
    relations: Mapping[str, str],
    columns: Mapping[str, Sequence[str]],
    groups: Sequence[PeopleGroup],
    dialect: str = "duckdb",
) -> str:
    """Return the statement of all persons, identical ones together.

    Args:
        question: The query.
        relations: By table, the engine's relation; numbered if rows are persons.
        columns: By table, the names of its columns.
        groups: Groups of people to distinguish.
        dialect: The SQL dialect.

    Returns:
        A statement: `who` is one of them, `number` hers, `people` how many, `g0`, …
        whether they belong to each group.
    """
    flags = [f"COALESCE(({one.condition.sql('duckdb')}), FALSE)" for one in groups]
    if question.unit is None:
        table = question.tables[0]
        used = _used(question, columns[table])
        # Under separate names: a column of the table may be called `g0`.
        own = [f"{_quoted(row_column(columns[table]))} AS who"]
        own += [f"{_quoted(one)} AS c{n}" for n, one in enumerate(used)]
        own += [f"{flag} AS g{n}" for n, flag in enumerate(flags)]
        outputs = "".join(f", g{n}" for n in range(len(flags)))
        alike = [*(f"c{n}" for n in range(len(used)))]
        alike += [f"g{n}" for n in range(len(flags))]
        text = (
            f"SELECT MIN(who) AS who, COUNT(*) AS people{outputs}"
            f" FROM (SELECT {', '.join(own)} FROM {_quoted(relations[table])})"
            " AS every_row" + (f" GROUP BY {', '.join(alike)}" if alike else "")
        )
    else:
        unit = _quoted(question.unit)
        selects = []
        for table in question.persons:
            named = "".join(
                f", {flag if one.table == table else 'FALSE'} AS g{n}"
                for n, (flag, one) in enumerate(zip(flags, groups, strict=True))
            )
            relation = _quoted(relations[table])
            selects.append(f"SELECT {unit} AS who{named} FROM {relation}")
        outputs = "".join(
            f", MAX(CASE WHEN g{n} THEN 1 ELSE 0 END) = 1 AS g{n}"
            for n in range(len(flags))
        )
        every = " UNION ALL ".join(selects)
        text = (
            f"SELECT who, 1 AS people{outputs} FROM ({every}) AS every_row"
            " WHERE who IS NOT NULL GROUP BY who"
        )
    number = "ROW_NUMBER() OVER (ORDER BY 1) AS number"
    text = f"SELECT {number}, * FROM ({text}) AS everybody"
    return parse_one(text, read="duckdb").sql(dialect)


def numbers_of_all(groups: int) -> str:
    """Return the statement that lists the persons materialized as `PERSONS`.

    Args:
        groups: The number of groups of people.
    """
    outputs = ", ".join(["number", "people", *(f"g{n}" for n in range(groups))])
    return f"SELECT {outputs} FROM {PERSONS} ORDER BY number"


def _used(question: Question, columns: Sequence[str]) -> list[str]:
    """Return the columns of a table that the query names."""
    stars = [
        one
        for one in question.select.find_all(exp.Star)
        if not isinstance(one.parent, exp.Count)
    ]
    if stars:
        return list(columns)
    names = {one.name.lower() for one in question.select.find_all(exp.Column)}
    return [one for one in columns if one.lower() in names]


def query_without(
    question: Question,
    relations: Mapping[str, str],
    columns: Mapping[str, Sequence[str]],
    who: int | None,
    dialect: str = "duckdb",
) -> str:
    """Return the query over the rows of all others.

    Args:
        question: The query.
        relations: By table, the engine's relation; numbered if rows are persons.
        columns: By table, the names of its columns.
        who: The number of the person whose rows are left out, in `PERSONS`; None for
            nobody.
        dialect: The SQL dialect.
    """
    copied = question.select.copy()
    defined = {one.alias_or_name.lower() for one in copied.find_all(exp.CTE)}
    tables = [
        one
        for one in copied.find_all(exp.Table)
        if one.name.lower() not in defined or one.name in relations
    ]
    for table in tables:
        called = exp.to_identifier(table.alias_or_name, quoted=True)
        inner = exp.select(
            *(exp.column(one, quoted=True) for one in columns[table.name])
        ).from_(exp.to_table(_quoted(relations[table.name])))
        if who is not None and table.name in question.persons:
            named = question.unit or row_column(columns[table.name])
            unit = exp.column(named, quoted=True)
            inner = inner.where(exp.NullSafeNEQ(this=unit, expression=_person(who)))
        alias = table.args.get("alias") or exp.TableAlias(this=called)
        table.replace(exp.Subquery(this=inner, alias=alias.copy()))
    return copied.sql(dialect)


def _person(number: int) -> exp.Expr:
    """Return the id of a person, as a reference to its relation.

    As a literal it could be another one: a NaN has no literal, and that of a float may
    be read as a decimal number.
    """
    who = exp.select(exp.column("who", quoted=True)).from_(exp.to_table(PERSONS))
    mine = exp.column("number", quoted=True).eq(exp.Literal.number(number))
    return exp.Subquery(this=who.where(mine))


def read_answer(question: Question, rows: Iterable[Sequence[Any]]) -> Answer:
    """Return an answer: by group, its numbers; missing ones count as 0.

    Numbers keep their exact value. All NaN of a key are equal.

    Raises:
        InputError: If an output that is no group is no number.
    """
    found: Answer = {}
    for row in rows:
        key = tuple(
            _hashable(value)
            for value, (_, is_key) in zip(row, question.outputs, strict=True)
            if is_key
        )
        numbers = tuple(
            _number(value, name)
            for value, (name, is_key) in zip(row, question.outputs, strict=True)
            if not is_key
        )
        if key in found:
            raise InputError(
                Problem(
                    Code.NOT_IN_SUBSET,
                    "the answer has several rows for the same group",
                    help="select what the query groups by",
                )
            )
        found[key] = numbers
    return found


def _hashable(value: Any) -> Hashable:
    """Return a key with the engine's notion of equality."""
    if isinstance(value, float) and math.isnan(value):
        return _NAN
    if isinstance(value, list | tuple):
        return tuple(_hashable(one) for one in value)
    if isinstance(value, dict):
        return tuple((name, _hashable(one)) for name, one in value.items())
    found: Hashable = value
    return found


def _number(value: object, name: str) -> _Number:
    if value is None:
        return 0
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Decimal) and value.is_finite():
        return Fraction(value)
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"the output `{name[:60]}` is not a finite number",
                help="select numbers, and group by everything else",
            )
        )
    return number


def moves_between(answer: Answer, without: Answer) -> list[float]:
    """Return how far each coordinate moves that moves at all."""
    numbers = next((len(one) for one in (*answer.values(), *without.values())), 0)
    nothing = (0,) * numbers
    keys = dict.fromkeys([*answer, *without])
    return [
        _difference(now, then)
        for key in keys
        for now, then in zip(
            answer.get(key, nothing), without.get(key, nothing), strict=True
        )
        if now != then
    ]


def _difference(now: _Number, then: _Number) -> float:
    """Return how far a number moves, rounded once: large ones have small moves."""
    if isinstance(now, float) and isinstance(then, float):
        return now - then
    return float(Fraction(now) - Fraction(then))


def gathered(
    answer: Answer,
    moves: Sequence[Sequence[float]],
    people: Sequence[int],
    members: Mapping[str, Sequence[int]],
) -> Influence:
    """Return the influence of everybody.

    Args:
        answer: The answer of all.
        moves: For each kind of person, her moves.
        people: How many people are of each kind.
        members: By group of people, how many of each kind belong to it.
    """
    lengths = np.array([0, *map(len, moves)], dtype=np.int64)
    return Influence(
        sum(map(len, answer.values())),
        np.array([one for each in moves for one in each], dtype=np.float64),
        lengths.cumsum(),
        np.array(people, dtype=np.int64),
        {name: np.array(each, dtype=np.int64) for name, each in members.items()},
    )


def _quoted(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql("duckdb")
