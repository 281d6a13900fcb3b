"""Workloads in files: JSON, and Parquet where pyarrow is installed."""

from __future__ import annotations

import io
import json
import os
import tempfile
from pathlib import Path

from msgspec.structs import replace

from modicum.core.canonical import encode
from modicum.core.errors import Code, InputError, Mark, Problem, UsageError
from modicum.workloads.arrow import from_arrow, library, to_arrow
from modicum.workloads.document import from_plain, to_plain, whole_numbers
from modicum.workloads.model import Workload

#: The file name suffixes.
SUFFIXES = (".json", ".parquet")
#: Larger files are refused.
BYTES_MAX = 2**30


def write_workload(workload: Workload, path: str | Path) -> None:
    """Write a workload; who reads the file finds the old one or the new one, whole."""
    target = Path(path)
    check_suffix(target)
    real = target.resolve()  # A link stays a link.
    write = _parquet if target.suffix == ".parquet" else _json
    data = write(workload)
    try:
        handle, temporary = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name}.")
    except OSError as error:
        raise UsageError(_cannot("write", target, error)) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), 0o644)
        Path(temporary).replace(real)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise UsageError(_cannot("write", target, error)) from error


def read_workload(path: str | Path) -> Workload:
    """Return the workload of a file."""
    source = Path(path)
    check_suffix(source)
    try:
        with source.open("rb") as file:
            data = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise InputError(_cannot("read", source, error)) from error
    if len(data) > BYTES_MAX:
        problem = Problem(Code.TOO_LARGE, f"{source} has more than {BYTES_MAX} bytes")
        raise InputError(problem)
    read = _of_parquet if source.suffix == ".parquet" else _of_json
    try:
        return read(source, data)
    except InputError as error:
        raise InputError(*(_in_file(source, one) for one in error.problems)) from error


def _in_file(path: Path, problem: Problem) -> Problem:
    """Return a mistake in a file, which names it."""
    if problem.mark is not None or str(path) in problem.message:
        return problem
    return replace(problem, notes=(*problem.notes, f"in {path}"))


def check_suffix(path: Path) -> None:
    """Refuse a name without a known suffix."""
    if path.suffix not in SUFFIXES:
        raise InputError(
            Problem(
                Code.UNKNOWN_CHOICE,
                f"{path}: unknown file format",
                help=f"use a name that ends in {' or '.join(SUFFIXES)}",
            )
        )


# --- JSON -----------------------------------------------------------------------------


def _json(workload: Workload) -> bytes:
    return encode(to_plain(workload)) + b"\n"


def _of_json(path: Path, data: bytes) -> Workload:
    try:
        document = whole_numbers(data)
    except UnicodeDecodeError as error:
        raise InputError(Problem(Code.NOT_TEXT, f"{path} is not UTF-8")) from error
    except json.JSONDecodeError as error:
        mark = Mark(str(path), error.lineno, error.colno)
        problem = Problem(Code.YAML_SYNTAX, f"{path} is not JSON", mark)
        raise InputError(problem) from error
    except (ValueError, RecursionError) as error:
        problem = Problem(Code.YAML_SYNTAX, f"{path} is not JSON of integers")
        raise InputError(problem) from error
    return from_plain(document)


# --- Parquet --------------------------------------------------------------------------


def _parquet(workload: Workload) -> bytes:
    library()
    from pyarrow import parquet

    sink = io.BytesIO()
    parquet.write_table(to_arrow(workload), sink, compression="zstd")
    return sink.getvalue()


def _of_parquet(path: Path, data: bytes) -> Workload:
    pa = library()
    from pyarrow import parquet

    try:
        table = parquet.read_table(pa.BufferReader(data))
        _ = table.column_names  # Fails where they are no text.
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        problem = Problem(Code.FILE_UNREADABLE, f"{path} is not a Parquet file")
        raise InputError(problem) from error
    return from_arrow(table)


def _cannot(what: str, path: Path, error: OSError) -> Problem:
    reason = (error.strerror or f"permission denied to {what} it").lower()
    return Problem(
        Code.FILE_UNREADABLE,
        f"cannot {what} {path}: {reason}",
        help="correct the path, or the permissions of the folder",
    )
