"""Several things done in one turn, each by itself: one's mistake touches no other."""

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

#: Mistakes of one request, which say nothing about the others.
OWN_MISTAKES = (InputError, ConflictError, UsageError, ApprovalError, StaleError)


def attempt(entry: Entry, work: Callable[[Entry], T]) -> T | ModicumError:
    """Return what some work in a turn returns, or its mistake, which left no trace.

    Args:
        entry: The turn.
        work: Adds events to it.

    Raises:
        ModicumError: A mistake after something was added: nothing of this turn may
            be stored then.
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
    """Return what each piece of work returns, done in order, or its mistake.

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
