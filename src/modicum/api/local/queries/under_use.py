"""A query that is asked under a reservation that somebody else made for it."""

from __future__ import annotations

from dataclasses import dataclass, field

from modicum.api.local.queries.actions import Asking, planned
from modicum.api.local.queries.data import by_table
from modicum.api.local.queries.execution import answered, must_fit
from modicum.api.local.queries.given import must_be_query
from modicum.api.ports.engine import Engines
from modicum.api.ports.in_use import InUse
from modicum.core.errors import Code, ConflictError, Problem
from modicum.query.query_file import QueryFile
from modicum.query.results import Answers


@dataclass(frozen=True, slots=True)
class Where:
    """Where a query finds its rows, and what reads them there.

    Attributes:
        data: By table, where its rows are; of a query that reads one table, also this
            alone.
        engine: `duckdb` or `spark`.
        spark_master: The cluster that Spark runs on.
    """

    data: object = field(repr=False)  # It may be the rows themselves.
    engine: str
    spark_master: str


def answers_under(
    use: InUse, ledger: Asking, engines: Engines, query: QueryFile, where: Where
) -> Answers:
    """Return the answers to the very query that is reserved.

    Args:
        use: The reservation in use.
        ledger: The ledger.
        engines: Where engines come from.
        query: The query.
        where: Where its rows are, and what reads them.

    Raises:
        ConflictError: If another release is reserved, or it ran already.
        InputError: If the form of the data is not as declared.
        StaleError: If it was read under another policy than the ledger decides by.
        UsageError: If there is no such engine, or a table has no data.
        ModicumError: If the engine fails.
    """
    must_be_query(query)
    if query.heading.id != use.release:
        raise _other(use, query)
    planned(ledger, query)  # Refuses other contents under this id.
    sources = by_table(where.data, query.asked.query.tables)
    with engines.engine(where.engine, sources, where.spark_master) as opened:
        sampler = engines.sampler()
        must_fit(query.lowered, opened, sampler)
        for one in query.lowered.mechanisms():
            use.claim(str(one["name"]))
        return answered(query, opened, sampler, engines.lots())


def _other(use: InUse, query: QueryFile) -> ConflictError:
    return ConflictError(
        Problem(
            Code.RELEASE_CONFLICT,
            f"`{use.release}` is reserved, and this is the query `{query.heading.id}`",
            notes=("a reservation covers the query that it was made for",),
            help="reserve it by  ws.submit(query.described),  or run it by"
            "  ws.queries.run",
        )
    )
