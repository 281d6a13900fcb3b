"""A job: what takes long, how far it is, and why one is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeAlias

from modicum.core.errors import (
    Code,
    InputError,
    ModicumError,
    Problem,
    UnavailableError,
)

#: How far a job is, from 0 to 1; whoever is told raises `GivenUp` if it is to end.
Report: TypeAlias = Callable[[float], None]
#: What a job does; it returns plain data.
Work: TypeAlias = Callable[[Report], object]


class GivenUp(Exception):  # noqa: N818 - it is no mistake, but what was asked for
    """A job is to end, since nobody waits for it any more."""


class JobState(Enum):
    """How far a job is."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


_OVER: Final = frozenset({JobState.DONE, JobState.FAILED, JobState.CANCELLED})


@dataclass(frozen=True, slots=True)
class JobLimits:
    """How much a process takes on, and how much of it it keeps.

    Attributes:
        running: So many jobs run at once.
        unfinished: So many are queued or running.
        each: So many of them are of one identity.
        each_single: So many of those that wait for each other are of one identity; they
            are counted by themselves.
        kept: So many that are over are kept, the latest.
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
    """A job, as it stands.

    Attributes:
        id: Its id; it begins with that of the process.
        kind: What it does.
        state: How far it is.
        progress: The same as a number from 0 to 1.
        begun_at: When it was asked for.
        ended_at: When it was over; empty before.
        result: What it found, as JSON; empty if it found nothing.
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
    """Return what is told of a bug; what it says may be about rows."""
    problem = Problem(Code.INTERNAL, f"internal error ({type(error).__name__})")
    return ModicumError(problem)


def too_many(why: str) -> UnavailableError:
    """Return the error for a job that is not taken on.

    Args:
        why: Why not.
    """
    return UnavailableError(
        Problem(
            Code.LEDGER_BUSY,
            why,
            notes=("nothing was begun",),
            help="wait until one is done, or give one up",
        )
    )


def unknown_job(identifier: str) -> InputError:
    """Return the error for a job that is not there, or is somebody else's."""
    return InputError(
        Problem(
            Code.NOT_FOUND,
            f"there is no job `{identifier[:60]}`",
            notes=("what is over is kept for a while only",),
            help="begin it again",
        )
    )


def job_elsewhere(identifier: str) -> InputError:
    """Return the error for a job of another process."""
    return InputError(
        Problem(
            Code.JOB_ELSEWHERE,
            f"the job `{identifier[:60]}` is of another process of this service",
            help="ask again over another connection; if its process ended, begin it"
            " again",
        )
    )
