"""One small table with words that must not be told, and a plan that reads it."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa

from modicum.query.model import ColumnRef, Compare, Key, Query
from modicum.query.statistics import Cap, ExactPlan, Sample, Statistic
from modicum.query.tables import Column, Table, Tables
from modicum.release.parts import EVERYTHING, Part
from modicum.release.units import Unit

#: Stands in rows, and is not a number.
ROW = "canary-of-a-row"
#: Stands in the query.
LITERAL = "canary-of-the-query"
#: How many rows there are, and 7 times as much in all.
NUMBER = 7919
COLUMNS = [
    Column("view", "integer"),
    Column("user", "text"),
    Column("day", "date"),
    Column("page", "text", values=(ROW, LITERAL)),
    Column("amount", "number", step=Fraction(1), low=Fraction(0), high=Fraction(9)),
]
VIEWS = Table("views", {one.name: one for one in COLUMNS}, ("view",))
UNITS = {
    "user": Unit("user", "user"),
    "user-day": Unit("user-day", "user", "day", "day", within=("user",)),
}


def plan(table: Table = VIEWS, part: Part = EVERYTHING) -> ExactPlan:
    """Return a plan that counts and sums by page, and leaves one page away."""
    page = ColumnRef(table.name, "page")
    query = Query(
        (table.name,), None, Compare(page, "<>", LITERAL), (Key("page", page),), ()
    )
    amount = ColumnRef(table.name, "amount")
    statistics = (Statistic("n", "rows"), Statistic("sum", "total", amount, 0, 9))
    return ExactPlan(
        query,
        Tables({table.name: table}),
        part,
        Sample("user", 2**60 - 1),
        (Cap("user-day", NUMBER),),
        statistics,
        UNITS,
    )


def rows() -> pa.Table:
    """Return the rows; all are of one user and day, and are kept."""
    from datetime import date

    return pa.table(
        {
            "view": range(NUMBER),
            "user": ["u"] * NUMBER,
            "day": [date(2026, 11, 2)] * NUMBER,
            "page": [ROW] * NUMBER,
            "amount": [7.0] * NUMBER,
        }
    )


def secret_words() -> list[str]:
    """Return what must stand nowhere."""
    return [ROW, LITERAL, str(NUMBER), str(7 * NUMBER), "ab" * 32, "cd" * 32]
