"""The locations of a table's rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from modicum.engines.file_types import (
    header_of,
    must_be_duckdb,
    must_be_parquet,
    unreadable,
)
from modicum.engines.places import is_url, must_be_storage, not_there, parts_of

if TYPE_CHECKING:
    import pyarrow as pa

    from modicum.core.errors import InputError

#: Engines interpret these in a path as patterns.
_PATTERNS: Final = frozenset("*?[]{}")


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """Parquet files that hold one table together.

    Attributes:
        paths: The files, at least one; for Spark also URLs of a cluster's storage.
    """

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A CSV file: UTF-8, commas, double quotes, names in the first line; empty is NULL.

    Attributes:
        path: The file.
        columns: The names in its first line.
        typed: Whether the engine infers the column types from the rows, and nothing
            else about the file; else all are texts, as a guarantee requires: the
            content of one row must not determine how the others are read.
    """

    path: str
    columns: tuple[str, ...]
    typed: bool = False


@dataclass(frozen=True, slots=True)
class DuckdbTable:
    """A table or view of a DuckDB file.

    Attributes:
        path: The file.
        table: Its name.
        schema: Its schema.
    """

    path: str
    table: str
    schema: str = "main"


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A table or view of a catalog of Spark.

    Attributes:
        parts: The parts of its name, the catalog first; at least a schema and a name.
    """

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """Rows in memory.

    Attributes:
        rows: The Arrow table.
    """

    rows: pa.Table


Source: TypeAlias = ParquetFiles | CsvFile | DuckdbTable | CatalogTable | ArrowRows
#: Before the name of a table of a catalog.
_CATALOG: Final = "table:"


def source_of(where: object, table: str) -> Source:
    """Return where the rows of a table lie."""
    if isinstance(where, Source):
        return where
    if isinstance(where, str | Path):
        return _of_path(str(where), table)
    if isinstance(where, list | tuple):
        if any(Path(str(part)).suffix.lower() == ".csv" for part in where):
            raise unreadable(table, "a list may contain Parquet files only")
        paths = [one for part in where for one in _parquet(str(part), table)]
        return ParquetFiles(tuple(paths))
    return ArrowRows(_arrow(where, table))


def _of_path(path: str, table: str) -> Source:
    if is_url(path):
        return ParquetFiles(_parquet(path, table))
    if path.startswith(_CATALOG):
        return _of_catalog(path.removeprefix(_CATALOG), table)
    place, _, inside = path.partition("::")
    if inside or Path(place).suffix.lower() in {".duckdb", ".ddb"}:
        return _of_duckdb(_file(place, table), inside, table)
    if Path(place).suffix.lower() == ".csv":
        return CsvFile(_file(place, table), header_of(place, table))
    return ParquetFiles(_parquet(path, table))


def _of_catalog(name: str, table: str) -> CatalogTable:
    parts = parts_of(name, table)
    if len(parts) == 1:
        reason = "a table of a catalog is named with its schema"
        raise unreadable(table, reason, f"write {_CATALOG}CATALOG.SCHEMA.TABLE")
    return CatalogTable(parts)


def _of_duckdb(file: str, inside: str, table: str) -> DuckdbTable:
    must_be_duckdb(file, table)
    if not (inside or table):
        reason = "the table of the DuckDB file is not named"
        raise unreadable(table, reason, "write FILE.duckdb::TABLE")
    parts = parts_of(inside, table) if inside else (table,)
    if len(parts) > 2:
        reason = f"a DuckDB file has schemas with tables, not `{inside[:100]}`"
        raise unreadable(table, reason, "write FILE.duckdb::SCHEMA.TABLE")
    return DuckdbTable(file, parts[-1], *parts[:-1])


def _parquet(path: str, table: str) -> tuple[str, ...]:
    if is_url(path):
        must_be_storage(path, table)
        return (path,)
    place = Path(path)
    if place.is_dir():
        found = sorted(place.rglob("*.parquet"))
    elif place.is_file():
        found = [place]
    else:
        anchor = Path(place.anchor or ".")
        found = sorted(anchor.glob(str(place.relative_to(place.anchor))))
    if not found:
        raise _no_parquet(place, path, table)
    files = tuple(_file(str(one), table) for one in found)
    for file in files:
        must_be_parquet(file, table)
    return files


def _no_parquet(place: Path, path: str, table: str) -> InputError:
    if not place.is_dir():
        return not_there(path, table, "Parquet file")
    reason = "the folder has no file whose name ends in `.parquet`"
    if any(place.glob("*.csv")):
        return unreadable(
            table, reason, "give one `.csv` file; several are not a table"
        )
    return unreadable(table, reason)


def _file(path: str, table: str) -> str:
    place = Path(path).absolute()
    if not place.is_file():
        raise not_there(path, table)
    if not _PATTERNS.isdisjoint(str(place)):
        raise unreadable(table, "engines read its path as a pattern")
    return str(place)


def _arrow(where: Any, table: str) -> pa.Table:
    try:
        import pyarrow as pa
    except ImportError:
        raise unreadable(table, "rows in memory need `pyarrow`") from None
    if isinstance(where, pa.Table):
        return where
    if isinstance(where, pa.RecordBatch):
        return pa.Table.from_batches([where])
    raise unreadable(
        table,
        "it is neither a path nor an Arrow table",
        "give a file, or read the rows yourself: `reader.read_all()`,"
        " `relation.to_arrow_table()`, `pyarrow.table(frame)`",
    )
