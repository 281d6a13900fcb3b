"""Tumult Analytics in a worker: a session with the reserved budget, for one script.

This runs in Tumult's environment, loaded by `serve.py`; modicum is not installed there.
Spark's temporary files are in the worker's folder, and only this machine can connect to
it.
"""

from __future__ import annotations

import ast
import importlib
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from fractions import Fraction
from importlib import metadata
from pathlib import Path
from types import CodeType
from typing import Any

_DISTRIBUTIONS = ("tmlt.analytics", "tmlt.core")
_ANSWER = "answer"
#: One unit is protected in all tables at once, so its ids share one space.
_ID_SPACE = "unit"
_KINDS = {
    "text": "STRING",
    "integer": "BIGINT",
    "number": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}
#: These override other settings: nothing is logged, shown, or left behind.
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.csv.parser.columnPruning.enabled": "false",
}

Stage = Callable[[str], None]


def versions() -> dict[str, str]:
    """Return the installed packages of Tumult, without loading it."""
    found = {}
    for name in _DISTRIBUTIONS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def prepare(job: Mapping[str, Any], scratch: Path, stage: Stage) -> None:
    """Do what can fail before a row is read."""
    stage("script")
    _compiled(job["script"])
    stage("java")
    _find_java()
    stage("import")
    importlib.import_module("tmlt.analytics")
    stage("spark")
    _spark(job["settings"], scratch)


def run(job: Mapping[str, Any], scratch: Path, stage: Stage) -> dict[str, Any]:
    """Return the result of a script, with a session that has the reserved budget."""
    spark = _spark(job["settings"], scratch)
    stage("sources")
    frames = {
        name: _frame(spark, name, source, scratch)
        for name, source in job["sources"].items()
    }
    stage("session")
    session = _session(job, frames)
    granted = _amounts(session.remaining_privacy_budget)
    if granted != {name: Fraction(text) for name, text in job["budget"].items()}:
        raise ArithmeticError
    stage("script")
    found = _script(job["script"])(session)
    stage("tables")
    tables = _written(found, scratch)
    stage("session")
    remaining = _amounts(session.remaining_privacy_budget)
    return {
        "tables": tables,
        "granted": _amount_texts(granted),
        "remaining": _amount_texts(remaining),
    }


# --- the script ---------------------------------------------------------------------


def _compiled(script: Mapping[str, str]) -> CodeType:
    """Return a script's code; it must define the required function."""
    tree = ast.parse(script["text"], script["name"])
    names = {one.name for one in tree.body if isinstance(one, ast.FunctionDef)}
    if _ANSWER not in names:
        raise NameError
    return compile(tree, script["name"], "exec")


def _script(script: Mapping[str, str]) -> Callable[[Any], Any]:
    sys.path.append(script["folder"])
    names: dict[str, Any] = {"__name__": "modicum_script", "__file__": script["name"]}
    exec(_compiled(script), names)  # noqa: S102 - that is what the user asks for
    answer: Callable[[Any], Any] = names[_ANSWER]
    return answer


# --- Spark --------------------------------------------------------------------------


def _find_java() -> None:
    home = os.environ.get("JAVA_HOME")  # noqa: TID251 - as Spark looks for it
    path = None if home is None else str(Path(home) / "bin")
    if shutil.which("java", path=path) is None:
        raise FileNotFoundError


