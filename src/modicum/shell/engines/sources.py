"""Where the rows of a table lie."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from modicum.core.errors import Code, InputError, Problem

if TYPE_CHECKING:
    import pyarrow as pa

#: Engines take these in a path for patterns of their own.
_PATTERNS: Final = frozenset("*?[]{}")
#: The first line of a CSV file is not longer.
_HEADER_MAX: Final = 1 << 20


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
        typed: Whether the engine finds the types of its columns in the rows; else all
            are texts, as a guarantee needs: what one row holds must not decide how the
            others are read.
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
    """

    path: str
    table: str


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """Rows in memory.

    Attributes:
        rows: The Arrow table.
    """

    rows: pa.Table


Source: TypeAlias = ParquetFiles | CsvFile | DuckdbTable | ArrowRows


def source_of(where: object, table: str) -> Source:
    """Return where the rows of a table lie.

    Args:
        where: A path: `….csv`, `….duckdb::table` (the table's name if it is left
            away), anything else is a Parquet file, a folder of such files or a pattern
            for their names; several of these in a list; or rows in memory: an Arrow
            table or batch. What has yet to be read or converted is not taken: rows
            are read after the start of a release, and its failures may quote them.
        table: The table's name.

    Raises:
        InputError: If nothing is there, or nothing that can be read.
    """
    if isinstance(where, ParquetFiles | CsvFile | DuckdbTable | ArrowRows):
        return where
    if isinstance(where, str | Path):
        return _of_path(str(where), table)
    if isinstance(where, list | tuple):
        if any(Path(str(part)).suffix.lower() == ".csv" for part in where):
            raise _unreadable(table, "a list is one of Parquet files")
        paths = [one for part in where for one in _parquet(str(part), table)]
        return ParquetFiles(tuple(paths))
    return ArrowRows(_arrow(where, table))


def _of_path(path: str, table: str) -> Source:
    place, _, inside = path.partition("::")
    if inside or Path(place).suffix.lower() in {".duckdb", ".ddb"}:
        return DuckdbTable(_file(place, table), inside or table)
    if Path(place).suffix.lower() == ".csv":
        return CsvFile(_file(place, table), _header(place, table))
    return ParquetFiles(_parquet(path, table))


def _parquet(path: str, table: str) -> tuple[str, ...]:
    if "://" in path:
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
        raise _unreadable(table, f"there is no such Parquet file: `{path[:200]}`")
    return tuple(_file(str(one), table) for one in found)


def _file(path: str, table: str) -> str:
    place = Path(path).absolute()
    if not place.is_file():
        raise _unreadable(table, f"there is no such file: `{path[:200]}`")
    if not _PATTERNS.isdisjoint(str(place)) or "://" in path:
        raise _unreadable(table, "engines take its path for a pattern")
    return str(place)


def _header(path: str, table: str) -> tuple[str, ...]:
    try:
        with Path(path).open("rb") as file:  # Not a byte of a row is decoded.
            first = file.readline(_HEADER_MAX).decode("utf-8-sig")
        names = tuple(next(csv.reader([first]), ()))
    except (OSError, UnicodeDecodeError, csv.Error):
        names = ()
    if not names or len(set(names)) < len(names):
        raise _unreadable(table, "its first line does not name its columns, each once")
    return names


def _arrow(where: Any, table: str) -> pa.Table:
    try:
        import pyarrow as pa
    except ImportError:
        raise _unreadable(table, "rows in memory need `pyarrow`") from None
    if isinstance(where, pa.Table):
        return where
    if isinstance(where, pa.RecordBatch):
        return pa.Table.from_batches([where])
    raise _unreadable(
        table,
        "it is neither a path nor a table of Arrow",
        "  Rows elsewhere are read by you: `reader.read_all()`,"
        " `relation.to_arrow_table()`, `pyarrow.table(frame)`",
    )


def _unreadable(table: str, reason: str, more: str = "") -> InputError:
    return InputError(
        Problem(
            Code.DATA_NOT_AS_DECLARED,
            f"the data of table `{table}` cannot be read: {reason}",
            help="name a Parquet file, folder or pattern, a `.csv` file, or"
            f" `file.duckdb::table`{more}",
        )
    )
