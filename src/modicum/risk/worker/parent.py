"""Running an analysis in a separate process: limited, and cancellable."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import Final

import msgspec

from modicum.api.schema.risk import AnalysisRequest
from modicum.core.errors import Code, Problem, UnavailableError
from modicum.integrations.workers.process import ended, new_folder
from modicum.risk.worker.messages import (
    LINE_MAX,
    Analysis,
    AnalysisResult,
    Bounds,
    Progress,
    read,
)

#: Its complete environment: any other variable may be a secret.
_INHERITED: Final = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL")
#: The same modicum, found by the same import path.
_BEGIN: Final = (
    "import sys; sys.path[:] = sys.argv[1:];"
    " from modicum.risk.worker.process import main; main()"
)
#: Polling interval for cancellation.
_SECONDS: Final = 0.1
_CHUNK: Final = 1 << 16


def analyzed(
    tables: Mapping[str, str],
    analysis_request: AnalysisRequest,
    bounds: Bounds,
    report: Callable[[float], None],
) -> bytes:
    """Return the result of an analysis, as JSON.

    Its process is gone when this returns or raises, with the files that it made.
    """
    # The process has its own working directory.
    places = {name: str(Path(place).absolute()) for name, place in tables.items()}
    request = (
        msgspec.json.encode(Analysis(places, analysis_request, bounds.rows)) + b"\n"
    )
    scratch = new_folder()
    environ = os.environ  # noqa: TID251 - a few of them are handed on
    variables = {name: environ[name] for name in _INHERITED if name in environ}
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-I", "-B", "-c", _BEGIN, *filter(None, sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        cwd=scratch,
        env={**variables, "TMPDIR": str(scratch), "TZ": "UTC"},
        start_new_session=True,
    )
    try:
        return _output(process, request, bounds.seconds, report)
    finally:
        ended(process, scratch, os.getpid())


def _output(
    process: subprocess.Popen[bytes],
    request: bytes,
    seconds: float,
    report: Callable[[float], None],
) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    deadline = time.monotonic() + seconds
    part = 0.0
    lines = _Lines(process.stdout.fileno())
    try:
        process.stdin.write(request)
    except BrokenPipeError:
        raise _gone() from None
    while True:
        report(part)
        if time.monotonic() > deadline:
            raise _too_long(seconds)
        line = lines.next(_SECONDS)
        if line is None:
            continue
        answer = read(line)
        if isinstance(answer, Progress):
            part = answer.part
        elif isinstance(answer, AnalysisResult):
            return bytes(answer.document)
        elif answer is None:
            raise _gone()
        else:
            raise answer.error()


class _Lines:
    """Reads lines of a pipe, with a timeout.

    Args:
        pipe: The pipe.
    """

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._output = b""

    def next(self, seconds: float) -> bytes | None:
        """Return the next line; None after the timeout in seconds."""
        if b"\n" not in self._output:
            with DefaultSelector() as selector:
                selector.register(self._pipe, EVENT_READ)
                if not selector.select(seconds):
                    return None
            more = os.read(self._pipe, _CHUNK)
            if not more or len(self._output) > LINE_MAX:
                raise _gone()
            self._output += more
        line, found, rest = self._output.partition(b"\n")
        if not found:
            return None
        self._output = rest
        return line


def _too_long(seconds: float) -> UnavailableError:
    return UnavailableError(
        Problem(
            Code.ENGINE_FAILED,
            f"the analysis was not finished within {seconds:g} seconds",
            help="use fewer people or `groups`, or raise `limits.analysis_s` in the"
            " settings",
        )
    )


def _gone() -> UnavailableError:
    return UnavailableError(
        Problem(
            Code.ENGINE_FAILED,
            "the process of the analysis ended without a response",
            notes=("its output is hidden: it may quote rows",),
            help="check that the machine has enough memory, and try again",
        )
    )
