"""What goes wrong with a ledger's file is told with what to do next."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

import pytest

from modicum.core.errors import Code, UnavailableError
from modicum.storage.sqlite_errors import SqliteTroubles


def full_disk() -> sqlite3.Error:
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorname = "SQLITE_FULL"
    return error


@pytest.mark.parametrize(
    "error", [full_disk(), OSError(errno.EROFS, "Read-only file system")]
)
def test_who_has_no_answer_submits_again_but_looks_before_a_step(
    error: Exception,
) -> None:
    troubles = SqliteTroubles(Path("a.db"), 1)
    with pytest.raises(UnavailableError) as caught, troubles.translated(writing=True):
        raise error
    (problem,) = caught.value.problems
    assert problem.code is Code.LEDGER_UNWRITABLE
    assert "submit again: the same id" in problem.help
    assert "after `start` or `publish`, check first" in problem.help


def test_who_only_reads_tries_again() -> None:
    troubles = SqliteTroubles(Path("a.db"), 1)
    with pytest.raises(UnavailableError) as caught, troubles.translated(writing=False):
        raise full_disk()
    assert caught.value.problems[0].help == "try again"
