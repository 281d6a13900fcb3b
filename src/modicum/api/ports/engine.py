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
        """Find mistakes that can be found without reading a row."""
        ...

    def fits(self, table: Table) -> None:
        """Refuse data that is not as its table is declared; no row is read."""
        ...

    def run(self, plan: ExactPlan, secrets: Secrets) -> Mapping[str, Exact]:
        """Return the exact statistics of a plan, by name; groups without rows lack."""
        ...


class Sampler(Protocol):
    """Where noise comes from."""

    def check(self, noise: str, scale: Fraction, sensitivity: Fraction) -> None:
        """Refuse noise that cannot be drawn exactly, or costs more than is priced."""
        ...

    def add(self, noise: str, scale: Fraction, values: Sequence[int]) -> list[int]:
        """Return whole numbers with discrete noise, each with a draw of its own."""
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
        """Return an engine, to be opened and closed."""
        ...

    def sampler(self) -> Sampler:
        """Return where noise comes from."""
        ...

    def lots(self) -> SecretSource:
        """Return where secrets come from."""
        ...
