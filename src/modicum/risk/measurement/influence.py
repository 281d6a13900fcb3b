"""The influence of everybody on an answer, measured by an engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from modicum.engines.sql_engine import SqlEngine
from modicum.risk.influence import leave_one_out
from modicum.risk.influence.expressions import asked_within
from modicum.risk.influence.statement import PeopleGroup, read_influence, statement
from modicum.risk.measurement.ranges import exceeds_floats
from modicum.risk.profile import Influence
from modicum.risk.question import Question

#: Receives the number of people done and the total.
Progress = Callable[[int, int], None]


def measure(
    engine: SqlEngine,
    question: Question,
    groups: Sequence[PeopleGroup] = (),
    progress: Progress = lambda done, of: None,
) -> Influence:
    """Return how far the answer of a query moves for everybody.

    In one pass where there is a closed form; by leave-one-out otherwise, or where a
    least or greatest value has more digits than the floats of that pass.
    """
    if question.obstacle:
        return measure_again(engine, question, groups, progress)
    if exceeds_floats(engine, question):
        return measure_again(engine, asked_within(question), groups, progress)
    made = statement(question, engine.relations(), groups, engine.dialect)
    rows = engine.fetch(made.sql)
    sizes = rows if rows.num_rows else engine.fetch(made.sizes)
    size = int(sizes.column("size")[0].as_py())
    if made.listed:
        lists = rows.column("moves").combine_chunks()
        lengths = _numbers(_lengths(lists)).astype(np.int64)
        flat = _numbers(lists.flatten())
        columns = {n: _numbers(rows.column(n)) for n in rows.column_names[1:]}
        return read_influence(made, columns, flat, lengths, size=size)
    columns = {name: _numbers(rows.column(name)) for name in rows.column_names}
    return read_influence(made, columns, size=size)


def measure_again(
    engine: SqlEngine,
    question: Question,
    groups: Sequence[PeopleGroup] = (),
    progress: Progress = lambda done, of: None,
) -> Influence:
    """Return the same as `measure`, always by leave-one-out."""
    columns, relations = engine.columns(), engine.relations()
    leave_one_out.must_have_own_names(question, relations)
    if question.unit is None:
        table = question.tables[0]
        row = leave_one_out.row_column(columns[table])
        engine.keep(leave_one_out.ROWS, leave_one_out.numbered(relations[table], row))
        relations = {table: leave_one_out.ROWS}
    dialect = engine.dialect

    def answer(who: int | None) -> leave_one_out.Answer:
        query = leave_one_out.query_without(question, relations, columns, who, dialect)
        return leave_one_out.read_answer(question, _rows(engine.fetch(query)))

    engine.keep(
        leave_one_out.PERSONS,
        leave_one_out.everybody(question, relations, columns, groups, dialect),
    )
    persons = engine.fetch(leave_one_out.numbers_of_all(len(groups)))
    whole = answer(None)
    moves: list[list[float]] = []
    for done, who in enumerate(persons.column("number").to_pylist()):
        progress(done, persons.num_rows)
        moves.append(leave_one_out.moves_between(whole, answer(who)))
    progress(persons.num_rows, persons.num_rows)
    people = persons.column("people").to_pylist()
    members = {
        one.name: _members(persons, f"g{number}", people)
        for number, one in enumerate(groups)
    }
    return leave_one_out.gathered(whole, moves, people, members)


def _members(persons: pa.Table, flag: str, people: Sequence[int]) -> list[int]:
    flags = persons.column(flag).to_pylist()
    return [
        number if inside else 0 for inside, number in zip(flags, people, strict=True)
    ]


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = [_plain(column).to_pylist() for column in table.columns]
    return list(zip(*columns, strict=True))


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return times that Python does not hold as whole numbers."""
    if getattr(column.type, "unit", "") == "ns" and column.type.bit_width == 64:
        return column.cast(pa.int64())
    return column


def _lengths(lists: pa.ListArray) -> pa.Array:
    import pyarrow.compute as pc

    return pc.fill_null(pc.list_value_length(lists), 0)


def _numbers(column: Any) -> Any:
    """Return a column of numbers as floats; missing values as NaN."""
    return column.cast(pa.float64()).to_numpy(zero_copy_only=False)
