"""The decider: one ledger, served to many clients of one process at once.

A release is read and priced in the thread of the client (see `preparation`), unless a
similar one was priced before (see `price_cache`). One thread, the writer, decides all
waiting releases in one turn of the ledger, and responds once that is durable (see
`group_commit`). `check` is served in parallel, from memory (see `log_tail`).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import TypeVar, cast

from modicum.api.local import Clock, Decision
from modicum.api.local.balances import Entry
from modicum.api.local.escrow.actions import EscrowActions
from modicum.api.local.escrow.execution import Tools
from modicum.api.local.evaluation import Description
from modicum.api.local.governance.actions import Governance
from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.live_ledger import LiveLedger, refuse_jump
from modicum.api.local.plans.actions import Rounds
from modicum.api.local.plans.commit import Trees
from modicum.api.local.submit import RESERVATION_SECONDS, giving_up, prepared, step
from modicum.api.ports.storage import HeadWitness, Store, Timed, Witness
from modicum.core.errors import InputError, ModicumError
from modicum.ledger import Standing
from modicum.ledger.log.events import ReleasePosted, ReleaseStarted, ReleaseVoided
from modicum.ops.wiring import printable_actor
from modicum.policy import CompiledPolicy
from modicum.policy.model import ReservationBound
from modicum.storage.read_only import ReadOnlyStore
from modicum.storage.witness.store import WitnessedStore
from modicum.writer.actions import Governed
from modicum.writer.async_requests import AsyncRequests
from modicum.writer.group_commit import GroupCommit
from modicum.writer.idempotency import IdempotencyKey
from modicum.writer.log_tail import FeedingStore, FollowingStore, LogTail, ReadLog
from modicum.writer.past_views import PastViews
from modicum.writer.preparation import Preparation, SubmitOptions
from modicum.writer.queue import QueuedRequest
from modicum.writer.read_side import ReadSide
from modicum.writer.readiness import Readiness

T = TypeVar("T")

#: Maximum number of requests decided in one turn.
BATCH_MAX = 256
#: Maximum number of waiting requests.
QUEUE_MAX = 4096


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits on the load of a decider.

    Attributes:
        batch: How many requests are decided in one turn at most.
        queue: Maximum number of waiting requests; more are refused at once.
    """

    batch: int = BATCH_MAX
    queue: int = QUEUE_MAX


