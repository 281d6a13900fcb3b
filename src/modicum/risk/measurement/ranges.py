"""The range of an aggregated value, in the whole table: from the rows."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

from sqlglot import exp, parse_one

from modicum.engines.sql_engine import SqlEngine
from modicum.risk.influence.expressions import ENDS
from modicum.risk.influence.statement import source_of
from modicum.risk.question import Question

#: Below it, every whole number is a float.
_WHOLE: Final = 2.0**53
#: Types of whole and decimal numbers that may have more digits than floats.
_LONG: Final = re.compile(r"u?(?:bigint|hugeint)|decimal\(\d+,(\d+)\)")


def whole_range(engine: SqlEngine, question: Question) -> tuple[float, float, int]:
    """Return the least and the greatest value of its first aggregate, and the rows."""
    value = question.measures[0].value if question.measures else None
    if value is None or question.measures[0].aggregate == "count":
        return math.nan, math.nan, 0
    of = exp.cast(exp.paren(value.copy()), "double").sql("duckdb")
    rows = engine.fetch(
        over(engine, question, (f"MIN({of})", f"MAX({of})", "COUNT(*)"))
    )
    least, greatest, number = (column[0].as_py() for column in rows.columns)
    return (
        math.nan if least is None else least,
        math.nan if greatest is None else greatest,
        number,
    )


def exceeds_floats(engine: SqlEngine, question: Question) -> bool:
    """Return whether a least or greatest value may have more digits than a float.

    In floats, it and the next one could be equal, and its owner would seem to move
    nothing.
    """
    values = [
        f"({one.value.sql('duckdb')})"
        for one in question.measures
        if one.value is not None and one.aggregate in ENDS
    ]
    if not values:
        return False
    types = engine.types_of(over(engine, question, values))
    scales = [_scale(kind) for kind in types]
    where = question.select.args.get("where")
    kept = f"({where.this.sql('duckdb')})" if where else "TRUE"
    sizes = [
        f"MAX(ABS(CAST(CASE WHEN {kept} THEN {value} END AS DOUBLE)))"
        for value, scale in zip(values, scales, strict=True)
        if scale is not None
    ]
    if not sizes:
        return False
    found = engine.fetch(over(engine, question, sizes))
    largest = [column[0].as_py() or 0.0 for column in found.columns]
    there = [one for one in scales if one is not None]
    return any(
        size * 10.0**scale >= _WHOLE for size, scale in zip(largest, there, strict=True)
    )


def over(engine: SqlEngine, question: Question, outputs: Sequence[str]) -> str:
    """Return the statement of other outputs over the query's input."""
    named = ", ".join(f"{one} AS v{number}" for number, one in enumerate(outputs))
    tail = source_of(question, engine.relations()).sql("duckdb").removeprefix("SELECT")
    text = f"SELECT {named}{tail}"
    return parse_one(text, read="duckdb").sql(engine.dialect)


def _scale(kind: str) -> int | None:
    """Return the digits after the point of a type with many; None for any other."""
    found = _LONG.fullmatch(kind.lower())
    return None if found is None else int(found[1] or 0)
