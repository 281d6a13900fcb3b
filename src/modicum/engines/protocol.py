"""What an engine does, and how its failures are told."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

from modicum.core.errors import Code, Problem, UnavailableError
from modicum.query.statistics import Exact, ExactPlan, Secrets
from modicum.query.tables import Table


class Engine(Protocol):
    """Something that reads tables and computes plans, exactly.

    Its methods raise `InputError` where plan, tables and data do not fit each other,
    and `UnavailableError` for anything else that goes wrong, without a word about why:
    engines quote rows.
    """

    @property
    def name(self) -> str:
        """What it is called."""

    def check(self, plan: ExactPlan) -> None:
        """Check that the data is as declared; no row is read."""

    def fits(self, table: Table) -> None:
        """Refuse data that is not as its table is declared; no row is read."""

    def run(self, plan: ExactPlan, secrets: Secrets) -> dict[str, Exact]:
        """Return the exact statistics by name; that of the selection is among them."""

    def interrupt(self) -> None:
        """End what runs in another thread; it fails there."""

    def close(self) -> None:
        """Let go of everything that it holds."""

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
