"""Writing answers to files: CSV for spreadsheets, JSON for programs."""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

from modicum.core.errors import Code, Problem, UnavailableError, UsageError
from modicum.core.rationals import number_text
from modicum.query.results import Answers

Write: TypeAlias = Callable[[Answers], None]


@contextmanager
def writing_to(path: Path | None) -> Iterator[Write]:
    """Yield a writer of answers to a file; the file exists when the block succeeds.

    A temporary file beside it is opened first: write errors are reported before
    anything is spent. An existing file is not overwritten.

    The writer raises `UnavailableError` if answers cannot be written in the end. If the
    temporary file is complete, it is kept, and named.
    """
    if path is None:
        yield lambda _: None
        return
    text_of = _form(path)
    if path.exists():
        raise _refused(path, "it already exists", "use another file, or remove it")
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        reason = (error.strerror or "it cannot be created").lower()
        raise _refused(path, reason, "name another file") from error
    part = _Part(path, Path(name), handle, text_of)
    try:
        yield part.write
    finally:
        part.close()


class _Part:
    """A temporary file beside the requested one, until it is complete."""

    def __init__(
        self, path: Path, beside: Path, handle: int, text_of: Callable[[Answers], str]
    ) -> None:
        self._path, self._beside, self._text_of = path, beside, text_of
        self._file = os.fdopen(handle, "w", encoding="utf-8", newline="")
        self._keep = False

    def write(self, answers: Answers) -> None:
        text = self._text_of(answers)
        try:
            self._file.write(text)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise _lost(self._path, error, "") from error
        self._keep = True
        try:
            self._name(text)
        except OSError as error:
            raise _lost(
                self._path, error, f"the answer is in {self._beside}"
            ) from error
        self._keep = False

    def _name(self, text: str) -> None:
        """Rename the file, but not over one created meanwhile."""
        try:
            os.link(self._beside, self._path)
        except FileExistsError:
            raise
        except OSError:  # Some disks have no links.
            with self._path.open("x", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())

    def close(self) -> None:
        with suppress(OSError):
            self._file.close()
        if not self._keep:
            with suppress(OSError):
                self._beside.unlink()


def to_csv(answers: Answers) -> str:
    """Return answers as CSV: keys, and value, low and high of each aggregate."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [
        part
        for name in answers.aggregates
        for part in (name, f"{name}.low", f"{name}.high")
    ]
    writer.writerow([*answers.keys, *names])
    for row in answers.rows:
        numbers = [
            _cell(part)
            for one in row.estimates
            for part in (one.value, one.low, one.high)
        ]
        writer.writerow([*row.keys, *numbers])
    return out.getvalue()


def to_json(answers: Answers) -> str:
    """Return answers as one JSON document."""
    return json.dumps(answers.to_dict(), ensure_ascii=False, indent=2) + "\n"


def _cell(value: Fraction | None) -> str:
    if value is None:
        return ""
    text = number_text(value)
    return text if "/" not in text else repr(float(value))


def _form(path: Path) -> Callable[[Answers], str]:
    forms = {".csv": to_csv, ".json": to_json}
    if path.suffix.lower() not in forms:
        raise _refused(path, "unknown file format", "end it in .csv or .json")
    return forms[path.suffix.lower()]


def _lost(path: Path, error: OSError, kept: str) -> UnavailableError:
    reason = (error.strerror or "it failed").lower()
    return UnavailableError(
        Problem(
            Code.FILE_UNREADABLE,
            f"cannot write {path}: {reason}",
            notes=("the loss of the answer is spent", *filter(None, [kept])),
            help="keep the answer that was printed: it is not computed again",
        )
    )


def _refused(path: Path, reason: str, remedy: str) -> UsageError:
    return UsageError(
        Problem(Code.FILE_UNREADABLE, f"cannot write {path}: {reason}", help=remedy)
    )
