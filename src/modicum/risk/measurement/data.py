"""The tables of a controller, opened to look at them without noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from modicum.core.errors import Code, Problem, UsageError
from modicum.engines.factory import EngineOptions, engine_named
from modicum.engines.sources import ArrowRows, CsvFile, source_of
from modicum.engines.sql_engine import SqlEngine
from modicum.risk.question import ONLY


class ControllerData:
    """Tables that an engine reads for their controller, without any protection.

    Args:
        data: The location of the rows: a path (`.csv`, `.duckdb::table`, anything else
            is Parquet), or rows in memory (Arrow, pandas, Polars, or a relation of
            DuckDB); a query may call this table anything. Or several of them, by name.
        engine: One of `modicum.engines.factory.ENGINES`.
        typed: Whether the column types of a CSV file are inferred from its rows.
            Otherwise all are texts, and no row is read to open it.
        options: The resources of the engine.

    Raises:
        UsageError: If there is no such engine, or it is not installed.
        InputError: If a source is not there.
        UnavailableError: If the engine does not start.
    """

    def __init__(
        self,
        data: object,
        engine: str = "duckdb",
        *,
        typed: bool = True,
        options: EngineOptions = EngineOptions(),  # noqa: B008 - it is frozen
    ) -> None:
        kind = engine_named(engine)
        tables = data if isinstance(data, Mapping) else {ONLY: data}
        sources = {name: _source(one, name, typed) for name, one in tables.items()}
        #: Whether types of columns can be known from the rows only.
        self.typed_by_rows = any(
            isinstance(source, CsvFile) or _of_pandas(tables[name])
            for name, source in sources.items()
        )
        self.engine: SqlEngine = kind.open(sources, options)

    def close(self) -> None:
        """Close the engine."""
        self.engine.close()

    def __enter__(self) -> Self:
        """Return the data."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the engine."""
        self.close()


def _of_pandas(where: object) -> bool:
    """Whether these are rows of pandas: a gap turns its whole numbers into floats."""
    return type(where).__module__.partition(".")[0] == "pandas"


def _source(where: object, name: str, typed: bool) -> object:  # noqa: FBT001
    """Return where rows are."""
    if isinstance(where, str | Path | list | tuple | pa.Table | pa.RecordBatch):
        source = source_of(where, name)
        return replace(source, typed=typed) if isinstance(source, CsvFile) else source
    return ArrowRows(_table(where, name))


def _table(where: Any, name: str) -> pa.Table:
    """Return a frame or relation as an Arrow table."""
    if hasattr(where, "__arrow_c_stream__"):
        return pa.table(where)
    raise UsageError(
        Problem(
            Code.WRONG_TYPE,
            f"the data{f' of `{name}`' if name else ''} is a {type(where).__name__}",
            help="give a path, a pandas or Polars data frame, a DuckDB relation, or"
            " an Arrow table",
        )
    )