def _spark(settings: Mapping[str, str], scratch: Path) -> Any:
    """Return the Spark of this process; it is started the first time."""
    quiet = scratch / "log4j2.properties"
    quiet.write_text("status = off\nrootLogger.level = off\n", encoding="utf-8")
    own = {
        **_SETTINGS,
        "spark.local.dir": str(scratch / "spark"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={quiet}"
        f" -Djava.io.tmpdir={scratch}",
    }
    # Its processes for Python are of this environment, too.
    os.environ["PYSPARK_PYTHON"] = sys.executable  # noqa: TID251 - as Spark reads it
    sessions = importlib.import_module("pyspark.sql").SparkSession
    builder = sessions.builder.master("local[*]").appName("modicum")
    for key, value in {**settings, **own}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _frame(spark: Any, name: str, source: Mapping[str, Any], scratch: Path) -> Any:
    """Return the rows of a source. Each row is read independently."""
    file = source["file"]
    if source["form"] == "csv":
        columns = source["columns"].items()
        schema = ", ".join(f"`{column}` {_KINDS[kind]}" for column, kind in columns)
        frame = spark.read.csv(
            file, schema=schema, header=True, enforceSchema=False, mode="PERMISSIVE"
        )
    else:
        if source["form"] == "arrow":
            file = _as_parquet(file, scratch / f"{name}.parquet")
        frame = spark.read.parquet(file)
    ids = (source["change"] or {}).get("id_column")
    # Rows without an id would be protected as if they had a common one.
    return frame if ids is None else frame.where(frame[f"`{ids}`"].isNotNull())


def _as_parquet(file: str, target: Path) -> str:
    arrow = importlib.import_module("pyarrow")
    parquet = importlib.import_module("pyarrow.parquet")
    with arrow.memory_map(file) as mapped:
        reader = arrow.ipc.open_file(mapped)
        with parquet.ParquetWriter(target, reader.schema) as writer:
            for index in range(reader.num_record_batches):
                writer.write_batch(reader.get_batch(index))
    return str(target)


# --- the session --------------------------------------------------------------------


def _session(job: Mapping[str, Any], frames: Mapping[str, Any]) -> Any:
    analytics = importlib.import_module("tmlt.analytics")
    builder = analytics.Session.Builder()
    builder = builder.with_privacy_budget(_budget(analytics, job["budget"]))
    changes = {name: one["change"] for name, one in job["sources"].items()}
    if any(change and "id_column" in change for change in changes.values()):
        builder = builder.with_id_space(_ID_SPACE)
    for name, change in changes.items():
        if change is None:
            builder = builder.with_public_dataframe(name, frames[name])
        else:
            protected = _change(analytics, change)
            builder = builder.with_private_dataframe(name, frames[name], protected)
    return builder.build()


def _budget(analytics: Any, amounts: Mapping[str, str]) -> Any:
    """Return a budget of exact numbers."""
    exact = importlib.import_module("tmlt.core.utils.exact_number").ExactNumber
    given = {name: exact(Fraction(text)) for name, text in amounts.items()}
    if "rho" in given:
        return analytics.RhoZCDPBudget(given["rho"])
    if "delta" in given:
        return analytics.ApproxDPBudget(given["eps"], given["delta"])
    return analytics.PureDPBudget(given["eps"])


def _change(analytics: Any, change: Mapping[str, Any]) -> Any:
    if "id_column" in change:
        return analytics.AddRowsWithID(**change, id_space=_ID_SPACE)
    if "max_groups" in change:
        return analytics.AddMaxRowsInMaxGroups(**change)
    return analytics.AddMaxRows(**change)


def _amounts(budget: Any) -> dict[str, Fraction]:
    """Return the contents of a budget, rounded down where they are no fractions."""
    value = budget.value
    if isinstance(value, tuple):
        return {"eps": _fraction(value[0]), "delta": _fraction(value[1])}
    name = "rho" if type(budget).__name__ == "RhoZCDPBudget" else "eps"
    return {name: _fraction(value)}


def _fraction(exact: Any) -> Fraction:
    expression = exact.expr
    if expression.is_Rational:
        return Fraction(int(expression.p), int(expression.q))
    return Fraction(exact.to_float(round_up=False))


def _amount_texts(amounts: Mapping[str, Fraction]) -> dict[str, str]:
    return {name: str(value) for name, value in amounts.items()}


# --- the tables ---------------------------------------------------------------------


def _written(found: Any, scratch: Path) -> list[str]:
    """Write the tables of an answer into the folder, in Arrow's file format."""
    arrow = importlib.import_module("pyarrow")
    for name, frame in found.items():
        if not (isinstance(name, str) and name.isascii() and name.isidentifier()):
            raise NameError
        table = _table(arrow, frame)
        file = str(scratch / f"{name}.arrow")
        with arrow.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    return list(found)


def _table(arrow: Any, frame: Any) -> Any:
    if isinstance(frame, arrow.Table):
        return frame
    if not hasattr(frame, "collect"):
        return arrow.Table.from_pandas(frame, preserve_index=False)
    types = importlib.import_module("pyspark.sql.pandas.types")
    rows = [row.asDict() for row in frame.collect()]
    return arrow.Table.from_pylist(rows, schema=types.to_arrow_schema(frame.schema))
