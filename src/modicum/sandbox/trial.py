"""Trying a program on one's own machine, with one's own privileges.

Nothing confines a program here: it may do whatever its user may do. So this is for
one's own programs and those of the catalogue, on synthetic tables. Elsewhere programs
run in the sandbox.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

from modicum.core.errors import Code, InputError, Problem
from modicum.escrow.programs import Program, Range, Table

#: Shown with every trial.
UNHELD: Final = (
    "run without a sandbox, with your own rights: only for programs that you trust"
)
#: Maximum length of a program's output that is shown.
PRINTED_MAX: Final = 20_000
_RUNNER: Final = """
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    asked = json.load(file)
space = {"__name__": "program"}
exec(compile(asked["code"], "program.py", "exec"), space)
found = space["score"](asked["tables"], asked["arguments"], asked["reference"])
is_number = isinstance(found, (int, float)) and not isinstance(found, bool)
kind = "number" if is_number else "none" if found is None else type(found).__name__
with open(sys.argv[2], "w", encoding="utf-8") as file:
    json.dump({"kind": kind, "score": float(found) if is_number else None}, file)
"""


@dataclass(frozen=True, slots=True)
class Tried:
    """The result of trying a program.

    Attributes:
        score: Its score, in its range; None if it has none.
        remark: Why there is no score, or that it was clamped to the range; may be
            empty.
        printed: Its output, also after a failure; that of a real run is not shown.
    """

    score: float | None
    remark: str
    printed: str

    def __str__(self) -> str:
        text = "no score" if self.score is None else f"score {self.score:g}"
        lines = [f"{text}{f': {self.remark}' if self.remark else ''} ({UNHELD})"]
        return "\n".join([*lines, *self.printed.splitlines()])


def dry_run(
    program: Program,
    tables: Mapping[str, Table],
    reference: Mapping[str, Table] | None = None,
    *,
    seconds: float = 60.0,
) -> Tried:
    """Return the result of running a program on synthetic tables, without a sandbox.

    It runs in a separate process, with the privileges of the caller.

    Args:
        program: The program, in Python.
        tables: The input tables, by name.
        reference: The tables to compare with, by name, if it compares.
        seconds: How long it may take.

    Raises:
        InputError: If it is not in Python.
    """
    if program.language != "python":
        raise InputError(
            Problem(
                Code.NOT_SUPPORTED,
                f"a program in `{program.language}` cannot be tried here",
                help="try programs in Python",
            )
        )
    document = {
        "code": program.code.decode("utf-8"),
        "tables": _plain(tables),
        "arguments": dict(program.arguments),
        "reference": None if reference is None else _plain(reference),
    }
    with tempfile.TemporaryDirectory(prefix="modicum-trial-") as folder:
        given, found = Path(folder, "asked.json"), Path(folder, "found.json")
        given.write_text(json.dumps(document), encoding="utf-8")
        command = [
            sys.executable,
            "-I",
            "-B",
            "-u",
            "-c",
            _RUNNER,
            str(given),
            str(found),
        ]
        try:
            done = subprocess.run(  # noqa: S603 - the caller's own program
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            wrote = _printed(late.stdout)
            return Tried(None, f"it took more than {seconds:g} seconds", wrote)
        printed = _printed(done.stdout)
        if done.returncode != 0 or not found.exists():
            return Tried(None, "it failed", printed)
        return _tried(json.loads(found.read_text(encoding="utf-8")), program, printed)


def _tried(found: Mapping[str, object], program: Program, printed: str) -> Tried:
    score = found["score"]
    if not isinstance(score, int | float):
        what = "" if found["kind"] == "none" else f"it returned a {found['kind']}"
        return Tried(None, what, printed)
    if math.isnan(score):
        return Tried(None, "it returned NaN", printed)
    kept = _clamped(score, program.range)
    return Tried(kept, "" if kept == score else f"moved from {score:g}", printed)


def _clamped(score: float, within: Range) -> float:
    """Return the nearest score in a range; infinities are beyond its ends."""
    if math.isinf(score):
        return float(within.high if score > 0 else within.low)
    held = within.clamp(Fraction(score))
    return score if held == Fraction(score) else float(held)


def _plain(tables: Mapping[str, Table]) -> dict[str, object]:
    return {
        name: {"columns": list(one.columns), "rows": [list(row) for row in one.rows]}
        for name, one in tables.items()
    }


def _printed(wrote: bytes | None) -> str:
    text = (wrote or b"").decode("utf-8", "replace")
    return text if len(text) <= PRINTED_MAX else text[-PRINTED_MAX:]
