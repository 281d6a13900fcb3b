"""The interface of engines, and the form of their errors."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Protocol, Self

from modicum.core.errors import Code, Problem, UnavailableError
from modicum.query.statistics import Exact, ExactPlan, Secrets
from modicum.query.tables import Table


class Engine(Protocol):
    """Reads tables and computes plans, exactly.

    Its methods raise `InputError` where plan, tables and data do not match, and
    `UnavailableError` for any other error, without its cause: engines quote rows.
    """

    @property
    def name(self) -> str:
        """Return its name."""

    def check(self, plan: ExactPlan) -> None:
        """Check that the data is as declared; no row is read."""

    def fits(self, table: Table) -> None:
        """Refuse data that is not as its table is declared; no row is read."""

    def run(self, plan: ExactPlan, secrets: Secrets) -> dict[str, Exact]:
        """Return the exact statistics by name; that of the selection is among them."""

    def run_day(
        self, plan: ExactPlan, secrets: Secrets, used: Mapping[int, Any]
    ) -> tuple[dict[str, Exact], dict[int, Any]]:
        """Return the same of one day, and what caps keep that count other days."""

    def interrupt(self) -> None:
        """Interrupt the call of another thread; it fails there."""

    def close(self) -> None:
        """Release all resources."""

    def __enter__(self) -> Self:
        """Return the engine."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""


def failed(name: str, doing: str) -> UnavailableError:
    """Return the error for an engine that failed."""
    return UnavailableError(
        Problem(
            Code.ENGINE_FAILED,
            f"{name} failed {doing}",
            notes=("its error message is hidden: it may quote rows",),
            help="check its files, memory and disk; run the same tables in the"
            " engine itself for details",
        )
    )
