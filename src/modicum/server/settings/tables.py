"""Reading which tables can be analyzed, by their data sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from msgspec import structs

from modicum.api.schema.risk import column
from modicum.core.document import Entries, Kind, Node, Scalar
from modicum.core.errors import Code
from modicum.core.reader import Fields, Problems, fail, line, name

_EXAMPLE: Final = "write  visits: visits.parquet  or  visits: {rows: …, unit: patient}"


@dataclass(frozen=True, slots=True)
class TablesOf:
    """The tables of a data set.

    Attributes:
        rows: The locations, by the name that a query calls each; by `""` the only one,
            which a query may call anything.
        unit: The default column that identifies a person; None if each row is a person.
    """

    rows: Mapping[str, str]
    unit: str | None = None


def read_tables(node: Node | None, folder: Path) -> Mapping[str, TablesOf]:
    """Return the tables of each data set in a section."""
    if node is None:
        return {}
    found = Problems()
    tables: dict[str, TablesOf] = {}
    for key, value in Fields(node, "`tables`", help=_EXAMPLE).rest():
        with found.guard():
            # As in `grants`: a data set may have a number as its name.
            called = name(structs.replace(key, kind=Kind.TEXT), "a data set")
            tables[called] = _tables(value, called, folder)
    found.raise_any()
    return tables


def _tables(node: Node, called: str, folder: Path) -> TablesOf:
    if isinstance(node, Scalar):
        return TablesOf({"": _place(node, folder)})
    fields = Fields(node, f"`{called}`", help=_EXAMPLE)
    rows = _rows(fields.take("rows"), folder)
    unit = fields.take_optional("unit")
    fields.finish()
    return TablesOf(rows, None if unit is None else column(unit, "`unit`"))


def _rows(node: Node, folder: Path) -> Mapping[str, str]:
    if not isinstance(node, Entries):
        return {"": _place(node, folder)}
    pairs = Fields(node, "`rows`").rest()
    if not pairs:
        raise fail(Code.MISSING_KEY, "`rows` has no table", node, help=_EXAMPLE)
    return {line(key, "a table"): _place(value, folder) for key, value in pairs}


def _place(node: Node, folder: Path) -> str:
    given = line(node, "a table's place")
    if not given or "://" in given:
        raise fail(
            Code.NOT_SUPPORTED,
            f"`{given[:100]}` is not a file on this machine",
            node,
            help="name a Parquet file, a `.csv` file, or `file.duckdb::table`",
        )
    return str(folder / given)
