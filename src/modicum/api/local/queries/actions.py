"""What people do who ask private queries: price them, run them, get answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from modicum.api.local.decision import Decision
from modicum.api.local.queries.data import by_table
from modicum.api.local.queries.execution import answered, must_fit
from modicum.api.local.queries.given import must_be_query
from modicum.api.local.queries.variants import of_query
from modicum.api.ports.engine import Engine, Engines, Lots, Sampler
from modicum.core.document import Node
from modicum.core.errors import Code, ConflictError, Problem, StaleError, UsageError
from modicum.core.record import dataclass
from modicum.ledger import ReleaseStatus, Standing
from modicum.policy import CompiledPolicy
from modicum.query.hints import remarks
from modicum.query.query_file import QueryFile
from modicum.query.results import Answers


class Asking(Protocol):
    """What pricing a query needs of a ledger."""

    def check(self, release: Node) -> Decision:
        """Return what `submit` would answer now."""
        ...


class Planning(Asking, Protocol):
    """What planning a query needs of a ledger."""

    def policy(self) -> CompiledPolicy:
        """Return the policy that it decides by."""
        ...


class Ledger(Planning, Protocol):
    """What running a query needs of a workspace."""

    def submit(self, release: Node) -> Decision:
        """Decide a release and, if it is allowed, reserve its loss."""
        ...

    def void(self, release: str, *, reason: str) -> Standing:
        """Give up a reservation that was not started."""
        ...

    def start(self, release: str) -> Standing:
        """Note, durably, that rows are about to be read."""
        ...

    def post(self, release: str) -> Standing:
        """Note that a started release is out."""
        ...


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of a query.

    Attributes:
        decision: What the ledger said.
        answers: The answers; None if it was denied.
    """

    decision: Decision
    answers: Answers | None

    def to_dict(self) -> dict[str, object]:
        """Return the documented JSON form of its answers, or of the denial."""
        if self.answers is None:
            return self.decision.to_dict()
        return {
            "release": self.decision.release,
            "status": ReleaseStatus.POSTED.value,
            "answers": self.answers.to_dict(),
        }

    def __str__(self) -> str:
        return str(self.decision if self.answers is None else self.answers)

    def _repr_html_(self) -> str:
        if self.answers is None:
            return self.decision._repr_html_()
        return self.answers._repr_html_()


def planned(ledger: Asking, query: QueryFile) -> Decision:
    """Return what a ledger would say to a query. Reads no row, writes nothing.

    Args:
        ledger: The ledger.
        query: The query.

    Raises:
        InputError: If it cannot be priced.
        ConflictError: If its id stands with other contents.
        StaleError: If it was read under another policy than the ledger decides by.
    """
    must_be_query(query)
    decision = ledger.check(query.described)
    if decision.policy_digest != query.policy:
        raise _other_policy(query)
    return of_query(query, decision)


def plan_of(ledger: Planning, query: QueryFile) -> Decision:
    """Return what a ledger would say to a query, with remarks. Writes nothing.

    Args:
        ledger: The ledger.
        query: The query.

    Raises:
        InputError: If it cannot be priced.
        ConflictError: If its id stands with other contents.
        StaleError: If it was read under another policy than the ledger decides by.
    """
    decision = planned(ledger, query)
    said = remarks(query, ledger.policy().policy.vocabulary)
    return msgspec.structs.replace(decision, notices=(*decision.notices, *said))


