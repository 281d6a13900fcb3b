"""The desk of a decider: clients wait in line there, and its writer serves them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from modicum.api.local.live_ledger import LiveLedger
from modicum.core.errors import Code, InputError, ModicumError, Problem, UsageError
from modicum.policy import CompiledPolicy
from modicum.writer.future import Promise
from modicum.writer.group_commit import Writer, refuse
from modicum.writer.queue import Waiting, WaitingLine, gave_up, unknown

T = TypeVar("T")


class Desk:
    """A line, and a thread that serves it; any thread may stand in line.

    Args:
        ledger: The ledger, read up to its head; the writer's from now on.
        policy: The policy that is decided by; None for the ledger's active one.
        batch_max: How many are served in one turn.
        queue_max: How many may wait.
    """

    def __init__(
        self,
        ledger: LiveLedger,
        policy: CompiledPolicy | None,
        batch_max: int,
        queue_max: int,
    ) -> None:
        self._process = os.getpid()
        self._line = WaitingLine(queue_max)
        self._writer = Writer(ledger, self._line, policy, batch_max)
        self._thread = threading.Thread(
            target=self._writer.run, name="modicum-writer", daemon=True
        )
        self._thread.start()

    @property
    def policy(self) -> CompiledPolicy | None:
        """The policy that is decided by, as far as the writer has read."""
        return self._writer.policy

    @property
    def waiting(self) -> int:
        """How many stand in line."""
        return len(self._line)

    @property
    def is_ours(self) -> bool:
        """Whether this process may use it: it was not forked since."""
        return os.getpid() == self._process

    def open_only(self) -> None:
        """Refuse a process that was forked from the desk's own.

        Raises:
            UsageError: If this is one.
        """
        if not self.is_ours:
            raise UsageError(
                Problem(
                    Code.NOT_SUPPORTED,
                    "this decider belongs to the process that this one was forked from",
                    help="open one in each process, after forking",
                )
            )

    def join(self, waiting: Waiting) -> Future[Any]:
        """Stand in line, and return the promise of an answer.

        Raises:
            UnavailableError: If the line is too long, or closed.
        """
        waiting.answer = promise = Promise[Any]()
        self._line.join([waiting])
        return promise

    def ask(self, waiting: Waiting, timeout: float | None = None) -> Any:
        """Stand in line, and return the answer, or raise the mistake.

        Args:
            waiting: What is asked for.
            timeout: How many seconds to wait; None for as long as it takes.

        Raises:
            UnavailableError: If the line is too long or closed, or the time is over.
            UsageError: If it is the writer that would wait for itself.
        """
        self._clients_only()
        if timeout is not None:  # What cannot be waited for is found before joining.
            timeout = min(float(timeout), threading.TIMEOUT_MAX)
        self._line.join([waiting])
        return outcome(waiting, timeout)

    def ask_together(
        self, asked: Sequence[T], waiting: Callable[[T], Waiting]
    ) -> list[Any]:
        """Stand in line together, and return each answer or mistake.

        Args:
            asked: What is asked for.
            waiting: Returns who waits for one of it.

        Raises:
            UnavailableError: If the line is too long, or closed; nothing was done.
            UsageError: If it is the writer that would wait for itself.
        """
        self._clients_only()
        ready: list[Waiting | ModicumError] = []
        for one in asked:
            try:
                ready.append(waiting(one))
            except InputError as mistake:
                ready.append(mistake)
        self._line.join([one for one in ready if isinstance(one, Waiting)])
        return [one if isinstance(one, ModicumError) else _answer(one) for one in ready]

    def close(self, *, drain: bool) -> None:
        """Let nobody join any more, and end the writer; again, it does nothing.

        Args:
            drain: Whether those who wait are still served; else they are told that
                nothing was done.

        Raises:
            UsageError: If it is the writer that would wait for its own end.
        """
        self._clients_only()
        why = "it was closed"
        refuse(self._line.close(why, drain=drain), why)
        self._thread.join()

    def _clients_only(self) -> None:
        """Refuse whoever is called back by the writer, and would wait for it."""
        if threading.current_thread() is self._thread:
            raise UsageError(
                Problem(
                    Code.NOT_SUPPORTED,
                    "what is called back by the decider cannot wait for it",
                    help="use submit_soon, or another thread",
                )
            )


def outcome(waiting: Waiting, timeout: float | None = None) -> Any:
    """Return the answer to somebody in a line, or raise the mistake.

    Args:
        waiting: Who waits.
        timeout: How many seconds to wait; None for as long as it takes.

    Raises:
        UnavailableError: If the time is over. Who was not served then never will be.
    """
    try:
        return waiting.answer.result(timeout)
    except TimeoutError:
        if waiting.answer.cancel():
            raise gave_up(timeout or 0) from None
        if waiting.answer.done():
            return waiting.answer.result()
        raise unknown() from None


def _answer(waiting: Waiting) -> Any:
    """Wait for an answer; a mistake is an answer, too."""
    try:
        return waiting.answer.result()
    except ModicumError as mistake:
        return mistake
