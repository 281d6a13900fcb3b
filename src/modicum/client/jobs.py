"""Jobs of a server: progress, waiting and cancellation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic, sleep
from typing import Any, Final

import msgspec

from modicum.api import operations
from modicum.api.operations import Operation
from modicum.api.schema.job import JobItem
from modicum.client.decoding import decoded
from modicum.client.problems import mistake_of, not_understood
from modicum.client.retry_connection import Connection, Request
from modicum.core.errors import (
    Code,
    InputError,
    ModicumError,
    Problem,
    UnavailableError,
    UsageError,
)

#: Polling intervals of a job: short at first, then longer.
WAIT_SECONDS: Final = 0.05
WAIT_SECONDS_MAX: Final = 1.0
#: A job belongs to one process of the server: this many connections are tried.
_PROCESSES_MAX: Final = 64

_OVER: Final = frozenset({"done", "failed", "cancelled"})


class Job:
    """A job of the caller.

    Args:
        connection: The server.
        reply: The server's data about the job.
    """

    def __init__(self, connection: Connection, reply: object) -> None:
        self._connection = connection
        #: The progress at the last request.
        self.standing = decoded(JobItem, reply)

    def __repr__(self) -> str:
        one = self.standing
        return f"<Job {one.job} {one.kind}: {one.state}, {one.progress:.0%}>"

    @property
    def id(self) -> str:
        """Its id."""
        return self.standing.job

    def refresh(self) -> JobItem:
        """Update the job, and return its state."""
        self._refresh(operations.JOB)
        return self.standing

    def wait(
        self,
        on_progress: Callable[[float], None] | None = None,
        *,
        timeout_seconds: float | None = None,
    ) -> Any:
        """Wait for the job, and return its result: plain data."""
        ends = None if timeout_seconds is None else monotonic() + timeout_seconds
        wait = WAIT_SECONDS
        while True:
            reply = self._refresh(operations.JOB)
            if on_progress is not None:
                on_progress(self.standing.progress)
            if self.standing.state in _OVER:
                return self._found(reply)
            if ends is not None and monotonic() + wait > ends:
                raise self._too_long()
            sleep(wait)
            wait = min(wait * 1.5, WAIT_SECONDS_MAX)

    def cancel(self) -> JobItem:
        """Cancel the job, and return its state; a finished one is unchanged."""
        self._refresh(operations.CANCEL_JOB)
        return self.standing

    def _refresh(self, operation: Operation[Any]) -> dict[str, Any]:
        reply = self._fetch(operation)
        self.standing = decoded(JobItem, reply)
        return dict(reply)

    def _fetch(self, operation: Operation[Any]) -> Any:
        for left in reversed(range(_PROCESSES_MAX)):
            # Another connection may lead to the process that knows the job.
            is_last = left + 1 < _PROCESSES_MAX
            try:
                return self._connection.send(
                    Request(operation, {"job": self.id}, is_last=is_last)
                )
            except InputError as error:
                if error.code is not Code.JOB_ELSEWHERE or not left:
                    raise
        return None  # pragma: no cover - the last attempt raises or returns

    def _found(self, reply: dict[str, Any]) -> Any:
        match self.standing.state:
            case "done":
                return reply.get("result")
            case "cancelled":
                raise UsageError(
                    Problem(
                        Code.NOT_FOUND,
                        f"the job {self.id} was canceled",
                        help="start it again",
                    )
                )
            case _:
                problem = msgspec.json.encode(reply.get("problem"))
                raise mistake_of(200, problem).alone()

    def _too_long(self) -> UnavailableError:
        return UnavailableError(
            Problem(
                Code.LEDGER_BUSY,
                f"the job {self.id} is not finished yet",
                notes=(f"it is {self.standing.state}, and continues",),
                help="wait longer, or cancel it:  job.cancel()",
            )
        )


class RemoteJobs:
    """The jobs of the caller.

    Args:
        connection: The server.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self) -> tuple[Job, ...]:
        """Return the jobs of the responding process, oldest first.

        A server of several processes keeps jobs in each.
        """
        reply = self._connection.send(Request(operations.JOBS))
        if not isinstance(reply, dict) or not isinstance(reply.get("jobs"), list):
            raise not_understood("it contains no jobs")
        return tuple(Job(self._connection, one) for one in reply["jobs"])

    def one(self, identifier: str) -> Job:
        """Return a job."""
        job = Job(self._connection, _started(identifier))
        job.refresh()
        return job


def _started(identifier: str) -> dict[str, object]:
    return {
        "job": identifier,
        "kind": "",
        "state": "queued",
        "progress": 0.0,
        "begun_at": "",
        "ended_at": None,
    }


@contextmanager
def cancelled_on_error(job: Job) -> Iterator[Job]:
    """Cancel a job if an exception leaves the block: nobody waits any more."""
    try:
        yield job
    except BaseException:
        with suppress(ModicumError):
            job.cancel()
        raise
