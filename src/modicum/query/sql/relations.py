"""Relations that rows are read from: joined, looked up, and computed per id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from modicum.query.expressions.facts import NARROW_MAX
from modicum.query.expressions.function import aligned
from modicum.query.model import ColumnRef, Derived, Expression, Key, Lookup, Measure
from modicum.query.sql import expressions as sql
from modicum.query.sql.conditions import conditions, in_some_box
from modicum.query.sql.names import Names
from modicum.query.sql.pieces import first_rows, spare_name
from modicum.query.sql.terms import term
from modicum.query.statistics import Secrets
from modicum.query.tables import Table


def rows_read(
    selected: Sequence[exp.Expr], names: Names, secrets: Secrets
) -> exp.Select:
    """Return the rows that are read: joined, looked up, and those that meet conditions.

    Args:
        selected: What is selected of them.
        names: The columns.
        secrets: The keys of random choices.
    """
    query = exp.select(*selected, copy=False)
    query.from_(exp.to_table(names.relation(names.main.name)), copy=False)
    on = names.plan.query.joined_on
    for table in names.others:
        assert on is not None  # Else there is one table only.
        match = exp.EQ(
            this=names.column(ColumnRef(names.main.name, on)),
            expression=names.column(ColumnRef(table.name, on)),
        )
        one = _first_rows(table, on, names, secrets)
        query.join(
            one.subquery(names.relation(table.name)),
            on=match,
            join_type="inner",
            copy=False,
        )
    for lookup in names.lookups:
        _look_up(lookup, query, names, secrets)
    found = conditions(names, secrets.sample_seed, secrets.block_key)
    return query.where(*found, copy=False) if found else query


def _look_up(lookup: Lookup, query: exp.Select, names: Names, secrets: Secrets) -> None:
    """Add a lookup to a query: no row is paired with two."""
    table = names.plan.tables.by_name[lookup.table]
    if table.key is None:
        one = _first_rows(table, lookup.key, names, secrets)
    else:
        one = _first_public(table, lookup.key, names)
    match = exp.EQ(
        this=names.column(lookup.on),
        expression=names.column(ColumnRef(lookup.table, lookup.key)),
    )
    query.join(
        one.subquery(names.relation(lookup.table)),
        on=match,
        join_type="left" if lookup.optional else "inner",
        copy=False,
    )


def _first_public(table: Table, key: str, names: Names) -> exp.Select:
    """Return the first row of every key, by contents; no row of a person matters."""
    relation, needed = names.relation(table.name), names.needed(table)
    rows = exp.select(*(sql.named(name, relation) for name in needed), copy=False)
    rows.from_(exp.to_table(relation), copy=False)
    rows.where(sql.is_known(sql.named(key, relation)), copy=False)
    if needed == [key]:
        return rows.distinct(copy=False)
    return first_rows(rows, [sql.named(key)], [sql.named(one) for one in needed], 1)


def _first_rows(table: Table, on: str, names: Names, secrets: Secrets) -> exp.Select:
    """Return the first row of every id that may lie in the part."""
    needed = names.needed(table)
    if table.name in names.derived:  # It has one row for each id.
        return exp.select(*map(sql.named, needed)).from_(
            exp.to_table(names.relation(table.name))
        )
    contents = [ColumnRef(table.name, name) for name in needed]
    ids = names.row_id(table) or contents
    texts = [names.identity_text(one) for one in ids]
    relation = names.relation(table.name)
    digits = sql.hashed(secrets.order_key, texts, sql.ORDER_DIGITS)
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


# --- tables that are computed ---------------------------------------------------------


def main_sources(names: Names) -> tuple[str, ...]:
    """Return tables of the data that together have as many rows as are read, or more.

    One may occur several times.
    """
    main = names.main.name
    if main in names.derived:
        return main_sources(names.derived[main][1])
    parts = names.unions.get(main)
    if parts is None:
        return (main,)
    return tuple(name for inner, _ in parts for name in main_sources(inner))


def derived_relations(
    names: Names, secrets: Secrets
) -> Iterator[tuple[str, exp.Query]]:
    """Yield the name of every relation that is computed, and its rows."""
    for name, (derived, inner) in names.derived.items():
        yield from derived_relations(inner, secrets)
        yield names.relation(name), _derived(derived, inner, secrets)
    for name, parts in names.unions.items():
        table = names.plan.tables.by_name[name]
        rows = [_part(table, values, inner, secrets) for inner, values in parts]
        yield names.relation(name), exp.union(*rows, distinct=False, copy=False)


def _part(
    table: Table, values: Mapping[str, Expression], inner: Names, secrets: Secrets
) -> exp.Select:
    """Return the rows of one part of a union; numbers are steps of 64 bits."""
    selected = []
    for name, value in values.items():
        column = table.columns[name]
        if column.counted:
            found = aligned(exp, term(value, inner), step=column.step)[0]
            value_of = _narrow(found)
        elif isinstance(value, ColumnRef):
            value_of = inner.column(value)
        else:
            value_of = term(value, inner).sql
        selected.append(exp.alias_(value_of, name, quoted=True))
    return rows_read(selected, inner, secrets)


def _derived(derived: Derived, inner: Names, secrets: Secrets) -> exp.Select:
    """Return a row for each group of the rows of an id."""
    keys = [_key(key, inner, is_id=not n) for n, key in enumerate(derived.keys)]
    named = [
        *zip((key.name for key in derived.keys), keys, strict=True),
        *((one.column, _measure(one, inner)) for one in derived.measures),
    ]
    selected = [exp.alias_(value, name, quoted=True) for name, value in named]
    rows = rows_read(selected, inner, secrets)
    return rows.group_by(*(key.copy() for key in keys), copy=False)


def _key(key: Key, names: Names, *, is_id: bool) -> exp.Expression:
    if is_id and isinstance(key.value, ColumnRef):
        return names.column(key.value)  # Whatever its bounds are.
    found = term(key.value, names)
    if key.grain is not None:
        return sql.first_day(found.sql, key.grain)
    return _narrow(found.sql) if found.facts.numeric else found.sql


def _measure(one: Measure, names: Names) -> exp.Expression:
    """Return a measure of the rows of a group; numbers are steps of 64 bits."""
    if one.value is None:
        return exp.Count(this=exp.Star())
    found = term(one.value, names)
    if one.function == "count":
        return exp.Count(this=found.sql)
    if one.function == "count-distinct":
        return exp.Count(this=exp.Distinct(expressions=[found.sql]))
    if one.function == "sum":
        # No sum of as many rows as there may be has more than 38 digits then.
        value = found.sql if found.facts.narrow else _narrow(found.sql)
        return _narrow(exp.Sum(this=exp.cast(value, sql.SUM_TYPE)))
    extreme = exp.Min if one.function == "min" else exp.Max
    least = extreme(this=found.sql)
    return _narrow(least) if found.facts.numeric else least


def _narrow(value: exp.Expression) -> exp.Expression:
    return sql.bounded(value, -NARROW_MAX, NARROW_MAX)
