"""The line of those who wait for the writer: first come, first served, and bounded."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn

from modicum.api.local.balances import Entry
from modicum.core.errors import Code, InvariantError, Problem, UnavailableError
from modicum.policy import CompiledPolicy
from modicum.writer.future import Deferred, Reply
from modicum.writer.idempotency import IdempotencyKey, Work


@dataclass(slots=True)
class QueuedRequest:
    """Somebody who waits for an answer.

    Attributes:
        work: What is asked for.
        actor: Who asks.
        again: Returns the same work under another policy, for whoever means the
            active one; None for whoever means one policy.
        unread: Returns the work, where the writer is to read what is asked for.
        once: What makes it one that is done once; None if it may be done again.
        answer: The answer, once it is durable.
    """

    work: Work
    actor: str
    again: Callable[[CompiledPolicy], Work] | None = None
    unread: Callable[[], Work] | None = None
    once: IdempotencyKey | None = None
    answer: Reply[Any] | Deferred[Any] = field(default_factory=Reply)

    def read(self) -> None:
        """Read what is asked for, if the client left that to the writer.

        A mistake in it is what the work returns.
        """
        if self.unread is not None:
            self.work = made(self.unread)


def made(make: Callable[..., Work], *given: Any) -> Work:
    """Return work that is made now; what goes wrong is what it returns."""
    try:
        return make(*given)
    except Exception as mistake:  # noqa: BLE001 - told to whoever caused it
        return partial(_return, mistake)


def not_read(_: Entry) -> NoReturn:
    """Raise: what is left to the writer is read before it is done."""
    raise InvariantError(Problem(Code.INTERNAL, "a request was not read"))


def _return(mistake: Exception, _: Entry) -> Exception:
    return mistake


class Queue:
    """The line; any thread may join it, one thread takes from it.

    Whoever takes waits for a bell, which is a lock: it is held, but for the moment
    between whoever comes, who lets go of it, and the one who waits, who takes it again.

    Args:
        length_max: How many may wait.
    """

    def __init__(self, length_max: int) -> None:
        self._length_max = length_max
        self._waiting: deque[QueuedRequest] = deque()
        self._guard = threading.Lock()
        self._bell = threading.Lock()
        self._bell.acquire()
        self._is_listening = False  # Whether the bell is waited for.
        self._closed = ""
        self._closing = threading.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_closed(self) -> bool:
        """Whether nobody can join any more."""
        return bool(self._closed)

    def join(self, ones: Sequence[QueuedRequest]) -> None:
        """Stand at the end of the line, all together or not at all."""
        with self._guard:
            if self._closed:
                raise closed(self._closed)
            if len(self._waiting) + len(ones) > self._length_max:
                raise too_long(self._length_max)
            self._waiting += ones
            if self._is_listening and self._waiting:
                self._ring()

    def take(self, count_max: int, seconds: float | None = None) -> list[QueuedRequest]:
        """Return the first of the line as soon as there is one; none if it is closed.

        Args:
            count_max: How many at most.
            seconds: How long to wait for the first; None for as long as it takes.
        """
        with self._guard:
            if self._waiting or self._closed or seconds == 0:
                return self._first(count_max)
            self._is_listening = True
        rang = self._bell.acquire(timeout=-1 if seconds is None else seconds)
        with self._guard:
            if self._is_listening:  # The time was over before somebody came.
                self._is_listening = False
            elif not rang:
                self._bell.acquire()  # It rang just when the time was over.
            return self._first(count_max)

    def pause(self, seconds: float) -> None:
        """Wait, but no longer than until the line is closed."""
        self._closing.wait(seconds)

    def close(self, why: str, *, drain: bool) -> list[QueuedRequest]:
        """Let nobody join any more."""
        with self._guard:
            self._closed = self._closed or why
            refused = [] if drain else list(self._waiting)
            if not drain:
                self._waiting.clear()
            if self._is_listening:
                self._ring()
        self._closing.set()
        return refused

    def _first(self, count_max: int) -> list[QueuedRequest]:
        count = min(count_max, len(self._waiting))
        return [self._waiting.popleft() for _ in range(count)]

    def _ring(self) -> None:
        self._is_listening = False
        self._bell.release()


def closed(why: str) -> UnavailableError:
    """Return the mistake of asking a decider that does not serve any more."""
    return UnavailableError(
        Problem(
            Code.LEDGER_BUSY,
            f"the decider is not available: {why}",
            notes=("nothing was changed",),
            help="open another one; the same id is one release",
        )
    )


def too_long(length: int) -> UnavailableError:
    """Return the mistake of joining a line that is too long."""
    return UnavailableError(
        Problem(
            Code.LEDGER_BUSY,
            f"{length} requests are already waiting for this ledger, or this one is"
            " too large",
            notes=("nothing was changed",),
            help="try again later, with fewer at once",
        )
    )


def unknown() -> UnavailableError:
    """Return the mistake of work that was begun, and nobody knows how it ended."""
    return UnavailableError(
        Problem(
            Code.LEDGER_BUSY,
            "there is no result: it was started, and may or may not be in the ledger",
            help="repeat it: the same id is one release",
        )
    )


def gave_up(seconds: float) -> UnavailableError:
    """Return the mistake of waiting for a turn longer than one wants to."""
    return UnavailableError(
        Problem(
            Code.LEDGER_BUSY,
            f"it was not started within {seconds:g} seconds",
            notes=("nothing was changed",),
            help="try again",
        )
    )
