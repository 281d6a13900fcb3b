"""Mistakes in what is asked of queries, with their places."""

from __future__ import annotations

from modicum.core.errors import Code, InputError, Mark, Problem


def refused(
    code: Code,
    reason: str,
    mark: Mark | None,
    *,
    notes: tuple[str, ...] = (),
    help: str = "",  # noqa: A002 - the word users see
) -> InputError:
    """Return the error for something that is asked and cannot be.

    Args:
        code: What kind of mistake it is.
        reason: What is wrong.
        mark: Where.
        notes: Why that matters.
        help: What to do.
    """
    return InputError(Problem(code, reason, mark, notes=notes, help=help))
