"""The process of an analysis: it reads a request, and writes the result.

It writes nothing else: neither the output of libraries, nor more than the class of an
unexpected error. It ends with its parent, and leaves no file.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import BinaryIO, Final

import msgspec
from msgspec.structs import replace

from modicum.core.errors import Code, InvariantError, ModicumError, Problem, UsageError
from modicum.risk.arguments import ARGUMENT
from modicum.risk.worker.messages import (
    LINE_MAX,
    Analysis,
    AnalysisResult,
    Failed,
    Line,
    Progress,
    failed,
    written,
)
from modicum.system.core_dumps import forbid_core_dumps

#: The names that some arguments have here.
_OTHERWISE: Final = {"form": "indicator", "between": "groups"}
#: Other work on the machine has priority; and this process is killed first when memory
#: is short (see proc(5): from -1000 to 1000).
_NICE: Final = 10
_OOM_SCORE: Final = "500"


def main() -> None:
    """Answer the one request line."""
    requests, tell = _own_pipes()
    _be_humble()
    line = requests.readline(LINE_MAX)
    Thread(target=_end_with_parent, args=(requests,), daemon=True).start()
    tell(answer(line, tell))


def answer(line: bytes, tell: Callable[[Line], None]) -> Line:
    """Return the final message."""
    sent_at = 0.0

    def progress(done: int, of: int) -> None:
        nonlocal sent_at
        part = done / max(of, 1)
        if part >= sent_at + 0.01:
            sent_at = part
            tell(Progress(part))

    places: Collection[str] = ()
    try:
        from modicum.risk.worker.result import analysis_result

        analysis = msgspec.json.decode(line, type=Analysis)
        places = analysis.tables.values()
        return AnalysisResult(
            msgspec.Raw(msgspec.json.encode(analysis_result(analysis, progress)))
        )
    except ModicumError as error:
        return failed(error, tuple(_in_words(one, places) for one in error.problems))
    except ImportError as error:
        return _not_installed(error.name or "")
    except BaseException as error:  # noqa: BLE001 - it may quote rows
        return _unforeseen(type(error).__name__)


def _not_installed(module: str) -> Failed:
    problem = Problem(
        Code.NOT_SUPPORTED,
        f"the server needs {module[:80]} to analyze tables",
        help="install it there with  pip install 'modicum[query]'",
    )
    return failed(UsageError(problem), (problem,))


def _unforeseen(kind: str) -> Failed:
    problem = Problem(Code.INTERNAL, f"internal error ({kind[:80]})")
    return failed(InvariantError(problem), (problem,))


def _in_words(problem: Problem, places: Collection[str]) -> Problem:
    """Return a problem in the terms of a request: its keys, and no paths."""

    def key(found: re.Match[str]) -> str:
        return f"`{_OTHERWISE.get(found[1], found[1])}`"

    def plain(text: str) -> str:
        for place in places:
            text = text.replace(place, Path(place).name)
        return ARGUMENT.sub(key, text)

    return replace(
        problem,
        message=plain(problem.message),
        notes=tuple(map(plain, problem.notes)),
        help=plain(problem.help),
    )


# --- the process ----------------------------------------------------------------------


def _own_pipes() -> tuple[BinaryIO, Callable[[Line], None]]:
    """Return the input and a writer; later printed output is discarded."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)

    def tell(line: Line) -> None:
        text = written(line)
        if len(text) > LINE_MAX:
            text = written(_too_long())
        while text:
            text = text[os.write(answers, text) :]

    return requests, tell


def _too_long() -> Failed:
    problem = Problem(
        Code.TOO_LARGE,
        "the result is too large",
        help="use fewer `epsilons` or `groups`",
    )
    return Failed("InputError", (problem,))


def _be_humble() -> None:
    with suppress(OSError):  # A service may be denied all of these.
        os.nice(_NICE)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE, encoding="ascii")
    with suppress(OSError, ValueError):
        forbid_core_dumps()  # Memory holds rows. Last: after it /proc/self is root's.


def _end_with_parent(requests: BinaryIO) -> None:
    """Wait until the parent is gone; then end, and leave no rows in files."""
    requests.read(1)
    shutil.rmtree(Path.cwd(), ignore_errors=True)
    os.killpg(0, signal.SIGKILL)
