"""Opening engines by name, and drawing the secrets of a run."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final

from modicum.core.diagnostics import nearest
from modicum.core.errors import Code, Problem, UsageError
from modicum.core.extras import EXTRAS, not_installed
from modicum.engines.protocol import Engine
from modicum.query.statistics import Secrets

#: The engines, and the package that each needs.
ENGINES: Final = {"duckdb": "duckdb", "spark": "pyspark"}


def open_engine(
    name: str,
    sources: Mapping[str, object],
    *,
    master: str = "local[*]",
    spills: bool = True,
) -> Engine:
    """Return an engine that reads some tables; it is to be closed."""
    must_be_installed(name)
    if name == "spark":
        from modicum.engines.spark_engine import SparkEngine, SparkOptions

        return SparkEngine(sources, SparkOptions(master=master))
    from modicum.engines.duckdb_engine import DuckdbEngine, DuckdbOptions

    return DuckdbEngine(sources, DuckdbOptions(spills=spills))


def must_be_installed(name: str) -> None:
    """Refuse an engine that is not there."""
    if name not in ENGINES:
        raise UsageError(
            Problem(
                Code.OUT_OF_RANGE,
                f"there is no engine `{name[:40]}`",
                label=nearest(name, ENGINES),
                help="it is one of " + ", ".join(ENGINES),
            )
        )
    if find_spec(ENGINES[name]) is None:
        package = f"modicum[{EXTRAS[ENGINES[name]]}]"
        raise UsageError(not_installed(f"the engine `{name}`", package))


class SystemSecrets:
    """Secrets from the operating system."""

    def draw(self) -> Secrets:
        """Return new secrets that nobody can guess."""
        # A shorter key leaves room for a row's id in one block of SHA-256.
        return Secrets(
            secrets.token_hex(16), secrets.token_hex(32), secrets.token_hex(32)
        )
