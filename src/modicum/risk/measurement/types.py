"""What the types of columns rule out, before a row is read."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from modicum.core.errors import Code, InputError, Problem
from modicum.engines.sql_engine import SqlEngine
from modicum.risk.influence.leave_one_out import asked_without
from modicum.risk.measurement.binding import ENUM
from modicum.risk.measurement.ranges import over
from modicum.risk.outputs import no_number
from modicum.risk.question import Question

#: Types by other names that hold the same values, and compare them exactly.
_EXACT: Final = frozenset({"integer", "text"})
#: Aggregates that count, whatever they are of.
_COUNTING: Final = frozenset({"rows", "count", "distinct"})
_TEMPORAL: Final = ("date", "time", "interval")


def must_have_fitting_types(engine: SqlEngine, question: Question) -> None:
    """Refuse a query that no moves can be measured of, by its columns' types.

    Args:
        engine: What reads the tables; no row is read.
        question: The query.

    Raises:
        InputError: If persons have ids of different types in its tables, or an answer
            is a date or time.
        UnavailableError: If the engine does not take the query.
    """
    _must_have_the_same_ids(engine, question)
    _must_be_numbers(engine, question)


def _must_have_the_same_ids(engine: SqlEngine, question: Question) -> None:
    """Refuse ids that an engine has to convert to compare them.

    Two of them may be the same person in a join, and two persons in a table: so are
    the texts '1' and '01' next to the number 1.
    """
    if question.unit is None or len(question.persons) < 2:
        return
    told = []
    kinds = set()
    for table in question.persons:
        forms = engine.forms()[table]
        name = next(one for one in forms if one.lower() == question.unit.lower())
        column = exp.column(name, quoted=True)
        relation = exp.to_table(engine.relations()[table], quoted=True)
        select = exp.select(column).from_(relation)
        (described,) = engine.types_of(select.sql(engine.dialect))
        form = forms[name]
        kinds.add(form if form in _EXACT else described)
        shown = ENUM.sub("ENUM", described)[:60]
        told.append(f"`{table[:60]}.{name[:60]}` is {shown}")
    if len(kinds) == 1:
        return
    raise InputError(
        Problem(
            Code.DOES_NOT_FIT,
            "the tables tell persons by ids of different types",
            notes=tuple(told),
            help="give them one type in all tables: compared as they are, ids could be"
            " those of one person in a join, and of several in a table",
        )
    )


def _must_be_numbers(engine: SqlEngine, question: Question) -> None:
    select, called = _told(engine, question)
    if not any(called):
        return
    types = engine.types_of(select)
    for one, kind in zip(called, types, strict=True):
        if one and kind.lower().startswith(_TEMPORAL):
            raise no_number(one, "a date or time")


def _told(engine: SqlEngine, question: Question) -> tuple[str, list[str]]:
    """Return a query, and what of it must be numbers: by output, a name or nothing."""
    if question.obstacle:
        relations, columns = engine.relations(), engine.columns()
        text = asked_without(question, relations, columns, None, engine.dialect)
        return text, ["" if key else name for name, key in question.outputs]
    measured = [
        (one.called, one.value)
        for one in question.measures
        if one.value is not None and one.aggregate not in _COUNTING
    ]
    values = [f"({value.sql('duckdb')})" for _, value in measured]
    return over(engine, question, values or ["1"]), [called for called, _ in measured]
