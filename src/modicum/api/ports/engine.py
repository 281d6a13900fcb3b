"""Interfaces for running queries, implemented by `engines`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from modicum.query.statistics import Exact, ExactPlan, Secrets
    from modicum.query.tables import Table


class Engine(Protocol):
    """An engine that holds rows. Its numbers are exact and must not be disclosed."""

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

    def run(self, plan: ExactPlan, secrets: Secrets) -> Mapping[str, Exact]:
        """Return the exact statistics of a plan, by name; groups without rows lack."""
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
