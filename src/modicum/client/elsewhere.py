"""What cannot be done over HTTP, and what to do instead."""

from __future__ import annotations

from modicum.core.errors import Code, Problem, UsageError


def not_from_here(what: str, instead: str) -> UsageError:
    """Return the mistake of asking a server for what is done where the ledger is.

    Args:
        what: What was asked for.
        instead: What to do instead.
    """
    return UsageError(
        Problem(
            Code.NOT_SUPPORTED,
            f"{what} cannot be had from a server",
            notes=("nothing was done by this",),
            help=instead,
        )
    )
