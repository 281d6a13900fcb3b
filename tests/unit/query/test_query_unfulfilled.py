"""Conditions that no row can fulfil: found by trying all values, slowly, as oracle."""

from __future__ import annotations

from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import asked

from modicum.query.hints import contradicted, remarks
from modicum.query.model import (
    AllOf,
    ColumnRef,
    Compare,
    Comparison,
    Condition,
    IsIn,
    IsNull,
    Not,
)

A, B = ColumnRef("t", "a"), ColumnRef("t", "b")
#: Conditions have even values; those between them, and NULL, are tried as well.
NUMBERS = (0, 2, 4)
TRIED = (*range(-1, 6), None)
OPERATORS: tuple[Comparison, ...] = ("=", "<>", "<", "<=", ">", ">=")


def holds(condition: Condition, row: dict[str, int | None]) -> bool | None:
    """Return whether a condition is true of a row; None if that is unknown."""
    match condition:
        case AllOf(parts=parts):
            found = [holds(one, row) for one in parts]
            if False in found:
                return False
            return None if None in found else True
        case IsNull(value=ColumnRef() as column):
            return row[column.column] is None
        case IsIn(column=column, values=values):
            value = row[column.column]
            return None if value is None else value in values
        case Compare(column=column, operator=operator, value=other):
            value = row[column.column]
            if value is None:
                return None
            assert isinstance(other, int)
            return {
                "=": value == other,
                "<>": value != other,
                "<": value < other,
                "<=": value <= other,
                ">": value > other,
                ">=": value >= other,
            }[operator]
        case _:
            raise AssertionError(condition)


COLUMNS = st.sampled_from([A, B])
LEAVES = st.one_of(
    st.builds(Compare, COLUMNS, st.sampled_from(OPERATORS), st.sampled_from(NUMBERS)),
    st.builds(
        IsIn,
        COLUMNS,
        st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=3).map(tuple),
    ),
    st.builds(IsNull, COLUMNS),
)
JOINED = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, min_size=1, max_size=3).map(
        lambda parts: AllOf(tuple(parts))
    ),
    max_leaves=6,
)


@given(where=JOINED)
@settings(max_examples=examples(500), deadline=None)
def test_what_is_joined_by_and_is_contradicted_exactly_if_no_row_fulfils_it(
    where: Condition,
) -> None:
    rows = ({"a": a, "b": b} for a in TRIED for b in TRIED)
    fulfilled = any(holds(where, row) is True for row in rows)
    assert bool(contradicted(where)) == (not fulfilled)


def test_what_is_not_looked_at_is_not_said_to_be_contradicted() -> None:
    one, other = Compare(A, "=", 1), Compare(A, "=", 2)
    assert contradicted(AllOf((one, other))) == (A,)
    assert contradicted(AllOf((one, Not(other)))) == ()
    assert contradicted(AllOf((one, Compare(B, "=", 2)))) == ()


def said(where: str) -> tuple[str, ...]:
    query = asked.query(f"SELECT COUNT(*) AS n FROM views WHERE {where}")
    return remarks(query, asked.compiled().policy.vocabulary)


def test_a_query_that_asks_what_no_row_is_gets_a_remark_without_a_value() -> None:
    for where in (
        "topic = 'canary' AND topic = 'other'",
        "topic IN ('canary', 'b') AND topic > 'x'",
        "amount BETWEEN 7 AND 2",
        "read_at >= '2026-11-02' AND read_at < '2026-11-01'",
        "topic IS NULL AND topic <> 'canary'",
    ):
        (remark,) = said(where)
        assert remark.startswith("WHERE matches no row: no value of `")
        assert "canary" not in remark
    for where in (
        "topic = 'canary' OR topic = 'other'",
        "amount BETWEEN 2 AND 7",
        "read_at >= '2026-11-01' AND read_at < '2026-11-02'",
    ):
        assert said(where) == ()
