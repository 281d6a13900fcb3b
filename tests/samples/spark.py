"""One Spark for all tests of a process; it starts when the first one needs it."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from modicum.engines.spark_session import SparkOptions, started

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Statements over a few rows take least time so.
SMALL = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
#: As it is in use.
COMPILED = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}


def spark_or_skip(settings: dict[str, str] | None = None) -> SparkOptions:
    """Return options with a session that runs; without it, tests fail in CI only."""
    found = _running()
    if found is None:
        reason = "there is no Spark on this machine: pyspark, and Java 17"
        if os.environ.get("CI") == "true":
            pytest.fail(f"{reason}; .ci/run installs them")
        pytest.skip(reason)
    return SparkOptions(session=found[0], settings={**SMALL, **(settings or {})})


def spark_words() -> str:
    """Return all that Spark has written on standard output and error so far."""
    found = _running()
    return "" if found is None else found[1].read_text(errors="replace")


@cache
def _running() -> tuple[SparkSession, Path] | None:
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return None
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return None
    folder = Path(tempfile.mkdtemp(prefix="modicum-spark-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder_of_words = folder / "words"
    with _written_to(folder_of_words):
        session = started(SparkOptions(master="local[2]", memory="1g"), folder)
    atexit.register(session.stop)
    return session, folder_of_words


@contextmanager
def _written_to(path: Path) -> Iterator[None]:
    """Let processes that are started inside write into a file, for good."""
    kept = os.dup(1), os.dup(2)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        for number, copy in enumerate(kept, start=1):
            os.dup2(copy, number)
            os.close(copy)
