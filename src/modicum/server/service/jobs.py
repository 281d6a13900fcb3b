"""Jobs: long operations with progress and cancellation; results are kept for a while.

A job belongs to the process that started it and writes nothing to the ledger: it ends
with the process, and can be started again. It is visible only to its owner, and only
with the permission that started it.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final, TypeAlias

from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.api.ports.storage import Clock
from modicum.api.schema.shape import encode
from modicum.core.errors import (
    Code,
    InputError,
    ModicumError,
    Problem,
    UnavailableError,
)
from modicum.system.clock import SystemClock

#: Receives the progress of a job, from 0 to 1; raises `GivenUp` to end it.
Report: TypeAlias = Callable[[float], None]
#: The work of a job; it returns plain data.
Work: TypeAlias = Callable[[Report], object]


class GivenUp(Exception):  # noqa: N818 - a requested end, not an error
    """A job was cancelled."""


class JobState(Enum):
    """The state of a job."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


_OVER: Final = frozenset({JobState.DONE, JobState.FAILED, JobState.CANCELLED})


@dataclass(frozen=True, slots=True)
class JobLimits:
    """The limits on running and kept jobs.

    Attributes:
        running: Maximum number of running jobs.
        unfinished: Maximum number of queued or running jobs.
        each: Maximum number of these per identity.
        each_single: Maximum number of sequential jobs per identity, counted separately.
        kept: Maximum number of finished jobs kept, the latest.
        kept_bytes: So large are their results together.
        kept_seconds: So long they are kept.
    """

    running: int = 2
    unfinished: int = 32
    each: int = 4
    each_single: int = 2
    kept: int = 100
    kept_bytes: int = 2**28
    kept_seconds: float = 3600.0


@dataclass(frozen=True, slots=True)
class Job:
    """The state of a job.

    Attributes:
        id: Its id; it begins with that of the process.
        kind: The operation.
        state: How far it is.
        progress: The same as a number from 0 to 1.
        begun_at: When it was requested.
        ended_at: When it was over; empty before.
        result: Its result, as JSON; empty if there is none.
        error: Why it failed; None if it did not.
        version: How often it changed.
    """

    id: str
    kind: str
    state: JobState
    progress: float
    begun_at: str
    ended_at: str
    result: bytes = field(repr=False)
    error: ModicumError | None
    version: int

    @property
    def is_over(self) -> bool:
        """Whether nothing more becomes of it."""
        return self.state in _OVER


def unforeseen(error: Exception) -> ModicumError:
    """Return the public error of a bug, whose message may contain rows."""
    problem = Problem(Code.INTERNAL, f"internal error ({type(error).__name__})")
    return ModicumError(problem)


def too_many(why: str) -> UnavailableError:
    """Return the error for a refused job."""
    return UnavailableError(
        Problem(
            Code.LEDGER_BUSY,
            why,
            notes=("nothing was started",),
            help="wait until one is finished, or cancel one",
        )
    )


def unknown_job(identifier: str) -> InputError:
    """Return the error for a job that is missing, or not the caller's."""
    return InputError(
        Problem(
            Code.NOT_FOUND,
            f"unknown job `{identifier[:60]}`",
            notes=("finished jobs are kept for a limited time",),
            help="start it again",
        )
    )


def job_of_another_process(identifier: str) -> InputError:
    """Return the error for a job of another process."""
    return InputError(
        Problem(
            Code.JOB_ELSEWHERE,
            f"the job `{identifier[:60]}` belongs to another process of this service",
            help="retry over another connection; if its process ended, start it again",
        )
    )


_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{24}")


@dataclass
class _StoredJob:
    """A job, as the process keeps it. Guarded by the lock of all jobs."""

    job: Job
    owner: str
    action: Action
    data_set: str | None = None
    is_single: bool = False
    over_at: float = 0.0
    is_unwanted: bool = False


