"""From a plan to the statements that an engine runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct
from sqlglot import exp

from modicum.core.errors import check
from modicum.query.groups import grain_of
from modicum.query.model import ColumnRef
from modicum.query.sql import expressions as sql
from modicum.query.sql.caps import Pieces, Step, cuts_of, first_rows, spare_name
from modicum.query.sql.conditions import conditions, in_some_box, key_value
from modicum.query.sql.names import Names
from modicum.query.sql.terms import term
from modicum.query.statistics import ExactPlan, KeyValue, Secrets, Statistic
from modicum.query.tables import ColumnType, Table

#: The name of the number of rows of a group in every statement.
ROWS: Final = "n"
_HEX: Final = frozenset("0123456789abcdef")


class Statement(Struct, frozen=True):
    """One SELECT: a row for each group, with its keys, its rows and its statistics.

    Attributes:
        query: The tree. It reads relations `table_0`, `table_1`, … in the order of
            the query's tables, with columns of their declared types.
        keys: The types of the keys, which come first, the bin of a histogram last
            among them; `date` for a period.
        statistics: The names of what follows the number of rows, in order.
        steps: The subqueries of the tree, in the order in which they are computed.
    """

    query: exp.Select
    keys: tuple[ColumnType, ...]
    statistics: tuple[str, ...]
    steps: tuple[Step, ...] = ()

    def over(
        self,
        relations: Mapping[str, exp.Select],
        dialect: str,
        *,
        kept: Collection[str] | None = (),
    ) -> str:
        """Return the text of the statement for an engine.

        Args:
            relations: By name, each relation.
            dialect: The engine's dialect in sqlglot.
            kept: The relations that an engine should materialize, since reading them
                again is slow; None if it cannot.
        """
        query = self.query.copy()
        named = [
            Step(name, rows, name in (kept or ())) for name, rows in relations.items()
        ]
        for step in (*named, *self.steps):
            keep = None if kept is None else step.kept
            query = query.with_(step.name, as_=step.rows, materialized=keep, copy=False)
        return query.sql(dialect=dialect, comments=False)


class Statements(Struct, frozen=True):
    """The statements of an engine for one plan.

    Attributes:
        relations: By the name of a table, its name in the statements.
        columns: By the name of a table, its columns that are read.
        statements: The statements; each computes some of the statistics.
    """

    relations: Mapping[str, str]
    columns: Mapping[str, tuple[str, ...]]
    statements: tuple[Statement, ...]


def statements(plan: ExactPlan, secrets: Secrets, *, apart: bool = False) -> Statements:
    """Return the statements that compute a plan.

    Args:
        plan: The plan.
        secrets: The keys of random choices.
        apart: Whether caps look first which instances have too many rows. It is the
            same; DuckDB is several times faster so, and reads the data more often.

    Raises:
        InputError: If the tables lack what the plan needs.
    """
    given = secrets.order_key + secrets.sample_seed + secrets.block_key
    check(set(given) <= _HEX, "secrets are hex")
    names = Names(plan)
    return Statements(
        {table.name: names.relation(table.name) for table in names.tables},
        {table.name: tuple(names.needed(table)) for table in names.tables},
        _CappedRows(names, secrets, apart=apart).statements(),
    )


class _CappedRows:
    """The rows that caps keep, with what is needed of them."""

    def __init__(self, names: Names, secrets: Secrets, *, apart: bool) -> None:
        self._names, self._plan, self._secrets = names, names.plan, secrets
        self._apart = apart
        self._pieces = pieces = Pieces()
        row_id = names.row_id(names.main) if self._plan.caps else []
        for one in row_id:  # First: rows that share a hash are ordered by their ids.
            pieces.called(names.identity(one))
        self._cuts = cuts_of(names, pieces)
        self._keys = [
            pieces.called(key_value(key, names)) for key in self._plan.query.keys
        ]
        self._values = [
            None if one.value is None else pieces.called(self._value(one))
            for one in names.statistics
        ]
        self._order = self._ordered(row_id) if self._plan.caps else exp.null()

    # --- results ----------------------------------------------------------------------

    def statements(self) -> tuple[Statement, ...]:
        """Return a statement of all that is one number a group, and one a histogram."""
        wanted = list(zip(self._names.statistics, self._values, strict=True))
        flat = [(one, value) for one, value in wanted if one.kind != "histogram"]
        found = []
        if flat:
            numbers = [_number(one, value) for one, value in flat]
            names = [one.name for one, _ in flat]
            found.append(self._statement(self._keys, numbers, names))
        for one, value in wanted:
            if one.kind == "histogram" and value is not None:
                found.append(self._histogram(one, value))
        return tuple(found)

    def _histogram(self, one: Statistic, steps: exp.Column) -> Statement:
        """Return the statement of a histogram: its bins are one more key."""
        above = exp.paren(exp.Sub(this=steps, expression=sql.whole(one.low)))
        place = exp.IntDiv(this=above, expression=sql.whole(one.bin))
        keys = [*self._keys, exp.cast(place, "bigint")]
        made = self._statement(keys, [exp.Count(this=exp.Star())], [one.name])
        made.query.where(sql.is_known(steps.copy()), copy=False)
        return made

    def _statement(
        self,
        keys: Sequence[exp.Expression],
        numbers: Sequence[exp.Expression],
        names: Sequence[str],
    ) -> Statement:
        types: list[ColumnType] = [
            "date"
            if grain_of(key, self._plan.tables)
            else self._names.facts(key.value).type
            for key in self._plan.query.keys
        ]
        types += ["integer"] * (len(keys) - len(types))
        parts = [
            exp.cast(key.copy(), "text")
            if kind in {"date", "timestamp"}
            else key.copy()
            for key, kind in zip(keys, types, strict=True)
        ]
        columns = [exp.alias_(one, f"k{n}", quoted=True) for n, one in enumerate(parts)]
        columns.append(exp.alias_(exp.Count(this=exp.Star()), ROWS, quoted=True))
        columns += [
            exp.alias_(one, f"s{n}", quoted=True) for n, one in enumerate(numbers)
        ]
        rows, steps = self._capped()
        query = exp.select(*columns, copy=False).from_(rows, copy=False)
        if keys:
            query.group_by(*(key.copy() for key in keys), copy=False)
        return Statement(query, tuple(types), tuple(names), steps)

    def _value(self, one: Statistic) -> exp.Expression:
        """Return the input of a statistic in a row."""
        assert one.value is not None  # The caller looked.
        column = one.value if isinstance(one.value, ColumnRef) else None
        if one.kind in {"rows", "distinct"}:
            if column is not None:
                return self._names.identity(column)
            return term(one.value, self._names).sql
        farthest = max(abs(one.low - one.center), abs(one.high - one.center))
        check(one.low <= one.high, "a column's low bound is not above its high one")
        check(max(abs(one.low), abs(one.high)) < 2**31, "bounds have 31 bits")
        check(farthest <= 2**31, "squares have 62 bits")
        if column is None:
            return sql.bounded(term(one.value, self._names).sql, one.low, one.high)
        value, declared = self._names.column(column), self._names.declared(column)
        return sql.in_steps(value, declared, one.low, one.high)

    # --- caps -------------------------------------------------------------------------

    def _ordered(self, row_id: Sequence[ColumnRef]) -> exp.Expression:
        """Return the keyed hash that orders rows: of their ids, or of their contents.

        Without ids, rows that are equal in all that the query reads of them share a
        place. It makes no difference which of them a cap keeps. A place in the file
        would be no id: it changes with the rows of other people.
        """
        names, pieces = self._names, self._pieces
        texts = [
            names.identity_text(one, pieces.called(names.identity(one)))
            for one in row_id
        ] or [exp.cast(one, "text") for one in pieces.columns()]
        return sql.hashed(self._secrets.order_key, texts, sql.ORDER_DIGITS)

    def _capped(self) -> tuple[exp.Expression, tuple[Step, ...]]:
        """Return the rows that are left when every cap has cut.

        Rows are in the order of their hash and of all that is computed of them, their
        ids first: those that are alike in it are alike in all that follows.
        """
        rows, columns = self._rows(), self._pieces.columns()
        if not self._apart:
            for cuts in self._cuts:
                rows = cuts.of(rows, columns, self._order)
            return rows.subquery("kept"), ()
        steps = [Step("read", rows, kept=self._takes_long())]
        for cuts in self._cuts:
            steps += cuts.apart(steps[-1], columns, self._order)
        steps[-1] = steps[-1]._replace(kept=False)  # It is read once.
        return exp.to_table(steps[-1].name), tuple(steps)

    def _takes_long(self) -> bool:
        """Return whether rows are kept rather than computed again: each is hashed."""
        plan = self._plan
        drawn = plan.sample is not None or plan.block is not None
        return (bool(self._names.others) or drawn) and bool(self._cuts)

    def _rows(self) -> exp.Select:
        """Return the rows that are read, with all pieces."""
        names = self._names
        query = exp.select(*self._pieces.selected(), copy=False)
        query.from_(exp.to_table(names.relation(names.main.name)), copy=False)
        on = self._plan.query.joined_on
        for table in names.others:
            assert on is not None  # Else there is one table only.
            match = exp.EQ(
                this=names.column(ColumnRef(names.main.name, on)),
                expression=names.column(ColumnRef(table.name, on)),
            )
            one = self._one_row_per(table, on).subquery(names.relation(table.name))
            query.join(one, on=match, join_type="inner", copy=False)
        found = conditions(names, self._secrets.sample_seed, self._secrets.block_key)
        return query.where(*found, copy=False) if found else query

    def _one_row_per(self, table: Table, on: str) -> exp.Select:
        """Return the first row of every id that may lie in the part."""
        names = self._names
        needed = names.needed(table)
        contents = [ColumnRef(table.name, name) for name in needed]
        ids = names.row_id(table) or contents
        texts = [names.identity_text(one) for one in ids]
        relation = names.relation(table.name)
        digits = sql.hashed(self._secrets.order_key, texts, sql.ORDER_DIGITS)
        digest = spare_name(needed)
        order = exp.alias_(digits, digest, quoted=True)
        rows = exp.select(
            *(sql.named(name, relation) for name in needed), order, copy=False
        ).from_(exp.to_table(relation), copy=False)
        reference = ColumnRef(table.name, on)
        rows.where(
            sql.is_known(names.column(reference)),
            *in_some_box(names, table),
            copy=False,
        )
        by = [sql.named(digest), *map(sql.named, table.row_id), *map(sql.named, needed)]
        cut = first_rows(rows, [sql.named(on)], list(dict.fromkeys(by)), 1)
        return exp.select(*map(sql.named, needed)).from_(cut.subquery("firsts"))


def _number(one: Statistic, value: exp.Column | None) -> exp.Expression:
    """Return a statistic of the rows of a group."""
    if value is None:
        return exp.Count(this=exp.Star())
    if one.kind == "rows":
        return exp.Count(this=value.copy())
    if one.kind == "distinct":
        return exp.Count(this=exp.Distinct(expressions=[value.copy()]))
    less: exp.Expression = exp.paren(
        exp.Sub(this=value.copy(), expression=sql.whole(one.center)), copy=False
    )
    if one.kind == "squares":
        less = exp.Mul(this=less, expression=less.copy())
    total = exp.Sum(this=exp.cast(less, sql.SUM_TYPE))
    none = exp.cast(sql.whole(0), sql.SUM_TYPE)
    return exp.Coalesce(this=total, expressions=[none])


def read_answers(
    statement: Statement,
    rows: Iterable[Sequence[object]],
    found: MutableMapping[str, dict[tuple[KeyValue, ...], int]],
) -> None:
    """Add an engine's results to the statistics.

    Args:
        statement: The statement.
        rows: Its results.
        found: By the name of a statistic, its numbers by group; groups without rows are
            left out.
    """
    width = len(statement.keys)
    for name in statement.statistics:
        found[name] = {}
    for row in rows:
        if not row[width]:
            continue  # Without keys, there is a row of no rows.
        group = tuple(map(_key, row[:width], statement.keys))
        for name, number in zip(statement.statistics, row[width + 1 :], strict=True):
            found[name][group] = _whole(number)


def _key(value: object, kind: ColumnType) -> KeyValue:
    if value is None:
        return None
    if kind == "boolean":
        return bool(value)
    if kind == "integer":
        return _whole(value)
    check(isinstance(value, str), "keys are returned as text")
    if kind == "timestamp":
        return datetime.fromisoformat(str(value)).isoformat()
    return str(value)


def _whole(number: object) -> int:
    whole = int(number)  # type: ignore[call-overload] # int, Decimal
    check(whole == number, "engines return integers")
    return int(whole)
