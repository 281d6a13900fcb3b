"""Jobs: long operations, their progress, and their results."""

from __future__ import annotations

from typing import Any, Final

from modicum.api import operations
from modicum.api.schema.job import Job
from modicum.api.schema.policy_change import Simulation
from modicum.api.schema.shape import convert
from modicum.console.registry import DONE, after, form, page
from modicum.console.relay import Relay

DONE["job-cancelled"] = "The job ends at its next step."

#: Of each kind of job: its name, and the page that starts it, with its name.
KINDS: Final = {
    "analyze-risk": ("Risk analysis", "/risk", "Risk"),
    "plan-round": ("Plan of a round", "/rounds", "Rounds"),
    "run-contract": ("Run of a contract", "/escrow", "Escrow"),
    "simulate-policy": ("Simulation of a policy", "/policy", "Policy"),
    "verify-ledger": ("Verification of the ledger", "/ledger", "Ledger"),
}
#: States that change without the visitor.
_UNFINISHED: Final = ("queued", "running")


@page("/jobs", "jobs.html")
async def jobs(relay: Relay) -> dict[str, Any]:
    """Return the visitor's jobs, newest first."""
    found = (await relay.get(operations.JOBS)).jobs
    return {"jobs": found[::-1], "kinds": KINDS}


@page("/jobs/{job}", "job.html")
async def job(relay: Relay) -> dict[str, Any]:
    """Return a job: its progress, and its result or its failure."""
    found = await relay.get(operations.JOB, job=relay.named("job"))
    name, path, back = KINDS.get(found.kind, (found.kind, "/jobs", "Jobs"))
    return {
        "job": found,
        "name": name,
        "back": (path, back),
        "unfinished": found.state in _UNFINISHED,
        "result": _result(found),
    }


@form("/jobs/{job}/cancel", job)
async def cancel(relay: Relay) -> str:
    """Cancel a job."""
    await relay.call(operations.CANCEL_JOB, job=relay.named("job"))
    return after("/jobs/{}", relay.named("job"), done="job-cancelled")


def _result(found: Job) -> Any:
    """Return the result of a job, as a shape if it has one with amounts."""
    if found.result is not None and found.kind == "simulate-policy":
        return convert(found.result, Simulation)
    return found.result
