"""Futures: results that the writer sets and clients wait for.

A `Reply` is cheap, for a client that blocks; a `Deferred` is a future, for a client
that continues meanwhile; a `Posted` is for a coroutine.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any, Generic, NoReturn, TypeVar

from modicum.core.errors import Code, Problem, UsageError

T = TypeVar("T")


class Reply(Generic[T]):
    """A result that one client waits for.

    It consists of two locks: one is taken by the first of the writer who starts and the
    client who cancels; the other is held until there is a result.
    """

    __slots__ = ("_answer", "_claim", "_is_given", "_mistake", "_until_given")

    def __init__(self) -> None:
        self._claim = threading.Lock()
        self._until_given = threading.Lock()
        self._until_given.acquire()
        self._is_given = False
        self._answer: T | None = None
        self._mistake: BaseException | None = None

    # --- the writer's side ---

    def begin(self) -> bool:
        """Return whether to compute the result; it can no longer be cancelled."""
        return self._claim.acquire(blocking=False)

    def keep(self, answer: T) -> None:
        """Give the answer, unless there is an end already."""
        if not self._is_given:
            self._answer = answer
            self._give()

    def fail(self, mistake: BaseException) -> None:
        """Give a mistake for an answer, unless there is an end already."""
        if not self._is_given:
            self._mistake = mistake
            self._give()

    def _give(self) -> None:
        self._is_given = True
        self._until_given.release()

    # --- the client's side ---

    def done(self) -> bool:
        """Return whether there is an answer."""
        return self._is_given

    def cancel(self) -> bool:
        """Return whether it was cancelled; it is too late once the writer started."""
        return self._claim.acquire(blocking=False)

    def result(self, timeout: float | None = None) -> T:
        """Return the answer, or raise the mistake."""
        if not self._is_given:
            seconds = -1 if timeout is None else max(0.0, timeout)
            if not self._until_given.acquire(timeout=seconds):
                raise TimeoutError
        if self._mistake is None:
            return self._answer  # type: ignore[return-value]
        try:
            raise self._mistake
        finally:
            del self  # The error refers to this frame: a cycle would keep both alive.


class Deferred(Future[T]):
    """A future that only the writer completes.

    A client may read it, wait for it and, until it starts, cancel it. Nothing that a
    client does to its own future, or in its callbacks, affects another's.
    """

    # --- the writer's side ---

    def begin(self) -> bool:
        """Return whether it is to be kept; from now on it cannot be cancelled."""
        try:
            return super().set_running_or_notify_cancel()
        except RuntimeError:  # Its client forced an end upon it.
            return False

    def keep(self, answer: T) -> None:
        """Give the answer, unless there is an end already."""
        with suppress(InvalidStateError):
            super().set_result(answer)

    def fail(self, mistake: Exception) -> None:
        """Give a mistake for an answer, unless there is an end already."""
        with suppress(InvalidStateError):
            super().set_exception(mistake)

    # --- the client's side ---

    def add_done_callback(self, fn: Callable[[Future[T]], object]) -> None:
        """Register a callback for the result; its exceptions are only logged.

        Args:
            fn: Is called with the promise. It must not wait for the writer, in whose
                thread it is called.
        """
        super().add_done_callback(_sheltered(fn))

    def set_result(self, result: T) -> NoReturn:
        """Refuse: the answer is the writer's."""
        raise _not_yours()

    def set_exception(self, exception: BaseException | None) -> NoReturn:
        """Refuse: the answer is the writer's."""
        raise _not_yours()

    def set_running_or_notify_cancel(self) -> NoReturn:
        """Refuse: only the writer starts it."""
        raise _not_yours()


class Posted(Generic[T]):
    """A result that coroutines wait for.

    Waking an event loop costs about as much as a decision. So the writer gives the
    results of a turn, and then wakes each loop once: see `deliver`.

    Args:
        loop: The event loop.

    Attributes:
        loop: The event loop.
        future: The future of the result; cancelling it cancels the request, unless the
            writer has started.
    """

    __slots__ = ("_answer", "_claim", "_is_given", "_mistake", "future", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._claim = threading.Lock()
        self._is_given = False
        self._answer: T | None = None
        self._mistake: BaseException | None = None
        self.future: asyncio.Future[T] = loop.create_future()
        self.future.add_done_callback(self._cancel)

    # --- the writer's side ---

    def begin(self) -> bool:
        """Return whether to compute the result; it can no longer be cancelled."""
        return self._claim.acquire(blocking=False)

    def keep(self, answer: T) -> None:
        """Give the answer, unless there is an end already; see `deliver`."""
        if not self._is_given:
            self._is_given, self._answer = True, answer

    def fail(self, mistake: BaseException) -> None:
        """Give a mistake for an answer, unless there is an end already."""
        if not self._is_given:
            self._is_given, self._mistake = True, mistake

    # --- the loop's side ---

    def _cancel(self, future: asyncio.Future[T]) -> None:
        if future.cancelled():
            self._claim.acquire(blocking=False)

    def settle(self) -> None:
        """Complete the future; in its loop."""
        if self.future.done():
            return
        if self._mistake is None:
            self.future.set_result(self._answer)  # type: ignore[arg-type]
        else:
            self.future.set_exception(self._mistake)

    @staticmethod
    def deliver(ones: Iterable[Posted[Any]]) -> None:
        """Have results arrive that were given: each loop is woken once for all its own.

        Args:
            ones: The results.
        """
        by_loop: dict[asyncio.AbstractEventLoop, list[Posted[Any]]] = {}
        for one in ones:
            by_loop.setdefault(one.loop, []).append(one)
        for loop, own in by_loop.items():
            with suppress(RuntimeError):  # It is closed: nobody waits.
                loop.call_soon_threadsafe(_settle, own)


def _settle(ones: Iterable[Posted[Any]]) -> None:
    for one in ones:
        one.settle()


def _sheltered(call: Callable[[Any], object]) -> Callable[[Any], None]:
    """Return a callback that cannot end the thread which calls it."""

    def sheltered(promise: Any) -> None:
        try:
            call(promise)
        except Exception:
            raise  # A future logs it.
        except BaseException as end:
            raise RuntimeError("a callback would end the writer") from end

    return sheltered


def _not_yours() -> UsageError:
    return UsageError(
        Problem(
            Code.NOT_SUPPORTED,
            "a result of the decider is set by its writer",
            help="wait for its result, or cancel it",
        )
    )
