"""Jobs."""

from __future__ import annotations

from typing import Literal

from modicum.api.schema.problem import ProblemDetails
from modicum.api.schema.shape import Plain, Shape


class JobItem(Shape, frozen=True, kw_only=True):
    """A job, without what it found.

    Attributes:
        job: Its id.
        kind: What it does.
        state: `queued`, `running`, `done`, `failed` or `cancelled`.
        progress: How far it is, from 0 to 1.
        begun_at: When it was requested.
        ended_at: When it ended; None before.
    """

    job: str
    kind: str
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    progress: float
    begun_at: str
    ended_at: str | None


class Job(JobItem, frozen=True, kw_only=True):
    """A job; `result` is there once it is done, `problem` if it failed.

    Attributes:
        result: What it found; None before.
        problem: Why it failed; None if it did not.
    """

    result: Plain | None
    problem: ProblemDetails | None


class JobList(Shape, frozen=True, kw_only=True):
    """The jobs of whoever asks, oldest first.

    Attributes:
        jobs: The jobs.
    """

    jobs: tuple[JobItem, ...]
