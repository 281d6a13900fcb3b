"""The type of a file, by its first bytes.

An engine's error about a wrong type may quote rows, so it would be dropped. The first
bytes of a file type reveal nothing about rows.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from modicum.core.errors import Code, InputError, Problem

#: The first line of a CSV file is not longer.
_HEADER_MAX: Final = 1 << 20
_HELP: Final = (
    "give a Parquet file, folder or pattern, a `.csv` file, or `file.duckdb::table`"
)


class _Kind(NamedTuple):
    """A file type: its magic bytes and their offset; its name; a remedy."""

    begin: bytes
    at: int
    name: str
    remedy: str


_PARQUET: Final = _Kind(b"PAR1", 0, "a Parquet file", "rename it to ….parquet")
_SEALED: Final = _Kind(
    b"PARE", 0, "an encrypted Parquet file", "rename it to ….parquet"
)
_DUCKDB: Final = _Kind(b"DUCK", 8, "a DuckDB file", "name its table: FILE::TABLE")
_PACKED: Final = "unpack it, and give the file inside"
_KINDS: Final = (
    _PARQUET,
    _SEALED,
    _DUCKDB,
    _Kind(
        b"PK\x03\x04",
        0,
        "a spreadsheet or a ZIP archive",
        "save the sheet as CSV in UTF-8, or unpack the archive, and give that file",
    ),
    _Kind(b"\x1f\x8b", 0, "compressed by gzip", _PACKED),
    _Kind(b"\x28\xb5\x2f\xfd", 0, "compressed by zstd", _PACKED),
    _Kind(b"1AY&SY", 4, "compressed by bzip2", _PACKED),
    _Kind(b"SQLite format 3\0", 0, "a SQLite file", "write its rows to a CSV file"),
    _Kind(b"ARROW1", 0, "an Arrow or Feather file", "write its rows to Parquet"),
    _Kind(b"\xff\xfe", 0, "text in UTF-16", "save it in UTF-8"),
    _Kind(b"\xfe\xff", 0, "text in UTF-16", "save it in UTF-8"),
)
#: Other common column separators.
_SEPARATORS: Final = {";": "semicolons", "\t": "tabs", "|": "bars"}


def must_be_parquet(path: str, table: str) -> None:
    """Refuse a file that is no Parquet file."""
    first = _first(path, table)
    found = _kind(first)
    if found in (_PARQUET, _SEALED):
        return
    if found is not None:
        raise unreadable(table, f"it is {found.name}", found.remedy)
    raise unreadable(
        table,
        "it is not a Parquet file",
        "if it is comma-separated text, rename it to ….csv",
    )


def must_be_duckdb(path: str, table: str) -> None:
    """Refuse a file that is no DuckDB file."""
    found = _kind(_first(path, table))
    if found is not _DUCKDB:
        what = "not a DuckDB file" if found is None else found.name
        raise unreadable(table, f"it is {what}")


def header_of(path: str, table: str) -> tuple[str, ...]:
    """Return the names of the columns of a CSV file; no row is read."""
    first = _first(path, table)
    found = _kind(first)
    if found is not None and not _may_be_text(first, found):
        raise unreadable(table, f"it is {found.name}", found.remedy)
    try:
        with Path(path).open("rb") as file:  # Not a byte of a row is decoded.
            line = file.readline(_HEADER_MAX).decode("utf-8-sig")
        names = tuple(next(csv.reader([line]), ()))
    except UnicodeDecodeError:
        raise unreadable(
            table, "its first line is not UTF-8", "save it in UTF-8"
        ) from None
    except (OSError, csv.Error):
        names = ()
    if len(names) == 1:
        _refuse_separator(names[0], table)
    if not names or len(set(names)) < len(names):
        raise unreadable(table, "its first line is not a list of distinct column names")
    return names


def _refuse_separator(name: str, table: str) -> None:
    for sign, called in _SEPARATORS.items():
        if sign in name:
            raise unreadable(
                table,
                f"its first line has {called} and no commas",
                "save it with commas between columns, or write it to Parquet",
            )


def _first(path: str, table: str) -> bytes:
    """Return the first bytes of a file, at least one."""
    try:
        with Path(path).open("rb") as file:
            first = file.read(16)
    except OSError as error:
        reason = (error.strerror or "system error").lower()
        raise unreadable(table, reason) from None
    if not first:
        raise unreadable(table, "it is empty")
    return first


def _kind(first: bytes) -> _Kind | None:
    return next((one for one in _KINDS if first.startswith(one.begin, one.at)), None)


def _may_be_text(first: bytes, kind: _Kind) -> bool:
    """Return whether the first bytes may be column names that look like a file type."""
    control = any(byte < 32 and byte not in b"\t\r\n" for byte in first)
    return kind.begin.isascii() and not control


def must_be_here(paths: Iterable[str], table: str) -> None:
    """Refuse files of other machines."""
    if any("://" in path for path in paths):
        reason = "it is not on this machine, and DuckDB reads only local files"
        raise unreadable(table, reason, "copy it here, or use Spark")


def unreadable(table: str, reason: str, remedy: str = _HELP) -> InputError:
    """Return the error for data that cannot be read, ready to be raised."""
    of = f" of table `{table}`" if table else ""  # A query may call it anything.
    return InputError(
        Problem(
            Code.DATA_NOT_AS_DECLARED,
            f"the data{of} cannot be read: {reason}",
            help=remedy,
        )
    )
