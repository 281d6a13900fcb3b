"""One day of a query by days: the query's answer, a day's groups at a time.

A cap keeps the first rows of each instance in any order of all possible rows (ADR
0027). Let the order begin with the day of a row. What caps keep of all days is then,
day by day, what they keep of a day's rows, if each of them counts what it kept of an
instance on earlier days. So the answers of all days are a query's groups, cut into
days, and cost what the query costs (ADR 0075).
"""

from __future__ import annotations

import dataclasses
import math
from datetime import date

from msgspec.structs import replace

from modicum.core.canonical import Plain, digest, encode
from modicum.core.document import to_plain
from modicum.core.errors import Code, InputError
from modicum.query.answer_expressions import parts_of
from modicum.query.compiler import CompiledQuery
from modicum.query.contribution_bounds import main_table
from modicum.query.groups import first_day, grain_of, number_of_values
from modicum.query.model import ColumnRef, Query, Window
from modicum.query.problems import refused
from modicum.query.query_file import QueryFile
from modicum.query.statistics import ExactPlan
from modicum.query.tables import Tables


def of_day(query: QueryFile, day: date) -> QueryFile:
    """Return what a query asks of one of its days, with the noise of the whole query.

    Args:
        query: The query.
        day: The day.

    Raises:
        InputError: If it cannot be answered day by day, or does not read this day.
    """
    compiled, number = query.compiled, day.toordinal()
    _must_have_days(compiled)
    spans = compiled.request.part.periods or ()
    if not any(first <= number <= last for first, last in spans):
        message = f"{day.isoformat()} is not in the `periods` of the query"
        raise _refused(compiled, message, "name a day that it reads")
    part = dataclasses.replace(compiled.request.part, periods=((number, number),))
    request = dataclasses.replace(compiled.request, part=part)
    values = (number_of_values(key, request.tables, part) for key in request.query.keys)
    of_the_day = replace(
        compiled,
        request=request,
        groups=math.prod(values),
        plan=replace(compiled.plan, part=part),
    )
    return dataclasses.replace(query, request=request, compiled=of_the_day)


def carried_periods(plan: ExactPlan, day: date) -> dict[int, date]:
    """Return the caps of instances that may have rows on several days.

    Args:
        plan: The plan of a query.
        day: A day.

    Returns:
        By the number of each cap, the first day of the instances that the day lies in.
    """
    found = {}
    for number, cap in enumerate(plan.caps):
        period = plan.units[cap.unit].period
        if period is None:
            found[number] = date.min
        elif period != "day":
            found[number] = date.fromordinal(first_day(day.toordinal(), period))
    return found


def stream_digest(query: QueryFile) -> str:
    """Return a digest of all that must stay the same from day to day.

    These are the release that the query becomes, and how the policy finds a row's
    instances: a release does not say the columns of its units.
    """
    units: Plain = {
        name: [one.id, one.period, one.column]
        for name, one in query.compiled.plan.units.items()
    }
    caps: Plain = [[cap.unit, cap.rows] for cap in query.compiled.plan.caps]
    return digest(
        encode({"release": to_plain(query.described), "units": units, "caps": caps})
    )


def _must_have_days(compiled: CompiledQuery) -> None:
    """Refuse a query whose answer is not the answers of its days, one by one."""
    query, tables = compiled.request.query, compiled.request.tables
    if compiled.selection is not None or compiled.request.sampling is not None:
        reason = "keys are discovered, or a sample is drawn, for all days at once"
        remedy = "list `values` of its keys, and read all rows"
    elif query.inner:
        reason = "it reads a subquery"
        remedy = "read the table itself"
    elif query.sets:
        reason = "totals over several sets of keys are of all days at once"
        remedy = "group by one set of keys, with the day among them"
    elif not _has_days(query, tables):
        reason = "no key is the day of its rows"
        remedy = "group by DATE_TRUNC('day', …) of the time that the units have"
    elif query.limit is not None or query.offset or _has_windows(query):
        reason = "windows, LIMIT and OFFSET look at the groups of all days"
        remedy = "leave them out, and compute with the answers"
    else:
        return
    message = f"the query cannot be answered day by day: {reason}"
    raise _refused(compiled, message, remedy)


def _has_days(query: Query, tables: Tables) -> bool:
    """Return whether a key is the day of the rows that are counted."""
    main = main_table(query, tables).name
    days = {ColumnRef(main, name) for name in tables.clocks}  # `periods` allow one.
    return any(
        key.value in days and grain_of(key, tables) == "day" for key in query.keys
    )


def _has_windows(query: Query) -> bool:
    values = [one.value for one in query.outputs]
    values += [one.value for one in query.order]
    values += [] if query.having is None else [query.having]
    return any(isinstance(part, Window) for one in values for part in parts_of(one))


def _refused(compiled: CompiledQuery, message: str, remedy: str) -> InputError:
    return refused(Code.DOES_NOT_FIT, message, compiled.request.mark, help=remedy)
