"""Messages for missing requirements of sandboxes."""

from __future__ import annotations

from modicum.core.errors import Code, Problem

NOTHING_RAN = "nothing ran: programs run in a sandbox only"


def missing(what: str, remedy: str) -> Problem:
    """Return that a requirement is missing, and how to install it."""
    return Problem(Code.SANDBOX_MISSING, what, notes=(NOTHING_RAN,), help=remedy)


def leaking(tier: str, what: str) -> Problem:
    """Return that a sandbox failed its self-test."""
    return Problem(
        Code.SANDBOX_LEAKS,
        f"the sandbox {tier} failed its self-test: {what}",
        notes=(NOTHING_RAN,),
        help="compare the machine with docs/reference/sandbox.md",
    )
