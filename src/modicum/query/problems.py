"""Mistakes in queries, with their positions."""

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
    """Return the error for an impossible request.

    Args:
        code: The kind of mistake.
        reason: The mistake.
        mark: The position.
        notes: Why it matters.
        help: The remedy.
    """
    return InputError(Problem(code, reason, mark, notes=notes, help=help))
