"""Caps: how many rows are kept of each instance, in SQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from sqlglot import exp

from modicum.query.sql import expressions as sql
from modicum.query.sql.instances import unit_key
from modicum.query.sql.names import Names
from modicum.query.statistics import Cap
from modicum.release.periods import nests


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


class Step(NamedTuple):
    """A named subquery of a statement.

    Attributes:
        name: Its name.
        rows: The rows.
        kept: Whether an engine should materialize it; otherwise it is recomputed
            wherever it is read.
    """

    name: str
    rows: exp.Query
    kept: bool


class Cut(NamedTuple):
    """The effect of one cap, over the columns of rows.

    Attributes:
        most: How many rows it keeps of each instance.
        within: The columns that identify instances, that of the id first; never NULL.
    """

    most: int
    within: tuple[exp.Column, ...]


class Cuts(NamedTuple):
    """Caps that apply one after the other.

    Attributes:
        cuts: Their effects, in order.
        block: Columns by which rows can be split: all rows of an instance of any of the
            caps agree in them.
    """

    cuts: tuple[Cut, ...]
    block: tuple[exp.Column, ...]

    def of(
        self, rows: exp.Select, columns: Sequence[exp.Column], order: exp.Expression
    ) -> exp.Select:
        """Return the remaining rows.

        Args:
            rows: The rows.
            columns: All their columns.
            order: The sort key of rows; ties are broken by all columns.
        """
        place = spare_name(one.name for one in columns)
        placed = exp.alias_(order.copy(), place, quoted=True)
        left = exp.select(*_copies(columns), placed, copy=False)
        left.from_(rows.subquery("many"), copy=False)
        by = [sql.named(place), *columns]
        for cut in self.cuts:
            left = first_rows(left, cut.within, by, cut.most)
        return exp.select(*_copies(columns)).from_(left.subquery("cut"))

    def apart(
        self, step: Step, columns: Sequence[exp.Column], order: exp.Expression
    ) -> tuple[Step, Step]:
        """Return the remaining rows, where only some blocks have too many.

        Blocks with an instance that has more rows than its cap are found by counting.
        Only their rows are hashed and sorted: no cap cuts any other row.

        Args:
            step: The rows.
            columns: All their columns.
            order: As for `of`.
        """
        crowded = f"crowded_{step.name}"
        counted = [self._too_many(step.name, cut) for cut in self.cuts]
        found = exp.union(*counted) if len(counted) > 1 else counted[0]
        calm, many = (
            self._with_or_without(step.name, crowded, columns, kind)
            for kind in ("anti", "semi")
        )
        both = exp.union(calm, self.of(many, columns, order), distinct=False)
        left = Step(f"cut_{step.name}", both, kept=True)
        return Step(crowded, found, kept=True), left

    def _too_many(self, read: str, cut: Cut) -> exp.Select:
        """Return the blocks in which an instance has more rows than a cap keeps."""
        alike = dict.fromkeys((*self.block, *cut.within))
        blocks = exp.select(*_copies(self.block)).from_(exp.to_table(read))
        blocks.group_by(*_copies(alike), copy=False)
        many = exp.GT(this=exp.Count(this=exp.Star()), expression=sql.whole(cut.most))
        return blocks.having(many, copy=False)

    def _with_or_without(
        self, read: str, crowded: str, columns: Sequence[exp.Column], kind: str
    ) -> exp.Select:
        """Return the rows of crowded blocks (`semi`), or the others (`anti`)."""
        rows = exp.select(
            *(
                exp.alias_(sql.named(one.name, read), one.name, quoted=True)
                for one in columns
            )
        ).from_(exp.to_table(read))
        same = [
            exp.EQ(
                this=sql.named(one.name, read), expression=sql.named(one.name, crowded)
            )
            for one in self.block
        ]
        table = exp.to_table(crowded)
        return rows.join(table, on=exp.and_(*same), join_type=kind)


def _copies(columns: Iterable[exp.Column]) -> list[exp.Column]:
    return [one.copy() for one in columns]


def cuts_of(names: Names, pieces: Pieces) -> list[Cuts]:
    """Return the cuts of a plan's caps, in order; those of one id together.

    Args:
        names: The columns of the plan.
        pieces: The computed expressions of rows; the keys of instances are added to it.

    Raises:
        InputError: If no table has the columns of a unit.
    """
    units = names.plan.units
    by_id = groupby(names.plan.caps, key=lambda cap: units[cap.unit].id)
    return [_of_one_id(list(caps), names, pieces) for _, caps in by_id]


def _of_one_id(caps: Sequence[Cap], names: Names, pieces: Pieces) -> Cuts:
    cuts = []
    for cap in caps:
        key = unit_key(cap.unit, names)
        cuts.append(Cut(cap.rows, tuple(pieces.called(value) for value, _ in key)))
    whole = all(_covers(caps[-1].unit, cap.unit, names) for cap in caps)
    # If no instance of the last unit covers those of all others, the id does.
    return Cuts(tuple(cuts), cuts[-1].within if whole else cuts[-1].within[:1])


def _covers(large: str, small: str, names: Names) -> bool:
    """Return whether every instance of a unit lies in one of another of the same id."""
    whole, part = names.plan.units[large], names.plan.units[small]
    if whole.period is None:
        return True
    return (
        whole.column == part.column
        and part.period is not None
        and nests(part.period, whole.period)
    )
