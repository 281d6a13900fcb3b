"""Read operations on a ledger: one function per operation.

A server uses them over HTTP; `read` calls them on a local ledger.
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
