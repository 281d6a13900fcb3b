"""Expressions of rows, and the first rows of each id, in SQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from modicum.query.sql import expressions as sql


class Pieces:
    """Expressions that are computed once per row, and their names."""

    def __init__(self) -> None:
        self._names: dict[exp.Expression, str] = {}

    def called(self, piece: exp.Expression) -> exp.Column:
        """Return the column that an expression is; the same for the same one."""
        return sql.named(self._names.setdefault(piece, f"p{len(self._names)}"))

    def columns(self) -> list[exp.Column]:
        """Return all columns, in the order in which they were called."""
        return [sql.named(name) for name in self._names.values()]

    def selected(self) -> list[exp.Expr]:
        """Return the select list that computes them; never empty."""
        if not self._names:
            return [exp.alias_(sql.whole(1), "p", quoted=True)]
        return [
            exp.alias_(piece.copy(), name, quoted=True)
            for piece, name in self._names.items()
        ]


def first_rows(
    rows: exp.Select,
    within: Sequence[exp.Expression],
    order: Sequence[exp.Expression],
    most: int,
) -> exp.Select:
    """Return the first rows of each instance.

    Args:
        rows: The rows.
        within: The columns that identify instances.
        order: The columns that rows are put in order by.
        most: How many rows are kept of each.
    """
    place = spare_name(one.alias_or_name for one in rows.selects)
    by = [one.copy() for one in order if one not in within]  # The others are alike.
    number = exp.alias_(
        sql.numbered([one.copy() for one in within], by), place, quoted=True
    )
    ranked = exp.select("*", number, copy=False).from_(rows.subquery("found"))
    limit = exp.LTE(this=sql.named(place), expression=sql.whole(most))
    return exp.select(*_columns_of(rows)).from_(ranked.subquery("ranked")).where(limit)


def _columns_of(rows: exp.Select) -> list[exp.Column]:
    return [sql.named(one.alias_or_name) for one in rows.selects]


def spare_name(names: Iterable[str]) -> str:
    """Return a name that is none of some names, whichever these are."""
    return "_" * (1 + max((len(name) for name in names), default=0))
