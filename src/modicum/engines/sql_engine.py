"""Common parts of engines with an SQL interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Final, Self, TypeAlias

from modicum.core.errors import Code, InputError, Problem
from modicum.core.redaction import scrubbed
from modicum.engines.caps.rows import Caps
from modicum.engines.file_state import must_be_unchanged, state_of
from modicum.engines.protocol import failed
from modicum.engines.sources import Source, source_of
from modicum.query.sql.columns import Form, as_declared, misfits
from modicum.query.sql.statements import (
    Limit,
    Statements,
    read_answers,
    statements,
)
from modicum.query.statistics import Exact, ExactPlan, Secrets
from modicum.query.tables import Table

if TYPE_CHECKING:
    import pyarrow as pa


#: The relation of the rows that a query reads.
_READ: Final = "read_rows"
#: That of what a cap kept on earlier days, and that of rows with these numbers.
_USED, _WITH_USED = "used_rows", "rows_with_used"
#: By the number of a cap, how many rows of which id it has kept; None for nothing.
Used: TypeAlias = Mapping[int, "pa.Table | None"]


class SqlEngine(ABC):
    """Computes plans by statements in an engine's SQL."""

    name: ClassVar[str]
    #: Its SQL dialect in sqlglot.
    dialect: ClassVar[str]

    def __init__(self, sources: Mapping[str, object]) -> None:
        self._sources: dict[str, Source] = {
            table: source_of(one, table) for table, one in sources.items()
        }
        self._state = state_of(self._sources.values())
        self._lock = Lock()
        #: By table, its relation in the engine, and its columns.
        self._relations = {
            table: f"data_{number}" for number, table in enumerate(sources)
        }
        self._forms: dict[str, dict[str, Form]] = {}

    @abstractmethod
    def _select(self, statement: str) -> Iterable[Sequence[object]]:
        """Return the rows of a statement."""

    @abstractmethod
    def _fetch(self, statement: str) -> pa.Table:
        """Return the rows of a statement as an Arrow table."""

    @abstractmethod
    def _types_of(self, statement: str) -> tuple[str, ...]:
        """Return the types of a statement's columns."""

    @abstractmethod
    def _keep(self, name: str, statement: str) -> None:
        """Keep the rows of a statement as a relation."""

    @abstractmethod
    def _view(self, name: str, statement: str) -> None:
        """Make the rows of a statement a relation; reading it computes them."""

    @abstractmethod
    def _forget(self, name: str, *, kept: bool) -> None:
        """Drop what `_keep` made, or `_view`, and the rows of its caps."""

    @abstractmethod
    def _bring(self, name: str, rows: pa.Table) -> None:
        """Keep the rows of an Arrow table as a relation."""

    @abstractmethod
    def _cut(
        self, rows: str, made: Statements, caps: Caps, *, whole: bool = False
    ) -> Callable[[], str]:
        """Return a function that returns a relation of the rows that caps keep.

        The relation can be read once.

        Args:
            rows: The relation of the rows before these caps.
            made: The statements.
            caps: The caps.
            whole: Whether all columns are needed; else those that statements read.
        """

    @abstractmethod
    def interrupt(self) -> None:
        """Interrupt the call of another thread; it fails there."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources."""

    def check(self, plan: ExactPlan) -> None:
        """Check that the data is as declared; no row is read."""
        must_be_unchanged(self._state)
        statements(plan, Secrets("00", "00"))
        problems: list[Problem] = []
        for name in plan.query.sources:
            error = misfits(plan.tables.by_name[name], self._columns(name))
            problems.extend(() if error is None else error.problems)
        if problems:
            raise InputError(*problems)

    def fits(self, table: Table) -> None:
        """Refuse data that is not as its table is declared; no row is read."""
        error = misfits(table, self._columns(table.name))
        if error is not None:
            raise error

    def run(self, plan: ExactPlan, secrets: Secrets) -> dict[str, Exact]:
        """Return the exact statistics of a plan."""
        return self._locked_run(plan, secrets, None)[0]

    def run_day(
        self, plan: ExactPlan, secrets: Secrets, used: Used
    ) -> tuple[dict[str, Exact], dict[int, pa.Table]]:
        """Return the exact statistics of a plan of one day, and what its caps keep.

        Args:
            plan: The plan.
            secrets: The keys of random choices.
            used: By the number of each cap whose instances have other days, how many
                rows (`n`) of each `id` it has kept on those; None for none. An id may
                occur several times, and the numbers count together.

        Returns:
            The statistics; and for the same caps how many rows (`n`) of each `id` they
            keep of this day, before later caps cut.
        """
        return self._locked_run(plan, secrets, used)

    def _locked_run(
        self, plan: ExactPlan, secrets: Secrets, used: Used | None
    ) -> tuple[dict[str, Exact], dict[int, pa.Table]]:
        self.check(plan)
        made = statements(plan, secrets)
        failure = failed(self.name, "to compute a query")
        try:
            with self._lock:  # Relations of a run have the names of any other's.
                found = scrubbed(lambda: self._run(plan, made, secrets, used), failure)
        finally:  # What failed may have done so since a file changed.
            must_be_unchanged(self._state)
        return found

    def columns(self) -> dict[str, tuple[str, ...]]:
        """Return by table the names of its columns."""
        return {table: tuple(forms) for table, forms in self._forms.items()}

    def relations(self) -> dict[str, str]:
        """Return the engine's relation of each table."""
        return dict(self._relations)

    def forms(self) -> dict[str, dict[str, Form]]:
        """Return by table the names of its columns, and the form of each."""
        return {table: dict(forms) for table, forms in self._forms.items()}

    def types_of(self, statement: str) -> tuple[str, ...]:
        """Return the types of a statement's columns, as the engine calls them.

        No row is read.
        """
        failure = failed(self.name, "to compute a query")
        return scrubbed(lambda: self._types_of(statement), failure)

    def fetch(self, statement: str) -> pa.Table:
        """Return the rows of a statement over the relations.

        It is for the data controller: nothing bounds or hides the result.
        """
        must_be_unchanged(self._state)
        failure = failed(self.name, "to compute a query")
        found = scrubbed(lambda: self._fetch(statement), failure)
        must_be_unchanged(self._state)
        return found

    def keep(self, name: str, statement: str) -> None:
        """Materialize the rows of a statement, as a relation, until the engine closes.

        Args:
            name: The name of the relation.
            statement: SQL in DuckDB's dialect that is also the engine's.

        Raises:
            UnavailableError: If the engine fails; without its message.
        """
        failure = failed(self.name, "to compute a query")
        scrubbed(lambda: self._keep(name, statement), failure)

    def __enter__(self) -> Self:
        """Return the engine."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    def _run(
        self, plan: ExactPlan, made: Statements, secrets: Secrets, used: Used | None
    ) -> tuple[dict[str, Exact], dict[int, pa.Table]]:
        relations = {
            called: as_declared(
                plan.tables.by_name[table],
                made.columns[table],
                self._forms[table],
                self._relations[table],
            )
            for table, called in made.relations.items()
        }
        # Texts take long to read as values.
        written = any(
            "written" in self._forms[table].values() for table in made.relations
        )
        several = bool(made.limits) or len(made.statements) > 1
        kept = several and (made.slow or written)
        make = self._keep if kept else self._view
        make(_READ, made.read(relations, self.dialect))
        counts: dict[int, pa.Table] = {}
        cuts = [_READ]
        try:
            kept_rows = None
            if used is not None:
                for limit in made.limits:
                    self._cut_day(limit, made, secrets.order_key, used, cuts, counts)
            elif made.limits:
                caps = Caps(made.limits, made.row_id, secrets.order_key)
                kept_rows = self._cut(_READ, made, caps)
            found: dict[str, Exact] = {}
            for one in made.statements:
                relation = kept_rows() if kept_rows else cuts[-1]
                rows = self._select(one.over(relation, self.dialect))
                found.update(read_answers(one, rows))
        finally:
            self._forget(_READ, kept=kept)
            for name in cuts[1:]:
                self._forget(name, kept=True)
        return found, counts

    def _cut_day(
        self,
        limit: Limit,
        made: Statements,
        key: str,
        used: Used,
        cuts: list[str],
        counts: dict[int, pa.Table],
    ) -> None:
        """Cut by one cap that counts other days, and count what it keeps."""
        number, rows = len(cuts) - 1, cuts[-1]
        before, name = used.get(number), f"cut_{number}"
        if before is not None:
            self._bring(_USED, before)
            self._view(_WITH_USED, _with_used(rows, limit.id))
            rows = _WITH_USED
        columns = [one.alias for one in made.rows.selects]
        # A row's place must not depend on what was used, so columns are named.
        order = made.row_id or columns
        caps = Caps([limit], order, key, None if before is None else _USED)
        kept = self._cut(rows, made, caps, whole=True)()
        self._keep(name, f"SELECT {', '.join(columns)} FROM {kept}")  # noqa: S608
        cuts.append(name)
        if number in used:
            counts[number] = self._fetch(_counted(name, limit.id))

    def _columns(self, table: str) -> Mapping[str, Form]:
        if table not in self._forms:
            raise InputError(
                Problem(
                    Code.DATA_NOT_AS_DECLARED,
                    f"table `{table}` has no source",
                    help="give its source",
                )
            )
        return self._forms[table]


def _with_used(rows: str, of_id: str) -> str:
    """Return the statement of rows with the number of those used before of their id."""
    used = f"SELECT id, CAST(SUM(n) AS BIGINT) AS n FROM {_USED} GROUP BY id"  # noqa: S608
    return (
        f"SELECT r.*, COALESCE(u.n, 0) AS {_USED} FROM {rows} r"  # noqa: S608
        f" LEFT JOIN ({used}) u ON r.{of_id} = u.id"
    )


def _counted(rows: str, of_id: str) -> str:
    return f"SELECT {of_id} AS id, COUNT(*) AS n FROM {rows} GROUP BY {of_id}"  # noqa: S608
