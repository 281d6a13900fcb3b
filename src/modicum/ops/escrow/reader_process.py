"""The main program of the process that reads rows; see `reader`."""

from __future__ import annotations

import ctypes
import os
import pickle  # noqa: TID251 - only the process that began this one writes it
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from modicum.api.ports.escrow import Work
from modicum.core.errors import Code, InvariantError, ModicumError, Problem
from modicum.ops.escrow.equipment import EscrowEquipment, EscrowPlace
from modicum.ops.escrow.reader import (
    LENGTH_BYTES,
    Done,
    Message,
    Ready,
    Score,
    Unwrap,
    Wrap,
    received,
)
from modicum.risk.worker.messages import Failed, failed
from modicum.sandbox.job import job_of
from modicum.system.core_dumps import forbid_core_dumps
from modicum.vault.key_provider import Context, Wrapped

_SET_DEATH_SIGNAL: Final = 1


def main(handle: int) -> None:
    """Do the one piece of requested work, and report its outcome."""
    own = _Parent(socket.socket(fileno=handle))
    try:
        forbid_core_dumps()
        own.send(_worked(own))
    except ModicumError as error:
        own.send(failed(error, error.problems))
    except BaseException as error:  # noqa: BLE001 - it may quote rows
        own.send(_unforeseen(type(error).__name__))


def _worked(own: _Parent) -> Done:
    parent, (folder, work, given) = own.receive()
    _end_with(parent)
    place = EscrowPlace(Path(folder), _ParentKeys(own))
    generator: Work = _called(work, EscrowEquipment(place), given)
    request = next(generator)
    while True:
        if request is None:
            own.send(Ready())
        else:
            own.send(
                Score(), job_of(request.program, request.tables, request.reference)
            )
        try:
            request = generator.send(own.receive())
        except StopIteration as end:
            return Done(dict(end.value))


def _called(work: Callable[..., Work], equipment: object, given: Any) -> Work:
    return work(equipment, *given)


def _end_with(parent: int) -> None:
    """End when the parent's thread or the parent ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


class _Parent:
    """The parent of this process.

    Args:
        own: The socket that it listens at.
    """

    def __init__(self, own: socket.socket) -> None:
        self._own = own

    def receive(self) -> Any:
        """Return its next message."""
        length = int.from_bytes(received(self._own, LENGTH_BYTES), "big")
        return pickle.loads(received(self._own, length))  # noqa: S301 - its own

    def send(self, message: Message, job: Any = None) -> None:
        """Send it a message, and a program's input."""
        body = msgspec.json.encode(message)
        head = len(body).to_bytes(LENGTH_BYTES, "big")
        if job is None:
            self._own.sendall(head + body)
            return
        with job:
            socket.send_fds(self._own, [head], [job.fileno()])
        self._own.sendall(body)


class _ParentKeys:
    """Requests for keys of the vault. It implements the port `KeyProvider`.

    Args:
        own: The parent.
    """

    def __init__(self, own: _Parent) -> None:
        self._own = own

    def current(self) -> str:
        """Refuse: only the vault's owner needs the current key."""
        raise _out_of_place("the current key")

    def wrap(self, data_key: bytes, context: Context) -> Wrapped:
        """Return a data key, wrapped."""
        self._own.send(Wrap(data_key, context.id, context.digest))
        found: Wrapped = self._own.receive()
        return found

    def unwrap(self, wrapped: Wrapped, context: Context) -> bytes:
        """Return a data key."""
        self._own.send(Unwrap(wrapped.data, wrapped.key_id, context.id, context.digest))
        found: bytes = self._own.receive()
        return found

    def rewrap(self, wrapped: Wrapped, context: Context) -> Wrapped:
        """Refuse: only the vault's owner wraps keys anew."""
        raise _out_of_place("a key to be wrapped again")


def _out_of_place(what: str) -> InvariantError:
    problem = Problem(Code.INTERNAL, f"the process that reads rows requests {what}")
    return InvariantError(problem)


def _unforeseen(kind: str) -> Failed:
    problem = Problem(
        Code.INTERNAL, f"internal error in the process that reads rows ({kind[:80]})"
    )
    return failed(InvariantError(problem), (problem,))
