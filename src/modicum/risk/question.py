"""A query whose answer is watched: which aggregates of which rows, in which groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp, parse
from sqlglot.errors import SqlglotError

from modicum.core.diagnostics import nearest
from modicum.core.errors import Code, InputError, Problem
from modicum.query.parser.lexer import quiet
from modicum.risk.arguments import argument, mistake
from modicum.risk.obstacles import may_fail, obstacle_of
from modicum.risk.outputs import Measure, keys_of, measures_of, outputs_of, unread

#: The name of a table that a query may call anything.
ONLY: Final = ""
#: A longer text is no query.
TEXT_MAX: Final = 1 << 16
#: Those for which a person's move depends on her own rows alone.
_OF_OWN_ROWS: Final = frozenset({"rows", "count", "sum"})
_COUNTS: Final = frozenset({"rows", "count"})
_CONDITION: Final = "write it as in WHERE, such as  age > 60"
#: Functions that differ between runs, or read something other than a table.
_UNSTEADY: Final = frozenset(
    {
        *("random", "rand", "uuid", "uuidv4", "uuidv7", "gen_random_uuid", "setseed"),
        *("nextval", "currval", "getvariable", "stats", "vector_type", "error"),
        *("now", "today", "age", "current_localtimestamp", "current_localtime"),
        *("get_current_timestamp", "get_current_time", "transaction_timestamp"),
        *("txid_current", "write_log"),
    }
)


@dataclass(frozen=True, slots=True)
class Question:
    """A query over the tables of one controller, and their unit.

    Attributes:
        select: The query as it was parsed.
        tables: The tables that it reads, in their order, without duplicates.
        unit: The column that identifies a person; None if each row of the only table is
            a person.
        persons: The tables that have this column.
        measures: Its aggregates; empty if there is an obstacle.
        keys: The grouping keys, for a row.
        obstacle: Why moves have no closed form; empty if they have one.
        outputs: The names of its outputs, and which of them are keys.
        columns: The names of the columns of its tables, without duplicates.
    """

    select: exp.Select
    tables: tuple[str, ...]
    unit: str | None
    persons: tuple[str, ...]
    measures: tuple[Measure, ...]
    keys: tuple[exp.Expr, ...]
    obstacle: str
    outputs: tuple[tuple[str, bool], ...]
    columns: tuple[str, ...] = ()

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that its answer depends on, except for the person column.

        It may include more, where the query takes all columns of something.
        """
        every = self.select.find(exp.Columns) is not None or any(
            not isinstance(one.parent, exp.Count)
            for one in self.select.find_all(exp.Star)
        )
        read = list(self.select.find_all(exp.Column))
        # A field follows its column, as a column follows its table.
        named = {part.name.lower() for one in read for part in one.parts}
        # A table name alone means its whole row.
        whole = {
            one.alias_or_name.lower()
            for one in self.select.find_all(exp.Table, exp.Subquery, exp.CTE)
        } - {one.lower() for one in self.columns}
        every |= any(
            one.parts[0].name.lower() in whole for one in read if not one.table
        )
        for join in self.select.find_all(exp.Join):
            named |= {one.name.lower() for one in join.args.get("using") or ()}
            every |= bool(join.args.get("method"))  # NATURAL
        own = (self.unit or "").lower()
        return tuple(
            one
            for one in self.columns
            if one.lower() != own and (every or one.lower() in named)
        )

    @property
    def own_rows_only(self) -> bool:
        """Whether a person's moves depend on her own rows alone, to the last digit.

        Nor does any row end the query with an error.

        An engine adds floats in an order that may depend on other rows; so the sum of
        several rows does not, that of one row does.
        """
        own = _OF_OWN_ROWS if self.unit is None else _COUNTS
        return (
            not self.obstacle
            and not may_fail(self.select)
            and all(one.aggregate in own for one in self.measures)
        )


def read_question(
    text: str, columns: Mapping[str, Sequence[str]], unit: str | None = None
) -> Question:
    """Return the query of a text.

    Args:
        text: SQL of DuckDB: one SELECT with aggregates.
        columns: By table, the names of its columns. The name `""` is that of a table
            that a query may call anything.
        unit: The column that identifies a person, in each table of persons; None if
            each row is a person.

    Raises:
        InputError: If it is no such query, or contains an unknown name.
    """
    select = _parsed(text)
    _refuse_unsteady(select)
    tables = _tables_of(select, columns)
    _check_columns(select, tables, columns)
    persons = _persons(tables, columns, unit)
    outputs = outputs_of(select)
    every = tuple(dict.fromkeys(one for table in tables for one in columns[table]))
    names = {one.lower() for one in every}
    obstacle = obstacle_of(select, names, unit, persons)
    measures: tuple[Measure, ...] = ()
    keys: tuple[exp.Expr, ...] = ()
    if not obstacle:
        measures, keys = measures_of(select), keys_of(select, names)
    return Question(
        select, tables, unit, persons, measures, keys, obstacle, outputs, every
    )


