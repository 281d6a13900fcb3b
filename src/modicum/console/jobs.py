"""The job that a page waits for, by the parameter `job` of its address."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from modicum.api import operations
from modicum.api.schema.job import Job
from modicum.console.relay import Relay


def job_page(path: str, *parts: str, job: str, **query: str) -> str:
    """Return the address of a page that shows a job, with further query parameters.

    Each `{}` in the path is replaced by one of the parts, quoted.
    """
    quoted = (quote(one, safe="") for one in parts)
    kept = {name: one for name, one in query.items() if one}
    return f"{path.format(*quoted)}?{urlencode({'job': job, **kept})}"


async def job_of(relay: Relay, kind: str) -> Job | None:
    """Return the job that a page or its form names; None for one of another kind."""
    name = relay.query.get("job") or relay.fields.get("job", "")
    if not name:
        return None
    job = await relay.try_get(operations.JOB, job=name)
    return job if job is not None and job.kind == kind else None
