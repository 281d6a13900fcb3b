"""The process that reads rows: it unseals, computes, seals, and ends.

So the parent process, such as a server, never holds a row or an exact answer. It
provides the keys of what may be opened, one by one, and receives the outcome. The input
of a program is a memory handle, which is passed on and never read.
"""

from __future__ import annotations

import os
import pickle  # noqa: TID251 - it is written here, and read by our own process
import select
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Final, Self, TypeAlias

import msgspec

from modicum.api.ports.escrow import Scorer, Still
from modicum.core.errors import (
    Code,
    Problem,
    UnavailableError,
    check,
)
from modicum.integrations.workers.process import INHERITED, new_folder
from modicum.risk.worker.messages import Failed
from modicum.vault.key_provider import Context, KeyProvider, Wrapped

#: The same modicum, found by the same import path.
_BEGIN: Final = (
    "import sys; sys.path[:] = sys.argv[2:];"
    " from modicum.ops.escrow.reader_process import main; main(int(sys.argv[1]))"
)
#: Its messages are short.
_BYTES_MAX: Final = 2**20
LENGTH_BYTES: Final = 8
_SECONDS: Final = 0.2


class Ready(msgspec.Struct, tag="ready"):
    """All is open, and fits."""


class Unwrap(msgspec.Struct, tag="unwrap"):
    """A request for a key of the vault."""

    wrapped: bytes
    key_id: str
    id: str
    digest: str


class Wrap(msgspec.Struct, tag="wrap"):
    """A new key of the vault is to be wrapped."""

    key: bytes
    id: str
    digest: str


class Score(msgspec.Struct, tag="score"):
    """A request to score the attached input; without one it is too large."""


class Done(msgspec.Struct, tag="done"):
    """The work is done."""

    results: dict[str, str]


Message: TypeAlias = Ready | Unwrap | Wrap | Score | Done | Failed
_decoder: Final = msgspec.json.Decoder(Message)


class Reader:
    """The process that reads rows, until the end of a `with` block.

    Args:
        keys: The provider of the vault's wrapping keys.
        opens: The ids that it may open.
        still: Raises if the result is no longer wanted, until all is open.
    """

    def __init__(self, keys: KeyProvider, opens: Collection[str], still: Still) -> None:
        self._keys, self._opens, self._still = keys, opens, still
        self._folder = new_folder()
        self._own, theirs = socket.socketpair()
        environ = os.environ  # noqa: TID251 - a few of them are handed on
        variables = {name: environ[name] for name in INHERITED if name in environ}
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [
                    *(sys.executable, "-I", "-B", "-c", _BEGIN, str(theirs.fileno())),
                    *map(os.path.abspath, filter(None, sys.path)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=self._folder,
                env={**variables, "TMPDIR": str(self._folder), "TZ": "UTC"},
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except OSError:
            self._leave()
            raise _gone() from None
        finally:
            theirs.close()

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it: nothing that it holds is left."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # It leads a session.
        self._process.wait()
        self._leave()

    def begin(self, job: object) -> None:
        """Let it open its inputs, and check them."""
        self._send((os.getpid(), job))
        message, _ = self._next(self._still)
        check(isinstance(message, Ready), "work yields once all is open")

    def finish(self, run: int, scorer: Scorer | None = None) -> Mapping[str, str]:
        """Let it continue, and return what it sealed."""
        answer: object = run
        while True:
            self._send(answer)
            message, job = self._next()
            if isinstance(message, Done):
                return message.results
            if scorer is None:
                if job is not None:
                    os.close(job)
                raise _gone()
            if isinstance(message, Score):
                file = None if job is None else os.fdopen(job, "rb", buffering=0)
                answer = scorer.turn.score_job(scorer.program, file, scorer.limits)
            else:
                scorer.leave()
                answer = None

    # --- inside ---

    def _next(self, still: Still = lambda: None) -> tuple[Message, int | None]:
        """Return its next message other than requests for keys."""
        while True:
            while not select.select([self._own], [], [], _SECONDS)[0]:
                still()
            message, handle = self._received()
            if isinstance(message, Failed):
                raise message.error()
            if not isinstance(message, Unwrap | Wrap):
                return message, handle
            self._send(self._key(message))

    def _key(self, message: Unwrap | Wrap) -> bytes | Wrapped:
        context = Context(message.id, message.digest)
        if isinstance(message, Wrap):
            return self._keys.wrap(message.key, context)
        if message.id not in self._opens:
            raise _gone()
        return self._keys.unwrap(Wrapped(message.key_id, message.wrapped), context)

    def _received(self) -> tuple[Message, int | None]:
        handles: list[int] = []
        try:
            text, handles, _, _ = socket.recv_fds(self._own, LENGTH_BYTES, 1)
            for handle in handles:
                os.set_inheritable(handle, False)  # noqa: FBT003
            length = int.from_bytes(text, "big")
            if len(text) < LENGTH_BYTES or length > _BYTES_MAX:
                raise _gone()
            message = _decoder.decode(received(self._own, length))
            if handles and not isinstance(message, Score):
                raise _gone()
        except BaseException as error:
            for handle in handles:  # It leads to exact answers.
                os.close(handle)
            wrong = (OSError, EOFError, msgspec.MsgspecError, UnicodeDecodeError)
            if isinstance(error, wrong):
                raise _gone() from None
            raise
        return message, handles[0] if handles else None

    def _send(self, what: object) -> None:
        body = pickle.dumps(what)
        try:
            self._own.sendall(len(body).to_bytes(LENGTH_BYTES, "big") + body)
        except OSError:
            raise _gone() from None

    def _leave(self) -> None:
        self._own.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def received(own: socket.socket, length: int) -> bytes:
    """Return this many bytes."""
    found = bytearray()
    while len(found) < length:
        part = own.recv(length - len(found))
        if not part:
            raise EOFError
        found += part
    return bytes(found)


def _gone() -> UnavailableError:
    return UnavailableError(
        Problem(
            Code.ENGINE_FAILED,
            "the process that reads rows ended without a result",
            notes=("its output is hidden: it may quote rows",),
            help="check that the machine has enough memory",
        )
    )
