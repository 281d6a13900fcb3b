"""URLs and dotted names that say where rows lie, without their passwords."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from modicum.core.errors import InputError
from modicum.engines.file_types import unreadable

#: Storage of files that Spark reads, by the schemes of its URLs.
_STORAGE: Final = frozenset({
    "abfs", "abfss", "adl", "cosn", "dbfs", "file", "gs", "hdfs", "obs", "ofs", "oss",
    "s3", "s3a", "s3n", "swebhdfs", "viewfs", "wasb", "wasbs", "webhdfs",
})  # fmt: skip
#: Endings of files that are no Parquet files.
_OTHERS: Final = frozenset({
    ".arrow", ".avro", ".bz2", ".csv", ".db", ".ddb", ".duckdb", ".feather", ".gz",
    ".json", ".jsonl", ".ndjson", ".orc", ".sqlite", ".tsv", ".txt", ".xlsx", ".xml",
    ".zip", ".zst",
})  # fmt: skip
_URL: Final = re.compile(r"(jdbc(?=:)|[a-z][a-z0-9+.-]{0,30}(?=://))", re.IGNORECASE)
_LOGIN: Final = re.compile(
    r":\S*@|(?:passw|pwd|secret|token|key)[^=/]*=", re.IGNORECASE
)
_PART: Final = re.compile(r'"((?:[^"]|"")+)"|`((?:[^`]|``)+)`|([^."`][^.]*)')
_DOTTED: Final = re.compile(r"\w+([.:]\w+){2,}")


def is_url(path: str) -> bool:
    """Return whether a path is a URL, as of storage or of a database."""
    return _scheme(path) != ""


def shown(path: str) -> str:
    """Return a path as messages show it: nothing of one that may hold a password.

    Args:
        path: A path, or anything that is given as one.
    """
    if is_url(path):
        return f"`{_scheme(path)}:…`"
    return "a login of a database" if _LOGIN.search(path) else f"`{path[:200]}`"


def _scheme(path: str) -> str:
    """Return the scheme of a URL; empty if a path is none."""
    found = _URL.match(path)
    return "" if found is None else found[1].lower()


def must_be_storage(url: str, table: str) -> None:
    """Refuse a URL at which no Parquet files can be; it may hold a password.

    Args:
        url: The URL.
        table: The table that it is for.

    Raises:
        InputError: If it is of no storage of files, or of a file of another kind.
    """
    scheme = _scheme(url)
    if scheme not in _STORAGE:
        raise unreadable(
            table,
            f"`{scheme}:` is no storage of Parquet files",
            "a database is not read: write the table to Parquet and give its files, or"
            " to a table of a Spark catalog, table:CATALOG.SCHEMA.TABLE",
        )
    ending = Path(url.partition("?")[0].rstrip("/")).suffix.lower()
    if ending in _OTHERS:
        raise unreadable(
            table,
            f"`{scheme}://…{ending}` is no Parquet file",
            "write its rows to Parquet; at a URL, Spark reads nothing else",
        )


def not_there(path: str, table: str, what: str = "file") -> InputError:
    """Return the error for a path at which nothing is, ready to be raised.

    Args:
        path: The path.
        table: The table that it is for.
        what: What should be there.
    """
    reason = f"no such {what}: {shown(path)}"
    if path.startswith("~"):
        return unreadable(table, reason, "write the path without ~")
    if _DOTTED.fullmatch(path) and Path(path).suffix.lower() not in _OTHERS:
        dotted = path.replace(":", ".")
        remedy = f"for a table of a Spark catalog, write table:{dotted}"
        return unreadable(table, reason, remedy)
    return unreadable(table, reason)


def parts_of(name: str, table: str) -> tuple[str, ...]:
    """Return the parts of a dotted name; one with a dot is in quotation marks.

    Args:
        name: The name, as ``main."odd.name".orders`` or with backquotes.
        table: The table that it is for.

    Raises:
        InputError: If a part is empty, or a quotation mark is left open.
    """
    found: list[str] = []
    begin = 0
    while True:
        part = _PART.match(name, begin)
        if part is None:
            break
        double, back, plain = part.groups()
        if double is not None:
            found.append(double.replace('""', '"'))
        elif back is not None:
            found.append(back.replace("``", "`"))
        else:
            found.append(plain)
        if part.end() == len(name):
            return tuple(found)
        if name[part.end()] != ".":
            break
        begin = part.end() + 1
    raise unreadable(
        table,
        f"`{name[:100]}` is not a name",
        'write SCHEMA.TABLE, and a part with a dot in quotation marks: SCHEMA."a.b"',
    )
