"""Looking at a ledger beside its writer: no turn, and mostly no store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from modicum.api.local import Clock, Decision
from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.submit import Submission
from modicum.api.ports.storage import SnapshotStore
from modicum.core.errors import Code, InputError, VerificationError
from modicum.ledger import Standing
from modicum.policy import CompiledPolicy
from modicum.writer.log_tail import FollowingStore

T = TypeVar("T")

#: The note on an object that the ledger does not know, or not yet.
_NOT_THERE = frozenset(
    {
        Code.RELEASE_UNKNOWN,
        Code.PLAN_UNKNOWN,
        Code.CONTRACT_UNKNOWN,
        Code.DATA_SET_UNKNOWN,
        Code.NOT_FOUND,
    }
)


class ReadSide:
    """Serves reads of a ledger; any thread may use it.

    It follows the log with its own book, on demand.

    Args:
        store: The store to follow.
        clock: The time of day.
        snapshots: The store of snapshots for a fast start.
    """

    def __init__(
        self, store: FollowingStore, clock: Clock, snapshots: SnapshotStore
    ) -> None:
        self._store = store
        self._clock = clock
        self._snapshots = snapshots
        self._guard = threading.Lock()
        self._view: LedgerView | None = None
        self._digest = ""

    def check(self, one: Submission, actor: str) -> Decision:
        """Return the decision as of now."""
        with self._reading():
            return self._following(one.compiled).check_prepared(one, actor=actor)

    def standing(self, release: str, compiled: CompiledPolicy) -> Standing:
        """Return the status of a release."""
        return self.read_view(lambda view: view.standing(release), compiled)

    def read_view(self, work: Callable[[LedgerView], T], compiled: CompiledPolicy) -> T:
        """Return the result of a read of the ledger."""
        with self._reading():
            view = self._following(compiled)
            try:
                return work(view)
            except InputError as mistake:
                if mistake.code not in _NOT_THERE:
                    raise
            # Another process may have just recorded it.
            self._store.refresh_now()
            return work(view)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Hold the lock; note what is found about the log."""
        with self._guard:
            try:
                yield
            except VerificationError:
                self._store.suspect()
                raise

    def must_exist(self) -> None:
        """Refuse to go on if there is no ledger."""
        if not self._store.exists():
            self.view(None).current()  # It reports what is missing.

    def view(self, compiled: CompiledPolicy | None) -> LedgerView:
        """Return a separate view, for one thread."""
        return LedgerView(
            self._store, self._clock, policy=compiled, snapshots=self._snapshots
        )

    def _following(self, compiled: CompiledPolicy) -> LedgerView:
        """Return the view that all share; another policy makes it anew."""
        digest = compiled.policy.digest
        if self._view is None or self._digest != digest:
            view = self.view(compiled)
            if self._store.exists():
                # A snapshot has balances, which are lost once entries are read without.
                view.current(deciding=True)
            self._view, self._digest = view, digest
        return self._view
