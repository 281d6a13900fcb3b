"""From a plan to the statements that an engine runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from msgspec import Struct
from sqlglot import exp

from modicum.core.errors import check
from modicum.query.groups import grain_of
from modicum.query.model import ColumnRef
from modicum.query.sql import expressions as sql
from modicum.query.sql.conditions import key_value
from modicum.query.sql.instances import unit_columns
from modicum.query.sql.names import Names
from modicum.query.sql.pieces import Pieces
from modicum.query.sql.relations import derived_relations, main_sources, rows_read
from modicum.query.sql.terms import term
from modicum.query.statistics import Cap, Exact, ExactPlan, KeyValue, Secrets, Statistic
from modicum.query.tables import ColumnType
from modicum.release.periods import Period

#: The name of the number of rows of a group in every statement.
ROWS: Final = "n"
_HEX: Final = frozenset("0123456789abcdef")


class Statement(Struct, frozen=True):
    """One SELECT: a row for each group, with its keys, its rows and its statistics.

    Attributes:
        query: The tree. It has no FROM: it reads the columns of `Statements.rows`.
        keys: The types of the keys, which come first, the bin of a histogram last
            among them; `date` for a period.
        statistics: The names of what follows the number of rows, in order.
    """

    query: exp.Select
    keys: tuple[ColumnType, ...]
    statistics: tuple[str, ...]

    def over(self, relation: str, dialect: str) -> str:
        """Return the text of the statement for an engine.

        Args:
            relation: The relation of the rows.
            dialect: The engine's dialect in sqlglot.
        """
        return self.query.from_(exp.to_table(relation)).sql(dialect, comments=False)


class Limit(NamedTuple):
    """One cap, over the columns of the rows that are read.

    Attributes:
        most: How many rows it keeps of each instance.
        id: The column with the id; never NULL.
        day: For a unit with periods, the column with the day of a row; never NULL.
        period: Its period.
    """

    most: int
    id: str
    day: str | None
    period: Period | None


class Statements(Struct, frozen=True):
    """The statements of an engine for one plan.

    Attributes:
        mains: Tables that together have at least as many rows as are read; one may
            occur several times.
        relations: By the name of a table, its name in the statements.
        columns: By the name of a table, its columns that are read.
        derived: By their names in the statements, the relations that are computed of
            these, in order.
        rows: The rows that are read, before any cap. It reads relations `table_0`,
            `table_1`, … in the order of the query's tables, with columns of their
            declared types.
        slow: Whether rows take long to compute: they are hashed or joined.
        limits: The caps, in order.
        row_id: The columns of the rows that identify them; empty if there are none.
        statements: The statements; each computes some of the statistics of the rows
            that caps keep.
    """

    mains: tuple[str, ...]
    relations: Mapping[str, str]
    columns: Mapping[str, tuple[str, ...]]
    derived: Mapping[str, exp.Query]
    rows: exp.Select
    slow: bool
    limits: tuple[Limit, ...]
    row_id: tuple[str, ...]
    statements: tuple[Statement, ...]

    @property
    def counted(self) -> list[str]:
        """The columns of the rows that the statements read; at least one."""
        found = (
            column.name
            for one in self.statements
            for column in one.query.find_all(exp.Column)
        )
        return list(dict.fromkeys(found)) or [self.rows.selects[0].alias]

    def read(self, relations: Mapping[str, exp.Select], dialect: str) -> str:
        """Return the text of the rows that are read, for an engine.

        Args:
            relations: By name, each relation.
            dialect: The engine's dialect in sqlglot.
        """
        query = self.rows.copy()
        for name, rows in {**relations, **self.derived}.items():
            query.with_(name, as_=rows, copy=False)
        return query.sql(dialect=dialect, comments=False)


def statements(plan: ExactPlan, secrets: Secrets) -> Statements:
    """Return the statements that compute a plan.

    Args:
        plan: The plan.
        secrets: The keys of random choices.

    Raises:
        InputError: If the tables lack what the plan needs.
    """
    given = secrets.order_key + secrets.sample_seed + secrets.block_key
    check(set(given) <= _HEX, "secrets are hex")
    names = Names(plan)
    made = _Made(names, secrets)
    return Statements(
        main_sources(names),
        {table: names.relation(table) for table in plan.query.sources},
        names.read_of(),
        dict(derived_relations(names, secrets)),
        made.rows(),
        bool(names.others or names.lookups or names.derived)
        or plan.sample is not None
        or plan.block is not None,
        made.limits,
        made.row_id,
        made.statements(),
    )


class _Made:
    """The rows that are read, with all that is needed of them."""

    def __init__(self, names: Names, secrets: Secrets) -> None:
        self._names, self._plan, self._secrets = names, names.plan, secrets
        self._pieces = pieces = Pieces()
        self.limits = tuple(self._limit(cap) for cap in self._plan.caps)
        self.row_id = tuple(
            pieces.called(names.identity(one)).name
            for one in (names.row_id(names.main) if self.limits else ())
        )
        self._keys = [
            pieces.called(key_value(key, names)) for key in self._plan.query.keys
        ]
        self._values = [
            None if one.value is None else pieces.called(self._value(one))
            for one in names.statistics
        ]

    def _limit(self, cap: Cap) -> Limit:
        of_id, day = unit_columns(cap.unit, self._names)
        unit = self._plan.units[cap.unit]
        called = self._pieces.called
        name = called(of_id).name
        the_day = None if day is None else called(sql.first_day(day, "day")).name
        return Limit(cap.rows, name, the_day, unit.period)

    # --- results ----------------------------------------------------------------------

    def statements(self) -> tuple[Statement, ...]:
        """Return a statement of all that is one number a group, and one a histogram.

        Each set of keys has statements of its own.
        """
        wanted = list(zip(self._names.statistics, self._values, strict=True))
        flat: dict[tuple[int, ...], list[tuple[Statistic, exp.Column | None]]] = {}
        for one, value in wanted:
            if one.kind != "histogram":
                flat.setdefault(self._places(one), []).append((one, value))
        found = []
        for places, several in flat.items():
            numbers = [_number(one, value) for one, value in several]
            names = [one.name for one, _ in several]
            found.append(self._statement(places, numbers, names))
        for one, value in wanted:
            if one.kind == "histogram" and value is not None:
                found.append(self._histogram(one, value))
        return tuple(found)

    def _places(self, one: Statistic) -> tuple[int, ...]:
        every = tuple(range(len(self._keys)))
        return every if one.keys is None else one.keys

    def _histogram(self, one: Statistic, steps: exp.Column) -> Statement:
        """Return the statement of a histogram: its bins are one more key."""
        above = exp.paren(exp.Sub(this=steps, expression=sql.whole(one.low)))
        place = exp.IntDiv(this=above, expression=sql.whole(one.bin))
        bins = exp.cast(place, "bigint")
        count = [exp.Count(this=exp.Star())]
        made = self._statement(self._places(one), count, [one.name], bins)
        made.query.where(sql.is_known(steps.copy()), copy=False)
        return made

    def _statement(
        self,
        places: Sequence[int],
        numbers: Sequence[exp.Expression],
        names: Sequence[str],
        *more: exp.Expression,
    ) -> Statement:
        keys = [*(self._keys[place] for place in places), *more]
        types: list[ColumnType] = [
            "date"
            if grain_of(key, self._plan.tables)
            else self._names.facts(key.value).type
            for key in (self._plan.query.keys[place] for place in places)
        ]
        types += ["integer"] * len(more)
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
        query = exp.select(*columns, copy=False)
        if keys:
            query.group_by(*(key.copy() for key in keys), copy=False)
        return Statement(query, tuple(types), tuple(names))

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

    def rows(self) -> exp.Select:
        """Return the rows that are read, with all pieces."""
        return rows_read(self._pieces.selected(), self._names, self._secrets)


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
    statement: Statement, rows: Iterable[Sequence[object]]
) -> dict[str, Exact]:
    """Return the statistics of an engine's results by name, of groups with rows.

    Args:
        statement: The statement.
        rows: Its results.
    """
    width = len(statement.keys)
    found: list[dict[tuple[KeyValue, ...], int]] = [{} for _ in statement.statistics]
    for row in rows:
        if not row[width]:
            continue  # Without keys, there is a row of no rows.
        group = tuple(map(_key, row[:width], statement.keys))
        for numbers, number in zip(found, row[width + 1 :], strict=True):
            numbers[group] = _whole(number)
    return dict(zip(statement.statistics, found, strict=True))


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
