"""Tables of the catalogs of a Spark session, in one version where they have any."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from modicum.core.errors import InputError
from modicum.engines.file_types import unreadable
from modicum.engines.sources import CatalogTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: What a table is called that holds rows of its own. Views and what other systems
#: compute have none: one row of theirs may depend on many.
_STORED: Final = frozenset(("MANAGED", "EXTERNAL"))
#: Formats that hold typed rows, as they were written.
_FORMATS: Final = frozenset(("parquet", "orc", "delta", "iceberg"))
_DETAILS: Final = "# Detailed Table Information"
_REMEDY: Final = "write its rows to a table of Delta or Iceberg, or to Parquet files"


def frame_of(session: SparkSession, source: CatalogTable, table: str) -> DataFrame:
    """Return the rows of a table of a catalog; none is read yet.

    Of Iceberg and Delta, they are those of the present snapshot, whatever is written
    later.

    Args:
        session: The session with the catalogs.
        source: The table.
        table: The table of the query that it is for.

    Raises:
        InputError: If there is no such table, or one whose rows are not stored.
    """
    name = ".".join(f"`{part.replace('`', '``')}`" for part in source.parts)
    if not _exists(session, name):
        remedy = "name it with catalog and schema, as Spark's SHOW TABLES lists it"
        raise unreadable(table, f"Spark knows no table {_shown(source)}", remedy)
    facts = _facts(session, name)
    kind, stored_as = facts.get("Type", ""), facts.get("Provider", "").lower()
    if kind.upper() not in _STORED:
        raise _no_rows(source, table, "it is a view, or computed by another system")
    if stored_as not in _FORMATS:
        reason = "it is not stored as Parquet, ORC, Delta or Iceberg"
        raise _no_rows(source, table, reason)
    if stored_as == "iceberg":
        return _of_iceberg(session, source, table, name)
    if stored_as == "delta":
        # Its newest version comes first.
        newest = session.sql(f"DESCRIBE HISTORY {name} LIMIT 1").collect()[0]
        return _at_version(session, name, newest["version"])
    return session.table(name)


def _exists(session: SparkSession, name: str) -> bool:
    from pyspark.errors import AnalysisException

    try:
        return session.catalog.tableExists(name)
    except AnalysisException:  # There is no such catalog, or no such schema.
        return False


def _facts(session: SparkSession, name: str) -> Mapping[str, str]:
    """Return what Spark tells about a table below its columns; nothing of a view."""
    rows = session.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    told = [(row["col_name"], row["data_type"]) for row in rows]
    begins = [place for place, (key, _) in enumerate(told) if key == _DETAILS]
    found: dict[str, str] = {}
    for key, value in told[begins[-1] + 1 :] if begins else ():
        found.setdefault(key, value)
    return found


def _of_iceberg(
    session: SparkSession, source: CatalogTable, table: str, name: str
) -> DataFrame:
    rows = session.sql(f"SHOW TBLPROPERTIES {name}").collect()
    told = {row["key"]: row["value"] for row in rows}
    if "format-version" not in told:  # As of `orders.snapshots`.
        raise _no_rows(source, table, "it holds metadata of another table")
    snapshot = told["current-snapshot-id"]
    if snapshot == "none":
        return session.table(name).limit(0)  # It stays empty for this run.
    return _at_version(session, name, snapshot)


def _at_version(session: SparkSession, name: str, version: object) -> DataFrame:
    return session.sql(f"SELECT * FROM {name} VERSION AS OF {int(str(version))}")  # noqa: S608


def _no_rows(source: CatalogTable, table: str, reason: str) -> InputError:
    message = f"the sensitivity of {_shown(source)} is unknown: {reason}"
    return unreadable(table, message, _REMEDY)


def _shown(source: CatalogTable) -> str:
    return f"`{'.'.join(source.parts)[:100]}`"
