"""The mistake of asking for what is not there."""

from __future__ import annotations

from modicum.core.errors import Code, InputError, Problem


def not_found(message: str, remedy: str) -> InputError:
    """Return the error for something that is not there, as far as the reader may know.

    Args:
        message: What is not there.
        remedy: What to do.
    """
    return InputError(Problem(Code.NOT_FOUND, message, help=remedy))
