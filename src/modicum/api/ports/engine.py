"""Interfaces for running queries, implemented by `engines`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from datetime import date

    from modicum.core.canonical import Plain
    from modicum.query.statistics import Exact, ExactPlan, Secrets
    from modicum.query.tables import Table


class Runner(Protocol):
    """What computes exact numbers, which must not be disclosed."""

    def run(self, plan: ExactPlan, secrets: Secrets) -> Mapping[str, Exact]:
        """Return the exact statistics of a plan, by name; groups without rows lack."""
        ...


class Engine(Runner, Protocol):
    """An engine that holds rows."""

    @property
    def name(self) -> str:
        """Return its display name."""
        ...

    def check(self, plan: ExactPlan) -> None:
        """Check a plan for mistakes that can be found without reading a row."""
        ...

    def fits(self, table: Table) -> None:
        """Refuse data that is not as its table is declared; no row is read."""
        ...

    def run_day(
        self, plan: ExactPlan, secrets: Secrets, used: Mapping[int, Any]
    ) -> tuple[Mapping[str, Exact], Mapping[int, Any]]:
        """Return the same of one day, where some caps have kept rows on other days.

        Args:
            plan: The plan of the day.
            secrets: The secrets.
            used: By the number of such a cap, what it has kept; None for nothing.

        Returns:
            The statistics; and what each such cap keeps of this day.
        """
        ...


class Sampler(Protocol):
    """A source of noise."""

    def check(self, noise: str, scale: Fraction, sensitivity: Fraction) -> None:
        """Refuse noise that cannot be drawn exactly, or costs more than is priced."""
        ...

    def add(self, noise: str, scale: Fraction, values: Sequence[int]) -> list[int]:
        """Add independent discrete noise to whole numbers."""
        ...


class SecretSource(Protocol):
    """A source of secrets."""

    def draw(self) -> Secrets:
        """Return new, unpredictable secrets."""
        ...


class Stream(Protocol):
    """What was kept and answered of a query that is answered day by day."""

    def start(self, digest: str) -> None:
        """Note that its loss is spent, and what it is."""
        ...

    def must_be(self, digest: str) -> None:
        """Refuse another stream."""
        ...

    def answers(self, day: date) -> Plain:
        """Return the answers of a day; None if it can be begun; or refuse it."""
        ...

    def used(self, number: int, since: date) -> Any:
        """Return what a cap kept on earlier days, from one on; None for nothing."""
        ...

    def begin(self, day: date) -> None:
        """Note, durably, that rows of a day are about to be read."""
        ...

    def finish(
        self, day: date, answers: Mapping[str, Any], counts: Mapping[int, Any]
    ) -> None:
        """Keep, durably, the answers of a day, and what each cap kept of it."""
        ...


class Engines(Protocol):
    """A factory of engines and of all else that a run needs."""

    def engine(
        self,
        name: str,
        sources: Mapping[str, object],
        spark_master: str,
        *,
        spills: bool = True,
    ) -> AbstractContextManager[Engine]:
        """Return an engine, to be opened and closed."""
        ...

    def sampler(self) -> Sampler:
        """Return the source of noise."""
        ...

    def lots(self) -> SecretSource:
        """Return the source of secrets."""
        ...

    def stream(self, folder: Any, *, new: bool) -> AbstractContextManager[Stream]:
        """Return the folder of a query that is answered day by day, locked."""
        ...
