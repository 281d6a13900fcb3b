"""A process in a sandbox: started, ended with all its children, and read once."""

from __future__ import annotations

import json
import math
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from modicum.api.ports.escrow import Limits
from modicum.core.errors import Problem, UnavailableError
from modicum.sandbox.cgroups import Groups, limited
from modicum.sandbox.problems import missing
from modicum.sandbox.scores import RECORD_BYTES

_BEGIN_SECONDS: Final = 10.0
_END_SECONDS: Final = 10.0
_STATUS_BYTES_MAX: Final = 4096
_WORDS_MAX: Final = 300


@dataclass(frozen=True, slots=True)
class Handles:
    """The handles passed to a sandbox.

    Attributes:
        status: Where bubblewrap reports the process it created.
        gate: What bubblewrap waits for.
    """

    status: int
    gate: int


@dataclass(frozen=True, slots=True)
class Command:
    """A command that creates a sandbox.

    Attributes:
        arguments: The program and its arguments.
        handles: Its handles besides those of a sandbox.
    """

    arguments: list[str]
    handles: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Ended:
    """The outcome of a run.

    Attributes:
        record: The output; cut after one byte more than a record.
        output: The messages meanwhile, if requested.
    """

    record: bytes
    output: str = ""


@contextmanager
def run_held(
    command: Callable[[Handles], Command],
    given: int,
    limits: Limits,
    groups: Groups,
    end_at: float,
    *,
    is_captured: bool = False,
) -> Iterator[Ended]:
    """Yield the outcome of a program in a sandbox, at its end or its deadline.

    Later output is ignored. After the block the first process of its namespace is dead,
    and so is every other one there: the kernel ends them first. The block waits for
    this, however long it takes.
    """
    with Open() as resources:
        answer = resources.answer()
        report, status = resources.pipe()
        gate, opener = resources.pipe()
        silence = resources.own(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC))
        output = resources.own(os.memfd_create("words", os.MFD_CLOEXEC))
        process = _started(
            command(Handles(status, gate)),
            (given, answer, output if is_captured else silence),
            (status, gate),
        )
        try:
            resources.close(status, gate)
            pid = _first_process(report, end_at)
            first = resources.own(os.pidfd_open(pid))
        except (OSError, ValueError, TypeError, KeyError) as error:
            process.kill()
            process.wait()
            raise UnavailableError(_not_made(_last_line(output))) from error
        with limited(groups, pid, limits):
            try:
                os.write(opener, b"g")
                ends(first, end_at)
                yield Ended(record_of(answer), _last_line(output))
            finally:
                _end(process, first)


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

    def answer(self) -> int:
        """Return the output handle, indistinguishable from any other."""
        return self.own(os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK))

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
    command: Command, standard: tuple[int, int, int], handles: tuple[int, ...]
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603 - made here, by a fixed path
            command.arguments,
            stdin=standard[0],
            stdout=standard[1],
            stderr=standard[2],
            env={},
            cwd="/",
            close_fds=True,
            pass_fds=(*handles, *command.handles),
            start_new_session=True,
        )
    except OSError as error:
        raise UnavailableError(_not_made(error.strerror or "")) from error


def _first_process(report: int, end_at: float) -> int:
    """Return the first process of the namespace, which waits at the gate."""
    text, deadline = b"", min(end_at, time.monotonic() + _BEGIN_SECONDS)
    while b"}" not in text and len(text) < _STATUS_BYTES_MAX:
        left = max(0.0, deadline - time.monotonic())
        ready, _, _ = select.select([report], [], [], left)
        part = os.read(report, _STATUS_BYTES_MAX) if ready else b""
        if not part:
            raise ValueError("no process was created")
        text += part
    return int(json.loads(text)["child-pid"])


def _end(process: subprocess.Popen[bytes], first: int) -> None:
    """End a namespace, and return when it is gone."""
    kill(first)
    ends(first, math.inf)
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()  # It has nothing to wait for any more.
        process.wait()


def kill(first: int) -> None:
    """End a process, if it has not ended."""
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(first, signal.SIGKILL)


def ends(first: int, moment: float) -> bool:
    """Return whether a process ends before a moment of the monotonic clock."""
    left = max(0.0, moment - time.monotonic())
    poll = select.poll()
    poll.register(first, select.POLLIN)
    return bool(poll.poll(None if math.isinf(left) else left * 1000))


def record_of(answer: int) -> bytes:
    """Return the output, cut after one byte more than a record."""
    os.set_blocking(answer, False)
    try:
        return os.read(answer, RECORD_BYTES + 1)
    except BlockingIOError:
        return b""


def _last_line(output: int) -> str:
    """Return the last line of messages."""
    text = os.pread(output, 2**16, 0).decode("utf-8", errors="replace").strip()
    return text.splitlines()[-1][:_WORDS_MAX] if text else ""


def _not_made(why: str) -> Problem:
    return missing(
        f"the sandbox could not be created{f' ({why})' if why else ''}",
        "run  modicum doctor  where the server runs",
    )