class Queries:
    """What people do who ask private queries under a ledger.

    Args:
        ledger: The ledger.
        engines: Where engines come from; None for nowhere.
    """

    def __init__(self, ledger: Ledger, engines: Engines | None = None) -> None:
        self._ledger = ledger
        self._engines = engines

    def plan(self, query: QueryFile) -> Decision:
        """Return what the ledger would say to a query. Reads no row, writes nothing.

        Args:
            query: The query.

        Raises:
            InputError: If it cannot be priced.
            ConflictError: If its id stands with other contents.
            StaleError: If it was read under another policy than the ledger decides by.
        """
        return plan_of(self._ledger, query)

    def run(
        self,
        query: QueryFile,
        data: object,
        *,
        engine: str = "duckdb",
        spark_master: str = "local[*]",
        begun: Callable[[Decision], None] = lambda _: None,
        complete: Callable[[Answers], None] = lambda _: None,
    ) -> Ran:
        """Answer a query under a reservation, by an engine that is opened for it.

        What can be refused is refused before anything is spent. Once it is started,
        its loss is spent, whatever happens. It is posted when `complete` returns: if
        that fails, or posting does, the answers were handed over all the same.

        Args:
            query: The query.
            data: By table, where its rows are: paths, as `--data` takes them, or rows
                in memory. Of a query that reads one table, also this alone.
            engine: `duckdb` or `spark`.
            spark_master: The cluster that Spark runs on.
            begun: Told when it is started, before a row is read.
            complete: Given the answers, before the release is posted.

        Raises:
            InputError: If the query, or the form of the data, is not as declared.
            ConflictError: If it was started before, under the same id.
            ApprovalError: If people must agree first.
            StaleError: If it was read under another policy than the ledger decides by.
            UsageError: If there is no such engine, or a table has no data.
            ModicumError: If the engine fails; the loss is spent then.
            InvariantError: If an engine or a sampler does not do what it must.
        """
        if self._engines is None:
            raise UsageError(
                Problem(
                    Code.NOT_SUPPORTED,
                    "this workspace knows no engines",
                    help="open it by  mo.open",
                )
            )
        must_be_query(query)
        sources = by_table(data, query.asked.query.tables)
        with self._engines.engine(engine, sources, spark_master) as opened:
            return self.run_on(
                query,
                opened,
                self._engines.sampler(),
                self._engines.lots(),
                begun=begun,
                complete=complete,
            )

    def run_on(
        self,
        query: QueryFile,
        engine: Engine,
        sampler: Sampler,
        lots: Lots,
        *,
        begun: Callable[[Decision], None] = lambda _: None,
        complete: Callable[[Answers], None] = lambda _: None,
    ) -> Ran:
        """Answer a query as `run` does, by an engine that is open.

        Args:
            query: The query.
            engine: Where the rows are.
            sampler: Where noise comes from.
            lots: Where secrets come from.
            begun: As for `run`.
            complete: As for `run`.

        Raises:
            ModicumError: As for `run`.
        """
        must_be_query(query)
        must_fit(query.lowered, engine, sampler)
        _refuse_told(planned(self._ledger, query))
        decision = self._ledger.submit(query.described)
        if not decision.allowed:
            return Ran(of_query(query, decision), None)
        if decision.policy_digest != query.policy:
            if not decision.retry:
                self._ledger.void(query.heading.id, reason=_STALE)
            raise _other_policy(query)
        self._ledger.start(query.heading.id)
        begun(decision)
        answers = answered(query, engine, sampler, lots)
        complete(answers)
        posted = self._ledger.post(query.heading.id).status.value
        told = msgspec.structs.replace(decision, status=posted, expires_at="")
        return Ran(told, answers)


#: Why a reservation is given up that was made while the policy changed.
_STALE = "the policy changed while the query was read"


def _other_policy(query: QueryFile) -> StaleError:
    return StaleError(
        Problem(
            Code.POLICY_STALE,
            f"`{query.heading.id}` was read under another policy than the ledger"
            " decides by",
            notes=("units, attributes and bounds may mean something else there",),
            help="read the query again, under the ledger's active policy",
        )
    )


def _refuse_told(decision: Decision) -> None:
    """Refuse a query that ran, or may have run: its answer is told once.

    Raises:
        ConflictError: If it is so.
    """
    if not decision.retry or decision.status == ReleaseStatus.RESERVED.value:
        return
    out = decision.status == ReleaseStatus.POSTED.value
    was = "was answered already" if out else "was started before"
    raise ConflictError(
        Problem(
            Code.RELEASE_STATE,
            f"query `{decision.release}` {was}, and runs once (it is"
            f" {decision.status})",
            notes=(
                "its loss is spent, and an answer is told once",
                "the ledger knows that it ran, not what it said",
            ),
            help="look for the answer that was kept; a new id is a new release, with"
            " new noise and a new loss",
        )
    )
