"""Several independent operations in one turn: an error affects only its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from modicum.api.local.balances import Entry
from modicum.core.errors import (
    ApprovalError,
    ConflictError,
    InputError,
    ModicumError,
    StaleError,
    UsageError,
)

T = TypeVar("T")

#: Errors of one request, without consequences for the others.
OWN_MISTAKES = (InputError, ConflictError, UsageError, ApprovalError, StaleError)


def attempt(entry: Entry, work: Callable[[Entry], T]) -> T | ModicumError:
    """Return the result of an operation, or its error if it added nothing.

    Args:
        entry: The turn.
        work: Adds events to it.

    Raises:
        ModicumError: An error after something was added: nothing of this turn may be
            stored then.
    """
    before = entry.added
    try:
        return work(entry)
    except OWN_MISTAKES as mistake:
        if entry.added != before:
            raise
        return mistake


def each(
    entry: Entry, works: Iterable[Callable[[Entry], T | ModicumError]]
) -> list[T | ModicumError]:
    """Return the result or the error of each operation, in order.

    Args:
        entry: The turn.
        works: Each adds its own events.

    Raises:
        ModicumError: As `attempt` does.
    """
    answers = [attempt(entry, work) for work in works]
    if all(isinstance(answer, ModicumError) for answer in answers):
        entry.withdraw_activation()
    return answers
