"""Whether a query fits its tables, found out before a row is read."""

from __future__ import annotations

from collections.abc import Sequence

from modicum.core.errors import UnavailableError
from modicum.engines.sql_engine import SqlEngine
from modicum.risk.influence.leave_one_out import must_have_own_names
from modicum.risk.influence.statement import PeopleGroup
from modicum.risk.measurement.binding import must_bind
from modicum.risk.measurement.types import must_have_fitting_types
from modicum.risk.question import Question


def must_fit(
    engine: SqlEngine, question: Question, groups: Sequence[PeopleGroup] = ()
) -> None:
    """Refuse a query that its engine does not understand, or that has no moves.

    Args:
        engine: What reads the tables; no row is read.
        question: The query.
        groups: Groups of people, whose conditions are looked at, too.

    Raises:
        InputError: If a name, a function or a type does not fit.
        UnavailableError: If the engine does not take the query, and does not say why.
    """
    must_have_own_names(question, engine.relations())
    try:
        # First, since a sum of dates is no number, and not understood either.
        must_have_fitting_types(engine, question)
    except UnavailableError:
        must_bind(engine, question, groups)
        raise
    must_bind(engine, question, groups)