class Decider:
    """One ledger, served to many clients at once; any thread may use it.

    It must be closed, or used in a `with` block. A process that was forked from this
    one cannot use it.

    Args:
        store: The store of the log and its snapshots; it is closed with the decider.
        clock: The time of day.
        policy: The policy that the clients mean; None for the ledger's active one,
            whichever that is.
        actor: The default actor.
        limits: The limits on its load.
        from_beginning: Whether decisions are based on the log alone, from its first
            entry, and never on a snapshot.

    Attributes:
        for_coroutines: Its use by coroutines, which no thread waits for.

    Raises:
        UsageError: If there is neither a policy nor a ledger with one.
        VerificationError: If the log contradicts itself.
        UnavailableError: If the log cannot be read now.

    Attributes:
        readiness: Whether requests can be decided, once it is started.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        policy: CompiledPolicy | None = None,
        actor: str = "unknown",
        limits: Limits | None = None,
        from_beginning: bool = False,
    ) -> None:
        limits = limits or Limits()
        self._feed = feed = LogTail()
        self._store = store
        self._clock = clock
        actor = printable_actor(actor)
        self._batch_max = min(limits.batch, limits.queue)
        self._following = following = FollowingStore(store, feed)
        self._checker = ReadSide(following, clock, store)
        # Slow reads do not delay checks: they use a separate book.
        self._onlooker = ReadSide(following, clock, store)
        # Nor do the slowest reads delay lookups.
        self._scholar = ReadSide(following, clock, store)
        self._past = PastViews(following)
        ledger = LiveLedger(
            FeedingStore(store, feed),
            clock,
            policy=policy,
            actor=actor,
            snapshots=Witness(store) if from_beginning else store,
            snapshot_every=sys.maxsize,  # The writer decides when.
        )
        ledger.read(deciding=True)
        self._desk = GroupCommit(ledger, policy, limits.batch, limits.queue)
        self._clerk = Preparation(self._desk, store.name, clock, policy, actor)
        self.readiness = Readiness(store, self._desk, self.must_be_sound)
        self.for_coroutines = AsyncRequests(self._desk, self._clerk, self._checker)

    # --- deciding ---

    def check(
        self,
        release: Description,
        *,
        actor: str = "",
        bound: ReservationBound | None = None,
    ) -> Decision:
        """Return the decision that `submit` would make. Writes nothing, takes no turn.

        Args:
            release: The release.
            actor: The actor; by default the decider's own.
            bound: The limit on one actor's reservations, besides the policy's.

        Raises:
            InputError: If the release is malformed.
            ConflictError: If the id is in use with other contents, or was canceled.
        """
        one = prepared(release, self._clerk.compiled(), bound=bound)
        return self._checker.check(one, self._clerk.signed(actor))

    def submit(
        self,
        release: Description,
        *,
        publish: bool = False,
        reserve_seconds: int = RESERVATION_SECONDS,
        actor: str = "",
        timeout: float | None = None,
        once: IdempotencyKey | None = None,
    ) -> Decision:
        """Decide a release and, if it is allowed, reserve its loss.

        On return it is durable. See `Workspace.submit`.

        Args:
            release: The release.
            publish: Also start and publish it, for a release that is already published.
            reserve_seconds: The lifetime of its reservation if it is not started.
            actor: The actor; by default the decider's own.
            timeout: The maximum wait in seconds; None for no limit. A request that has
                not started by then is dropped.
            once: Its idempotency key; `Replayed` is raised if it was executed before.
                By default it may be repeated.

        Raises:
            InputError: If the release is malformed, or the key of `once` was used for
                another request; nothing is written.
            ConflictError: If the id is in use with other contents, or was canceled.
            StaleError: If the ledger's active policy is not the one given.
            ApprovalError: If people must agree first; nothing is written.
            UnavailableError: If the queue is full, the ledger cannot be reached, or the
                timeout has passed; the same release may be submitted again.
            Replayed: If it was executed before under the key of `once`.
        """
        how = SubmitOptions(
            publish=publish, reserve_seconds=reserve_seconds, bound=None
        )
        waiting = self._clerk.queued(release, actor, **how)
        waiting.once = once
        began = time.monotonic()
        try:
            return cast(Decision, self._desk.submit(waiting, timeout))
        except InputError:
            if waiting.unread is None:
                raise
        # The submitter's thread reads it: a mistake is reported where it was made.
        waiting = self._clerk.submission(release, actor, **how)
        waiting.once = once
        if timeout is not None:
            timeout = max(0.0, began + timeout - time.monotonic())
        return cast(Decision, self._desk.submit(waiting, timeout))

    def submit_soon(
        self,
        release: Description,
        *,
        publish: bool = False,
        reserve_seconds: int = RESERVATION_SECONDS,
        actor: str = "",
        once: IdempotencyKey | None = None,
        bound: ReservationBound | None = None,
    ) -> Future[Decision]:
        """Return a future of the result of `submit`.

        It can be cancelled until the writer starts. Callbacks run in the writer, which
        blocks all others: they may read, and enqueue with `submit_soon`, but not wait
        for a result.

        Args:
            release: The release.
            publish: As for `submit`.
            reserve_seconds: As for `submit`.
            actor: As for `submit`.
            once: As for `submit`.
            bound: The limit on one actor's reservations, besides the policy's.

        Raises:
            InputError: If the release is malformed; nothing is written. It may be the
                future's result instead.
            UnavailableError: If too many wait.
        """
        how = SubmitOptions(
            publish=publish, reserve_seconds=reserve_seconds, bound=bound
        )
        waiting = self._clerk.queued(release, actor, **how)
        waiting.once = once
        return self._desk.join(waiting)

    def submit_batch(
        self,
        releases: Sequence[Description],
        *,
        publish: bool = False,
        reserve_seconds: int = RESERVATION_SECONDS,
        actor: str = "",
    ) -> list[Decision | ModicumError]:
        """Decide releases in order; up to a batch of them are stored together.

        Args:
            releases: The releases.
            publish: As for `submit`, for all of them.
            reserve_seconds: As for `submit`.
            actor: As for `submit`.

        Returns:
            For each its decision, or the mistake that `submit` would raise.

        Raises:
            UnavailableError: If the queue is already full; nothing was done. Once some
                were decided, it is the result of the others instead.
        """

        def waiting(one: Description) -> QueuedRequest:
            return self._clerk.submission(
                one, actor, publish=publish, reserve_seconds=reserve_seconds, bound=None
            )

        answers: list[Decision | ModicumError] = []
        for first in range(0, len(releases), self._batch_max):
            some = releases[first : first + self._batch_max]
            try:
                answers += self._desk.submit_together(some, waiting)
            except ModicumError as mistake:
                if not answers:
                    raise
                return answers + [mistake] * (len(releases) - first)
        return answers

    def backfill(
        self,
        release: Description,
        *,
        actor: str = "",
        timeout: float | None = None,
        once: IdempotencyKey | None = None,
    ) -> Decision:
        """Record a past release. See `Workspace.backfill`.

        Args:
            release: The release; unknown properties are assumed to be the worst case.
            actor: As for `submit`.
            timeout: As for `submit`.
            once: As for `submit`.

        Raises:
            InputError: If the release is malformed; nothing is written.
            ConflictError: If the id is already in use with other contents.
            StaleError: If the ledger's active policy is not the one given.
            UnavailableError: As for `submit`.
        """
        waiting = self._clerk.past(release, actor)
        waiting.once = once
        return cast(Decision, self._desk.submit(waiting, timeout))

    # --- the life of a release ---

    def start(
        self, release: str, *, actor: str = "", once: IdempotencyKey | None = None
    ) -> Standing:
        """Mark a release as started. See `Workspace.start`.

        Args:
            release: The id.
            actor: As for `submit`.
            once: As for `submit`.

        Raises:
            InputError: If the ledger knows no such release.
            ConflictError: If it is not reserved, or its reservation expired.
            UnavailableError: As for `submit`.
        """
        return self._step(ReleaseStarted(release), actor, once)

    def publish(
        self, release: str, *, actor: str = "", once: IdempotencyKey | None = None
    ) -> Standing:
        """Mark a started release as published. See `Workspace.publish`.

        Args:
            release: The id.
            actor: As for `submit`.
            once: As for `submit`.

        Raises:
            InputError: If the ledger knows no such release.
            ConflictError: If it is not started.
            UnavailableError: As for `submit`.
        """
        return self._step(ReleasePosted(release), actor, once)

    def cancel(
        self,
        release: str,
        *,
        reason: str,
        actor: str = "",
        once: IdempotencyKey | None = None,
    ) -> Standing:
        """Cancel a reservation that was not started. See `Workspace.cancel`.

        Args:
            release: The id.
            reason: Why, for the record; 1 to 2000 characters.
            actor: As for `submit`.
            once: As for `submit`.

        Raises:
            InputError: If the ledger has no such release, or the reason is missing.
            ConflictError: If it is not reserved any more.
            UnavailableError: As for `submit`.
        """
        return self._step(giving_up(release, reason), actor, once)

    # --- the ledger ---

    def standing(self, release: str) -> Standing:
        """Return the status of a release. Writes nothing, takes no turn.

        Args:
            release: The id.

        Raises:
            InputError: If the ledger knows no such release.
        """
        return self._checker.standing(release, self._clerk.compiled())

    def read_view(self, work: Callable[[LedgerView], T]) -> T:
        """Return the result of a read of the ledger. Writes nothing.

        One looks at a time; neither the writer nor a check waits for it.

        Args:
            work: The read; it keeps no reference to the view, and takes no turn.
        """
        return self._onlooker.read_view(work, self._clerk.compiled())

    def study(self, work: Callable[[LedgerView], T]) -> T:
        """Return the result of a slow read of the ledger. Writes nothing.

        One slow read runs at a time; neither the writer nor a check nor another read
        waits for it. Its book is built on first use.

        Args:
            work: As for `read_view`; it may read the whole log, and try releases.
        """
        return self._scholar.read_view(work, self._clerk.compiled())

    def recall(self, point: int | str, work: Callable[[LedgerView], T]) -> T:
        """Return the result of a read of the ledger as it was. Writes nothing.

        One runs at a time; nobody else waits for it. It replays the log from its
        beginning; the last few points are kept.

        Args:
            point: As for `LedgerView.as_of`.
            work: As for `study`. It sees the policy that was active then.

        Raises:
            UsageError: If the ledger did not exist yet, or the point is in the future.
        """
        past = self.read_view(lambda view: view.past_point(point))
        return self._past.read_view(past, work)

    def glance(self, work: Callable[[LedgerView], T]) -> T:
        """Return the result of a fast read: it delays checks while it runs.

        Args:
            work: As for `read_view`; it reads a record or two, and is quick.
        """
        return self._checker.read_view(work, self._clerk.compiled())

    def must_be_sound(self) -> None:
        """Read the present log, and refuse one that decisions cannot be based on.

        Raises:
            VerificationError: If it contradicts itself, or what was read before.
            UnavailableError: If it cannot be read now, or the clock jumped.
        """
        last = self._following.last_event()
        if last is not None:
            refuse_jump(self._clock, self._clock.now(), last.at)
        if isinstance(self._store, Timed):
            self._store.refuse_skew()
        if self._feed.is_suspect:
            self.glance(LedgerView.refuse_jump)
            self._feed.is_suspect = False

    @property
    def witness(self) -> HeadWitness | None:
        """The witness of the ledger's head; None if there is none."""
        store = self._store
        return store.witness if isinstance(store, WitnessedStore) else None

    @property
    def is_broken(self) -> bool:
        """Whether the log was found to contradict itself, or what was read before."""
        return self._feed.is_broken

    def governed(self, work: Callable[[Governance], T], *, quick: bool = False) -> T:
        """Return the result of a read of approvals. Writes nothing.

        Args:
            work: As for `read_view`.
            quick: Whether it is a fast read.
        """
        read_view = self.glance if quick else self.read_view
        return read_view(lambda view: work(self._office(view)))

    def studied(self, work: Callable[[Governance], T]) -> T:
        """Return the result of a slow read of governance state.

        Args:
            work: As for `study`.
        """
        return self.study(lambda view: work(self._office(view)))

    def policy(self) -> CompiledPolicy:
        """Return the policy that is decided by, as far as the writer has read."""
        return self._clerk.compiled()

    @property
    def waiting(self) -> int:
        """The number of requests that wait for the writer."""
        return self._desk.waiting

    def governance(
        self, actor: str = "", *, once: IdempotencyKey | None = None
    ) -> Governance:
        """Return the governance operations of an actor; for one thread.

        Args:
            actor: The actor; by default the decider's own.
            once: As for `submit`, for the one method that is used.
        """
        ledger = self._governed(actor, once)
        return Governance(ledger, ledger.actor)

    def rounds(
        self, actor: str = "", *, once: IdempotencyKey | None = None, read: Trees = None
    ) -> Rounds:
        """Return the planning operations of an actor; for one thread.

        Args:
            actor: The actor; by default the decider's own.
            once: As for `submit`, for the one method that is used.
            read: The releases of the plan that is committed, if they are parsed.
        """
        ledger = self._governed(actor, once)
        return Rounds(ledger, self._clock, ledger.actor, read)

    def escrow(
        self,
        tools: Tools | None,
        actor: str = "",
        *,
        once: IdempotencyKey | None = None,
        among: Collection[str] | None = None,
    ) -> EscrowActions:
        """Return the escrow operations of an actor; for one thread.

        Args:
            tools: The vault, sandboxes and engines; None for none.
            actor: The actor; by default the decider's own.
            once: As for `submit`, for one method that takes one turn.
            among: The data sets that they know of; None for all.
        """
        ledger = self._governed(actor, once)
        return EscrowActions(ledger, tools, self._clock, ledger.actor, among=among)

    def log(self) -> ReadOnlyStore:
        """Return the log, to be read beside all others: nothing is written by it."""
        return ReadLog(self._store)

    def turn(
        self,
        work: Callable[[Entry], T],
        *,
        actor: str = "",
        once: IdempotencyKey | None = None,
    ) -> T:
        """Return the result of some work in a turn; its events are durable.

        Args:
            work: Adds events; it decides nothing about releases.
            actor: As for `submit`.
            once: As for `submit`.

        Raises:
            UsageError: If there is no ledger.
            UnavailableError: As for `submit`.
            Replayed: As for `submit`.
        """
        self._desk.open_only()
        self._checker.must_exist()
        waiting = QueuedRequest(work, self._clerk.signed(actor), once=once)
        return cast(T, self._desk.submit(waiting, None))

    # --- the end ---

    def close(self, *, drain: bool = True) -> None:
        """Stop the writer and close the store; repeating does nothing.

        Args:
            drain: Whether waiting requests are still served; otherwise they are
                refused, with nothing done.
        """
        if self._desk.is_ours:
            self.readiness.close()
            self._desk.close(drain=drain)
            self._store.close()

    def __enter__(self) -> Decider:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- inside ---

    def _office(self, view: LedgerView) -> Governance:
        """Return governance operations without an actor, for reads."""
        return Governance(Governed(self, view, ""), "unknown")

    def _governed(self, actor: str, once: IdempotencyKey | None) -> Governed:
        view = self._checker.view(None)
        return Governed(self, view, self._clerk.signed(actor), once)

    def _step(
        self,
        body: ReleaseStarted | ReleasePosted | ReleaseVoided,
        actor: str,
        once: IdempotencyKey | None,
    ) -> Standing:
        return self.turn(partial(step, body), actor=actor, once=once)
