"""The writer: one thread that combines many requests in few turns of the ledger.

It takes all waiting requests, executes them in one turn, and responds once that is
durable. Requests that arrive while it waits for the turn, or decides others in it, join
the turn; those that arrive during its commit are in the next batch. So batches grow
with load. It never waits for more requests.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from modicum.api.local.balances import Entry
from modicum.api.local.batch import each
from modicum.api.local.live_ledger import SNAPSHOT_EVERY, LiveLedger
from modicum.core.errors import (
    Code,
    InputError,
    ModicumError,
    Problem,
    StaleError,
    UnavailableError,
    UsageError,
    VerificationError,
)
from modicum.policy import CompiledPolicy
from modicum.writer.future import Deferred, Posted
from modicum.writer.idempotency import Answered, Work
from modicum.writer.queue import Queue, QueuedRequest, closed, gave_up, made, unknown
from modicum.writer.turn_outcomes import TurnOutcomes

#: After a failure the next turn is tried after so long, and longer each time.
PAUSE_SECONDS = 0.05
PAUSE_SECONDS_MAX = 1.0
#: A snapshot is written after this many new entries: when the queue is closed; after
#: this many idle seconds; and at this many entries under load.
SNAPSHOT_AT_CLOSE = 1_000
SNAPSHOT_WHEN_IDLE = SNAPSHOT_EVERY
IDLE_SECONDS = 1.0
SNAPSHOT_AT_LAST = 10 * SNAPSHOT_EVERY
#: So often a request is done again because the policy was replaced meanwhile.
POLICY_TRIES = 3


class Writer:
    """Executes queued requests; runs in one thread, and owns the ledger.

    Args:
        ledger: The ledger, read up to its head; it saves no snapshots on its own.
        line: Those who wait.
        policy: The policy that is decided by; None for the ledger's active one.
        batch_max: How many are served in one turn.

    Attributes:
        policy: The policy that is decided by, as of the latest turn; None if there is
            none yet.
        turns: The outcomes of its turns.
    """

    def __init__(
        self,
        ledger: LiveLedger,
        line: Queue,
        policy: CompiledPolicy | None,
        batch_max: int,
    ) -> None:
        self._ledger = ledger
        self._line = line
        self._given = policy
        self._batch_max = batch_max
        self._failures = 0
        self.policy = policy or ledger.book.active()
        self.turns = TurnOutcomes()

    def run(self) -> None:
        """Serve until the queue is closed and empty."""
        why = "its writer failed"
        try:
            self._ledger.follow_in_idle_time()
            while batch := self._next():
                self._serve(batch)
            self._save_snapshot(SNAPSHOT_AT_CLOSE)
            why = "its writer ended"
        finally:
            refuse(self._line.close(why, drain=False), why)

    def _next(self) -> list[QueuedRequest]:
        """Return the next requests; none if the queue is closed."""
        if self._ledger.unsaved < SNAPSHOT_WHEN_IDLE:
            return self._line.take(self._batch_max)
        batch = self._line.take(self._batch_max, IDLE_SECONDS)
        if batch:
            return batch
        self._save_snapshot(SNAPSHOT_WHEN_IDLE)
        return self._line.take(self._batch_max)

    def _serve(self, batch: list[QueuedRequest]) -> None:
        batch = _begun(batch)
        try:
            _read(batch)
            self._do(batch, self._batch_max)
        except BaseException:
            self._fail(batch, unknown())  # Requests with a response get no second one.
            raise
        self._save_snapshot(SNAPSHOT_AT_LAST)

    def _do(self, batch: list[QueuedRequest], size_max: int) -> None:
        """Execute requests, and respond."""
        tries = POLICY_TRIES
        while batch:
            try:
                answers = self._turn(batch, size_max)
            except (UnavailableError, VerificationError) as error:
                self.turns.note_failure(error)
                self._fail(batch, error)
                self._wait()
                return
            except Exception as error:  # noqa: BLE001 - told to whoever caused it
                self._isolate(batch, error)
                return
            tries, size_max = tries - 1, 0
            self._failures = 0
            self.turns.note_success()
            batch = self._answer(batch, answers, is_last=not tries)

    def _turn(self, batch: list[QueuedRequest], size_max: int) -> list[Any]:
        """Return the answer to each, made in one turn; they are durable."""

        def work(entry: Entry) -> list[Any]:
            return each(entry, self._works(entry, batch, size_max))

        answers = self._ledger.turn(work)
        self.policy = self._given or self._ledger.book.active()
        return answers

    def _works(
        self, entry: Entry, batch: list[QueuedRequest], size_max: int
    ) -> Iterator[Work]:
        """Yield the work of each request in a batch, and of those that arrive later.

        Events added to the entry meanwhile are signed by the requester.
        """
        answered = Answered(entry)
        answered.look_up((one.once, one.actor) for one in batch)
        for one in batch:  # It grows at its end.
            entry.actor = one.actor
            yield answered.once(one.work, one.once, one.actor)
            if one is batch[-1] and len(self._line) and len(batch) < size_max:
                more = _begun(self._line.take(size_max - len(batch), 0))
                batch += more  # First of all: they get a response whatever happens.
                _read(more)
                answered.look_up((one.once, one.actor) for one in more)

    def _isolate(self, batch: Sequence[QueuedRequest], error: Exception) -> None:
        """Execute each request separately after an error that any may have caused."""
        if len(batch) == 1:
            self._fail(batch, error)
            return
        for one in batch:
            self._do([one], 1)

    def _answer(
        self, batch: Sequence[QueuedRequest], answers: Sequence[Any], *, is_last: bool
    ) -> list[QueuedRequest]:
        """Respond to each request; return those to decide again under a new policy."""
        again: list[QueuedRequest] = []
        done: list[QueuedRequest] = []
        for one, answer in zip(batch, answers, strict=True):
            if isinstance(answer, StaleError) and not is_last and self._renew(one):
                again.append(one)
                continue
            done.append(one)
            if isinstance(answer, Exception):
                one.answer.fail(answer)
            else:
                one.answer.keep(answer)
        _deliver(done)
        return again

    def _renew(self, one: QueuedRequest) -> bool:
        """Rebuild a request's work under the active policy, if it follows that.

        Returns:
            Whether to execute it again. An error under that policy is its result then.
        """
        if one.again is None or self.policy is None:
            return False
        one.work = made(one.again, self.policy)
        return True

    @staticmethod
    def _fail(batch: Sequence[QueuedRequest], error: Exception) -> None:
        for one in batch:
            own = error
            if isinstance(error, UnavailableError):
                own = UnavailableError(*error.problems)  # Raised in other threads.
                own.__cause__ = error
            one.answer.fail(own)
        _deliver(batch)

    def _wait(self) -> None:
        """Wait after a failure, longer each time, but not while closing."""
        self._line.pause(min(PAUSE_SECONDS * 2**self._failures, PAUSE_SECONDS_MAX))
        self._failures = min(self._failures + 1, 10)

    def _save_snapshot(self, unsaved: int) -> None:
        """Write a snapshot after enough new entries."""
        if self._ledger.unsaved >= unsaved:
            with suppress(Exception):  # It is a cache; a later one may succeed.
                self._ledger.save_snapshot()


def _begun(ones: Iterable[QueuedRequest]) -> list[QueuedRequest]:
    """Return those who did not give up; from now on they cannot."""
    return [one for one in ones if one.answer.begin()]


def _read(ones: Iterable[QueuedRequest]) -> None:
    """Parse the requests whose parsing was left to the writer."""
    for one in ones:
        one.read()


def _deliver(ones: Iterable[QueuedRequest]) -> None:
    """Have the results arrive that coroutines wait for."""
    Posted.deliver(one.answer for one in ones if isinstance(one.answer, Posted))


def refuse(ones: Sequence[QueuedRequest], why: str) -> None:
    """Reject waiting requests: nothing will be done."""
    refused = _begun(ones)
    for one in refused:
        one.answer.fail(closed(why))
    _deliver(refused)


T = TypeVar("T")


class GroupCommit:
    """A queue and its writer thread; any thread may enqueue requests.

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
        self._line = Queue(queue_max)
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
        """The number of waiting requests."""
        return len(self._line)

    @property
    def turns(self) -> TurnOutcomes:
        """The outcomes of the writer's turns."""
        return self._writer.turns

    @property
    def is_serving(self) -> bool:
        """Whether there is a writer for requests that join the queue."""
        return self._thread.is_alive() and not self._line.is_closed

    @property
    def is_ours(self) -> bool:
        """Whether this process may use it: it was not forked since."""
        return os.getpid() == self._process

    def open_only(self) -> None:
        """Refuse a process that was forked from the desk's own."""
        if not self.is_ours:
            raise UsageError(
                Problem(
                    Code.NOT_SUPPORTED,
                    "this decider belongs to the parent process",
                    help="open one in each process, after forking",
                )
            )

    def join(self, waiting: QueuedRequest) -> Future[Any]:
        """Enqueue a request, and return a future of its result."""
        promise: Deferred[Any] = Deferred()
        waiting.answer = promise
        self._line.join([waiting])
        return promise

    def post(
        self, ones: Sequence[QueuedRequest], loop: asyncio.AbstractEventLoop
    ) -> list[asyncio.Future[Any]]:
        """Enqueue requests together, or none; return a loop's futures of each."""
        replies: list[Posted[Any]] = [Posted(loop) for _ in ones]
        for one, reply in zip(ones, replies, strict=True):
            one.answer = reply
        self._line.join(ones)
        return [one.future for one in replies]

    def submit(self, waiting: QueuedRequest, timeout: float | None = None) -> Any:
        """Enqueue a request, and return its result, or raise its error."""
        self._clients_only()
        if timeout is not None:  # An invalid timeout is detected before joining.
            timeout = min(float(timeout), threading.TIMEOUT_MAX)
        self._line.join([waiting])
        return outcome(waiting, timeout)

    def submit_together(
        self, requests: Sequence[T], waiting: Callable[[T], QueuedRequest]
    ) -> list[Any]:
        """Enqueue requests together, and return each result or error."""
        self._clients_only()
        ready: list[QueuedRequest | ModicumError] = []
        for one in requests:
            try:
                ready.append(waiting(one))
            except InputError as mistake:
                ready.append(mistake)
        self._line.join([one for one in ready if isinstance(one, QueuedRequest)])
        return [one if isinstance(one, ModicumError) else _answer(one) for one in ready]

    def close(self, *, drain: bool) -> None:
        """Close the queue, and stop the writer; repeating does nothing."""
        self._clients_only()
        why = "it was closed"
        refuse(self._line.close(why, drain=drain), why)
        self._thread.join()

    def _clients_only(self) -> None:
        """Refuse a call from the writer's callbacks, which would deadlock."""
        if threading.current_thread() is self._thread:
            raise UsageError(
                Problem(
                    Code.NOT_SUPPORTED,
                    "a callback of the decider cannot wait for it",
                    help="use submit_soon, or another thread",
                )
            )


def outcome(waiting: QueuedRequest, timeout: float | None = None) -> Any:
    """Return the result of a queued request, or raise its error."""
    reply = waiting.answer
    assert not isinstance(reply, Posted), "only a coroutine waits for it"
    try:
        return reply.result(timeout)
    except TimeoutError:
        if reply.cancel():
            raise gave_up(timeout or 0) from None
        if reply.done():
            return reply.result()
        raise unknown() from None


def _answer(waiting: QueuedRequest) -> Any:
    """Wait for an answer; a mistake is an answer, too."""
    try:
        return outcome(waiting)
    except ModicumError as mistake:
        return mistake
