"""Which data belongs to which table of a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from modicum.core.diagnostics import nearest
from modicum.core.errors import Code, Problem, UsageError


def by_table(data: object, tables: Sequence[str]) -> dict[str, object]:
    """Return where the rows of each table of a query are.

    Args:
        data: By table, where its rows are. Of a query that reads one table, this may
            also be just where they are.
        tables: The tables that the query reads.

    Raises:
        UsageError: If a table has no data, or some is for a table that is not read.
    """
    if not isinstance(data, Mapping):
        if len(tables) == 1 and data is not None:
            return {tables[0]: data}
        raise _refused(f"say where {_named(tables)} is", tables)
    for table in data:
        if table not in tables:
            message = f"the query reads no table `{str(table)[:60]}`"
            raise _refused(message, tables, nearest(str(table), tables))
    missing = [table for table in tables if table not in data]
    if missing:
        raise _refused(f"say where {_named(missing)} is", tables)
    return {table: data[table] for table in tables}


def _refused(message: str, tables: Sequence[str], meant: str = "") -> UsageError:
    written = ", ".join(f'"{table}": …' for table in tables)
    return UsageError(
        Problem(
            Code.UNKNOWN_NAME, message, label=meant, help=f"give  data={{{written}}}"
        )
    )


def _named(tables: Sequence[str]) -> str:
    return " and ".join(f"`{table}`" for table in tables)
