"""Files that people give an escrow: rows, programs, and texts."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from modicum.core.errors import Code, InputError, Problem
from modicum.core.yaml_reader import decode_text, read_document
from modicum.escrow.programs import CODE_BYTES_MAX, Program, Range
from modicum.escrow.task_files import TaskFile, read_task_file
from modicum.escrow.tasks import own
from modicum.ops.files.documents import read_bytes

_MEDIA: Final[dict[str, Literal["csv", "parquet"]]] = {
    ".csv": "csv",
    ".parquet": "parquet",
}


def read_rows(path: Path) -> tuple[bytes, Literal["csv", "parquet"]]:
    """Return the rows of a file as they are, and how they are written."""
    media = _MEDIA.get(path.suffix.lower())
    if media is None:
        raise InputError(
            Problem(
                Code.NOT_SUPPORTED,
                f"{path} does not have the name of a CSV or Parquet file",
                help="name a file that ends in .csv or .parquet",
            )
        )
    try:
        return path.read_bytes(), media
    except OSError as error:
        why = (error.strerror or "system error").lower()
        problem = Problem(
            Code.FILE_UNREADABLE, f"cannot read {path}: {why}", help="correct the path"
        )
        raise InputError(problem) from error


def read_text(path: Path) -> str:
    """Return the text of a file."""
    return decode_text(read_bytes(path), str(path))


def read_task(path: Path) -> TaskFile:
    """Return the task of a file."""
    return read_task_file(read_document(read_bytes(path), str(path)))


def read_program(path: Path, scores: Range, *, compares: bool) -> Program:
    """Return a program from a file: a module if its name ends in `.wasm`."""
    code = read_bytes(path)
    if path.suffix.lower() == ".wasm":
        return Program("wasm", code[: CODE_BYTES_MAX["wasm"] + 1], {}, scores, compares)
    return own(code, (scores.low, scores.high), compares=compares)
