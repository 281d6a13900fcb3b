"""The columns of a data file, with types, for drafting declarations."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Final

from modicum.engines.file_types import unreadable
from modicum.engines.sources import CsvFile, DuckdbTable, source_of
from modicum.query.tables import WRITTEN, Column, ColumnType
from modicum.query.tables_draft import USUAL_STEP, TableDraft, draft_table
from modicum.release.vocabulary import Vocabulary

#: Number of rows of a CSV file read to guess types.
ROWS_READ: Final = 10_000
_ORDER: Final[tuple[ColumnType, ...]] = (
    "boolean",
    "integer",
    "number",
    "date",
    "timestamp",
)
_FITS: Final = {kind: re.compile(WRITTEN[kind]) for kind in _ORDER}
_BY_FORM: Final[Mapping[str, ColumnType]] = {
    "text": "text",
    "integer": "integer",
    "float": "number",
    "decimal": "number",
    "long-decimal": "number",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp",
    "zoned": "timestamp",
}
#: A code such as a postal code: as a number it would lose its zeros.
_CODE: Final = re.compile("[+-]?0[0-9]+")
_DECIMALS_MAX: Final = 6


def drafted_from(place: str, table: str | None, vocabulary: Vocabulary) -> TableDraft:
    """Return the draft of a tables file for a data file.

    Types of Parquet and DuckDB are those of the file. Of a CSV file, the first 10,000
    rows are read; nothing that they hold becomes part of the draft but types and steps.
    """
    source = source_of(place, table or "")
    path = place.partition("::")[0]
    inside = source.table if isinstance(source, DuckdbTable) else None
    named = re.sub(r"\W+", "_", table or inside or Path(path).stem).strip("_")
    if isinstance(source, CsvFile):
        columns = list(_of_csv(source))
    else:
        columns = list(_of_engine(source))
    return draft_table(named or "data", Path(path).name, columns, vocabulary)


def _of_csv(source: CsvFile) -> Iterator[tuple[str, Column | None]]:
    possible = {name: list(_ORDER) for name in source.columns}
    seen = dict.fromkeys(source.columns, False)
    decimals = dict.fromkeys(source.columns, 0)
    for row in _rows(source):
        for name, value in zip(source.columns, row, strict=True):
            if not value:
                continue
            seen[name] = True
            if possible[name]:
                possible[name] = _still_possible(possible[name], value)
                decimals[name] = max(decimals[name], len(value.partition(".")[2]))
    for name in source.columns:
        kind: ColumnType = (
            possible[name][0] if seen[name] and possible[name] else "text"
        )
        places = min(decimals[name], _DECIMALS_MAX)
        step = Fraction(1, 10**places) if places else USUAL_STEP
        yield name, _guessed(name, kind, step)


def _still_possible(types: list[ColumnType], value: str) -> list[ColumnType]:
    if _CODE.fullmatch(value):
        types = [one for one in types if one not in {"integer", "number"}]
    return [one for one in types if _FITS[one].fullmatch(value)]


def _rows(source: CsvFile) -> Iterator[list[str]]:
    try:
        with Path(source.path).open(encoding="utf-8-sig", newline="") as file:
            for row in islice(csv.reader(file, strict=True), 1, 1 + ROWS_READ):
                if not row:
                    continue  # A blank line.
                if len(row) != len(source.columns):
                    reason = "a row has more or fewer fields than the first line"
                    raise unreadable("", reason, "correct the file")
                yield row
    except (OSError, UnicodeDecodeError, csv.Error):
        # The library's message may quote a row.
        reason = "it is not CSV in UTF-8"
        raise unreadable("", reason, "write it again, or as Parquet") from None


def _of_engine(source: object) -> Iterator[tuple[str, Column | None]]:
    from modicum.engines.factory import open_engine

    with open_engine("duckdb", {"data": source}) as engine:
        for name, form in engine.forms()["data"].items():
            kind = _BY_FORM.get(form)
            yield name, None if kind is None else _guessed(name, kind, USUAL_STEP)


def _guessed(name: str, kind: ColumnType, step: Fraction) -> Column:
    return Column(name, kind, step=step if kind == "number" else Fraction(1))
