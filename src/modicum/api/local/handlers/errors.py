"""The error for unknown objects."""

from __future__ import annotations

from modicum.core.errors import Code, InputError, Problem


def not_found(message: str, remedy: str) -> InputError:
    """Return the error for an object that is missing, or hidden from the reader.

    Args:
        message: The missing object.
        remedy: The remedy.
    """
    return InputError(Problem(Code.NOT_FOUND, message, help=remedy))
