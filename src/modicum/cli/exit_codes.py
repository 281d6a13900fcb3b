"""Exit codes, in one table; they are part of the interface."""

from __future__ import annotations

from enum import IntEnum

from modicum.core import errors


class Exit(IntEnum):
    """The exit codes of commands."""

    OK = 0
    INTERNAL = 1
    USAGE = 2
    DENIED = 3
    INVALID = 4
    NEEDS_APPROVAL = 5
    BROKEN = 6
    STALE = 7
    THRESHOLD = 8
    #: After Ctrl-C, as shells have it.
    INTERRUPTED = 130


_EXITS: tuple[tuple[type[errors.ModicumError], Exit], ...] = (
    (errors.InputError, Exit.INVALID),
    (errors.ConflictError, Exit.INVALID),
    (errors.UsageError, Exit.USAGE),
    (errors.AccessError, Exit.USAGE),
    (errors.ApprovalError, Exit.NEEDS_APPROVAL),
    (errors.StaleError, Exit.STALE),
    (errors.VerificationError, Exit.BROKEN),
    (errors.UnavailableError, Exit.INTERNAL),
    (errors.InvariantError, Exit.INTERNAL),
)


def exit_for(error: errors.ModicumError) -> Exit:
    """Return the exit code of a mistake."""
    for kind, code in _EXITS:
        if isinstance(error, kind):
            return code
    return Exit.INTERNAL
