"""The queue of requests for the writer: first come, first served, and bounded."""

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
from modicum.writer.future import Deferred, Posted, Reply
from modicum.writer.idempotency import IdempotencyKey, Work


@dataclass(slots=True)
class QueuedRequest:
    """A queued request.

    Attributes:
        work: The work.
        actor: The actor.
        again: Returns the same work under another policy, for a request that follows
            the active one; None for a request with a fixed policy.
        unread: Returns the work, where the writer is to parse the request.
        once: Its idempotency key; None if it may be repeated.
        answer: The result, once it is durable.
    """

    work: Work
    actor: str
    again: Callable[[CompiledPolicy], Work] | None = None
    unread: Callable[[], Work] | None = None
    once: IdempotencyKey | None = None
    answer: Reply[Any] | Deferred[Any] | Posted[Any] = field(default_factory=Reply)

    def read(self) -> None:
        """Parse the request, if the client left that to the writer.

        A parse error is its result.
        """
        if self.unread is not None:
            self.work = made(self.unread)


def made(make: Callable[..., Work], *given: Any) -> Work:
    """Return the work of a factory called now; its error becomes the result."""
    try:
        return make(*given)
    except Exception as mistake:  # noqa: BLE001 - told to whoever caused it
        return partial(_return, mistake)


def not_read(_: Entry) -> NoReturn:
    """Raise: an unparsed request must be parsed before execution."""
    raise InvariantError(Problem(Code.INTERNAL, "a request was not read"))


def _return(mistake: Exception, _: Entry) -> Exception:
    return mistake


class Queue:
    """The queue; any thread may join it, one thread takes from it.

    The taker waits for a lock as a bell: it is held, except for the moment between the
    release by an arriving request and the acquisition by the waiting taker.

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
        """Whether the queue is closed."""
        return bool(self._closed)

    def join(self, ones: Sequence[QueuedRequest]) -> None:
        """Join the end of the queue, all together or not at all."""
        with self._guard:
            if self._closed:
                raise closed(self._closed)
            if len(self._waiting) + len(ones) > self._length_max:
                raise too_long(self._length_max)
            self._waiting += ones
            if self._is_listening and self._waiting:
                self._ring()

    def take(self, count_max: int, seconds: float | None = None) -> list[QueuedRequest]:
        """Return the first requests as soon as there is one; none if it is closed.

        Args:
            count_max: How many at most.
            seconds: The maximum wait for the first; None for no limit.
        """
        with self._guard:
            if self._waiting or self._closed or seconds == 0:
                return self._first(count_max)
            self._is_listening = True
        rang = self._bell.acquire(timeout=-1 if seconds is None else seconds)
        with self._guard:
            if self._is_listening:  # The timeout came before a request.
                self._is_listening = False
            elif not rang:
                self._bell.acquire()  # It rang just when the time was over.
            return self._first(count_max)

    def pause(self, seconds: float) -> None:
        """Wait, but no longer than until the line is closed."""
        self._closing.wait(seconds)

    def close(self, why: str, *, drain: bool) -> list[QueuedRequest]:
        """Close the queue."""
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
    """Return the error for a request to a stopped decider."""
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
    """Return the error for started work with an unknown outcome."""
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
