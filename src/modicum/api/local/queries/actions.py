"""Operations on private queries: price them, run them, get answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from typing import Protocol

import msgspec
from msgspec import Struct

from modicum.api.local.decision import Decision
from modicum.api.local.queries.execution import answered, must_fit, unanswered
from modicum.api.local.queries.variants import of_query
from modicum.api.ports.engine import (
    Engine,
    Engines,
    Sampler,
    SecretSource,
    Stream,
)
from modicum.api.ports.reservation import InUse
from modicum.core.diagnostics import nearest
from modicum.core.document import Node
from modicum.core.errors import (
    Code,
    ConflictError,
    InputError,
    Problem,
    StaleError,
    UsageError,
)
from modicum.core.redaction import scrubbed
from modicum.ledger import ReleaseStatus, Standing
from modicum.policy import CompiledPolicy
from modicum.query.days import carried_periods, of_day, stream_digest
from modicum.query.hints import remarks
from modicum.query.query_file import QueryFile
from modicum.query.results import Answers
from modicum.query.statistics import Exact, ExactPlan, Secrets


def by_table(data: object, tables: Sequence[str]) -> dict[str, object]:
    """Return where the rows of each table of a query are."""
    if not isinstance(data, Mapping):
        if len(tables) == 1 and data is not None:
            return {tables[0]: data}
        raise _refused(f"give the source of {_named(tables)}", tables)
    for table in data:
        if table not in tables:
            message = f"the query does not read the table `{str(table)[:60]}`"
            raise _refused(message, tables, nearest(str(table), tables))
    missing = [table for table in tables if table not in data]
    if missing:
        raise _refused(f"give the source of {_named(missing)}", tables)
    return {table: data[table] for table in tables}


def _refused(message: str, tables: Sequence[str], hint: str = "") -> UsageError:
    written = ", ".join(f'"{table}": …' for table in tables)
    return UsageError(
        Problem(
            Code.UNKNOWN_NAME, message, label=hint, help=f"give  data={{{written}}}"
        )
    )


def _named(tables: Sequence[str]) -> str:
    return " and ".join(f"`{table}`" for table in tables)


_FILE = 'read its file:  mo.load_query("query.yaml", ws.policy())'
_SQL = "make one:  mo.sql_query(ID, SQL, tables=…, policy=ws.policy(), …)"


def must_be_query(given: object) -> None:
    """Refuse an input that is no query. It is not quoted: it may be SQL."""
    if isinstance(given, QueryFile):
        return
    what, remedy = f"of type {type(given).__name__}", f"{_FILE}  , or {_SQL}"
    if isinstance(given, str) or hasattr(given, "__fspath__"):
        is_sql = str(given).lstrip()[:6].casefold() == "select"
        what, remedy = ("SQL", _SQL) if is_sql else ("a path", _FILE)
    elif isinstance(given, Mapping):
        what, remedy = "a mapping", _SQL
    raise InputError(
        Problem(Code.WRONG_TYPE, f"this is {what}, not a query", help=remedy)
    )


class PricingLedger(Protocol):
    """The ledger operations that pricing a query needs."""

    def check(self, release: Node) -> Decision:
        """Return the decision that `submit` would make now."""
        ...


class Planning(PricingLedger, Protocol):
    """The ledger operations that planning a query needs."""

    def policy(self) -> CompiledPolicy:
        """Return the policy that it decides by."""
        ...


class Ledger(Planning, Protocol):
    """The ledger operations that running a query needs."""

    def submit(self, release: Node) -> Decision:
        """Decide a release and, if it is allowed, reserve its loss."""
        ...

    def cancel(self, release: str, *, reason: str) -> Standing:
        """Give up a reservation that was not started."""
        ...

    def start(self, release: str) -> Standing:
        """Note, durably, that rows are about to be read."""
        ...

    def publish(self, release: str) -> Standing:
        """Mark a started release as published."""
        ...


class Ran(Struct, frozen=True):
    """The outcome of a query.

    Attributes:
        decision: The decision.
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
            "status": ReleaseStatus.PUBLISHED.value,
            "answers": self.answers.to_dict(),
        }

    def __str__(self) -> str:
        return str(self.decision if self.answers is None else self.answers)

    def _repr_html_(self) -> str:
        if self.answers is None:
            return self.decision._repr_html_()
        return self.answers._repr_html_()


