"""Sessions of Spark that neither print nor log what they read."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: These write statements, plans and rows on stderr, on failure or while they work.
_LOGGERS: Final = (
    "SQLQueryContextLogger",
    "DataFrameQueryContextLogger",
    "py4j",
    "py4j.clientserver",
    "py4j.java_gateway",
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
    "spark.sql.execution.arrow.maxRecordsPerBatch": "131072",
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
        master: All cores of this machine, or a cluster's URL.
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

    active = SparkSession.getActiveSession()
    return active if active is not None else SparkSession._instantiatedSession  # noqa: SLF001


def started(options: SparkOptions, folder: Path) -> SparkSession:
    """Return a session that is started here."""
    from pyspark.sql import SparkSession

    silence()
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
    base.sparkContext.setLogLevel("OFF")
    session = base.newSession()
    for key, value in {**options.settings, **_RUN}.items():
        session.conf.set(key, value)
    return session


def silence() -> None:
    """Keep Spark's loggers in this process from writing statements and rows."""
    for name in _LOGGERS:
        logging.getLogger(name).disabled = True
