"""Which columns the names of a query mean."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from modicum.core.diagnostics import nearest
from modicum.core.errors import Code, InputError, Mark
from modicum.query.expressions.analysis import facts_of
from modicum.query.expressions.facts import Facts
from modicum.query.model import ColumnRef, Expression
from modicum.query.parser.sql_text import SqlText, only
from modicum.query.refusals import Reason, refused
from modicum.query.tables import Column, Table, Tables

if TYPE_CHECKING:
    from sqlglot import exp

T = TypeVar("T")
#: Maximum number of names listed.
_LISTED_MAX = 20


class Named(Struct, frozen=True):
    """A table that is read, under the name that the query gives it."""

    alias: str
    table: Table


class ResolvedColumn(Struct, frozen=True):
    """A column that a name means, and the position of the name."""

    reference: ColumnRef
    column: Column
    mark: Mark


class Scope(Struct, frozen=True):
    """The tables that are read.

    Attributes:
        sql: The text.
        tables: The tables, in the order of the text.
        joined_on: The column by which they are joined; it means the same in all.
    """

    sql: SqlText
    tables: tuple[Named, ...]
    joined_on: str | None = None

    def column(self, node: exp.Expr) -> ResolvedColumn:
        """Return the column that a node names.

        Raises:
            InputError: If it is no name, or names no column or several.
        """
        from sqlglot import exp

        if type(node) is not exp.Column or type(node.this) is not exp.Identifier:
            star = type(node) is exp.Star
            raise self.sql.unread(node, Reason("", "name a column") if star else None)
        only(self.sql, node, ("this", "table"))
        identifier, qualifier = node.this, node.args.get("table")
        tables = self.tables
        if qualifier is not None:
            tables = (self._table(qualifier),)
        mark = self.sql.mark_of(identifier)
        spend_name(self.sql, identifier)
        found = [
            ResolvedColumn(ColumnRef(named.table.name, column.name), column, mark)
            for named in tables
            for column in matching(identifier, named.table.columns.values())
        ]
        return self._one(found, identifier, tables)

    @property
    def declared(self) -> Tables:
        """Return the tables that are read, by their own names."""
        return Tables({named.table.name: named.table for named in self.tables})

    def facts(self, expression: Expression) -> Facts:
        """Return what is known of an expression's values."""
        return facts_of(expression, self.declared)

    def knows(self, name: exp.Expr) -> bool:
        """Return whether some table has a column that a name may mean."""
        tables = (named.table for named in self.tables)
        return any(matching(name, one.columns.values()) for one in tables)

    def _one(
        self,
        found: Sequence[ResolvedColumn],
        name: exp.Identifier,
        tables: Iterable[Named],
    ) -> ResolvedColumn:
        joined = {one.reference.column for one in found} == {self.joined_on}
        if len(found) == 1 or (found and joined):
            return found[0]
        known = [column for named in tables for column in named.table.columns]
        mark = self.sql.mark_of(name)
        if not found:
            raise unknown("column", name.name, mark, known)
        names = ", ".join(
            f'{one.reference.table}."{one.reference.column}"' for one in found
        )
        raise refused(
            Code.UNKNOWN_NAME,
            f"`{name.name[:60]}` may mean several columns",
            mark,
            reason=Reason("", f"write one of  {names}"),
        )

    def _table(self, name: exp.Expr) -> Named:
        spend_name(self.sql, name)
        aliases = {named.alias: named for named in self.tables}
        found = [
            named
            for alias, named in aliases.items()
            if alias == name.name
            or (not name.args.get("quoted") and alias.lower() == name.name.lower())
        ]
        if len(found) != 1:
            mark = self.sql.mark_of(name)
            raise unknown("table", name.name, mark, aliases)
        return found[0]


def matching(name: exp.Expr, known: Iterable[T]) -> list[T]:
    """Return the meanings of a name: exact ones, if it is quoted or any exists.

    Args:
        name: The identifier.
        known: Things with names.
    """
    every = list(known)
    exact = [one for one in every if getattr(one, "name", None) == name.name]
    if exact or name.args.get("quoted"):
        return exact
    lower = name.name.lower()
    return [one for one in every if str(getattr(one, "name", "")).lower() == lower]


def spend_name(sql: SqlText, name: exp.Expr) -> None:
    """Note that a name was understood; a text in its place is refused.

    Raises:
        InputError: If it is no name.
    """
    from sqlglot import exp

    is_name = type(name) is exp.Identifier and not sql.is_value(name)
    if not is_name or not sql.spend_node(name):
        raise sql.unread(name, Reason("", 'names are bare or in double quotes: "…"'))


def unknown(what: str, name: str, mark: Mark, known: Iterable[str]) -> InputError:
    """Return the error for an undeclared name, ready to be raised.

    Args:
        what: The expected kind: `column` or `table`.
        name: The name.
        mark: Its position.
        known: The declared ones.
    """
    every = list(known)
    listed = ", ".join(every[:_LISTED_MAX]) or "none"
    more = ", …" if len(every) > _LISTED_MAX else ""
    return refused(
        Code.UNKNOWN_NAME,
        f"unknown {what} `{name[:60]}`",
        mark,
        label=nearest(name, every),
        reason=Reason("", f"known: {listed}{more}"),
    )
