"""Columns of the data, converted to their declared types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

from sqlglot import exp

from modicum.core.errors import Code, InputError, Problem
from modicum.query.sql import expressions as sql
from modicum.query.tables import WRITTEN, Column, ColumnType, Table

#: The type of a column of the data. `decimal` has so few digits that a float holds
#: them, `long-decimal` more; `zoned` is a timestamp with time zone, `written` the text
#: of a value in a file without types; `other` is unreadable.
Form: TypeAlias = Literal[
    "text",
    "integer",
    "float",
    "decimal",
    "long-decimal",
    "boolean",
    "date",
    "timestamp",
    "zoned",
    "written",
    "other",
]

#: From which forms a declared type can be read.
_FITTING: Final[dict[ColumnType, frozenset[Form]]] = {
    "text": frozenset({"text", "written"}),
    "integer": frozenset({"integer", "written"}),
    "number": frozenset({"integer", "float", "decimal", "long-decimal", "written"}),
    "boolean": frozenset({"boolean", "written"}),
    "date": frozenset({"date", "written"}),
    "timestamp": frozenset({"timestamp", "zoned", "written"}),
}

_WHOLE_MIN, _WHOLE_MAX = -(2**63), 2**63 - 1


def misfits(table: Table, found: Mapping[str, Form]) -> InputError | None:
    """Return the error for data that is not as declared; None if it is."""
    names = set(table.columns)
    if names.isdisjoint(found) and set(found.values()) == {"written"}:
        return InputError(
            Problem(
                Code.DATA_NOT_AS_DECLARED,
                f"the first line of the data of `{table.name}` has none of its column"
                " names",
                table.mark,
                help="write its column names there, in order and separated by"
                " commas: " + ", ".join(table.columns),
            )
        )
    problems = [
        Problem(
            Code.DATA_NOT_AS_DECLARED,
            reason,
            column.mark,
            _alike(column, found),
            help="correct the tables file, or the data",
        )
        for column in table.columns.values()
        if (reason := _misfit(table, column, found))
    ]
    return InputError(*problems) if problems else None


def _alike(column: Column, found: Mapping[str, Form]) -> str:
    """Return that the data has a similar name, without showing it.

    Without a header line, the first row takes its place.
    """
    if column.name in found:
        return ""
    plain = column.name.casefold()
    alike = any(name.strip().casefold() == plain for name in found)
    return "it has one that differs in case or spaces" if alike else ""


def _misfit(table: Table, column: Column, found: Mapping[str, Form]) -> str:
    form = found.get(column.name)
    if form is None:
        return f"the data of `{table.name}` has no column `{column.name}`"
    if form in _FITTING[column.type]:
        return ""
    return (
        f"column `{column.name}` of `{table.name}` is declared `{column.type}`, and has"
        f" another type in the data"
    )


def as_declared(
    table: Table, columns: Iterable[str], found: Mapping[str, Form], relation: str
) -> exp.Select:
    """Return the columns of a relation as values of their declared types.

    Args:
        table: The declaration.
        columns: The columns that are read.
        found: The columns of the data, by name; they match.
        relation: The engine's relation of the data.
    """
    read = [
        exp.alias_(_value(table.columns[name], found[name]), name, quoted=True)
        for name in columns
    ] or [exp.alias_(sql.whole(1), "p", quoted=True)]
    return exp.select(*read, copy=False).from_(exp.to_table(relation), copy=False)


def _value(column: Column, form: Form) -> exp.Expression:
    value: exp.Expression = sql.named(column.name)
    if form == "written":
        value = _from_text(value, column.type)
    elif form == "long-decimal":
        # From text, every engine takes the nearest float.
        value = exp.cast(exp.cast(value, "text"), "double")
    elif column.type == "text":
        return exp.cast(value, "text")
    elif column.type == "timestamp":
        # An invalid timestamp must not end the run: that would reveal it.
        return exp.TryCast(
            this=value, to=exp.DataType.build(sql.sql_type(column.type)), safe=True
        )
    else:
        value = exp.cast(value, sql.sql_type(column.type))
    return _one_zero(value) if column.type == "number" else value


def _from_text(value: exp.Expression, column_type: ColumnType) -> exp.Expression:
    if column_type == "text":
        return value
    if column_type == "boolean":
        lower = exp.Lower(this=value)
        return (
            exp.Case()
            .when(exp.EQ(this=lower, expression=sql.text("true")), exp.true())
            .when(exp.EQ(this=lower.copy(), expression=sql.text("false")), exp.false())
        )
    pattern = sql.text(f"^{WRITTEN[column_type]}\\z")
    fits = exp.RegexpLike(this=value, expression=pattern)
    to = "decimal(19, 0)" if column_type == "integer" else sql.sql_type(column_type)
    if column_type == "timestamp":
        zone = sql.text("Z")
        value = exp.Anonymous(
            this="REPLACE", expressions=[value.copy(), zone, sql.text("")]
        )
    read: exp.Expression = exp.TryCast(
        this=value.copy(), to=exp.DataType.build(to), safe=True
    )
    if column_type == "integer":
        inside = sql.between(read.copy(), sql.whole(_WHOLE_MIN), sql.whole(_WHOLE_MAX))
        read = exp.Case().when(inside, exp.cast(read, "bigint"))
    return exp.Case().when(fits, read)


def _one_zero(value: exp.Expression) -> exp.Expression:
    """Return a float in which NaN is NULL, and zero has no sign."""
    return (
        exp.Case()
        .when(exp.IsNan(this=value.copy()), exp.cast(exp.null(), "double"))
        .when(exp.EQ(this=value.copy(), expression=sql.double(0)), sql.double(0))
        .else_(value)
    )
