"""Joins that are refused, because nothing proven bounds the effect of a change.

A row of a joined table belongs to the owner of its id, and to all of their rows. Its
other content, such as the id of another unit, connects rows of many: if it goes, all
go. And it has no time, so that it belongs to no day in particular.

`bounding` covers one table; this module covers joins, and the days that are read.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from modicum.core.errors import Code, InputError
from modicum.query.attributes import all_queries, references
from modicum.query.contribution_bounds import (
    UNBOUNDED,
    Moves,
    caps_of,
    in_order,
    main_table,
    moves,
)
from modicum.query.model import Key, Query
from modicum.query.problems import refused
from modicum.query.request import QueryRequest
from modicum.query.statistics import Cap
from modicum.query.tables import Table, Tables
from modicum.release.periods import Overlaps, overlaps
from modicum.release.units import Unit, all_steps, kinds
from modicum.release.vocabulary import Vocabulary


def joined_tables(query: Query, tables: Tables) -> tuple[Table, ...]:
    """Return the tables of people of which a row joins at most one row of each id."""
    main = main_table(query, tables)
    names = (*query.tables, *(one.table for one in query.lookups))
    found = (tables.by_name[name] for name in names)
    return tuple(one for one in found if one is not main and one.key is None)


def _reads_by_id(request: QueryRequest) -> bool:
    """Return whether rows depend on other rows of their id."""
    query = request.query
    return bool(query.derived or joined_tables(query, request.tables))


def refuse_unproven_joins(request: QueryRequest, vocabulary: Vocabulary) -> None:
    """Refuse joins about which nothing can be proven, whatever is bounded.

    Raises:
        InputError: If a joined table has the id of another unit; if a sample is drawn
            of a unit with a time; if days are named of rows that have no time; or if
            rows of an id are capped by what they do not have.
    """
    if not _reads_by_id(request):
        return
    for query in all_queries(request.query):
        derived = {one.table.name: one for one in query.derived}
        for table in joined_tables(query, request.tables):
            of = derived.get(table.name)
            names = (table.name,) if of is None else of.rows.sources
            for name in names:
                columns = request.tables.by_name[name].columns
                for unit in vocabulary.unit_facts.values():
                    if unit.id != table.one_per and unit.id in columns:
                        raise _other_id(request, name, unit, table.one_per)
        _refuse_hidden_rows(request, query, vocabulary)
    _refuse_odd_samples(request, vocabulary)
    _refuse_odd_caps(request, vocabulary)


def refuse_other_steps(
    request: QueryRequest, found: dict[str, Moves], vocabulary: Vocabulary
) -> None:
    """Refuse joins where a loss of other ids would be taken for that of a timed unit.

    A change of an instance with a time may change the row without one, and so all rows
    of the id: more than those of the instances that lie in it.

    Args:
        request: The query.
        found: By unit, the number of rows that move with one change.
        vocabulary: The units of the policy.

    Raises:
        InputError: If there is such a unit, and another one that is bounded.
    """
    if not _reads_by_id(request):
        return
    units = vocabulary.unit_facts
    for timed, other in all_steps(units):
        if (
            units[timed].period is not None
            and units[timed].id != units[other].id
            and found[other].bounded
        ):
            raise refused(
                Code.NOT_BOUNDED,
                f"in a join, the sensitivity for one `{timed}` does not follow from"
                f" that for one `{other}`",
                request.mark,
                notes=("a row without time may belong to every period of its id",),
                help=f"bound `{units[timed].id}` units only, or read one table",
            )


def _other_id(
    request: QueryRequest, table: str, unit: Unit, one_per: str | None
) -> InputError:
    return refused(
        Code.NOT_BOUNDED,
        f"the sensitivity for one `{unit.name}` has no bound: its id `{unit.id}`"
        f" is in `{table}`, whose rows are joined to many",
        request.mark,
        notes=(f"removing that `{unit.name}` removes all rows that are joined to it",),
        help=f"leave `{unit.id}` out of what is declared of `{table}`, if it reveals"
        " nothing about anybody but the row's own id"
        if table in request.query.tables
        else f"read rows of one `{one_per}` in a query of their own",
    )


def _refuse_odd_samples(request: QueryRequest, vocabulary: Vocabulary) -> None:
    sampling = request.sampling
    if sampling is None:
        return
    unit = vocabulary.unit_facts[sampling.unit]
    if unit.period is not None:
        raise refused(
            Code.DOES_NOT_FIT,
            f"a join cannot be sampled by `{sampling.unit}`: rows without time belong"
            " to both sampled and other instances",
            sampling.mark or request.mark,
            help="sample a unit without a time, or read one table",
        )
    for query in all_queries(request.query):
        for one in query.derived:
            if one.keys[0].name != unit.id:
                raise refused(
                    Code.DOES_NOT_FIT,
                    f"rows that are computed for one `{one.keys[0].name}` cannot be"
                    f" sampled by `{sampling.unit}`",
                    sampling.mark or request.mark,
                    help=f"sample a unit of `{one.keys[0].name}` without a time",
                )


def _refuse_odd_caps(request: QueryRequest, vocabulary: Vocabulary) -> None:
    """Refuse caps of instances that rows computed for an id do not belong to."""
    query, units = request.query, vocabulary.unit_facts
    if not query.derived:
        return
    columns = {
        one for name in query.tables for one in request.tables.by_name[name].columns
    }
    for cap in caps_of(request, units):
        unit = units[cap.unit]
        if {unit.id, unit.column} - {None} <= columns:
            continue
        of = query.derived[0].keys[0].name
        declared = cap.unit not in {one.unit for one in request.caps}
        raise refused(
            Code.DOES_NOT_FIT,
            f"rows that are computed for one `{of}` belong to no `{cap.unit}`",
            request.mark,
            help=f"declare a unit of `{of}` without a time in the policy"
            if declared
            else f"leave `{cap.unit}` out of `bounds`: all of its rows are read",
        )


def _refuse_hidden_rows(
    request: QueryRequest, query: Query, vocabulary: Vocabulary
) -> None:
    joined = joined_tables(query, request.tables)
    if request.part.periods is None or not vocabulary.clocks or not joined:
        return
    static = vocabulary.population.static
    derived = {one.table.name for one in query.derived}
    for table in (main_table(query, request.tables), *joined):
        timed = not vocabulary.clocks.isdisjoint(table.columns)
        if timed or table.name in derived:
            continue
        read = {
            table.columns[one.column].attribute
            for one in references(request)
            if one.table == table.name
        }
        if static.isdisjoint(read):
            raise refused(
                Code.DOES_NOT_FIT,
                f"rows of `{table.name}` have no time, so `periods` do not cover them",
                request.mark,
                help=f"read an attribute of `{table.name}` that the policy declares"
                " static, or leave `periods` out",
            )


def all_moves(
    request: QueryRequest,
    read: tuple[str, ...],
    keys: tuple[Key, ...],
    vocabulary: Vocabulary,
) -> dict[str, Moves]:
    """Return by unit how many rows move with one change of it, under its own relation.

    Raises:
        InputError: If tables are joined so that nothing is proven of it.
    """
    refuse_unproven_joins(request, vocabulary)
    units = vocabulary.unit_facts
    caps = in_order(caps_of(request, units), units)
    within = within_days(request, read, keys, vocabulary)
    found = {unit: moves(unit, caps, units, within) for unit in vocabulary.units}
    if _reads_by_id(request):
        # A row of a table without time may belong to any instance of a timed unit, and
        # a row that is computed of all rows of the id does: its change is any change of
        # all rows of the id.
        found = {
            unit: one if units[unit].period is None else _of_the_id(unit, caps, units)
            for unit, one in found.items()
        }
    refuse_other_steps(request, found, vocabulary)
    return found


def _of_the_id(unit: str, caps: tuple[Cap, ...], units: Mapping[str, Unit]) -> Moves:
    """Return how many rows move with any change of all that one id has."""
    changing = {
        name: replace(one, neighbors="any-change") for name, one in units.items()
    }
    return min(
        (
            moves(name, caps, changing)
            for name, one in units.items()
            if one.id == units[unit].id and one.period is None
        ),
        key=lambda one: one.coming + one.going,
        default=Moves(UNBOUNDED, UNBOUNDED),
    )


def within_days(
    request: QueryRequest,
    read: tuple[str, ...],
    keys: tuple[Key, ...],
    vocabulary: Vocabulary,
) -> Overlaps | None:
    """Return how periods lie on each other on the days that are read, if that helps."""
    days = request.part.periods
    timeless = not vocabulary.population.static.isdisjoint(read)
    if days is None or timeless or len(vocabulary.clocks) != 1:
        return None
    every = (*kinds(vocabulary.unit_facts), None, *(key.grain for key in keys))
    return overlaps(tuple(dict.fromkeys(every)), days)
