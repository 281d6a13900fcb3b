"""A process in a sandbox: begun, ended with all that it started, and heard once."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from modicum.core.errors import Problem, UnavailableError
from modicum.shell.sandbox.cgroups import Groups, limited
from modicum.shell.sandbox.jobs import sealed
from modicum.shell.sandbox.missing import missing
from modicum.shell.sandbox.scores import RECORD_BYTES
from modicum.workspace.escrowing.ports import Limits

_BEGIN_SECONDS: Final = 10.0
_END_SECONDS: Final = 10.0
_STATUS_BYTES_MAX: Final = 4096
_WORDS_MAX: Final = 300


@dataclass(frozen=True, slots=True)
class Handles:
    """The numbers of what a sandbox is handed.

    Attributes:
        answer: Where the record goes.
        status: Where bubblewrap tells which process it made.
        gate: What bubblewrap waits for.
    """

    answer: int
    status: int
    gate: int


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended.

    Attributes:
        record: What came out; more than a record is cut after one byte more.
        words: What was said meanwhile, if somebody listened.
    """

    record: bytes
    words: str = ""


def run_held(
    command: Callable[[Handles], Sequence[str]],
    given: bytes,
    limits: Limits,
    groups: Groups,
    end_at: float,
    *,
    is_heard: bool = False,
) -> Ended:
    """Run a program in a sandbox until it ends, or until its time is over.

    On return the first process of its namespace is dead, and so is every other one
    there: the kernel ends them first.

    Args:
        command: The command that makes the sandbox, from the handles it is given.
        given: The job.
        limits: What it may use up.
        groups: Where control groups can be made.
        end_at: When it is ended, by the monotonic clock.
        is_heard: Whether what it says is kept; only for programs of modicum.

    Raises:
        UnavailableError: If the sandbox could not be made, or not be ended.
    """
    with Open() as kept:
        job = kept.own(sealed("job", given))
        heard, answer = kept.pipe()
        told, status = kept.pipe()
        gate, opener = kept.pipe()
        silence = kept.own(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC))
        words = kept.own(os.memfd_create("words", os.MFD_CLOEXEC))
        handles = Handles(answer, status, gate)
        process = _started(
            command(handles), job, silence, words if is_heard else silence, handles
        )
        try:
            kept.close(answer, status, gate)
            pid = _first_process(told)
            first = kept.own(os.pidfd_open(pid))
            with limited(groups, pid, limits):
                os.write(opener, b"g")
                _end(process, first, end_at)
        except (OSError, ValueError, TypeError, KeyError) as error:
            process.kill()
            process.wait()
            raise UnavailableError(_not_made(_said(words))) from error
        return Ended(record_of(heard), _said(words))


class Open:
    """Handles that are closed after the block, each of them once."""

    def __init__(self) -> None:
        self._handles: set[int] = set()

    def __enter__(self) -> Open:
        return self

    def __exit__(self, *_: object) -> None:
        self.close(*self._handles)

    def own(self, handle: int) -> int:
        """Return a handle, which is closed after the block."""
        self._handles.add(handle)
        return handle

    def pipe(self) -> tuple[int, int]:
        """Return the two ends of a new pipe, the one to be read first."""
        read, write = os.pipe()
        return self.own(read), self.own(write)

    def close(self, *handles: int) -> None:
        """Close some before the block ends."""
        for handle in handles:
            self._handles.remove(handle)
            os.close(handle)


def _started(
    command: Sequence[str], job: int, silence: int, words: int, handles: Handles
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603 - made here, by a fixed path
            list(command),
            stdin=job,
            stdout=silence,
            stderr=words,
            env={},
            cwd="/",
            close_fds=True,
            pass_fds=(handles.answer, handles.status, handles.gate),
            start_new_session=True,
        )
    except OSError as error:
        raise UnavailableError(_not_made(error.strerror or "")) from error


def _first_process(told: int) -> int:
    """Return the first process of the namespace, which waits at the gate."""
    text, deadline = b"", time.monotonic() + _BEGIN_SECONDS
    while b"}" not in text and len(text) < _STATUS_BYTES_MAX:
        left = max(0.0, deadline - time.monotonic())
        ready, _, _ = select.select([told], [], [], left)
        part = os.read(told, _STATUS_BYTES_MAX) if ready else b""
        if not part:
            raise ValueError("no process was made")
        text += part
    return int(json.loads(text)["child-pid"])


def _end(process: subprocess.Popen[bytes], first: int, end_at: float) -> None:
    """Wait for the end of a namespace; make it end when its time is over."""
    if not ends(first, end_at):
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(first, signal.SIGKILL)
        if not ends(first, time.monotonic() + _END_SECONDS):
            raise ValueError("the process did not end")
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()  # It has nothing to wait for any more.
        process.wait()


def ends(first: int, moment: float) -> bool:
    """Return whether a process ends before a moment of the monotonic clock.

    Args:
        first: A handle of the process.
        moment: How long to wait for it.
    """
    left = max(0.0, moment - time.monotonic())
    poll = select.poll()
    poll.register(first, select.POLLIN)
    return bool(poll.poll(left * 1000))


def record_of(heard: int) -> bytes:
    """Return what came out, cut after one byte more than a record."""
    os.set_blocking(heard, False)
    try:
        return os.read(heard, RECORD_BYTES + 1)
    except BlockingIOError:
        return b""


def _said(words: int) -> str:
    """Return the last line that was said."""
    text = os.pread(words, 2**16, 0).decode("utf-8", errors="replace").strip()
    return text.splitlines()[-1][:_WORDS_MAX] if text else ""


def _not_made(why: str) -> Problem:
    return missing(
        f"the sandbox could not be made{f' ({why})' if why else ''}",
        "run  modicum doctor  where the server runs",
    )
