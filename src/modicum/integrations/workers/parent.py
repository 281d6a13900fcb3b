"""The parent's side: a worker that is sent requests, and held to the protocol."""

from __future__ import annotations

import json
import os
import time
import weakref
from collections.abc import Mapping
from pathlib import Path
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from typing import Annotated, Any, Final

import msgspec

from modicum.core.errors import Code, Problem, UnavailableError, UsageError
from modicum.integrations.workers.child import LINE_MAX, PROTOCOL
from modicum.integrations.workers.process import ended, new_folder, started
from modicum.integrations.workers.runner import Runner

#: Timeout for a Python that does not respond, in seconds.
HELLO_SECONDS: Final = 120.0
_CHUNK = 65536

_Word = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.+!-]{1,80}\Z")]


class _Greeting(msgspec.Struct, forbid_unknown_fields=True):
    protocol: int
    versions: dict[_Word, _Word]


class _Hello(
    msgspec.Struct, tag_field="answer", tag="hello", forbid_unknown_fields=True
):
    result: _Greeting


class _Done(msgspec.Struct, tag_field="answer", tag="done", forbid_unknown_fields=True):
    result: msgspec.Raw


class _Failed(
    msgspec.Struct, tag_field="answer", tag="failed", forbid_unknown_fields=True
):
    at: _Word
    kind: _Word


_ANSWERS: Final = msgspec.json.Decoder(_Hello | _Done | _Failed)


class Worker:
    """A process of another environment's Python, held to a protocol.

    It starts in an empty new folder, which is removed with it. It is ended with its
    process group when it is closed, when it is no longer referenced, and when this
    process ends in any way.

    Args:
        runner: Its runner.
        python: The Python of its environment.
        hello_seconds: How long its first answer may take, > 0.

    Raises:
        UsageError: If that is no Python, speaks another protocol, or has other versions
            of the library.
        UnavailableError: If it does not answer as it should.
    """

    def __init__(
        self,
        runner: Runner,
        python: str | Path,
        *,
        hello_seconds: float = HELLO_SECONDS,
    ) -> None:
        self._runner = runner
        #: Its folder, which nobody else can access.
        self.scratch: Final = new_folder()
        process = started(runner, python, self.scratch)
        self._close = weakref.finalize(self, ended, process, self.scratch, os.getpid())
        assert process.stdin is not None
        assert process.stdout is not None
        self._requests = process.stdin.fileno()
        self._answers = process.stdout.fileno()
        try:
            self._greet(hello_seconds)
        except BaseException:
            self.close()
            raise

    def prepare(self, job: Mapping[str, Any], *, seconds: float) -> None:
        """Let it do what can be done before rows are read."""
        self._done("prepare", job, seconds)

    def run(self, job: Mapping[str, Any], *, seconds: float) -> bytes:
        """Return the result of a job, as unchecked JSON."""
        return self._done("run", job, seconds)

    def close(self) -> None:
        """End it, and all that it started. Its folder is gone then."""
        self._close()

    # --- inside ---

    def _greet(self, seconds: float) -> None:
        answer = self._request({"ask": "hello", "protocol": PROTOCOL}, seconds)
        if not isinstance(answer, _Hello):
            raise self._strange()
        greeting, runner = answer.result, self._runner
        if greeting.protocol != PROTOCOL:
            raise UsageError(
                Problem(
                    Code.UNKNOWN_VERSION,
                    f"the worker for {runner.library} uses version"
                    f" {greeting.protocol} of the protocol, and this is version"
                    f" {PROTOCOL}",
                    help="restart this program: modicum was upgraded",
                )
            )
        runner.refuse_other_versions(greeting.versions)

    def _done(self, verb: str, job: Mapping[str, Any], seconds: float) -> bytes:
        try:
            answer = self._request({"ask": verb, "job": dict(job)}, seconds)
            if not isinstance(answer, _Done):
                raise self._strange()
        except BaseException:
            self.close()
            raise
        return bytes(answer.result)

    def _request(self, request: Mapping[str, Any], seconds: float) -> _Hello | _Done:
        line = json.dumps(request, ensure_ascii=True).encode("ascii") + b"\n"
        if len(line) > LINE_MAX:
            raise UsageError(
                Problem(
                    Code.TOO_LARGE,
                    f"a request to {self._runner.library} has {len(line)} bytes, more"
                    f" than {LINE_MAX}",
                    help="send fewer or shorter values",
                )
            )
        if not self._close.alive:
            raise self._gone()
        deadline = time.monotonic() + seconds
        self._send(line, deadline, seconds)
        found = self._line(deadline, seconds)
        try:
            answer: _Hello | _Done | _Failed | None = _ANSWERS.decode(found)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            answer = None
        # Outside of the handler: otherwise the message would stay attached.
        if answer is None:
            raise self._strange()
        if isinstance(answer, _Failed):
            raise self._failed(answer)
        return answer

    def _send(self, line: bytes, deadline: float, seconds: float) -> None:
        try:
            while line:
                self._wait(self._requests, EVENT_WRITE, deadline, seconds)
                line = line[os.write(self._requests, line) :]
        except BrokenPipeError:
            raise self._gone() from None

    def _line(self, deadline: float, seconds: float) -> bytes:
        """Return one line, and check that there is no more."""
        received = b""
        while b"\n" not in received:
            if len(received) > LINE_MAX:
                raise self._strange()
            self._wait(self._answers, EVENT_READ, deadline, seconds)
            more = os.read(self._answers, _CHUNK)
            if not more:
                raise self._gone()
            received += more
        line, _, rest = received.partition(b"\n")
        if rest or len(line) > LINE_MAX:
            raise self._strange()
        return line

    def _wait(self, stream: int, event: int, deadline: float, seconds: float) -> None:
        with DefaultSelector() as selector:
            selector.register(stream, event)
            left = deadline - time.monotonic()
            if left > 0 and selector.select(left):
                return
        raise self._problem(
            f"{self._runner.library} has not responded within {seconds:g} seconds",
            help_="increase the time limit, or reduce the work",
        )

    # --- errors ---

    def _failed(self, answer: _Failed) -> UnavailableError:
        doing = self._runner.doing.get(answer.at, "working")
        return self._problem(
            f"{self._runner.library} failed {doing} ({answer.kind})",
            "its error message is hidden: it may quote rows",
            help_="try it in its own environment, on synthetic rows, for details",
        )

    def _gone(self) -> UnavailableError:
        return self._problem(
            f"the process of {self._runner.library} ended without a response",
            help_="check that it had enough memory, and was not killed",
        )

    def _strange(self) -> UnavailableError:
        return self._problem(
            f"the process of {self._runner.library} sent an invalid response",
            "its output is hidden: it may quote rows",
            help_="check that the given Python belongs to its environment",
        )

    def _problem(self, message: str, *notes: str, help_: str) -> UnavailableError:
        return UnavailableError(
            Problem(Code.ENGINE_FAILED, message, notes=notes, help=help_)
        )