class Jobs:
    """The jobs of a process; any thread may use them.

    Args:
        limits: The limits.
        clock: The time of day.
        seconds: Returns seconds, from any origin.
    """

    def __init__(
        self,
        limits: JobLimits | None = None,
        clock: Clock | None = None,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = limits or JobLimits()
        self._clock = clock or SystemClock()
        self._seconds = seconds
        self._process = secrets.token_hex(4)
        self._guard = threading.Lock()
        self._stored: dict[str, _StoredJob] = {}
        self._is_closed = False
        self._threads = ThreadPoolExecutor(self._limits.running, "job")
        self._single = ThreadPoolExecutor(1, "job-single")

    def begin(
        self,
        who: Identity,
        action: Action,
        kind: str,
        work: Work,
        *,
        data_set: str | None = None,
        is_single: bool = False,
    ) -> Job:
        """Begin a job."""
        with self._guard:
            self._forget()
            unfinished = [
                one
                for one in self._stored.values()
                if not one.job.is_over and one.is_single == is_single
            ]
            own = sum(one.owner == who.name for one in unfinished)
            most = self._limits.each_single if is_single else self._limits.each
            if self._is_closed or len(unfinished) >= self._limits.unfinished:
                raise too_many("too many jobs are running")
            if own >= most:
                raise too_many(f"{own} of your jobs are running")
            job = Job(
                id=f"{self._process}-{secrets.token_hex(12)}",
                kind=kind,
                state=JobState.QUEUED,
                progress=0.0,
                begun_at=self._clock.now(),
                ended_at="",
                result=b"",
                error=None,
                version=1,
            )
            kept = _StoredJob(job, who.name, action, data_set, is_single)
            self._stored[job.id] = kept
            threads = self._single if is_single else self._threads
            threads.submit(self._run, kept, work)
            return job

    def one(self, who: Identity, identifier: str) -> Job:
        """Return a job."""
        with self._guard:
            return self._found(who, identifier).job

    def of(self, who: Identity) -> tuple[Job, ...]:
        """Return the jobs of an identity, oldest first."""
        with self._guard:
            self._forget()
            return tuple(one.job for one in self._stored.values() if _is_for(one, who))

    def cancel(self, who: Identity, identifier: str) -> Job:
        """Give up a job; one that runs ends at its next step."""
        with self._guard:
            kept = self._found(who, identifier)
            self._give_up(kept)
            return kept.job

    def leave(self) -> None:
        """Accept nothing new, and cancel running jobs; waits for nothing."""
        with self._guard:
            self._is_closed = True
            for kept in self._stored.values():
                self._give_up(kept)

    def close(self) -> None:
        """Cancel running jobs, and wait until they have ended."""
        self.leave()
        for threads in (self._threads, self._single):
            threads.shutdown(wait=True, cancel_futures=True)

    # --- running ---

    def _run(self, kept: _StoredJob, work: Work) -> None:
        with self._guard:
            if kept.job.is_over:
                return
            self._change(kept, state=JobState.RUNNING)

        def report(progress: float) -> None:
            with self._guard:
                if kept.is_unwanted:
                    raise GivenUp
                # Few are watched so closely that a hundredth is too coarse.
                if progress >= kept.job.progress + 0.01:
                    self._change(kept, progress=min(progress, 1.0))

        try:
            result = encode(work(report))
        except GivenUp:
            self._end(kept, JobState.CANCELLED)
        except ModicumError as error:
            self._end(kept, JobState.FAILED, error=error)
        except Exception as error:  # noqa: BLE001 - reported without its message
            self._end(kept, JobState.FAILED, error=unforeseen(error))
        else:
            self._end(kept, JobState.DONE, result=result)

    def _end(
        self,
        kept: _StoredJob,
        state: JobState,
        result: bytes = b"",
        error: ModicumError | None = None,
    ) -> None:
        with self._guard:
            if kept.is_unwanted:
                state, result, error = JobState.CANCELLED, b"", None
            progress = 1.0 if state is JobState.DONE else kept.job.progress
            self._change(
                kept, state=state, progress=progress, result=result, error=error
            )
            self._forget()

    # --- inside, under the guard ---

    def _give_up(self, kept: _StoredJob) -> None:
        if kept.job.is_over:
            return
        kept.is_unwanted = True
        if kept.job.state is JobState.QUEUED:
            self._change(kept, state=JobState.CANCELLED)

    def _change(self, kept: _StoredJob, **to: Any) -> None:
        version = kept.job.version + 1
        kept.job = replace(kept.job, version=version, **to)
        if kept.job.is_over:
            kept.over_at = self._seconds()
            ended = self._clock.now()
            kept.job = replace(kept.job, ended_at=ended)

    def _found(self, who: Identity, identifier: str) -> _StoredJob:
        self._forget()
        kept = self._stored.get(identifier)
        if kept is not None and _is_for(kept, who):
            return kept
        elsewhere = _ID.fullmatch(identifier) and not identifier.startswith(
            self._process
        )
        raise (
            job_of_another_process(identifier) if elsewhere else unknown_job(identifier)
        )

    def _forget(self) -> None:
        """Forget jobs that were over long ago, and the oldest of too many."""
        over = sorted(
            (one for one in self._stored.values() if one.job.is_over),
            key=lambda one: one.over_at,
        )
        size = sum(len(one.job.result) for one in over)
        since = self._seconds() - self._limits.kept_seconds
        for place, one in enumerate(over):
            too_many = len(over) - place > self._limits.kept
            if not too_many and size <= self._limits.kept_bytes and one.over_at > since:
                break
            size -= len(one.job.result)
            del self._stored[one.job.id]


def _is_for(kept: _StoredJob, who: Identity) -> bool:
    return kept.owner == who.name and who.may(kept.action, kept.data_set)
