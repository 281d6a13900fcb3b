"""Mistakes in a mechanism's parameters and costs, at their place."""

from __future__ import annotations

from modicum.core.errors import Code, InputError, Mark, Problem
from modicum.release.model import Mechanism


def wrong(
    mechanism: Mechanism,
    code: Code,
    message: str,
    *,
    notes: tuple[str, ...] = (),
    help: str = "",  # noqa: A002 - the word users see
    mark: Mark | None = None,
) -> InputError:
    """Return the error for a mistake in a mechanism's parameters or costs.

    Args:
        mechanism: The mechanism.
        code: Its code.
        message: The mistake.
        notes: Reasons.
        help: The remedy.
        mark: Its exact position; by default that of the costs.
    """
    place = mechanism.cost_mark if mark is None else mark
    return InputError(Problem(code, message, place, notes=notes, help=help))