def read_condition(
    text: str, columns: Mapping[str, Sequence[str]]
) -> tuple[exp.Expr, str]:
    """Return a condition on the rows of one table, and that table.

    Args:
        text: SQL, as after WHERE.
        columns: By table, the names of its columns.

    Raises:
        InputError: If it is none, or no table has all its columns.
    """
    trees = _trees(text)
    if len(trees) != 1 or not isinstance(trees[0], exp.Condition):
        raise unread(f"`{text[:80]}` is not a condition on rows", _CONDITION)
    condition = trees[0].unnest()
    if condition.find(exp.Query, exp.AggFunc, exp.Window):
        raise unread(f"`{text[:80]}` is not a condition on one row", _CONDITION)
    _refuse_unsteady(condition)
    names = {one.name.lower() for one in condition.find_all(exp.Column)}
    for table, found in columns.items():
        if names <= {one.lower() for one in found}:
            return condition, table
    every = sorted({one for found in columns.values() for one in found})
    for name in sorted(names):
        if name not in {one.lower() for one in every}:
            raise _no_column(name, every, f" of the group `{text[:80]}`")
    raise unread(
        f"no table has all columns of `{text[:80]}`",
        "use columns of one table, without the table name",
    )


# --- allowed parts --------------------------------------------------------------------


def _parsed(text: str) -> exp.Select:
    if len(text) > TEXT_MAX:
        raise unread(
            f"the query has {len(text):,} characters, at most {TEXT_MAX:,}",
            "put long lists of values into a table, and join it",
        )
    trees = _trees(text)
    if len(trees) != 1 or not isinstance(trees[0], exp.Select):
        raise InputError(
            Problem(
                Code.NOT_SQL,
                "the text is not one SELECT in the SQL of DuckDB",
                help="such as  SELECT COUNT(*) FROM patients WHERE age > 60",
            )
        )
    return trees[0]


def _trees(text: str) -> list[exp.Expr]:
    """Return one tree per statement of a text; none if it is no SQL."""
    try:
        with quiet():
            return [one for one in parse(text, read="duckdb") if one is not None]
    except (SqlglotError, RecursionError):
        return []


#: Sqlglot's functions of time and randomness.
_CHANGING: Final = (
    exp.CurrentDate,
    exp.CurrentTime,
    exp.CurrentTimestamp,
    exp.Localtime,
    exp.Localtimestamp,
    exp.Rand,
)


def _refuse_unsteady(tree: exp.Expr) -> None:
    if tree.find(exp.TableSample):
        raise unread(
            "a sample gives a different answer each time", "use all rows, or a table"
        )
    for one in tree.find_all(exp.Func):
        name = one.name if isinstance(one, exp.Anonymous) else one.sql_name()
        if name.lower() in _UNSTEADY or isinstance(one, _CHANGING):
            raise unread(
                f"`{name.lower()}` gives a different answer each time",
                "replace it by a value",
            )


def _tables_of(
    select: exp.Select, columns: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    own = {one.alias_or_name.lower() for one in select.find_all(exp.CTE)}
    tables: dict[str, str] = {}
    for table in select.find_all(exp.Table):
        plain = {name for name, one in table.args.items() if one} <= {"this", "alias"}
        if not isinstance(table.this, exp.Identifier) or not plain:
            raise unread(
                f"`{table.sql('duckdb')[:60]}` is not a given table",
                "use a given table, or add its data",
            )
        if table.name.lower() in own:
            continue
        found = _known(table.name, columns)
        if tables.setdefault(found, table.name).lower() != table.name.lower():
            raise _unknown(table.name, [tables[found]])
        if table.args.get("alias") is None:
            called = exp.to_identifier(table.name, quoted=True)
            table.set("alias", exp.TableAlias(this=called))
        table.set("this", exp.to_identifier(found, quoted=True))
    if not tables:
        raise unread("the query has no table", "name the table: FROM patients")
    return tuple(tables)


def _known(name: str, columns: Mapping[str, Sequence[str]]) -> str:
    """Return the table of the data that a name means."""
    for one in columns:
        if one.lower() == name.lower():
            return one
    if ONLY in columns:
        return ONLY
    raise _unknown(name, list(columns))


def _unknown(name: str, known: Sequence[str]) -> InputError:
    return InputError(
        Problem(
            Code.UNKNOWN_NAME,
            f"there is no data for table `{name[:60]}`",
            label=nearest(name, known),
            help="give its data; the tables are "
            + ", ".join(f"`{one}`" for one in known),
        )
    )


def _check_columns(
    select: exp.Select, tables: Sequence[str], columns: Mapping[str, Sequence[str]]
) -> None:
    known = {one for table in tables for one in columns[table]}
    aliases = {one.alias for one in select.find_all(exp.Alias)}
    if select.find(exp.CTE, exp.Subquery):
        return  # The engine knows.
    lower = {one.lower() for one in known | aliases}
    for column in select.find_all(exp.Column):
        if column.name.lower() not in lower and not isinstance(column.this, exp.Star):
            raise _no_column(column.name, known)


def _no_column(name: str, known: Iterable[str], of: str = "") -> InputError:
    every = sorted(known)
    return InputError(
        Problem(
            Code.UNKNOWN_NAME,
            f"unknown column `{name[:60]}`{of}",
            label=nearest(name, every),
            help="known: " + (", ".join(every)[:400] or "none"),
        )
    )


def _persons(
    tables: Sequence[str], columns: Mapping[str, Sequence[str]], unit: str | None
) -> tuple[str, ...]:
    if unit is None:
        if len(tables) > 1:
            raise unread(
                "the query joins tables, and the owners of their rows are unknown",
                f"give the column that identifies a person ({argument('unit')})",
            )
        return tuple(tables)
    found = tuple(
        table
        for table in tables
        if unit.lower() in {one.lower() for one in columns[table]}
    )
    if not found:
        every = {one for table in tables for one in columns[table]}
        raise mistake(
            f"no table of the query has the column `{unit[:60]}`",
            f"name the column that identifies a person ({argument('unit')})",
            Code.UNKNOWN_NAME,
            near=nearest(unit, every),
        )
    return found