def planned(ledger: PricingLedger, query: QueryFile) -> Decision:
    """Return the decision about a query. Reads no row, writes nothing."""
    must_be_query(query)
    decision = ledger.check(query.described)
    if decision.policy_digest != query.policy:
        raise _other_policy(query)
    return of_query(query, decision)


def plan_of(ledger: Planning, query: QueryFile) -> Decision:
    """Return the decision about a query, with remarks. Writes nothing."""
    decision = planned(ledger, query)
    notes = remarks(query, ledger.policy().policy.vocabulary)
    return msgspec.structs.replace(decision, notices=(*decision.notices, *notes))


class Queries:
    """Operations on private queries under a ledger.

    Args:
        ledger: The ledger.
        engines: The source of engines; None if there are none.
    """

    def __init__(self, ledger: Ledger, engines: Engines | None = None) -> None:
        self._ledger = ledger
        self._engines = engines

    def plan(self, query: QueryFile) -> Decision:
        """Return the decision about a query. Reads no row, writes nothing.

        Args:
            query: The query.

        Raises:
            InputError: If it cannot be priced.
            ConflictError: If its id is in use with other contents.
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
        on_start: Callable[[Decision], None] = lambda _: None,
        complete: Callable[[Answers], None] = lambda _: None,
    ) -> Ran:
        """Answer a query under a reservation, by an engine that is opened for it.

        All possible refusals come before any spending. Once the release is started, its
        loss is spent, whatever happens. It is published when `complete` returns: if
        that or publishing fails, the answers were handed over all the same.

        Args:
            query: The query.
            data: By table, the location of its rows: paths, as `--data` takes them, or
                rows in memory. For a query of one table, also the location alone.
            engine: The name of the engine, such as `duckdb`.
            spark_master: The cluster that Spark runs on.
            on_start: Called when it is started, before a row is read.
            complete: Receives the answers, before the release is published.

        Raises:
            InputError: If the query, or the form of the data, is not as declared.
            ConflictError: If it was started before, under the same id.
            ApprovalError: If people must agree first.
            StaleError: If it was read under another policy than the ledger decides by.
            UsageError: If there is no such engine, or a table has no data.
            ModicumError: If the engine fails; the loss is spent then.
            InvariantError: If an engine or a sampler violates its contract.
        """
        engines = _there(self._engines)
        must_be_query(query)
        sources = by_table(data, query.request.query.sources)
        with engines.engine(engine, sources, spark_master) as opened:
            return self.run_on(
                query,
                opened,
                engines.sampler(),
                engines.lots(),
                on_start=on_start,
                complete=complete,
            )

    def run_on(
        self,
        query: QueryFile,
        engine: Engine,
        sampler: Sampler,
        lots: SecretSource,
        *,
        on_start: Callable[[Decision], None] = lambda _: None,
        complete: Callable[[Answers], None] = lambda _: None,
    ) -> Ran:
        """Answer a query as `run` does, by an open engine.

        Args:
            query: The query.
            engine: The location of the rows.
            sampler: The source of noise.
            lots: The source of secrets.
            on_start: As for `run`.
            complete: As for `run`.

        Raises:
            ModicumError: As for `run`.
        """
        must_be_query(query)
        must_fit(query.compiled, engine, sampler)
        _refuse_told(planned(self._ledger, query))
        decision = _started(self._ledger, query)
        if not decision.allowed:
            return Ran(decision, None)
        on_start(decision)
        answers = answered(query, engine, sampler, lots)
        complete(answers)
        return _published(self._ledger, decision, answers)

    def by_days(self, query: QueryFile, contributions: object) -> QueryDays:
        """Return a query whose days are answered one after the other.

        Args:
            query: The query: one of its keys is the day of its rows.
            contributions: The folder that remembers how many rows of whom were kept. It
                holds ids of the data, and must not be lost, copied or put back.

        Raises:
            InputError: If this is no query.
            UsageError: If there are no engines.
        """
        must_be_query(query)
        return QueryDays(self._ledger, _there(self._engines), query, contributions)


class QueryDays:
    """A query that is answered day by day. Its first day spends the loss of all days.

    Args:
        ledger: The ledger.
        engines: The source of engines.
        query: The query.
        contributions: The folder with what was kept of each id.
    """

    def __init__(
        self, ledger: Ledger, engines: Engines, query: QueryFile, contributions: object
    ) -> None:
        self._ledger, self._engines = ledger, engines
        self._query, self._folder = query, contributions

    def run(
        self,
        day: date | str,
        data: object,
        *,
        engine: str = "duckdb",
        spark_master: str = "local[*]",
        on_start: Callable[[Decision], None] = lambda _: None,
        complete: Callable[[Answers], None] = lambda _: None,
    ) -> Ran:
        """Answer one day; one that has answers is given the same ones again.

        A row counts if it is there when its day is asked, so ask once a day is over.
        Once rows may have been read, a day is spent, whatever happens.

        Args:
            day: The day; later than all that were asked.
            data: As for `Queries.run`.
            engine: As for `Queries.run`.
            spark_master: As for `Queries.run`.
            on_start: Called when the loss is spent, before the first day is read.
            complete: Receives the answers.

        Raises:
            InputError: If the query cannot be answered day by day, or not this day.
            ConflictError: If the day was passed, or the folder is not the release's.
            UsageError: If the folder cannot be used.
            ModicumError: As for `Queries.run`.
        """
        query = self._query
        asked = of_day(query, _day_of(day))
        sources = by_table(data, query.request.query.sources)
        with self._engines.engine(engine, sources, spark_master) as opened:
            must_fit(asked.compiled, opened, self._engines.sampler())
            decision = planned(self._ledger, query)
            begun = decision.retry and decision.status in _SPENT
            if not begun:
                _refuse_told(decision)
            with self._engines.stream(self._folder, new=not begun) as stream:
                if begun:
                    stream.must_be(stream_digest(query))
                else:
                    decision = _started(self._ledger, query)
                    if not decision.allowed:
                        return Ran(decision, None)
                    # Not before: a release that another run starts has no folder.
                    stream.start(stream_digest(query))
                    on_start(decision)
                work = partial(self._answers, asked, opened, stream)
                answers = scrubbed(work, unanswered())
                complete(answers)
        if decision.status == ReleaseStatus.PUBLISHED.value:
            return Ran(decision, answers)
        return _published(self._ledger, decision, answers)

    def _answers(self, asked: QueryFile, engine: Engine, stream: Stream) -> Answers:
        """Return the answers to one day, new or as they are kept.

        It holds ids, so that no frame of it may stay attached to an error.
        """
        plan = asked.compiled.plan
        assert plan.part.periods is not None  # It is one day.
        day = date.fromordinal(plan.part.periods[0][0])
        known = stream.answers(day)
        if isinstance(known, Mapping):
            return Answers.from_dict(known)
        periods = carried_periods(plan, day)
        used = {number: stream.used(number, since) for number, since in periods.items()}
        stream.begin(day)
        run = _OneDay(engine, used)
        answers = answered(asked, run, self._engines.sampler(), self._engines.lots())
        stream.finish(day, answers.to_dict(), run.counts)
        return answers


class _OneDay:
    """Runs plans of one day, where caps have kept rows on others.

    Attributes:
        counts: By the number of a cap, what it kept of the day; once there was a run.
    """

    def __init__(self, engine: Engine, used: Mapping[int, object]) -> None:
        self._engine, self._used = engine, used
        self.counts: Mapping[int, object] = {}

    def run(self, plan: ExactPlan, secrets: Secrets) -> Mapping[str, Exact]:
        """Return the exact statistics of a plan."""
        found, self.counts = self._engine.run_day(plan, secrets, self._used)
        return found


def _started(ledger: Ledger, query: QueryFile) -> Decision:
    """Return the decision about a query; if it is allowed, its loss is spent now."""
    decision = ledger.submit(query.described)
    if not decision.allowed:
        return of_query(query, decision)
    if decision.policy_digest != query.policy:
        if not decision.retry:
            ledger.cancel(query.heading.id, reason=_STALE)
        raise _other_policy(query)
    ledger.start(query.heading.id)
    return decision


def _published(ledger: Ledger, decision: Decision, answers: Answers) -> Ran:
    status = ledger.publish(decision.release).status.value
    now = msgspec.structs.replace(decision, status=status, expires_at="")
    return Ran(now, answers)


def _there(engines: Engines | None) -> Engines:
    if engines is None:
        raise UsageError(
            Problem(
                Code.NOT_SUPPORTED,
                "this workspace has no engines",
                help="open it with  mo.open",
            )
        )
    return engines


def _day_of(day: date | str) -> date:
    """Return a day that is given as one, or as text."""
    try:
        return day if isinstance(day, date) else date.fromisoformat(day)
    except (TypeError, ValueError):
        message = f"`{str(day)[:40]}` is not a day"
        remedy = "write it as 2026-11-03"
        raise UsageError(Problem(Code.WRONG_TYPE, message, help=remedy)) from None


#: The states of a release whose loss is spent and whose days can be asked.
_SPENT = (ReleaseStatus.STARTED.value, ReleaseStatus.PUBLISHED.value)
#: The reason for canceling a reservation made while the policy changed.
_STALE = "the policy changed while the query was read"


def _other_policy(query: QueryFile) -> StaleError:
    return StaleError(
        Problem(
            Code.POLICY_STALE,
            f"`{query.heading.id}` was read under another policy than the ledger"
            " decides by",
            notes=("units, attributes and bounds may differ",),
            help="read the query again, under the ledger's active policy",
        )
    )


def _refuse_told(decision: Decision) -> None:
    """Refuse a query that ran, or may have run: it is answered only once."""
    if not decision.retry or decision.status == ReleaseStatus.RESERVED.value:
        return
    out = decision.status == ReleaseStatus.PUBLISHED.value
    was = "was already answered" if out else "was already started"
    raise ConflictError(
        Problem(
            Code.RELEASE_STATE,
            f"query `{decision.release}` {was}, and a query runs once (it is"
            f" {decision.status})",
            notes=(
                "its loss is spent, and an answer is given once",
                "the ledger records the run, not the answer",
            ),
            help="look for the stored answer; a new id is a new release, with new"
            " noise and a new loss",
        )
    )


@dataclass(frozen=True, slots=True)
class Where:
    """The rows of a query, and the engine that reads them.

    Attributes:
        data: By table, where its rows are; of a query that reads one table, also this
            alone.
        engine: The name of the engine, such as `duckdb`.
        spark_master: The cluster that Spark runs on.
    """

    data: object = field(repr=False)  # It may be the rows themselves.
    engine: str
    spark_master: str


def answers_under(
    use: InUse, ledger: PricingLedger, engines: Engines, query: QueryFile, where: Where
) -> Answers:
    """Return the answers to exactly the reserved query."""
    must_be_query(query)
    if query.heading.id != use.release:
        raise _other(use, query)
    planned(ledger, query)  # Refuses other contents under this id.
    sources = by_table(where.data, query.request.query.sources)
    with engines.engine(where.engine, sources, where.spark_master) as opened:
        sampler = engines.sampler()
        must_fit(query.compiled, opened, sampler)
        for one in query.compiled.mechanisms():
            use.claim(str(one["name"]))
        return answered(query, opened, sampler, engines.lots())


def _other(use: InUse, query: QueryFile) -> ConflictError:
    return ConflictError(
        Problem(
            Code.RELEASE_CONFLICT,
            f"`{use.release}` is reserved, and this is the query `{query.heading.id}`",
            notes=("a reservation is for one query only",),
            help="reserve it with  ws.submit(query.described),  or run it"
            " with  ws.queries.run",
        )
    )
