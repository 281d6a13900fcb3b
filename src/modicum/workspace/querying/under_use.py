"""A query that is asked under a reservation that somebody else made for it."""

from __future__ import annotations

from typing import Protocol

from modicum.core.errors import Code, ConflictError, Problem
from modicum.query.answers import Answers
from modicum.query.document import QueryFile
from modicum.workspace.querying.data import by_table
from modicum.workspace.querying.given import must_be_query
from modicum.workspace.querying.ports import Engines
from modicum.workspace.querying.queries import Asking, planned
from modicum.workspace.querying.running import answered, must_fit

#: The data, the engine's name, and where Spark runs.
Where = tuple[object, str, str]


class Using(Protocol):
    """A reservation in use."""

    @property
    def release(self) -> str:
        """The id of the release."""
        ...

    def claim(self, mechanism: str) -> None:
        """Note that a mechanism runs now; each may do so once."""
        ...


def answers_under(
    use: Using, ledger: Asking, engines: Engines, query: QueryFile, where: Where
) -> Answers:
    """Return the answers to the very query that is reserved.

    Args:
        use: The reservation in use.
        ledger: The ledger.
        engines: Where engines come from.
        query: The query.
        where: The data, the engine's name, and where Spark runs.

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
    data, engine, spark_master = where
    sources = by_table(data, query.asked.query.tables)
    with engines.engine(engine, sources, spark_master) as opened:
        sampler = engines.sampler()
        must_fit(query.lowered, opened, sampler)
        for one in query.lowered.mechanisms():
            use.claim(str(one["name"]))
        return answered(query, opened, sampler, engines.lots())


def _other(use: Using, query: QueryFile) -> ConflictError:
    return ConflictError(
        Problem(
            Code.RELEASE_CONFLICT,
            f"`{use.release}` is reserved, and this is the query `{query.heading.id}`",
            notes=("a reservation covers the query that it was made for",),
            help="reserve it by  ws.submit(query.described),  or run it by"
            "  ws.queries.run",
        )
    )
