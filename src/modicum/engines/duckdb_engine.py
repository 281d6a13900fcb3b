"""DuckDB: reads files of this machine, and nothing else."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Final
from weakref import finalize

from sqlglot import exp

from modicum.core.errors import Code, InputError, Problem
from modicum.core.redaction import scrubbed
from modicum.engines.caps.rows import Caps, Sketch, kept_rows
from modicum.engines.file_types import must_be_here, unreadable
from modicum.engines.protocol import failed
from modicum.engines.sources import (
    ArrowRows,
    CatalogTable,
    CsvFile,
    DuckdbTable,
    ParquetFiles,
)
from modicum.engines.sql_engine import SqlEngine
from modicum.query.sql.columns import Form
from modicum.query.sql.statements import Statements

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_NAME: Final = "duckdb"
#: The relation of the rows that caps keep.
_KEPT: Final = "kept_rows"
#: Rows of a batch.
_BATCH: Final = 122_880
#: Not more rows are held in memory while caps count them; more are read again.
_HELD: Final = 1 << 24
#: Nor more bytes of them.
_HELD_BYTES: Final = 1 << 30
#: Then crowded rows are held in parts of so many bytes; the rows are read for each.
_PART_BYTES: Final = 3 << 29
#: Forbidden features; no statement can enable them again.
_CLOSED: Final = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_unsigned_extensions": "false",
    "python_enable_replacements": "false",
    # Else more than 2 GiB of texts in a batch would end a run.
    "arrow_large_buffer_size": "true",
}
#: Maximum length of a line of a CSV file, in bytes; several are read at a time.
_LINE_MAX: Final = 1 << 24
_DECIMAL: Final = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_FORMS: Final[dict[str, Form]] = {
    "VARCHAR": "text",
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), "integer"),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER"), "integer"),
    "FLOAT": "float",
    "DOUBLE": "float",
    "BOOLEAN": "boolean",
    "DATE": "date",
    **dict.fromkeys(
        ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), "timestamp"
    ),
    "TIMESTAMP WITH TIME ZONE": "zoned",
}


@dataclass(frozen=True, slots=True)
class DuckdbOptions:
    """The resources of DuckDB.

    Attributes:
        memory: At most so much memory for DuckDB, such as `4GB`; None for most of the
            machine's. Rows that caps look at are held by modicum, and come on top.
        threads: The number of threads; None for one per core.
        folder: Where DuckDB writes rows that do not fit into its memory: in a new
            subfolder, which other users cannot read and which is removed in the end.
            None for the default of temporary files.
        spills: Whether DuckDB may write rows to the folder. It does if its memory is
            full: rows that it joins, sorts or groups, and tables that it computes once,
            all unencrypted. Rows that caps look at are never written. If False, no row
            is written, and a query that needs more memory fails.
    """

    memory: str | None = None
    threads: int | None = None
    folder: Path | None = None
    spills: bool = True


class DuckdbEngine(SqlEngine):
    """Computes plans in DuckDB, in this process.

    Args:
        sources: By table, the location of its rows, as `source_of` takes it.
        options: Its resources.

    Raises:
        InputError: If a source is not there.
        UnavailableError: If DuckDB cannot open it.
    """

    name = _NAME
    dialect = "duckdb"

    def __init__(
        self,
        sources: Mapping[str, object],
        options: DuckdbOptions = DuckdbOptions(),
    ) -> None:
        super().__init__(sources)
        made = scrubbed(
            lambda: tempfile.mkdtemp("", "modicum-duckdb-", options.folder),
            failed(_NAME, "to start"),
        )
        self._own = Path(made)  # Other users cannot read it.
        self._remove = finalize(self, shutil.rmtree, made, ignore_errors=True)
        self._interrupted = False
        try:
            self._connection = scrubbed(
                lambda: _connected(options, self._own), failed(_NAME, "to start")
            )
            scrubbed(self._open, failed(_NAME, "to open the tables"))
        except BaseException:
            self.close()
            raise

    def interrupt(self) -> None:
        """Interrupt the call of another thread; it fails there."""
        self._interrupted = True  # It may be between two statements.
        self._connection.interrupt()

    def close(self) -> None:
        """Close DuckDB, and remove its temporary files."""
        if hasattr(self, "_connection"):
            self._connection.close()
        self._remove()

    def types(self, table: str) -> dict[str, str]:
        """Return DuckDB's column types; no row is read."""
        described = scrubbed(
            lambda: self._connection.execute(
                f"DESCRIBE {self._relations[table]}"
            ).fetchall(),
            failed(_NAME, "to read the columns"),
        )
        return {row[0]: row[1] for row in described}

    # --- inside -----------------------------------------------------------------------

    def _select(self, statement: str) -> Iterable[Sequence[object]]:
        rows: list[tuple[object, ...]] = self._connection.execute(statement).fetchall()
        return rows

    def _fetch(self, statement: str) -> pa.Table:
        return self._connection.sql(statement).to_arrow_table()

    def _types_of(self, statement: str) -> tuple[str, ...]:
        rows = self._connection.execute(f"DESCRIBE {statement}").fetchall()
        return tuple(row[1] for row in rows)

    def _keep(self, name: str, statement: str) -> None:
        self._connection.execute(f"CREATE OR REPLACE TABLE {name} AS {statement}")

    def _view(self, name: str, statement: str) -> None:
        self._connection.execute(f"CREATE OR REPLACE VIEW {name} AS {statement}")

    def _forget(self, name: str, *, kept: bool) -> None:
        self._connection.execute(f"DROP {'TABLE' if kept else 'VIEW'} {name}")
        self._connection.unregister(_KEPT)

    def _bring(self, name: str, rows: pa.Table) -> None:
        self._keep(name, f"SELECT * FROM {self._show(rows)}")  # noqa: S608

    def _cut(
        self, rows: str, made: Statements, caps: Caps, *, whole: bool = False
    ) -> Callable[[], str]:
        import pyarrow as pa

        self._interrupted = False
        most = 0
        for table in made.mains:
            ((count,),) = self._select(f"SELECT COUNT(*) FROM {self._relations[table]}")  # noqa: S608
            assert isinstance(count, int)
            most += count
        schema = self._connection.sql(f"FROM {rows} LIMIT 0").to_arrow_table().schema
        wide = not all(  # Of texts, the length is not known.
            pa.types.is_primitive(kind) or pa.types.is_decimal(kind)
            for kind in schema.types
        )
        held: list[pa.RecordBatch] | None = [] if most <= _HELD else None
        all_columns = wide or held is not None
        columns = "*" if all_columns else ", ".join(map(_quoted, caps.columns))
        sketch, seen, size = Sketch(caps, most), 0, 0
        scan = self._connection.sql(f"SELECT {columns} FROM {rows}")  # noqa: S608
        for batch in self._going_on(scan.to_arrow_reader(_BATCH)):
            sketch.add(batch)
            seen, size = seen + batch.num_rows, size + batch.nbytes
            if held is not None and size <= _HELD_BYTES:
                held.append(batch)
                continue
            held = None
            if sketch.whole and not wide:
                break
        crowded = sketch.close()
        if held is not None:
            left = self._going_on(kept_rows(self._going_on(held), caps, sketch))
            kept = pa.Table.from_batches(left, schema)
            return lambda: self._show(kept)
        # The instances of several ids overlap: no part would have all rows of each.
        if wide:
            width = size / max(seen, 1)
        else:
            width = sum(kind.bit_width for kind in schema.types) / 8
        parts = 1 if len(caps.ids) > 1 else max(ceil(crowded * width / _PART_BYTES), 1)

        def batches() -> Iterator[pa.RecordBatch]:
            with self._cursor() as cursor:
                for part in range(parts):
                    read = cursor.sql(f"FROM {rows}")
                    if parts > 1:
                        mine = f"hash({_quoted(caps.ids[0])}) % {parts} = {part}"
                        read = read.filter(mine)
                    some = self._going_on(read.to_arrow_reader(_BATCH))
                    yield from self._going_on(kept_rows(some, caps, sketch))

        return lambda: self._show(pa.RecordBatchReader.from_batches(schema, batches()))

    def _show(self, rows: pa.Table | pa.RecordBatchReader) -> str:
        self._go_on()
        self._connection.register(_KEPT, rows)
        return _KEPT

    def _going_on(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield batches until the run is interrupted."""
        for batch in batches:
            self._go_on()
            yield batch

    def _go_on(self) -> None:
        if self._interrupted:
            raise failed(_NAME, "to compute a query")

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        """Return another connection to the same relations."""
        cursor = self._connection.cursor()
        self._register(cursor)
        return cursor

    def _register(self, connection: duckdb.DuckDBPyConnection) -> None:
        for table, source in self._sources.items():
            if isinstance(source, ArrowRows):
                connection.register(self._relations[table], source.rows)

    def _open(self) -> None:
        """Make the sources readable, and then nothing else."""
        self._register(self._connection)
        allowed: list[str] = []
        for number, (table, source) in enumerate(self._sources.items()):
            name = self._relations[table]
            if isinstance(source, ArrowRows):
                continue  # Each cursor registers it.
            if isinstance(source, CatalogTable):
                reason = "DuckDB has none of Spark's catalogs"
                remedy = "write FILE.duckdb::SCHEMA.TABLE, or use Spark"
                raise unreadable(table, reason, remedy)
            if isinstance(source, ParquetFiles):
                must_be_here(source.paths, table)
            if isinstance(source, DuckdbTable):
                view = self._of_a_file(source, f"file_{number}")
            else:
                allowed += (
                    source.paths if isinstance(source, ParquetFiles) else [source.path]
                )
                view = exp.select("*").from_(_reading(source))
            self._connection.execute(
                f"CREATE VIEW {name} AS {view.sql(dialect='duckdb')}"
            )
        paths = exp.Array(expressions=[exp.Literal.string(one) for one in allowed])
        for statement in (
            "SET TimeZone = 'UTC'",
            # Depending on other rows of a file, it treats NaN as a number (2.0.0), or
            # computes what no row that is read has.
            "SET disabled_optimizers = 'statistics_propagation'",
            # It shows how long the rows take.
            "SET enable_progress_bar = false",
            f"SET allowed_paths = {paths.sql(dialect='duckdb')}",
            "SET enable_external_access = false",
            "SET lock_configuration = true",
        ):
            self._connection.execute(statement)
        for table, source in self._sources.items():
            written = isinstance(source, CsvFile) and not source.typed
            self._forms[table] = self._described(self._relations[table], written)

    def _of_a_file(self, source: DuckdbTable, file: str) -> exp.Select:
        """Return the statement that reads a table of a DuckDB file.

        Its texts may have collations, under which different ones are equal: one row
        could then decide about another. They are compared byte by byte.
        """
        path = _text(source.path)
        self._connection.execute(f"ATTACH {path} AS {file} (READ_ONLY)")
        table = exp.table_(source.table, db=source.schema, catalog=file, quoted=True)
        named = (
            "WHERE database_name = ? AND lower(schema_name) = lower(?)"
            " AND lower(table_name) = lower(?)"
        )
        if self._number_of(f"duckdb_tables() {named}", source, file) != 1:
            raise _not_a_table(
                source,
                "it does not exist, or is a view, whose sensitivity is unknown",
                "use a table, or write the rows of the view to a Parquet file",
            )
        if self._number_of(f"duckdb_columns() {named} AND is_generated", source, file):
            raise _not_a_table(
                source,
                "the sensitivity of its generated columns is unknown",
                "write its rows to a table without them, or to a Parquet file",
            )
        rows = self._connection.execute(f"DESCRIBE {table.sql(dialect='duckdb')}")
        columns = [(row[0], row[1]) for row in rows.fetchall()]
        read = []
        for name, column_type in columns:
            column: exp.Expression = exp.column(name, quoted=True)
            if column_type == "VARCHAR":
                binary = exp.to_identifier("binary", quoted=True)
                column = exp.Collate(this=column, expression=binary)
            read.append(exp.alias_(column, name, quoted=True))
        return exp.select(*read).from_(table)

    def _number_of(self, what: str, source: DuckdbTable, file: str) -> int:
        found = self._connection.execute(
            f"SELECT count(*) FROM {what}",  # noqa: S608 - our own words
            [file, source.schema, source.table],
        ).fetchone()
        assert found is not None  # A count is one row.
        return int(found[0])

    def _described(self, name: str, written: bool) -> dict[str, Form]:  # noqa: FBT001
        rows = self._connection.execute(f"DESCRIBE {name}").fetchall()
        return {row[0]: "written" if written else _form(row[1]) for row in rows}


def _connected(options: DuckdbOptions, folder: Path) -> duckdb.DuckDBPyConnection:
    import duckdb

    settings: dict[str, str | bool | int | float | list[str]] = {
        **_CLOSED,
        # What does not fit into memory is written unencrypted: without OpenSSL, which
        # its extension `httpfs` provides, DuckDB refuses to encrypt.
        "temp_directory": str(folder) if options.spills else "",
    }
    if options.memory is not None:
        settings["memory_limit"] = options.memory
    if options.threads is not None:
        settings["threads"] = str(options.threads)
    return duckdb.connect(":memory:", config=settings)


def _reading(source: ParquetFiles | CsvFile) -> exp.Expression:
    """Return the call that reads files as they are, without guessing."""
    if isinstance(source, ParquetFiles):
        paths = [exp.Literal.string(one) for one in source.paths]
        return _call(
            "read_parquet", exp.Array(expressions=paths), hive_partitioning=exp.false()
        )
    if source.typed:
        return _typed(source)
    names = [
        exp.PropertyEQ(
            this=exp.Literal.string(one), expression=exp.Literal.string("VARCHAR")
        )
        for one in source.columns
    ]
    return _call(
        "read_csv",
        exp.Literal.string(source.path),
        auto_detect=exp.false(),
        header=exp.true(),
        delim=exp.Literal.string(","),
        quote=exp.Literal.string('"'),
        escape=exp.Literal.string('"'),
        nullstr=exp.Literal.string(""),
        columns=exp.Struct(expressions=names),
        # Where it cuts a file in pieces, a text with line breaks ends the run.
        parallel=exp.false(),
        max_line_size=exp.Literal.number(_LINE_MAX),
        buffer_size=exp.Literal.number(4 * _LINE_MAX),
    )


def _typed(source: CsvFile) -> exp.Expression:
    """Return the call that finds types in rows, and nothing else: no delimiter."""
    names = [exp.Literal.string(one) for one in source.columns]
    return _call(
        "read_csv",
        exp.Literal.string(source.path),
        header=exp.true(),
        skip=exp.Literal.number(0),
        names=exp.Array(expressions=names),
        delim=exp.Literal.string(","),
        quote=exp.Literal.string('"'),
        escape=exp.Literal.string('"'),
        comment=exp.Literal.string(""),
        nullstr=exp.Literal.string(""),
    )


def _call(
    name: str, first: exp.Expression, **settings: exp.Expression
) -> exp.Expression:
    named = [
        exp.PropertyEQ(this=exp.to_identifier(key), expression=value)
        for key, value in settings.items()
    ]
    return exp.Anonymous(this=name, expressions=[first, *named])


def _not_a_table(source: DuckdbTable, reason: str, remedy: str) -> InputError:
    return InputError(
        Problem(
            Code.DATA_NOT_AS_DECLARED,
            f"`{source.table[:100]}` is not a table of rows in the schema"
            f" `{source.schema[:100]}`: {reason}",
            help=remedy,
        )
    )


def _quoted(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql(dialect="duckdb")


def _text(value: str) -> str:
    return exp.Literal.string(value).sql(dialect="duckdb")


def _form(described: str) -> Form:
    if described.startswith("ENUM("):
        return "text"
    digits = _DECIMAL.fullmatch(described)
    if digits is None:
        return _FORMS.get(described, "other")
    precision, scale = int(digits[1]), int(digits[2])
    if scale == 0 and precision <= 18:
        return "integer"
    return "decimal" if precision <= 15 else "long-decimal"
