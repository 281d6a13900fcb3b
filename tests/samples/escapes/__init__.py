"""Programs that try to get out of a sandbox, or to tell more than a score."""

from __future__ import annotations

from samples.escapes.answers import ANSWERS
from samples.escapes.attempt import Attempt
from samples.escapes.files import FILES
from samples.escapes.kernel import KERNEL
from samples.escapes.network import NETWORK
from samples.escapes.processes import PROCESSES
from samples.escapes.resources import RESOURCES

#: Every attempt, by what it is after.
ATTEMPTS: tuple[Attempt, ...] = (
    *NETWORK,
    *FILES,
    *PROCESSES,
    *KERNEL,
    *RESOURCES,
    *ANSWERS,
)

__all__ = ["ATTEMPTS", "Attempt"]
