"""Spark: on this machine, or on a cluster that reads its own storage."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from modicum.core.errors import Code, InputError, Problem, UnavailableError
from modicum.core.redaction import scrubbed
from modicum.engines.caps import arrays
from modicum.engines.caps import rows as of_caps
from modicum.engines.caps.rows import Caps, kept_of_all
from modicum.engines.protocol import failed
from modicum.engines.sources import (
    CatalogTable,
    CsvFile,
    DuckdbTable,
    ParquetFiles,
    Source,
)
from modicum.engines.spark_catalog import frame_of
from modicum.engines.spark_session import (
    SparkOptions,
    is_connect_url,
    is_remote,
    own_session,
    release,
    running,
    started,
)
from modicum.engines.sql_engine import SqlEngine
from modicum.query.sql.columns import Form
from modicum.query.sql.statements import Statements
from modicum.query.statistics import ExactPlan

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["SparkEngine", "SparkOptions"]

_NAME: Final = "spark"
#: The relation of the rows that caps keep.
_KEPT: Final = "kept_rows"
_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
_FORMS: Final[dict[str, Form]] = {
    "string": "text",
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "integer"),
    "float": "float",
    "double": "float",
    "boolean": "boolean",
    "date": "date",
    "timestamp_ntz": "timestamp",
    "timestamp": "zoned",
}


class SparkEngine(SqlEngine):
    """Computes plans in Spark.

    Args:
        sources: By table, the location of its rows, as `source_of` takes it; a cluster
            reads files by the same paths.
        options: Which Spark to use.

    Raises:
        InputError: If a source is not there, or in a file that Spark does not read.
        UnavailableError: If Spark does not start, or cannot open a source.
    """

    name = _NAME
    dialect = "spark"

    def __init__(
        self,
        sources: Mapping[str, object],
        options: SparkOptions = SparkOptions(),  # noqa: B008 - it is frozen
    ) -> None:
        super().__init__(sources)
        self._started: SparkSession | None = None
        #: Whether workers have cut rows before.
        self._tried = False
        self._folder = Path(tempfile.mkdtemp(prefix="modicum-spark-"))
        try:
            self._session = scrubbed(
                lambda: self._start(options, self._folder), failed(_NAME, "to start")
            )
            scrubbed(self._open, failed(_NAME, "to open the tables"))
        except BaseException:
            self.close()
            raise

    def check(self, plan: ExactPlan) -> None:
        """Check that the data is as declared, and that workers can cut rows."""
        super().check(plan)
        if plan.caps and not self._tried:
            scrubbed(self._try_workers, _no_workers())
            self._tried = True

    def interrupt(self) -> None:
        """Interrupt the call of another thread; it fails there."""
        scrubbed(self._session.interruptAll, failed(_NAME, "to stop"))

    def close(self) -> None:
        """Drop the tables; end the session if it was started here."""
        with suppress(Exception):  # It may be gone already.
            for relation in self._relations.values():
                self._session.catalog.dropTempView(relation)
            release(self._session)
        if self._started is not None:
            with suppress(Exception):
                self._started.stop()
            self._started = None
        shutil.rmtree(self._folder, ignore_errors=True)

    # --- inside -----------------------------------------------------------------------

    def _select(self, statement: str) -> Iterable[Sequence[object]]:
        return self._session.sql(statement).collect()

    def _fetch(self, statement: str) -> pa.Table:
        return self._session.sql(statement).toArrow()

    def _types_of(self, statement: str) -> tuple[str, ...]:
        return tuple(kind for _, kind in self._session.sql(statement).dtypes)

    def _keep(self, name: str, statement: str) -> None:
        rows = self._session.sql(statement)
        # A checkpoint of Spark Connect is one of the active session, not of this one.
        kept = rows.persist() if is_remote(self._session) else rows.localCheckpoint()
        kept.createOrReplaceTempView(name)

    def _view(self, name: str, statement: str) -> None:
        self._session.sql(statement).createOrReplaceTempView(name)

    def _forget(self, name: str, *, kept: bool) -> None:
        if kept:
            self._session.table(name).unpersist()
        for one in (name, _KEPT):
            self._session.catalog.dropTempView(one)

    def _bring(self, name: str, rows: pa.Table) -> None:
        self._session.createDataFrame(rows).createOrReplaceTempView(name)

    def _cut(
        self, rows: str, made: Statements, caps: Caps, *, whole: bool = False
    ) -> Callable[[], str]:
        """Return a function that returns a relation of the rows that caps keep.

        The rows of one id come to one worker, for the caps of each id in turn.
        """
        from pyspark.sql.types import StructType

        frame = self._session.table(rows)
        parts = [list(limits) for _, limits in groupby(caps.limits, itemgetter(1))]
        for limits in parts:
            # In the end only what is counted leaves the workers.
            last = limits is parts[-1] and not whole
            read = made.counted if last else frame.columns
            schema = StructType([frame.schema[name] for name in read])
            work = partial(kept_of_all, caps.of(limits), read)
            frame = frame.repartition(limits[0][1]).mapInArrow(work, schema)
        frame.createOrReplaceTempView(_KEPT)
        return lambda: _KEPT

    def _try_workers(self) -> None:
        """Cut nothing, so that missing libraries are noticed before rows are read."""
        from pyspark.cloudpickle import register_pickle_by_value

        for module in (of_caps, arrays):  # Workers need not have modicum.
            register_pickle_by_value(module)  # type: ignore[no-untyped-call]
        work = partial(kept_of_all, Caps([(1, "id", None, None)], [], "00"), ["id"])
        self._session.range(1).mapInArrow(work, "id long").collect()

    def _start(self, options: SparkOptions, folder: Path) -> SparkSession:
        base = options.session
        if base is None and not is_connect_url(options.master):
            base = running()
        if base is None:
            base = self._started = started(options, folder)
        return own_session(base, options)

    def _open(self) -> None:
        for table, source in self._sources.items():
            frame = self._read(table, source)
            frame.createOrReplaceTempView(self._relations[table])
            written = isinstance(source, CsvFile) and not source.typed
            self._forms[table] = {
                name: "written" if written else _form(kind)
                for name, kind in frame.dtypes
            }

    def _read(self, table: str, source: Source) -> DataFrame:
        read = self._session.read
        if isinstance(source, ParquetFiles):
            return read.parquet(*source.paths)
        if isinstance(source, CsvFile):
            return read.csv(
                source.path,
                schema=None if source.typed else _texts(source.columns),
                inferSchema=source.typed,
                header=True,
                mode="FAILFAST",
                quote='"',
                escape='"',
                multiLine=True,
                encoding="UTF-8",
            )
        if isinstance(source, DuckdbTable):
            raise InputError(
                Problem(
                    Code.DATA_NOT_AS_DECLARED,
                    f"Spark does not read the DuckDB file of table `{table}`",
                    help="export it to Parquet, or use DuckDB",
                )
            )
        if isinstance(source, CatalogTable):
            return frame_of(self._session, source, table)
        return self._session.createDataFrame(source.rows)


def _no_workers() -> UnavailableError:
    return UnavailableError(
        Problem(
            Code.ENGINE_FAILED,
            "Spark's workers cannot keep to bounds: they need Python with numpy,"
            " pandas and pyarrow",
            notes=("no row was read",),
            help="install these where Spark runs, and here; PYSPARK_PYTHON names the"
            " Python of the workers",
        )
    )


def _texts(columns: Sequence[str]) -> StructType:
    from pyspark.sql.types import StringType, StructField, StructType

    return StructType([StructField(name, StringType()) for name in columns])


def _form(described: str) -> Form:
    digits = _DECIMAL.fullmatch(described)
    if digits is None:
        return _FORMS.get(described, "other")
    precision, scale = int(digits[1]), int(digits[2])
    if scale == 0 and precision <= 18:
        return "integer"
    return "decimal" if precision <= 15 else "long-decimal"
