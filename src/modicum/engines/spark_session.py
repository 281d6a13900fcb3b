"""Sessions of Spark that neither print nor log what they read."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from modicum.core.errors import UsageError
from modicum.core.extras import not_installed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: These write statements, plans and rows on stderr, on failure or while they work.
_LOGGERS: Final = (
    "SQLQueryContextLogger",
    "DataFrameQueryContextLogger",
    "py4j",
    "py4j.clientserver",
    "py4j.java_gateway",
    "pyspark.sql.connect.logging",
    "pyspark.sql.connect.client.logging",
)
#: Of a session that is started here.
_STARTED: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
    "spark.log.level": "OFF",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.catalogImplementation": "in-memory",
}
_LOCAL: Final = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
#: A session of its own sees the same catalogs if it has these settings.
_CATALOGS: Final = ("spark.sql.catalog.", "spark.sql.defaultCatalog")
#: Of the statements that are run here, in every session.
_RUN: Final = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.csv.parser.columnPruning.enabled": "false",
    "spark.sql.redaction.string.regex": "(?s).+",
    # Spark adds up the bytes of a batch after each row, which takes a quarter of all
    # time that caps take. So only the number of rows ends a batch.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "32768",
    # Else more than 2 GiB of texts in a batch would end a run.
    "spark.sql.execution.arrow.useLargeVarTypes": "true",
}
_QUIET: Final = """\
status = off
rootLogger.level = off
rootLogger.appenderRef.none.ref = none
appender.none.type = Null
appender.none.name = none
"""


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """Which Spark to use, and how.

    Attributes:
        master: All cores of this machine, a cluster's URL, or that of Spark Connect.
        session: A session that is there already; it stays, and its log is silenced.
        settings: More settings for statements, such as `spark.sql.shuffle.partitions`;
            those that results depend on stay as they are.
        memory: Of a process that is started here, such as `4g`.
    """

    master: str = "local[*]"
    session: SparkSession | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    memory: str | None = None


def running() -> SparkSession | None:
    """Return a session of this process, if there is one already."""
    from pyspark.sql import SparkSession
    from pyspark.sql.utils import is_remote as in_connect_mode

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if in_connect_mode():
        from pyspark.sql.connect.session import SparkSession as Connected

        # Of another thread. Both kinds of session have all that is used here.
        return cast("SparkSession | None", Connected._get_default_session())  # noqa: SLF001
    return SparkSession._instantiatedSession  # noqa: SLF001


def started(options: SparkOptions, folder: Path) -> SparkSession:
    """Return a session that is started here."""
    from pyspark.sql import SparkSession

    silence()
    if is_connect_url(options.master):
        if find_spec("grpc") is None:
            raise UsageError(not_installed("Spark Connect", "pyspark[connect]"))
        return SparkSession.builder.remote(options.master).create()
    quiet = folder / "log4j2.properties"
    quiet.write_text(_QUIET, encoding="utf-8")
    settings = dict(_STARTED)
    settings["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={quiet}"
    settings["spark.sql.warehouse.dir"] = str(folder / "warehouse")
    if options.master.startswith("local"):
        settings |= _LOCAL | {"spark.local.dir": str(folder / "local")}
    if options.memory is not None:
        settings["spark.driver.memory"] = options.memory
    builder = SparkSession.builder.master(options.master).appName("modicum")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    if options.master.startswith(
        "local"
    ):  # Workers need the libraries of this process.
        session.sparkContext.pythonExec = sys.executable
    return session


def own_session(base: SparkSession, options: SparkOptions) -> SparkSession:
    """Return a session with separate tables and settings, on the same Spark."""
    silence()
    if not is_remote(base):  # Clients of Spark Connect cannot set its server's log.
        base.sparkContext.setLogLevel("OFF")
    session = _separate(base)
    catalogs = {
        key: value
        for key, value in base.conf.getAll.items()
        if key.startswith(_CATALOGS)
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # About settings that change their names.
        for key, value in {**catalogs, **options.settings, **_RUN}.items():
            session.conf.set(key, value)
    return session


def _separate(base: Any) -> SparkSession:
    """Return a new session; before pyspark 4.3, Spark Connect has only clones."""
    new = base.newSession if hasattr(base, "newSession") else base.cloneSession
    session: SparkSession = new()
    return session


def is_remote(session: SparkSession) -> bool:
    """Return whether a session is one of Spark Connect: it has no Java beside it."""
    return getattr(session, "sparkContext", None) is None


def release(session: SparkSession) -> None:
    """Let the server of Spark Connect forget a session that was made here."""
    if is_remote(session):
        session.client.release_session()
        session.client.close()


def is_connect_url(master: str) -> bool:
    """Return whether a URL is that of a server of Spark Connect."""
    return master.startswith("sc://")


def silence() -> None:
    """Keep Spark's loggers in this process from writing statements and rows."""
    for name in _LOGGERS:
        logging.getLogger(name).disabled = True
