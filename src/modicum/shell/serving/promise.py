"""The promise of an answer: the writer keeps it, the client only waits for it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any, NoReturn, TypeVar

from modicum.core.errors import Code, Problem, UsageError

T = TypeVar("T")


class Promise(Future[T]):
    """A future that only the writer completes.

    A client may read it, wait for it and, until it is begun, cancel it. Whatever a
    client does to its own promise, and whatever it lets itself be called back for,
    harms nobody else's.
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
        """Call something back once there is an answer; what it raises is only logged.

        Args:
            fn: Is called with the promise. It must not wait for the writer, in whose
                thread it is called.
        """
        super().add_done_callback(_sheltered(fn))

    def set_result(self, result: T) -> NoReturn:
        """Refuse: the answer is the writer's.

        Raises:
            UsageError: Always.
        """
        raise _not_yours()

    def set_exception(self, exception: BaseException | None) -> NoReturn:
        """Refuse: the answer is the writer's.

        Raises:
            UsageError: Always.
        """
        raise _not_yours()

    def set_running_or_notify_cancel(self) -> NoReturn:
        """Refuse: the writer says when it is begun.

        Raises:
            UsageError: Always.
        """
        raise _not_yours()


def _sheltered(call: Callable[[Any], object]) -> Callable[[Any], None]:
    """Return a callback that cannot end the thread which calls it."""

    def sheltered(promise: Any) -> None:
        try:
            call(promise)
        except Exception:
            raise  # A future logs it.
        except BaseException as end:
            raise RuntimeError("what was called back would end the writer") from end

    return sheltered


def _not_yours() -> UsageError:
    return UsageError(
        Problem(
            Code.NOT_SUPPORTED,
            "a promise of the decider is kept by its writer",
            help="wait for its result, or cancel it",
        )
    )
