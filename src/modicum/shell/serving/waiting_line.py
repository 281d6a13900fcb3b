"""The line of those who wait for the writer: first come, first served, and bounded."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from modicum.core.errors import Code, Problem, UnavailableError
from modicum.policy import CompiledPolicy
from modicum.shell.serving.promise import Promise
from modicum.workspace.book import Entry

#: What somebody asks for, to be done in a turn; it may return a mistake.
Work: TypeAlias = Callable[[Entry], Any]


@dataclass(slots=True)
class Waiting:
    """Somebody who waits for an answer.

    Attributes:
        work: What is asked for.
        actor: Who asks.
        again: Returns the same work under another policy, for whoever means the
            active one; None for whoever means one policy.
        answer: The answer, once it is durable.
    """

    work: Work
    actor: str
    again: Callable[[CompiledPolicy], Work] | None = None
    answer: Promise[Any] = field(default_factory=Promise)


class WaitingLine:
    """The line; any thread may join it, one thread takes from it.

    Args:
        length_max: How many may wait.
    """

    def __init__(self, length_max: int) -> None:
        self._length_max = length_max
        self._waiting: deque[Waiting] = deque()
        self._changed = threading.Condition(threading.Lock())
        self._closed = ""

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_closed(self) -> bool:
        """Whether nobody can join any more."""
        return bool(self._closed)

    def join(self, ones: Sequence[Waiting]) -> None:
        """Stand at the end of the line, all together or not at all.

        Args:
            ones: Those who wait, in order.

        Raises:
            UnavailableError: If the line is too long, or closed.
        """
        with self._changed:
            if self._closed:
                raise closed(self._closed)
            if len(self._waiting) + len(ones) > self._length_max:
                raise too_long(self._length_max)
            self._waiting += ones
            self._changed.notify()

    def take(self, count_max: int, seconds: float | None = None) -> list[Waiting]:
        """Return the first of the line as soon as there is one; none if it is closed.

        Args:
            count_max: How many at most.
            seconds: How long to wait for the first; None for as long as it takes.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed, seconds)
            count = min(count_max, len(self._waiting))
            return [self._waiting.popleft() for _ in range(count)]

    def pause(self, seconds: float) -> None:
        """Wait, but no longer than until the line is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed, seconds)

    def close(self, why: str, *, drain: bool) -> list[Waiting]:
        """Let nobody join any more.

        Args:
            why: What to tell those who try.
            drain: Whether those who wait already are still served.

        Returns:
            Those who are not served.
        """
        with self._changed:
            self._closed = self._closed or why
            refused = [] if drain else list(self._waiting)
            if not drain:
                self._waiting.clear()
            self._changed.notify_all()
            return refused


def closed(why: str) -> UnavailableError:
    """Return the mistake of asking a decider that does not serve any more."""
    return UnavailableError(
        Problem(
            Code.LEDGER_BUSY,
            f"the decider does not serve: {why}",
            notes=("nothing was done",),
            help="open another one; the same id is one release",
        )
    )


def too_long(length: int) -> UnavailableError:
    """Return the mistake of joining a line that is too long."""
    return UnavailableError(
        Problem(
            Code.LEDGER_BUSY,
            f"{length} requests wait for this ledger already, or too many at once",
            notes=("nothing was done",),
            help="try again a little later, with fewer at once",
        )
    )


def unknown() -> UnavailableError:
    """Return the mistake of work that was begun, and nobody knows how it ended."""
    return UnavailableError(
        Problem(
            Code.LEDGER_BUSY,
            "there is no answer: it was begun, and may be in the ledger or not",
            help="ask again: the same id is one release",
        )
    )


def gave_up(seconds: float) -> UnavailableError:
    """Return the mistake of waiting for a turn longer than one wants to."""
    return UnavailableError(
        Problem(
            Code.LEDGER_BUSY,
            f"it was not begun within {seconds:g} seconds",
            notes=("nothing was done",),
            help="try again",
        )
    )
