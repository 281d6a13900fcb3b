"""What rows of one person do to answers of expressions, measured and priced.

Every row that a small table may have is looked at: with each, a group and a number. A
person of at most k rows moves the answer by any k of them. Priced is the query, as SQL.
"""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import pytest
from budget import counted, seed
from oracle.row_expressions import Meaning
from samples import asked
from samples.drawn_expressions import CONSTRUCTS, Expressions, columns_of
from samples.written_expressions import Written

from modicum.core.errors import InputError
from modicum.query.expressions.analysis import facts_of
from modicum.query.groups import values_of
from modicum.query.model import ColumnRef, Expression, Key
from modicum.release.parts import EVERYTHING

TABLES = """\
modicum: tables/v1
tables:
  views:
    row_id: view_id
    columns:
      view_id: {type: integer}
      user_id: {type: text}
      read_at: {type: timestamp}
      page: {type: text, attribute: page, values: [Help, main]}
      flag: {type: boolean, attribute: topic}
      amount: {type: number, attribute: amount, step: 0.5, bounds: [-1, 1.5]}
      count: {type: integer, attribute: amount, bounds: [-2, 3]}
"""
DECLARED = asked.tables(asked.compiled(), TABLES)
COLUMNS = {
    ColumnRef("views", name): DECLARED.by_name["views"].columns[name]
    for name in ("page", "flag", "amount", "count", "read_at")
}
#: Values within bounds and out of them, and none.
VALUES: dict[str, list[Any]] = {
    "page": ["Help", "main", None],
    "flag": [True, False, None],
    "amount": [-9.0, -1.0, 0.0, 0.25, 1.5, None],
    "count": [-9, -2, 0, 1, 3, None],
    "read_at": [datetime.fromisoformat("2026-10-05T07:00:00")],
}
ROWS = [
    {"views": dict(zip(VALUES, row, strict=True))} for row in product(*VALUES.values())
]
USER: dict[str, Any] = {"bounds": {"user": 2}, "loss": {"user": {"rho": Fraction(1)}}}


def contents(value: Expression, key: Expression | None) -> set[tuple[Any, Fraction]]:
    """Every group and number that a row may have, of rows that are in a group."""
    meaning, found = Meaning(DECLARED), set()
    public = None if key is None else values_of(Key("k", key), DECLARED, EVERYTHING)
    for row in ROWS:
        group = None if key is None else meaning.of(key, row)
        number = meaning.of(value, row)
        if number is not None and (public is None or group in public):
            found.add((group, number))
    return found


def measured(
    found: set[tuple[Any, Fraction]], step: Fraction, most: int
) -> tuple[int, int]:
    """How far the sums of all groups move with the rows of one person, in steps."""
    l1 = l2_squared = 0
    for rows in combinations_with_replacement(sorted(found, key=str), most):
        for count in range(1, most + 1):
            sums = Counter[Any]()
            for group, number in rows[:count]:
                sums[group] += int(number / step)
            l1 = max(l1, sum(abs(one) for one in sums.values()))
            l2_squared = max(l2_squared, sum(one * one for one in sums.values()))
    return l1, l2_squared


@pytest.mark.spec("QRY-8")
@pytest.mark.spec("QRY-18")
@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_no_expression_moves_an_answer_farther_than_is_priced(construct: str) -> None:
    dice = random.Random(f"priced {seed()} {construct}")
    maker, seen = Expressions(dice, COLUMNS, DECLARED), Counter[str]()
    text = Written(lambda one: f'"{one.column}"').text
    for _ in range(counted(40)):
        value = maker.of_construct(construct)
        facts = facts_of(value, DECLARED)
        if not facts.numeric:
            value = maker.of_type("integer")
            facts = facts_of(value, DECLARED)
        if not columns_of(value) or facts.farthest >= 2**31:
            continue
        key = maker.of_construct(construct) if dice.random() < 0.5 else None
        keyed = "" if key is None else f"{text(key)} AS k, "
        sql = f"SELECT {keyed}SUM({text(value)}) AS s FROM views"
        try:
            query = asked.query(
                sql + (" GROUP BY k" if key is not None else ""),
                declared=TABLES,
                **USER,
            )
        except InputError:
            seen["refused"] += 1
            continue
        (line,) = query.compiled.lines
        norms = line.norms["user"]
        found = contents(value, key)
        if len(found) > 60:
            found = set(dice.sample(sorted(found, key=str), 60))
        l1, l2_squared = measured(found, facts.step, 2)
        assert l1 <= norms.l1, sql
        assert l2_squared <= norms.l2_squared, sql
        seen["priced"] += 1
        seen["tight"] += (l1, l2_squared) == (norms.l1, norms.l2_squared)
    assert seen["priced"] > counted(40) // 8, seen
    assert seen["tight"] > 0, seen


@pytest.mark.spec("QRY-18")
@pytest.mark.parametrize(
    ("sql", "l1"),
    [
        # Two rows of a person, each with the farthest number, in steps.
        ("SUM(amount * count)", 2 * 3 * 3),
        ("SUM(amount - count)", 2 * 8),
        ("SUM(-amount)", 2 * 3),
        ("SUM(2 * count + 1)", 2 * 7),
        ("SUM(ABS(count))", 2 * 3),
        ("SUM(CASE WHEN flag THEN count ELSE 0 END)", 2 * 3),
        ("SUM(CASE WHEN flag THEN 1 ELSE 0 END)", 2),
        ("SUM(CASE WHEN page = 'main' THEN amount ELSE count END)", 2 * 6),
        ("SUM(LEAST(count, 1))", 2 * 2),
        ("SUM(GREATEST(LEAST(count, 1), 0))", 2 * 1),
        ("SUM(count % 2)", 2 * 1),
        ("SUM(ROUND(amount))", 2 * 2),
        ("SUM(FLOOR(amount))", 2 * 1),
        ("SUM(CEIL(amount))", 2 * 2),
        ("SUM(count / 2)", 2 * 3),
        ("SUM(COALESCE(count, 9))", 2 * 9),
        ("SUM(WIDTH_BUCKET(count, 0, 4, 2))", 2 * 2),
        ("SUM(HOUR(read_at))", 2 * 23),
        ("SUM(LENGTH(LEFT(page, 2)))", None),
        ("COUNT(CASE WHEN flag THEN 1 END)", 2),
        ("COUNT(DISTINCT CASE WHEN flag THEN user_id END)", 1),
        ("COUNT(DISTINCT CASE WHEN flag THEN user_id ELSE 'x' END)", 2),
        ("COUNT(DISTINCT UPPER(user_id))", 2),
    ],
)
def test_limits_are_those_that_rows_reach(sql: str, l1: int | None) -> None:
    try:
        query = asked.query(f"SELECT {sql} AS s FROM views", declared=TABLES, **USER)
    except InputError:
        assert l1 is None
        return
    (line,) = query.compiled.lines
    assert line.norms["user"].l1 == l1
