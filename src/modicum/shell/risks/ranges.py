"""The range of what a query aggregates, in the whole table: from the rows."""

from __future__ import annotations

import math

from sqlglot import exp, parse_one

from modicum.risk.influence.statement import source_of
from modicum.risk.question import Question
from modicum.shell.engines.sql_engine import SqlEngine


def whole_range(engine: SqlEngine, question: Question) -> tuple[float, float, int]:
    """Return the least and the greatest value of its first aggregate, and the rows.

    Args:
        engine: What reads the tables.
        question: The query.

    Returns:
        Two numbers, NaN where there are none, and how many rows the table has.

    Raises:
        UnavailableError: If the engine fails.
    """
    value = question.measures[0].value if question.measures else None
    if value is None or question.measures[0].aggregate == "count":
        return math.nan, math.nan, 0
    of = exp.cast(exp.paren(value.copy()), "double").sql("duckdb")
    tail = source_of(question, engine.relations()).sql("duckdb").removeprefix("SELECT")
    text = f"SELECT MIN({of}), MAX({of}), COUNT(*){tail}"
    rows = engine.fetch(parse_one(text, read="duckdb").sql(engine.dialect))
    least, greatest, number = (column[0].as_py() for column in rows.columns)
    return (
        math.nan if least is None else least,
        math.nan if greatest is None else greatest,
        number,
    )
