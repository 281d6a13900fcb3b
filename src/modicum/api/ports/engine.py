"""What running queries needs from the world; the shell implements it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from modicum.query.statistics import Exact, ExactPlan, Secrets
    from modicum.query.tables import Table


class Engine(Protocol):
    """Where the rows are. It computes exact numbers, which nobody may see."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    def check(self, plan: ExactPlan) -> None:
        """Find mistakes that can be found without reading a row.

        Args:
            plan: What is to be computed.

        Raises:
            InputError: If tables or columns are not there, or of another type.
        """
        ...

    def fits(self, table: Table) -> None:
        """Refuse data that is not as its table is declared; no row is read.

        Args:
            table: The table.

        Raises:
            InputError: If a column is not there, or of another type.
        """
        ...

    def run(self, plan: ExactPlan, secrets: Secrets) -> Mapping[str, Exact]:
        """Return the exact statistics of a plan, by name; groups without rows lack.

        Args:
            plan: What is to be computed.
            secrets: Of this run.

        Raises:
            ModicumError: If it fails, in words that say nothing of what it read.
        """
        ...


class Sampler(Protocol):
    """Where noise comes from."""

    def check(self, noise: str, scale: Fraction, sensitivity: Fraction) -> None:
        """Refuse noise that cannot be drawn exactly, or costs more than is priced.

        Args:
            noise: `gaussian` or `laplace`.
            scale: Its scale, in steps.
            sensitivity: How far the answer moves, in steps, in its norm.

        Raises:
            InputError: If it is so.
        """
        ...

    def add(self, noise: str, scale: Fraction, values: Sequence[int]) -> list[int]:
        """Return whole numbers with discrete noise, each with a draw of its own.

        Args:
            noise: `gaussian` or `laplace`.
            scale: Its scale, in steps.
            values: The numbers.
        """
        ...


class SecretSource(Protocol):
    """Where secrets come from."""

    def draw(self) -> Secrets:
        """Return new secrets that nobody can guess."""
        ...


class Engines(Protocol):
    """Where engines come from, and all else that a run needs."""

    def engine(
        self,
        name: str,
        sources: Mapping[str, object],
        spark_master: str,
        *,
        spills: bool = True,
    ) -> AbstractContextManager[Engine]:
        """Return an engine, to be opened and closed.

        Args:
            name: Which one.
            sources: By table, where its rows are.
            spark_master: For Spark, where it runs.
            spills: Whether rows that do not fit into memory may be written to a disk.

        Raises:
            UsageError: If there is no such engine, or it is not installed.
            InputError: If a source is not there.
            UnavailableError: If it does not start.
        """
        ...

    def sampler(self) -> Sampler:
        """Return where noise comes from."""
        ...

    def lots(self) -> SecretSource:
        """Return where secrets come from."""
        ...
