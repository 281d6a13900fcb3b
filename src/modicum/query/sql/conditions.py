"""Which rows are read: the part, the sample, the condition and the public keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date

from sqlglot import exp

from modicum.core.errors import Code, InputError
from modicum.query.expressions.facts import TIMES
from modicum.query.groups import first_day, grain_of, values_of
from modicum.query.model import ColumnRef, Key, Query
from modicum.query.problems import refused
from modicum.query.sql import expressions as sql
from modicum.query.sql.instances import clocks, in_block, in_sample, known, on_days
from modicum.query.sql.names import Names
from modicum.query.sql.terms import condition, term
from modicum.query.tables import Table
from modicum.release.parts import LAST_DAY, Box, Values
from modicum.release.units import Unit


def conditions(
    names: Names, sample_seed: str, block_key: str = ""
) -> list[exp.Expression]:
    """Return the conditions on all rows that are read.

    Args:
        names: The columns.
        sample_seed: The seed of the secret sample, in hex.
        block_key: The key that divides instances into blocks, in hex.

    Raises:
        InputError: If the tables do not determine which rows are in the part, or whose
            a row is.
    """
    plan = names.plan
    found = [*known(names), *_in_part(names)]
    chosen = plan.sample or plan.block
    if chosen is not None:
        _must_choose_ids(plan.query, plan.units[chosen.unit])
    if plan.sample is not None:
        found.append(in_sample(names, sample_seed))
    if plan.block is not None:
        found.extend(in_block(names, block_key))
    if plan.query.where is not None:
        found.append(condition(plan.query.where, names))
    for key in plan.query.keys:
        found.extend(_of_public_key(key, names))
    return found


def _must_choose_ids(query: Query, unit: Unit) -> None:
    """Refuse to choose instances that a derived table does not distinguish."""
    for one in query.derived:
        if unit.id != one.keys[0].name or unit.period is not None:
            raise refused(
                Code.DOES_NOT_FIT,
                f"`{unit.name}` cannot be sampled, or divided into blocks: rows are"
                f" computed from all rows of one `{one.keys[0].name}`",
                None,
                help=f"choose a unit of `{one.keys[0].name}` without a time",
            )
        _must_choose_ids(one.rows, unit)


# --- the part -------------------------------------------------------------------------


def _in_part(names: Names) -> Iterator[exp.Expression]:
    part = names.plan.part
    if part.periods is not None:
        found = clocks(names)
        if not found and not _is_derived(names):
            raise _unreadable("the time of its rows", "periods")
        for clock in found:
            yield sql.any_of(on_days(clock, span, names) for span in part.periods)
    if part.groups is not None:
        if not names.groups() and not _is_derived(names):
            raise _unreadable("the user group of its rows", "groups")
        for group in names.groups():
            yield _has(group, part.groups, names)
    if part.where is not None:
        yield sql.any_of(_in_box(box, names, names.tables) for box in part.where)


def _is_derived(names: Names) -> bool:
    """Return whether the rows that a table is computed from are those in the part."""
    computed = {**names.derived, **names.unions}
    return any(table.name in computed for table in names.tables)


def in_some_box(names: Names, table: Table) -> list[exp.Expression]:
    """Return whether a row of one table may be in the part, as far as it shows."""
    part = names.plan.part
    found = []
    if part.groups is not None and table.group is not None:
        found.append(_has(ColumnRef(table.name, table.group), part.groups, names))
    if part.where is not None:
        found.append(sql.any_of(_in_box(box, names, [table]) for box in part.where))
    return found


def _in_box(box: Box, names: Names, tables: list[Table]) -> exp.Expression:
    parts: list[exp.Expression] = []
    for attribute, values in box:
        if not names.holding(attribute) and not _is_derived(names):
            raise _unreadable(f"the `{attribute}` of its rows", "where")
        parts.extend(
            _has(ColumnRef(table.name, column.name), values, names)
            for table in tables
            for column in table.columns.values()
            if column.partition == attribute
        )
    return sql.all_of(parts) if parts else exp.true()


def _has(reference: ColumnRef, values: Values, names: Names) -> exp.Expression:
    """Return whether a column has one of the values of a partitioning attribute."""
    column_type = names.declared(reference).type
    texts = [one for one in values if isinstance(one, str)]
    spans = [one for one in values if not isinstance(one, str)]
    if column_type != ("text" if texts else "integer"):
        raise refused(
            Code.DOES_NOT_FIT,
            f"column `{reference.column}` of `{reference.table}` is declared"
            f" `{column_type}`, and the part of the data uses"
            f" {'texts' if texts else 'integers'}",
            names.declared(reference).mark,
        )
    if texts:
        return _one_of(names.column(reference), map(sql.text, texts))
    return sql.any_of(
        sql.between(names.column(reference), sql.whole(low), sql.whole(high))
        for low, high in spans
    )


def _unreadable(what: str, word: str) -> InputError:
    return refused(
        Code.DOES_NOT_FIT,
        f"no table of the query has {what}, so its `{word}` cannot be enforced",
        None,
        help=f"leave `{word}` out, or declare its column",
    )


# --- keys -----------------------------------------------------------------------------


def key_value(key: Key, names: Names) -> exp.Expression:
    """Return the value of a key in a row.

    Raises:
        InputError: If it is a `number`: these have no public values.
    """
    if names.facts(key.value).type == "number":
        raise refused(
            Code.DOES_NOT_FIT,
            f"key `{key.name}` is a `number`; groups can be formed by integers,"
            " texts, booleans and dates",
            key.mark,
        )
    if not isinstance(key.value, ColumnRef):
        return term(key.value, names).sql
    value = names.column(key.value)
    grain = grain_of(key, names.plan.tables)
    return value if grain is None else sql.first_day(value, grain)


def _of_our_years(key: Key, names: Names) -> Iterator[exp.Expression]:
    """Yield that a date key has a year of four digits, if it has any.

    Engines format other years differently, or fail at their first day.
    """
    column = key.value
    if isinstance(column, ColumnRef) and names.declared(column).type in TIMES:
        days = date.min.toordinal(), LAST_DAY
        without = exp.Is(this=names.column(column), expression=exp.null())
        yield sql.any_of([without, on_days(column, days, names)])


def _of_public_key(key: Key, names: Names) -> Iterator[exp.Expression]:
    """Yield that a row has a value of a key that is public, if its values are."""
    plan = names.plan
    values = values_of(key, plan.tables, plan.part)
    if values is None:
        yield from _of_our_years(key, names)
        return
    value = key_value(key, names)
    grain = grain_of(key, plan.tables)
    if grain is None:
        kind = names.facts(key.value).type
        listed = [sql.literal(one, kind) for one in values if one is not None]
        yield _one_of(value, listed) if listed else exp.false()
        return
    assert plan.part.periods is not None  # Its values would not be public.
    if key.value in clocks(names):
        return  # The days of the part have no other periods.
    for_spans = []
    for low, high in plan.part.periods:
        ends = [date.fromordinal(first_day(one, grain)) for one in (low, high)]
        for_spans.append(sql.between(value.copy(), *map(sql.day, ends)))
    yield sql.any_of(for_spans)


def _one_of(
    value: exp.Expression, literals: Iterable[exp.Expression]
) -> exp.Expression:
    return exp.In(this=value, expressions=list(literals))
