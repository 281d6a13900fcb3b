"""Moves by asking again: the query over the tables without each person, one by one.

It is slow, and right for whatever the engine can compute: for queries that have no
closed form, and as the measure of those that have one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from sqlglot import exp, parse_one

from modicum.core.errors import Code, InputError, Problem
from modicum.risk.influence.statement import Dialect, PeopleGroup
from modicum.risk.profile import Influence
from modicum.risk.question import Question

#: What the column is called that numbers rows, where each is a person.
ROW: Final = "modicum_row"

Answer = dict[tuple[object, ...], tuple[float, ...]]


def numbered(relation: str) -> str:
    """Return the statement of a relation whose rows have numbers, from 1.

    Args:
        relation: What the engine calls the data.
    """
    return f"SELECT *, ROW_NUMBER() OVER (ORDER BY 1) AS {ROW} FROM {relation}"


def everybody(
    question: Question,
    relations: Mapping[str, str],
    columns: Mapping[str, Sequence[str]],
    groups: Sequence[PeopleGroup],
    dialect: Dialect = "duckdb",
) -> str:
    """Return the statement of all persons, those alike together.

    Args:
        question: The query.
        relations: By table, what the engine calls its data; numbered if rows are
            persons.
        columns: By table, the names of its columns.
        groups: Groups of people that are told apart.
        dialect: Whose SQL it is to be.

    Returns:
        A statement: `who` is one of them, `people` how many, `g0`, … whether they
        belong to each group.
    """
    flags = [f"COALESCE(({one.condition.sql('duckdb')}), FALSE)" for one in groups]
    if question.unit is None:
        table = question.tables[0]
        used = [_quoted(one) for one in _used(question, columns[table])]
        alike = ", ".join([*used, *(f"g{n}" for n in range(len(flags)))])
        named = "".join(f", {flag} AS g{n}" for n, flag in enumerate(flags))
        told = "".join(f", g{n}" for n in range(len(flags)))
        text = (
            f"SELECT MIN({ROW}) AS who, COUNT(*) AS people{told}"
            f" FROM (SELECT *{named} FROM {_quoted(relations[table])}) AS every_row"
            + (f" GROUP BY {alike}" if alike else "")
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
        told = "".join(
            f", MAX(CASE WHEN g{n} THEN 1 ELSE 0 END) = 1 AS g{n}"
            for n in range(len(flags))
        )
        every = " UNION ALL ".join(selects)
        text = (
            f"SELECT who, 1 AS people{told} FROM ({every}) AS every_row"
            " WHERE who IS NOT NULL GROUP BY who"
        )
    return parse_one(text, read="duckdb").sql(dialect)


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


def asked_without(
    question: Question,
    relations: Mapping[str, str],
    columns: Mapping[str, Sequence[str]],
    who: object | None,
    dialect: Dialect = "duckdb",
) -> str:
    """Return the query over the rows of all others.

    Args:
        question: The query.
        relations: By table, what the engine calls its data; numbered if rows are
            persons.
        columns: By table, the names of its columns.
        who: Whose rows are left out; None for nobody's.
        dialect: Whose SQL it is to be.
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
            unit = exp.column(question.unit or ROW, quoted=True)
            inner = inner.where(exp.NullSafeNEQ(this=unit, expression=exp.convert(who)))
        alias = table.args.get("alias") or exp.TableAlias(this=called)
        table.replace(exp.Subquery(this=inner, alias=alias.copy()))
    return copied.sql(dialect)


def read_answer(question: Question, rows: Iterable[Sequence[Any]]) -> Answer:
    """Return an answer: by group, its numbers; what is not there counts as 0.

    Args:
        question: The query.
        rows: The rows of its answer.

    Raises:
        InputError: If an output that is no group is no number.
    """
    found: Answer = {}
    for row in rows:
        key = tuple(
            value
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


def _number(value: object, name: str) -> float:
    if value is None:
        return 0.0
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"the output `{name[:60]}` is not a finite number",
                help="ask for numbers, and group by everything else",
            )
        )
    return number


def moves_between(answer: Answer, without: Answer) -> list[float]:
    """Return how far each coordinate moves that moves at all.

    Args:
        answer: The answer of all.
        without: The answer without somebody.
    """
    numbers = next((len(one) for one in (*answer.values(), *without.values())), 0)
    nothing = (0.0,) * numbers
    keys = dict.fromkeys([*answer, *without])
    return [
        now - then
        for key in keys
        for now, then in zip(
            answer.get(key, nothing), without.get(key, nothing), strict=True
        )
        if now != then
    ]


def gathered(
    answer: Answer,
    moves: Sequence[Sequence[float]],
    people: Sequence[int],
    members: Mapping[str, Sequence[int]],
) -> Influence:
    """Return the influence of everybody.

    Args:
        answer: The answer of all.
        moves: For each kind of person, what she moves.
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
