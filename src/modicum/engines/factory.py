"""The engines that can be chosen, and the secrets of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from modicum.core.diagnostics import nearest
from modicum.core.errors import Code, Problem, UsageError
from modicum.core.extras import extra_of, not_installed

if TYPE_CHECKING:
    from modicum.engines.sql_engine import SqlEngine
    from modicum.query.statistics import Secrets


class EngineOptions(Struct, frozen=True):
    """The options of an engine; an engine ignores those that it does not have.

    Attributes:
        master: The cluster that it runs on.
        memory: At most so much memory, such as `4GB`; None for its default.
        threads: The number of threads; None for its default.
        spills: Whether it may put rows aside on a disk; if not, it fails where memory
            does not do.
    """

    master: str = "local[*]"
    memory: str | None = None
    threads: int | None = None
    spills: bool = True


class EngineKind(Struct, frozen=True):
    """An available engine.

    Attributes:
        library: The library that it needs.
        open: Returns it, reading some tables; its module is imported here.
    """

    library: str
    open: Callable[[Mapping[str, object], EngineOptions], SqlEngine]


def _duckdb(sources: Mapping[str, object], options: EngineOptions) -> SqlEngine:
    from modicum.engines.duckdb_engine import DuckdbEngine, DuckdbOptions

    given = DuckdbOptions(options.memory, options.threads, spills=options.spills)
    return DuckdbEngine(sources, given)


def _spark(sources: Mapping[str, object], options: EngineOptions) -> SqlEngine:
    from modicum.engines.spark_engine import SparkEngine, SparkOptions

    return SparkEngine(sources, SparkOptions(options.master, memory=options.memory))


#: By name. Commands, their help and mistakes follow from it.
ENGINES: Final[Mapping[str, EngineKind]] = {
    "duckdb": EngineKind("duckdb", _duckdb),
    "spark": EngineKind("pyspark", _spark),
}
ENGINE_NAMES: Final = " or ".join(ENGINES)


def engine_named(name: str) -> EngineKind:
    """Return an engine that is installed."""
    if name not in ENGINES:
        raise UsageError(
            Problem(
                Code.OUT_OF_RANGE,
                f"unknown engine `{name[:40]}`",
                label=nearest(name, ENGINES),
                help="it is one of " + ", ".join(ENGINES),
            )
        )
    kind = ENGINES[name]
    if find_spec(kind.library) is None:
        package = f"modicum[{extra_of(kind.library)}]"
        raise UsageError(not_installed(f"the engine `{name}`", package))
    return kind


def open_engine(
    name: str,
    sources: Mapping[str, object],
    options: EngineOptions = EngineOptions(),  # noqa: B008 - it is frozen
) -> SqlEngine:
    """Return an engine that reads some tables; it is to be closed."""
    return engine_named(name).open(sources, options)


class SystemSecrets:
    """Secrets from the operating system."""

    def draw(self) -> Secrets:
        """Return new, unpredictable secrets."""
        import secrets

        from modicum.query.statistics import Secrets

        # A shorter key leaves room for a row's id in one block of SHA-256.
        return Secrets(
            secrets.token_hex(16), secrets.token_hex(32), secrets.token_hex(32)
        )
