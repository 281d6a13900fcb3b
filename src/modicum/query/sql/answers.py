"""From the rows that an engine answers to exact statistics."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence
from datetime import datetime

from modicum.core.errors import check
from modicum.query.sql.statements import Statement
from modicum.query.statistics import KeyValue
from modicum.query.tables import ColumnType


def read_answers(
    statement: Statement,
    rows: Iterable[Sequence[object]],
    found: MutableMapping[str, dict[tuple[KeyValue, ...], int]],
) -> None:
    """Add what an engine answered to the statistics that were found.

    Args:
        statement: What was asked.
        rows: What was answered.
        found: By the name of a statistic, its numbers by group; those of groups that
            have no rows are left out.
    """
    width = len(statement.keys)
    for name in statement.statistics:
        found[name] = {}
    for row in rows:
        if not row[width]:
            continue  # Without keys, there is a row of no rows.
        group = tuple(map(_key, row[:width], statement.keys))
        for name, number in zip(statement.statistics, row[width + 1 :], strict=True):
            found[name][group] = _whole(number)


def _key(value: object, kind: ColumnType) -> KeyValue:
    if value is None:
        return None
    if kind == "boolean":
        return bool(value)
    if kind == "integer":
        return _whole(value)
    check(isinstance(value, str), "keys are told as texts")
    if kind == "timestamp":
        return datetime.fromisoformat(str(value)).isoformat()
    return str(value)


def _whole(number: object) -> int:
    whole = int(number)  # type: ignore[call-overload] # int, Decimal
    check(whole == number, "engines answer whole numbers")
    return int(whole)
