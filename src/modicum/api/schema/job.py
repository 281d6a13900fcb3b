"""Jobs."""

from __future__ import annotations

from typing import Literal

from modicum.api.schema.problem import ProblemDetails
from modicum.api.schema.shape import Plain, Shape


class JobItem(Shape, frozen=True, kw_only=True):
    """A job without its result.

    Attributes:
        job: Its id.
        kind: The operation.
        state: `queued`, `running`, `done`, `failed` or `cancelled`.
        progress: Its progress, from 0 to 1.
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
    """A job; `result` is present when it is done, `problem` if it failed.

    Attributes:
        result: The result; None until it is done.
        problem: Why it failed; None if it did not.
    """

    result: Plain | None
    problem: ProblemDetails | None


class JobList(Shape, frozen=True, kw_only=True):
    """The caller's jobs, oldest first.

    Attributes:
        jobs: The jobs.
    """

    jobs: tuple[JobItem, ...]
