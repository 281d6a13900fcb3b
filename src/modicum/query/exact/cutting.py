"""Rows with all that is computed of them, and caps that cut them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sqlglot import exp

from modicum.query.exact import expressions as sql


class Pieces:
    """Expressions that are computed once a row, and what they are called."""

    def __init__(self) -> None:
        self._names: dict[exp.Expression, str] = {}

    def called(self, piece: exp.Expression) -> exp.Column:
        """Return the column that an expression is; the same for the same one.

        Args:
            piece: The expression.
        """
        return sql.named(self._names.setdefault(piece, f"p{len(self._names)}"))

    def columns(self) -> list[exp.Column]:
        """Return all columns, in the order in which they were called."""
        return [sql.named(name) for name in self._names.values()]

    def selected(self) -> list[exp.Expr]:
        """Return what is selected to have them; something, if there is none."""
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
        within: The columns that tell instances apart.
        order: The columns that rows are put in order by.
        most: How many rows are kept of each.
    """
    place = spare_name(one.alias_or_name for one in rows.selects)
    number = exp.alias_(
        sql.numbered([one.copy() for one in within], [one.copy() for one in order]),
        place,
        quoted=True,
    )
    ranked = exp.select("*", number, copy=False).from_(rows.subquery("found"))
    limit = exp.LTE(this=sql.named(place), expression=sql.whole(most))
    return exp.select(*_columns_of(rows)).from_(ranked.subquery("ranked")).where(limit)


def _columns_of(rows: exp.Select) -> list[exp.Column]:
    return [sql.named(one.alias_or_name) for one in rows.selects]


def spare_name(names: Iterable[str]) -> str:
    """Return a name that is none of some names, whichever these are.

    Args:
        names: The names.
    """
    return "_" * (1 + max((len(name) for name in names), default=0))


class Step(NamedTuple):
    """Rows that a statement names before it reads them.

    Attributes:
        name: What it calls them.
        rows: The rows.
        kept: Whether an engine should keep them; else it computes what is needed of
            them wherever they are read.
    """

    name: str
    rows: exp.Query
    kept: bool


def crowded_apart(
    step: Step, pieces: Pieces, within: Sequence[exp.Column], most: int
) -> list[Step]:
    """Return the first rows of each instance, where only some have too many.

    Instances with more rows than are kept are found by counting. Only their rows are
    hashed and put in order.

    Args:
        step: The rows.
        pieces: All columns of them.
        within: The columns that tell instances apart; never NULL.
        most: How many rows are kept of each.
    """
    read, crowded = step.name, f"crowded_{step.name}"
    instances = exp.select(*(one.copy() for one in within)).from_(exp.to_table(read))
    instances.group_by(*(one.copy() for one in within), copy=False)
    instances.having(
        exp.GT(this=exp.Count(this=exp.Star()), expression=sql.whole(most)), copy=False
    )
    sides = []
    for side in ("anti", "semi"):
        rows = exp.select(
            *(
                exp.alias_(sql.named(one.name, read), one.name, quoted=True)
                for one in pieces.columns()
            )
        ).from_(exp.to_table(read))
        same = [
            exp.EQ(
                this=sql.named(one.name, read), expression=sql.named(one.name, crowded)
            )
            for one in within
        ]
        table = exp.to_table(crowded)
        sides.append(rows.join(table, on=exp.and_(*same), join_type=side))
    calm, many = sides
    first = first_rows(many, within, pieces.columns(), most)
    both = exp.union(calm, first, distinct=False)
    return [
        Step(crowded, instances, kept=True),
        Step(f"cut_{step.name}", both, kept=True),
    ]
