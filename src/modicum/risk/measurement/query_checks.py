"""What an engine would convert by itself: a row could end the query with an error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from sqlglot import exp

from modicum.core.errors import UnavailableError
from modicum.engines.sql_engine import SqlEngine
from modicum.risk.measurement.ranges import over
from modicum.risk.question import Question

#: Numbers of which any two have a type that holds both.
_NUMBER: Final = re.compile(
    r"u?(?:tinyint|smallint|integer|bigint)|byte|short|int|long|float|real|double"
)
#: More digits before or after the point might not fit beside another number's.
_DIGITS_MAX: Final = 18
_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
_TEXT: Final = re.compile(r"varchar|string|enum\(.*", re.DOTALL)
_TIMES: Final = frozenset({"date", "timestamp"})
_COMPARED: Final = (
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ),
    *(exp.NullSafeNEQ, exp.Like, exp.ILike, exp.Nullif),
)


def conversions(engine: SqlEngine, question: Question) -> tuple[str, ...]:
    """Return what a query leaves the engine to convert, in words.

    Args:
        engine: What reads the tables; no row is read.
        question: The query.

    Returns:
        A sentence for each place where values of several types meet, and not all values
        of one are known to have a place in another. None for a query without a closed
        form: no private choice is made for it.
    """
    if question.obstacle:
        return ()
    select = question.select
    found = [one for node in select.walk() for one in _meeting(node)]
    told = [one for one in found if not _fits(engine, question, *one)]
    unit = (question.unit or "").lower()
    using = (
        one.name
        for join in select.find_all(exp.Join)
        for one in join.args.get("using") or ()
    )
    texts = [
        " and ".join(f"`{one.sql('duckdb')[:60]}`" for one in each) for each, _ in told
    ]
    texts += [f"`USING ({one[:60]})`" for one in using if one.lower() != unit]
    return tuple(
        f"{text}: an engine may convert it to compare it, and a row could end the query"
        " with an error (TRY_CAST does not)"
        for text in dict.fromkeys(texts)
    )


def _meeting(node: exp.Expr) -> Iterator[tuple[list[exp.Expr], bool]]:
    """Return what of a node must have one type, and whether that is a truth value."""
    if isinstance(node, _COMPARED):
        yield [node.this, node.expression], False
    elif isinstance(node, exp.In | exp.Coalesce):
        yield [node.this, *node.expressions], False
    elif isinstance(node, exp.Between):
        yield [node.this, node.args["low"], node.args["high"]], False
    elif isinstance(node, exp.Case):
        ifs = node.args["ifs"]
        otherwise = node.args.get("default")
        yield (
            [one.args["true"] for one in ifs] + ([otherwise] if otherwise else []),
            False,
        )
        conditions = [one.this for one in ifs]
        yield ([node.this, *conditions], False) if node.this else (conditions, True)
    elif isinstance(node, exp.And | exp.Or):
        yield [node.this, node.expression], True
    elif isinstance(node, exp.Not | exp.Where):
        yield [node.this], True
    elif isinstance(node, exp.Join) and node.args.get("on"):
        yield [node.args["on"]], True
    elif isinstance(node, exp.Is) and not isinstance(node.expression, exp.Null):
        yield [node.this], True
    elif isinstance(node, exp.If) and not isinstance(node.parent, exp.Case):
        yield [node.this], True
        yield [one for one in (node.args["true"], node.args.get("false")) if one], False


def _fits(
    engine: SqlEngine,
    question: Question,
    operands: list[exp.Expr],
    truth: bool,  # noqa: FBT001
) -> bool:
    told = [one.unnest() for one in operands if not isinstance(one.unnest(), exp.Null)]
    texts = [one.name for one in told if one.is_string]
    others = [one for one in told if not one.is_string]
    if not others:
        return not truth
    try:
        found = engine.types_of(
            over(engine, question, [f"({one.sql('duckdb')})" for one in others])
        )
    except UnavailableError:
        return False  # Such as the name of an output.
    types = {one.lower() for one in found}
    if truth:
        return not texts and all(one == "boolean" or _is_number(one) for one in types)
    if texts and types <= _TIMES and len(types) == 1:
        return all(map(_is_time, texts))
    if all(_TEXT.fullmatch(one) for one in types):
        return True
    return not texts and (len(types) == 1 or all(map(_is_number, types)))


def _is_number(kind: str) -> bool:
    if found := _DECIMAL.fullmatch(kind):
        after = int(found[2])
        return after <= _DIGITS_MAX and int(found[1]) - after <= _DIGITS_MAX
    return _NUMBER.fullmatch(kind) is not None


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is None
    except ValueError:
        return False
