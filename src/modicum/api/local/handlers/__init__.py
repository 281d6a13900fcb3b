"""What can be read of a ledger: one function for each operation.

A server answers with it over HTTP; `read` returns the same from a ledger at hand.
"""

from __future__ import annotations

from modicum.api.local.handlers import log, policies, releases, rounds
from modicum.api.local.handlers.registry import Read, all_reads, read, read_of

__all__ = [
    "Read",
    "all_reads",
    "log",
    "policies",
    "read",
    "read_of",
    "releases",
    "rounds",
]
