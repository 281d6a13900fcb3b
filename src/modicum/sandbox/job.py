"""The input of a program, as bytes."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any, BinaryIO, Final

from modicum.escrow.programs import Cell, Program, Table

#: A program with a larger input has no score.
JOB_BYTES_MAX: Final = 2**26
_LENGTH_BYTES: Final = 8


def job_of(
    program: Program,
    tables: Mapping[str, Table],
    reference: Mapping[str, Table] | None,
) -> BinaryIO | None:
    """Return the complete input of a program's sandbox; None if it is too large.

    It lies in memory that can be sent to another process. Who uses it closes it.
    """
    job = job_bytes(program, tables, reference)
    if job is None:
        return None
    if program.language == "wasm":
        job = module_job(program.code, job)
    return os.fdopen(sealed("job", job), "rb", buffering=0)


def module_job(code: bytes, job: bytes) -> bytes:
    """Return the input of a module's sandbox: its code, and its input."""
    return len(code).to_bytes(_LENGTH_BYTES, "big") + code + job


def job_bytes(
    program: Program,
    tables: Mapping[str, Table],
    reference: Mapping[str, Table] | None,
) -> bytes | None:
    """Return the input of a program, as JSON; None if it is too large.

    A number that is not finite is null there, as in every JSON. Keys are sorted, so
    that their order reveals nothing about how the tables were made.
    """
    job: dict[str, Any] = {
        "tables": _plain(tables),
        "arguments": dict(program.arguments),
        "reference": None if reference is None else _plain(reference),
    }
    if program.language == "python":
        # Invalid text does not compile either: so it has no score.
        job["code"] = program.code.decode("utf-8", errors="replace")
    text = json.dumps(job, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return text.encode("ascii") if len(text) <= JOB_BYTES_MAX else None


def _plain(tables: Mapping[str, Table]) -> dict[str, Any]:
    return {
        name: {
            "columns": list(table.columns),
            "rows": [[_cell(cell) for cell in row] for row in table.rows],
        }
        for name, table in tables.items()
    }


def _cell(cell: Cell) -> Cell:
    is_number = not isinstance(cell, float) or math.isfinite(cell)
    return cell if is_number else None


def sealed(name: str, content: bytes) -> int:
    """Return a handle of memory with a content, to be read alone."""
    written = os.memfd_create(name, os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(written), "wb") as file:
            file.write(content)
        return os.open(f"/proc/self/fd/{written}", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(written)
