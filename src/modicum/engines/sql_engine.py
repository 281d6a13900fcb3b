"""Common parts of engines with an SQL interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Self

from modicum.core.errors import Code, InputError, Problem
from modicum.core.redaction import scrubbed
from modicum.engines.file_state import must_be_unchanged, state_of
from modicum.engines.protocol import failed
from modicum.engines.sources import Source, source_of
from modicum.query.sql.columns import Form, as_declared, misfits
from modicum.query.sql.statements import Statements, read_answers, statements
from modicum.query.statistics import Exact, ExactPlan, KeyValue, Secrets
from modicum.query.tables import Table

if TYPE_CHECKING:
    import pyarrow as pa


class SqlEngine(ABC):
    """Computes plans by statements in an engine's SQL."""

    name: ClassVar[str]
    #: Its SQL dialect in sqlglot.
    dialect: ClassVar[str]
    #: Whether caps look first which instances have too many rows.
    apart: ClassVar[bool] = False
    #: Whether it can materialize a step of a statement.
    keeps_steps: ClassVar[bool] = False

    def __init__(self, sources: Mapping[str, object]) -> None:
        self._sources: dict[str, Source] = {
            table: source_of(one, table) for table, one in sources.items()
        }
        self._state = state_of(self._sources.values())
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
        for name in plan.query.tables:
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
        self.check(plan)
        made = statements(plan, secrets, apart=self.apart)
        failure = failed(self.name, "to compute a query")
        found = scrubbed(lambda: self._run(plan, made), failure)
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

    def _run(self, plan: ExactPlan, made: Statements) -> dict[str, Exact]:
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
        written = {
            called
            for table, called in made.relations.items()
            if "written" in self._forms[table].values()
        }
        kept = written if self.keeps_steps else None
        found: dict[str, dict[tuple[KeyValue, ...], int]] = {}
        for one in made.statements:
            rows = self._select(one.over(relations, self.dialect, kept=kept))
            read_answers(one, rows, found)
        return dict(found)

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
