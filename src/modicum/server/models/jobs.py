"""Jobs."""

from __future__ import annotations

from typing import Any, Literal

from modicum.server.models.shared_forms import Form, ProblemForm


class JobItem(Form):
    """A job, without what it found."""

    job: str
    kind: str
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    progress: float
    begun_at: str
    ended_at: str | None


class JobForm(JobItem):
    """A job; `result` is there once it is done, `problem` if it failed."""

    result: dict[str, Any] | None
    problem: ProblemForm | None


class JobList(Form):
    """The jobs of whoever asks, oldest first."""

    jobs: list[JobItem]
